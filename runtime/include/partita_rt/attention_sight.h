// Which keys the queries of attention see. Every kernel, forward and backward, chooses its tiles by
// this alone: causal masks, windows and documents are one loop over a range of tiles.

#ifndef PARTITA_RT_ATTENTION_SIGHT_H
#define PARTITA_RT_ATTENTION_SIGHT_H

#include "partita_rt/host_device.h"
#include "partita_rt/kernels.h"

namespace partita_rt {

/// One sequence's: query i sees keys first(i) .. end(i) - 1. Both are nondecreasing in i, so that
/// consecutive queries see one range of keys, and consecutive keys are seen by one range of queries.
/// Int: of positions. kDocuments: false in kernels for calls without first keys, which need registers
/// for them.
template <typename Int, bool kDocuments = true> struct Sight {
  Int queries, keys, window;
  bool causal;
  const int32_t *firstKeys; ///< of each query, unless null

  PARTITA_RT_HOST_DEVICE Sight(const AttentionShape &shape, int64_t sequence)
      : queries(Int(shape.sequence)), keys(Int(shape.keySequence)),
        window(Int(shape.window < shape.keySequence ? shape.window : shape.keySequence)),
        causal(shape.causal),
        firstKeys(shape.firstKeys ? shape.firstKeys + sequence * shape.sequence : nullptr) {}

  PARTITA_RT_HOST_DEVICE Int end(Int query) const {
    Int seen = query + 1 + keys - queries;
    return !causal || seen > keys ? keys : seen > 0 ? seen : 0;
  }
  /// Also of a query after the last one, in a tile's empty rows.
  PARTITA_RT_HOST_DEVICE Int first(Int query) const {
    Int first = window ? end(query) - window : 0;
    if (kDocuments && firstKeys) {
      Int document = Int(firstKeys[query < queries ? query : queries - 1]);
      first = first > document ? first : document;
    }
    return first > 0 ? first : 0;
  }
  /// May keys before those that a query sees be hidden from it?
  PARTITA_RT_HOST_DEVICE bool hidesBefore() const {
    return window != 0 || (kDocuments && firstKeys);
  }

  /// Does any of queries [query, last] see one of keys [key, keyEnd)?
  PARTITA_RT_HOST_DEVICE bool meets(Int query, Int last, Int key, Int keyEnd) const {
    return query <= last && key < end(last) && keyEnd > first(query);
  }
  /// Is any of these keys hidden from one of these queries?
  PARTITA_RT_HOST_DEVICE bool hides(Int query, Int last, Int key, Int keyEnd) const {
    return keyEnd > end(query) || key < first(last);
  }

  /// The first query that sees the key or a later one.
  PARTITA_RT_HOST_DEVICE Int firstQuery(Int key) const {
    Int query = causal ? key + queries - keys : 0;
    return query < 0 ? 0 : query > queries ? queries : query;
  }
  /// The end of the queries that see a key before `keyEnd`: those after it only see later ones.
  PARTITA_RT_HOST_DEVICE Int endQuery(Int keyEnd) const {
    Int end = queries;
    if (window && causal) { // query + 1 + keys - queries - window < keyEnd
      Int after = keyEnd + window - 1 - (keys - queries);
      end = after < end ? after : end;
    } else if (window && keyEnd <= keys - window) {
      end = 0;
    }
    if (!kDocuments || !firstKeys)
      return end;
    Int low = 0, high = end > 0 ? end : 0;
    while (low < high) {
      Int middle = low + (high - low) / 2;
      if (firstKeys[middle] < keyEnd)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

} // namespace partita_rt

#endif // PARTITA_RT_ATTENTION_SIGHT_H
