// Which probabilities of attention are dropped: the numbers of their elements.

#ifndef PARTITA_RT_ATTENTION_DROPS_H
#define PARTITA_RT_ATTENTION_DROPS_H

#include "partita_rt/attention_runs.h"
#include "partita_rt/random.h"

namespace partita_rt {

/// Of one rank; none for a call without dropout. The other probabilities are multiplied by `scale`.
struct AttentionDrops {
  Drops drops;
  float scale;
  int64_t first;           ///< number of element (0, 0, 0, 0)
  int64_t ofHead, ofBatch; ///< elements of a head, and of a sequence's heads in the full tensor
  int64_t keys;            ///< of the full sequence

  PARTITA_RT_HOST_DEVICE explicit AttentionDrops(const AttentionShape &shape)
      : drops(shape.dropout.ratio, shape.dropout.key ? uint64_t(*shape.dropout.key) : 0,
              shape.dropout.id),
        scale(shape.dropout.ratio < 1.0 ? float(1.0 / (1.0 - shape.dropout.ratio)) : 0.0f),
        first(shape.dropout.first ? *shape.dropout.first : 0),
        ofHead(fullLength(shape.queries, shape.sequence) *
               fullLength(shape.keys, shape.keySequence)),
        ofBatch(shape.dropout.heads * ofHead), keys(fullLength(shape.keys, shape.keySequence)) {
    first += (shape.dropout.micro ? *shape.dropout.micro : 0) * shape.dropout.batch * ofBatch;
    first += firstNumber(shape.queries) * keys + firstNumber(shape.keys);
  }
  /// The number of the probability of key 0 for a query.
  PARTITA_RT_HOST_DEVICE int64_t row(int64_t batch, int64_t head, int64_t query) const {
    return first + batch * ofBatch + head * ofHead + query * keys;
  }
};

} // namespace partita_rt

#endif // PARTITA_RT_ATTENTION_DROPS_H
