//===- Chunks.h - sums of numbers in 4 bits ------------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_INTERP_CHUNKS_H
#define PARTITA_LIB_INTERP_CHUNKS_H

#include "lib/Interp/Execution.h"

namespace partita::interp {

/// Returns each rank's shard, of this type, of the sum over its group along `axis` of values that are rounded to 4 bits
/// in blocks (zero.quantize_chunks).
RankTensors scatteredInBlocks(Execution &execution, llvm::StringRef axis, const RankTensors &values,
                              mlir::RankedTensorType shard, int64_t block);

} // namespace partita::interp

#endif // PARTITA_LIB_INTERP_CHUNKS_H
