//===- OneBit.h - sums that send a bit per element ----------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PAR_ONEBIT_H
#define PARTITA_DIALECTS_PAR_ONEBIT_H

#include "dialects/Par/Placement.h"

namespace partita::par {

/// The elements of a tensor's shards along the axis that splits its outermost dimension, without the padding in which the last
/// shards end: the rank at place r of the axis has those from r n on, for shards of n elements.
struct OneBitPadding {
  mlir::StringAttr axis; ///< null without padding
  int64_t elements = 0;
  /// How many of a shard's n elements are no padding.
  int64_t validOf(int64_t n, int64_t place) const;
};

} // namespace partita::par

#define GET_OP_CLASSES
#include "dialects/Par/OneBit.h.inc"

namespace partita::par {

/// Does any op in `root` sum with a bit per element?
bool hasOneBitSums(mlir::Operation *root);

} // namespace partita::par

#endif // PARTITA_DIALECTS_PAR_ONEBIT_H
