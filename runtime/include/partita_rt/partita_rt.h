// All that an emitted program may call. Start with program.h.

#ifndef PARTITA_RT_PARTITA_RT_H
#define PARTITA_RT_PARTITA_RT_H

#include "partita_rt/changes.h"
#include "partita_rt/channel.h"
#include "partita_rt/comm.h"
#include "partita_rt/half.h"
#include "partita_rt/init.h"
#include "partita_rt/kernels.h"
#include "partita_rt/math.h"
#include "partita_rt/one_bit.h"
#include "partita_rt/program.h"
#include "partita_rt/transfer.h"
#include "partita_rt/types.h"
#include "partita_rt/work.h"

#endif // PARTITA_RT_PARTITA_RT_H
