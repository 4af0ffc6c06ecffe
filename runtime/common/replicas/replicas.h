// --check-replicas: compares what several ranks hold (replica_sets.h), by hashes
// (partita_rt/replica_hash.h).
//
// All ranks gather one number per set of tensors. Only if these differ, a second gather of one number
// per tensor says which tensor and, by majority, which rank; a few more find the first element. The
// rank that differs reports it, and all end.
//
// A parameter with a flipped exponent may make a step's loss infinite or NaN before the next check,
// and that step's update then makes all replicas NaN alike. So on CPUs the gradients that a step
// exposes are sampled, and at the first that is not finite a rank hashes its replicas, before the
// update: what it compares if the run would fail for its loss.

#ifndef PARTITA_RT_COMMON_REPLICAS_REPLICAS_H
#define PARTITA_RT_COMMON_REPLICAS_REPLICAS_H

#include "common/checkpoint/gradients.h"
#include "common/replicas/replica_sets.h"
#include "common/run_options.h"
#include "common/seconds.h"
#include "common/target.h"

#include <map>
#include <string>
#include <vector>

namespace partita_rt {

class ReplicaCheck : GradientSink {
public:
  ReplicaCheck(Rank &rank, const RunOptions &options);
  ReplicaCheck(const ReplicaCheck &) = delete;
  ReplicaCheck &operator=(const ReplicaCheck &) = delete;

  // All of these throw Error, on all ranks, if replicas differ; all ranks call them, and wait for
  // each other where there is something to compare.

  /// Prints on rank 0 what is compared, and compares it, with `step` steps done.
  void begin(int64_t step);
  /// Compares if a check is due.
  void afterStep(int64_t step, const StepReport &report);
  /// Compares unless that has been done after this step.
  void beforeSave(int64_t step);
  /// Returns the hashes of this rank's replicas, by tensor, which the last check has found equal on all ranks. What is
  /// saved beside the next step must have them.
  std::map<std::string, uint64_t> comparedHashes() const;

  /// Returns what must receive the gradients of this step; null: nothing.
  GradientSink *watch(int64_t step);
  /// Compares what was hashed before the update that made the run's loss infinite or NaN, if ranks
  /// agree that one did. Some ranks may not call this, if only others' losses are so.
  void beforeFailure(int64_t step);

  /// Prints a closing line on what was compared, on rank 0.
  void summarize() const;

private:
  void add(Rank &rank, int parameter, const void *gradient, DType dtype,
           std::initializer_list<int> flatOver) override;
  bool isOn() const { return every > 0 && rank.ranks > 1; }
  void check(int64_t step);
  std::vector<uint64_t> hashes() const;
  std::vector<int64_t> digests(const std::vector<uint64_t> &own) const;
  bool areEqual(const std::vector<int64_t> &all, size_t words, size_t begin) const;
  [[noreturn]] void report(const std::vector<uint64_t> &own, const std::string &when,
                           bool isInMemory);
  uint64_t reportHash() const;

  Rank &rank;
  const RunOptions &options;
  int64_t every;
  std::vector<TensorShard> shards;
  std::vector<ReplicaSet> sets; ///< of `shards`, and of what a step reports, one number more
  std::vector<HashedRun> runs;  ///< of this rank's replicas
  StepReport last;              ///< of the last step
  int64_t lastStep = 0;
  int64_t equalAfter = -1;        ///< the last step after which all were equal; -1: none
  std::vector<uint64_t> compared; ///< hashes of the last check
  std::vector<uint64_t>
      evidence; ///< hashes before the first update by gradients that are not finite
  int64_t watched = 0, noted = -1; ///< the step being watched, and that of the evidence
  bool isFinite = true;            ///< the gradients of the step being watched, so far
  int64_t checks = 0;
  double seconds = 0; ///< of the checks
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_REPLICAS_REPLICAS_H
