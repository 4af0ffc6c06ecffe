//===- OneBit.h - sums that send a bit per element ----------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PAR_ONEBIT_H
#define PARTITA_DIALECTS_PAR_ONEBIT_H

#include "dialects/Par/Placement.h"

#define GET_OP_CLASSES
#include "dialects/Par/OneBit.h.inc"

#endif // PARTITA_DIALECTS_PAR_ONEBIT_H
