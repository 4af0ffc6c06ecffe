// Which keys the queries of attention see. Every kernel, forward and backward, chooses its tiles by
// this alone: causal masks, windows and documents are one loop over a range of tiles.

#ifndef PARTITA_RT_ATTENTION_SIGHT_H
#define PARTITA_RT_ATTENTION_SIGHT_H

#include "partita_rt/attention_runs.h"
#include "partita_rt/host_device.h"
#include "partita_rt/kernels.h"

namespace partita_rt {

/// One sequence's: query i sees keys first(i) .. end(i) - 1. Both are nondecreasing in i, so that
/// consecutive queries see one range of keys, and consecutive keys are seen by one range of queries.
/// Int: of positions. kDocuments: false in kernels for calls without first keys, which need registers
/// for them. kRuns: the queries and the keys may each be one run of a longer sequence (SequenceRuns);
/// they are numbered from 0 here, keys of the full sequence from -keyNumber to `last`.
template <typename Int, bool kDocuments = true, bool kRuns = false> struct Sight {
  Int queries, keys, window;
  bool causal;
  const int32_t *firstKeys; ///< of each query, unless null
  Int queryNumber = 0,
      keyNumber = 0;                ///< in the full sequences, of the first query and the first key
  Int runDiagonal = 0, runLast = 0; ///< if kRuns, of these

  PARTITA_RT_HOST_DEVICE Sight(const AttentionShape &shape, int64_t sequence)
      : queries(Int(shape.sequence)), keys(Int(shape.keySequence)), window(Int(shape.window)),
        causal(shape.causal),
        firstKeys(shape.firstKeys ? shape.firstKeys + sequence * queryPitch(shape) : nullptr) {
    int64_t all = shape.keySequence;
    if constexpr (kRuns) {
      all = fullLength(shape.keys, all);
      queryNumber = Int(firstNumber(shape.queries));
      keyNumber = Int(firstNumber(shape.keys));
      runLast = Int(all) - keyNumber;
      runDiagonal = runLast + queryNumber - Int(fullLength(shape.queries, shape.sequence));
    }
    if (shape.window > all)
      window = Int(all);
  }

  /// Where the keys of the full sequence end.
  PARTITA_RT_HOST_DEVICE Int last() const {
    if constexpr (kRuns)
      return runLast;
    return keys;
  }
  /// A causal mask lets query i see keys up to i + diagonal().
  PARTITA_RT_HOST_DEVICE Int diagonal() const {
    if constexpr (kRuns)
      return runDiagonal;
    return keys - queries;
  }

  /// Of the full sequence's keys, the end of those that a query sees,
  PARTITA_RT_HOST_DEVICE Int endOfAll(Int query) const {
    Int seen = query + 1 + diagonal(), none = -keyNumber;
    return !causal || seen > last() ? last() : seen > none ? seen : none;
  }
  /// and their first. Also of a query after the last one, in a tile's empty rows.
  PARTITA_RT_HOST_DEVICE Int firstOfAll(Int query) const {
    Int none = -keyNumber, first = window ? endOfAll(query) - window : none;
    if (kDocuments && firstKeys) {
      Int document = Int(firstKeys[query < queries ? query : queries - 1]) - keyNumber;
      first = first > document ? first : document;
    }
    return first > none ? first : none;
  }
  PARTITA_RT_HOST_DEVICE Int end(Int query) const { return inside(endOfAll(query)); }
  PARTITA_RT_HOST_DEVICE Int first(Int query) const { return inside(firstOfAll(query)); }
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
    Int query = causal ? key - diagonal() : 0;
    return query < 0 ? 0 : query > queries ? queries : query;
  }
  /// The end of the queries that see a key before `keyEnd`: those after it only see later ones.
  PARTITA_RT_HOST_DEVICE Int endQuery(Int keyEnd) const {
    Int end = queries;
    if (window && causal) { // query + 1 + diagonal() - window < keyEnd
      Int after = keyEnd + window - 1 - diagonal();
      end = after < end ? after : end;
    } else if (window && keyEnd <= last() - window) {
      end = 0;
    }
    if (!kDocuments || !firstKeys)
      return end;
    Int low = 0, high = end > 0 ? end : 0;
    while (low < high) {
      Int middle = low + (high - low) / 2;
      if (Int(firstKeys[middle]) - keyNumber < keyEnd)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

private:
  /// The nearest of these keys, or their end. Without runs, no key of the full sequence lies elsewhere.
  PARTITA_RT_HOST_DEVICE Int inside(Int key) const {
    if constexpr (kRuns)
      return key < 0 ? 0 : key > keys ? keys : key;
    return key;
  }
};
/// Of any call.
using RunSight = Sight<int64_t, true, true>;

} // namespace partita_rt

#endif // PARTITA_RT_ATTENTION_SIGHT_H
