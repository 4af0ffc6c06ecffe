//===- OneBit.h - kernels of sums that send a bit per element -----------------------*- C++ -*-===//

#ifndef PARTITA_LIB_INTERP_ONEBIT_H
#define PARTITA_LIB_INTERP_ONEBIT_H

namespace partita::interp {
struct KernelTable;
void addOneBitKernels(KernelTable &table);
} // namespace partita::interp

#endif // PARTITA_LIB_INTERP_ONEBIT_H
