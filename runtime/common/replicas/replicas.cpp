// When replicas are compared, and what a difference ends the run with (replicas.h).

#include "common/replicas/replicas.h"

#include "common/grouped.h"
#include "common/mesh/gathered.h"
#include "common/replicas/replica_element.h"
#include "common/report/summary.h"
#include "common/start_marks.h"
#include "common/target.h"
#include "common/tensors/layout.h"
#include "common/watch/rank_position.h"
#include "partita_rt/comm.h"
#include "partita_rt/machine.h"
#include "partita_rt/replica_hash.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

namespace partita_rt {

/// Returns a name for what a step reports, after those of the tensors.
static std::vector<std::string> namesOf(const std::vector<TensorShard> &shards) {
  std::vector<std::string> names;
  for (const TensorShard &shard : shards)
    names.push_back(shard.name);
  names.push_back("the step's loss, gradient norm or rate");
  return names;
}

ReplicaCheck::ReplicaCheck(Rank &rank, const RunOptions &options)
    : rank(rank), options(options), every(options.checkReplicas) {
  if (!isOn())
    return;
  shards = persistentShards(rank);
  sets = replicaSets(*rank.program, shards);
  for (const ReplicaSet &set : sets)
    for (size_t i : set.tensors)
      addHashedRuns(rank, shards[i], i, runs);
  sets.push_back({std::vector<int>(size_t(rank.ranks)), {shards.size()}});
}

uint64_t ReplicaCheck::reportHash() const {
  double numbers[] = {double(last.loss),           double(last.gradientNorm),
                      double(last.lossScale),      double(last.tokenCount),
                      double(last.skippedSteps),   double(rank.learningRate),
                      double(last.scaleExhausted), double(lastStep)};
  return replicaHash(numbers, sizeof(numbers), 0);
}

/// Returns the hash of every tensor, with 0 for those that no other rank has.
std::vector<uint64_t> ReplicaCheck::hashes() const {
  std::vector<uint64_t> all = hashRuns(rank, runs, shards.size() + 1);
  all[shards.size()] = reportHash();
  return all;
}

/// Returns a number per set, which differs if one hash does.
std::vector<int64_t> ReplicaCheck::digests(const std::vector<uint64_t> &own) const {
  std::vector<int64_t> digests;
  for (const ReplicaSet &set : sets) {
    uint64_t digest = 0;
    for (size_t tensor : set.tensors)
      digest = (digest ^ own[tensor]) * 0x9E3779B97F4A7C15u; // odd: no hash is lost
    digests.push_back(int64_t(digest));
  }
  return digests;
}

/// Compares all ranks' digests, which begin after `begin` of each rank's words.
bool ReplicaCheck::areEqual(const std::vector<int64_t> &all, size_t words, size_t begin) const {
  for (size_t s = 0; s < sets.size(); ++s)
    for (size_t r = 0; r < sets[s].first.size(); ++r)
      if (int first = sets[s].first[r];
          first >= 0 && all[r * words + begin + s] != all[size_t(first) * words + begin + s])
        return false;
  return true;
}

/// Ends the run on all ranks; the first rank that differs says why. `isInMemory`: the tensors still
/// have the values that were hashed.
void ReplicaCheck::report(const std::vector<uint64_t> &own, const std::string &when,
                          bool isInMemory) {
  noteFault(); // before step 1 too
  size_t words = own.size();
  std::vector<uint64_t> all = gathered(rank, own, "the hashes of replicas");
  std::vector<ReplicaDifference> differences = findDifferences(*rank.program, sets, all, words);
  if (differences.empty())
    fail("%s the digests of replicas differ, but not their hashes", when.c_str());
  const ReplicaDifference &first = differences.front();
  std::string element;
  if (isInMemory && first.tensor < shards.size())
    element = differingElementText(rank, shards[first.tensor], first);
  if (rank.rank != first.odd.front()) {
    barrier(*rank.world, "the end of a run whose replicas differ"); // until it has said so
    fail("replicas differ");
  }
  std::string text = when + " " + differenceText(differences, namesOf(shards)) + element;
  if (equalAfter >= 0)
    text += "; all were equal " + (equalAfter == 0 ? std::string("before step 1")
                                                   : "after step " + std::to_string(equalAfter));
  std::string who = first.equal.empty() ? "one of these ranks" : ranksText(first.odd);
  if (!first.equal.empty() && first.odd.size() == 1)
    who += " (host " + hostName() + ")";
  text += "; the memory or arithmetic of " + who + " is faulty";
  if (!options.checkpoint.empty() && equalAfter >= 0)
    text +=
        "; this run has saved its checkpoints in " + options.checkpoint + " while all were equal";
  fail("%s", text.c_str());
}

void ReplicaCheck::check(int64_t step) {
  Clock::time_point begin = Clock::now();
  std::vector<uint64_t> own = hashes();
  std::vector<int64_t> mine = digests(own), all = gathered(rank, mine, "the replicas");
  if (!areEqual(all, mine.size(), 0))
    report(own, step == 0 ? "before step 1" : "after step " + std::to_string(step), true);
  equalAfter = step;
  compared = std::move(own);
  ++checks;
  seconds += secondsSince(begin);
}

void ReplicaCheck::begin(int64_t step) {
  if (rank.rank == 0 && every > 0) {
    size_t tensors = 0;
    int64_t bytes = 0;
    for (const ReplicaSet &set : sets)
      tensors += set.tensors.size();
    for (const HashedRun &run : runs)
      bytes += run.bytes;
    const char *label = "replicas";
    if (rank.ranks == 1)
      writeLine(label, "none: the program has one rank, and --check-replicas nothing to compare");
    else if (tensors == 1) // what a step reports
      writeLine(label, "none: each rank has other parameters and states, and --check-replicas "
                       "compares the loss alone");
    else
      writeLine(label, grouped(int64_t(tensors) - 1) + " of " + grouped(int64_t(shards.size())) +
                           " parameters and states are on several ranks, " + grouped(bytes) +
                           " bytes of rank 0; compared every " +
                           (every == 1 ? "step" : grouped(every) + " steps") +
                           (options.checkpoint.empty() ? "" : " and before each checkpoint"));
  }
  if (isOn())
    check(lastStep = step);
}

void ReplicaCheck::afterStep(int64_t step, const StepReport &report) {
  if (report.skippedSteps > last.skippedSteps)
    noted = -1; // a loss scale was too large, and there was no update
  last = report;
  lastStep = step;
  if (isOn() && (step % every == 0 || step == *options.steps))
    check(step);
}

void ReplicaCheck::beforeSave(int64_t step) {
  if (isOn() && equalAfter != step)
    check(step);
}

std::map<std::string, uint64_t> ReplicaCheck::comparedHashes() const {
  std::map<std::string, uint64_t> hashes;
  for (const ReplicaSet &set : sets)
    for (size_t tensor : set.tensors)
      if (tensor < std::min(shards.size(), compared.size()) && set.first[size_t(rank.rank)] >= 0)
        hashes[shards[tensor].name] = compared[tensor];
  return hashes;
}

//===-- Steps whose loss is infinite or NaN --------------------------------------------------===//

GradientSink *ReplicaCheck::watch(int64_t step) {
  if (!isOn() || !deviceIsHost())
    return nullptr;
  if (isFinite)
    noted = -1; // of a step before that was skipped
  isFinite = true;
  watched = step;
  return this;
}

/// Is a float's exponent all ones?
static bool isNonfinite(const char *element, DType dtype) {
  uint32_t wide = 0;
  uint16_t narrow = 0;
  if (dtype == DType::Float32) {
    std::memcpy(&wide, element, sizeof(wide));
    return (wide & 0x7f800000u) == 0x7f800000u;
  }
  std::memcpy(&narrow, element, sizeof(narrow));
  unsigned exponent = dtype == DType::Float16 ? 0x7c00 : 0x7f80;
  return (narrow & exponent) == exponent;
}

/// Looks at a few elements: a loss that is NaN makes almost all gradients so.
void ReplicaCheck::add(Rank &, int parameter, const void *gradient, DType dtype,
                       std::initializer_list<int> flatOver) {
  constexpr int64_t kSamples = 64;
  if (!isFinite)
    return;
  int64_t count = rank.program->parameters[parameter].localShape.elements(), width = sizeOf(dtype);
  for (int axis : flatOver)
    count = flatShardSize(count, rank.program->mesh[axis].size);
  int64_t step = std::max<int64_t>(1, count / kSamples);
  for (int64_t i = 0; i < count && isFinite; i += step)
    isFinite = !isNonfinite(static_cast<const char *>(gradient) + i * width, dtype);
  if (isFinite || noted >= 0)
    return;
  evidence = hashes();
  noted = watched;
}

void ReplicaCheck::beforeFailure(int64_t step) {
  constexpr double kPatience = 5; // seconds
  if (!isOn() || !deviceIsHost())
    return;
  std::vector<uint64_t> own = evidence;
  if (noted < 0)
    own.assign(shards.size() + 1, 0);
  own.back() = 0; // what the step reports may differ by then
  // Kept if other ranks do not come: they may still read it.
  struct Gathered {
    std::vector<int64_t> mine, all;
  };
  auto gathered = std::make_unique<Gathered>();
  gathered->mine = digests(own);
  size_t words = gathered->mine.size() + 1;
  gathered->mine.insert(gathered->mine.begin(), noted);
  gathered->all.resize(words * size_t(rank.ranks));
  Pending pending =
      allGatherStart(*rank.world, {{gathered->mine.data(), gathered->all.data(), int64_t(words)}},
                     "the replicas of a step whose loss is not finite");
  for (Clock::time_point begin = Clock::now(); !rank.world->isComplete(pending.number);) {
    if (secondsSince(begin) > kPatience) {
      static_cast<void>(gathered.release());
      return;
    }
    poll(*rank.world, 1 << 20);
    std::this_thread::yield();
  }
  wait(pending);
  for (size_t r = 0; r < size_t(rank.ranks); ++r)
    if (gathered->all[r * words] != gathered->all[0] || gathered->all[0] < 0)
      return; // not hashed at the same moment
  if (!areEqual(gathered->all, words, 1))
    report(own,
           "the loss of step " + std::to_string(step) +
               " is not finite, and before the update of step " + std::to_string(noted),
           false);
}

void ReplicaCheck::summarize() const {
  if (checks > 0 && rank.rank == 0)
    writeLine("replicas", "compared " + grouped(checks) + (checks == 1 ? " time" : " times") +
                              " and always equal; " + format("%.3f", seconds) + " s");
}

} // namespace partita_rt
