// Parts of a sequence, run by run (SequenceRuns): a kernel computes a run of queries against a run of keys.

#ifndef PARTITA_RT_ATTENTION_RUNS_H
#define PARTITA_RT_ATTENTION_RUNS_H

#include "partita_rt/attention.h"
#include "partita_rt/host_device.h"

#include <type_traits>

namespace partita_rt {

/// Positions of the full sequence, of which the rank has `here`.
PARTITA_RT_HOST_DEVICE inline int64_t fullLength(const SequenceRuns &runs, int64_t here) {
  return runs.full ? runs.full : here;
}
/// The number in the full sequence of the first position of a run.
PARTITA_RT_HOST_DEVICE inline int64_t firstNumber(const SequenceRuns &run) {
  return run.first ? *run.first : 0;
}
/// Queries from one head to the next in logSumExp and workspaces, and from one sequence to the next in firstKeys.
PARTITA_RT_HOST_DEVICE inline int64_t queryPitch(const AttentionShape &shape) {
  return shape.queries.pitch ? shape.queries.pitch : shape.sequence;
}

/// One run of queries and one of keys, as a shape of their own. The caller moves its other pointers to their first
/// positions.
inline AttentionShape shapeOfRuns(const AttentionShape &shape, int64_t queryRun, int64_t keyRun) {
  AttentionShape pair = shape;
  auto turnTo = [](SequenceRuns &runs, int64_t &length, int64_t number) {
    runs.full = fullLength(runs, length);
    runs.pitch = runs.pitch ? runs.pitch : length;
    length /= runs.runs;
    runs.first = runs.first ? runs.first + number : nullptr;
    runs.runs = 1;
  };
  turnTo(pair.queries, pair.sequence, queryRun);
  turnTo(pair.keys, pair.keySequence, keyRun);
  if (shape.firstKeys)
    pair.firstKeys = shape.firstKeys + queryRun * pair.sequence;
  return pair;
}

/// Calls visit(shape, query, key) for each run of queries and each of keys: the shape of the two, and where they
/// begin among the rank's positions. Keys change last.
template <typename Visit> void forRuns(const AttentionShape &shape, Visit visit) {
  for (int64_t key = 0; key < shape.keys.runs; ++key)
    for (int64_t query = 0; query < shape.queries.runs; ++query) {
      AttentionShape pair = shapeOfRuns(shape, query, key);
      visit(pair, query * pair.sequence, key * pair.keySequence);
    }
}

/// The rows of a tensor of heads from one position on.
template <typename T> HeadsOf<T> fromRow(HeadsOf<T> heads, int64_t row) {
  heads.data += row * heads.rowStride;
  return heads;
}

/// The rows of scores from one query on.
template <typename T> ScoresOf<T> fromRow(ScoresOf<T> scores, int64_t query) {
  int64_t elements = query * scores.rowStride;
  if constexpr (std::is_pointer_v<FloatOr<T>>) {
    scores.data = scores.data ? scores.data + elements : nullptr;
  } else if (scores.data) {
    if (scores.data.isFloat)
      scores.data = scores.data.asFloat() + elements;
    else
      scores.data = scores.data.asOther() + elements;
  }
  return scores;
}

} // namespace partita_rt

#endif // PARTITA_RT_ATTENTION_RUNS_H
