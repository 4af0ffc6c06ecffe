//===- Blockwise.h - numbers in 8 bits and a scale per block ------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_INTERP_BLOCKWISE_H
#define PARTITA_LIB_INTERP_BLOCKWISE_H

#include "partita/Interp/Tensor.h"

namespace partita::interp {

/// Returns each rank's tensor rounded as by zero.round_blocks, in blocks of consecutive elements.
RankTensors roundedInBlocks(const RankTensors &tensors, int64_t block);

} // namespace partita::interp

#endif // PARTITA_LIB_INTERP_BLOCKWISE_H
