// Sets of replicas, and their differences (replica_sets.h).

#include "common/replicas/replica_sets.h"

#include "common/grouped.h"
#include "common/mesh/mesh.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace partita_rt {

/// Returns, by rank, the first rank with the same shard; empty if no two ranks have the same.
static std::vector<int> firstOwners(const Program &program, const TensorShard &shard) {
  std::vector<int> first;
  bool shared = false;
  for (int r = 0; r < rankCount(program); ++r) {
    Rank rank;
    setCoordinates(rank, program, r);
    bool holds = shard.stages.contains(rank.stageNumber);
    first.push_back(holds ? firstOwner(program, rank.coordinates, shard.splits, shard.stages) : -1);
    shared |= holds && first.back() != r;
  }
  return shared ? first : std::vector<int>();
}

std::vector<ReplicaSet> replicaSets(const Program &program,
                                    const std::vector<TensorShard> &shards) {
  // A large mesh has many ranks, and few combinations of axes and stages.
  std::map<std::pair<uint64_t, uint64_t>, size_t>
      known; // to the number of its set, from 1; 0: none
  std::vector<ReplicaSet> sets;
  for (size_t i = 0; i < shards.size(); ++i) {
    AxisSet axes({});
    for (const Split &split : shards[i].splits)
      axes.bits |= uint64_t(1) << split.axis;
    auto [at, isNew] = known.insert({{axes.bits, shards[i].stages.bits}, 0});
    if (isNew) {
      if (std::vector<int> first = firstOwners(program, shards[i]); !first.empty()) {
        sets.push_back({std::move(first), {}});
        at->second = sets.size();
      }
    }
    if (at->second > 0)
      sets[at->second - 1].tensors.push_back(i);
  }
  return sets;
}

namespace {

/// Ranks with replicas of a tensor: all of them, or those along one mesh axis.
using ReplicaGroup = std::vector<int>;
constexpr int kAllAxes = -1;

/// Returns the groups of a set, along an axis.
std::vector<ReplicaGroup> groupsOf(const Program &program, const ReplicaSet &set, int axis) {
  // By first owner, and by the group's first rank.
  std::map<std::pair<int, int>, ReplicaGroup> groups;
  int below = 1;
  for (int64_t inner = program.mesh.size() - 1; inner > axis; --inner)
    below *= program.mesh[inner].size;
  auto begin = [&](int r) {
    return axis == kAllAxes ? 0 : r - r / below % program.mesh[axis].size * below;
  };
  for (int r = 0; r < int(set.first.size()); ++r)
    if (int first = set.first[size_t(r)]; first >= 0)
      groups[{first, begin(r)}].push_back(r);
  std::vector<ReplicaGroup> result;
  for (auto &[key, group] : groups)
    if (group.size() > 1)
      result.push_back(std::move(group));
  return result;
}

/// Adds the difference of a tensor's hashes (one per rank) in a group, if there is one.
void addDifference(const ReplicaGroup &group, size_t tensor,
                   const std::function<uint64_t(int rank)> &hashOn,
                   std::vector<ReplicaDifference> &differences) {
  std::map<uint64_t, size_t> counts;
  for (int r : group)
    ++counts[hashOn(r)];
  if (counts.size() < 2)
    return;
  ReplicaDifference difference{tensor, {}, {}};
  for (int r : group) {
    bool isMajority = 2 * counts[hashOn(r)] > group.size();
    (isMajority ? difference.equal : difference.odd).push_back(r);
  }
  differences.push_back(std::move(difference));
}

size_t tensorsIn(const std::vector<ReplicaDifference> &differences) {
  std::set<size_t> tensors;
  for (const ReplicaDifference &each : differences)
    tensors.insert(each.tensor);
  return tensors.size();
}

} // namespace

std::vector<ReplicaDifference> findDifferences(const Program &program,
                                               const std::vector<ReplicaSet> &sets,
                                               const std::vector<uint64_t> &hashes,
                                               size_t tensors) {
  std::vector<ReplicaDifference> fewest;
  for (int axis = kAllAxes; axis < int(program.mesh.size()); ++axis) {
    std::vector<ReplicaDifference> along;
    for (const ReplicaSet &set : sets)
      for (const ReplicaGroup &group : groupsOf(program, set, axis))
        for (size_t tensor : set.tensors)
          addDifference(
              group, tensor, [&](int r) { return hashes[size_t(r) * tensors + tensor]; }, along);
    if (!along.empty() && (fewest.empty() || tensorsIn(along) < tensorsIn(fewest)))
      fewest = std::move(along); // of all axes if no axis has fewer: more ranks are a majority
  }
  std::stable_sort(fewest.begin(), fewest.end(),
                   [](const auto &a, const auto &b) { return a.tensor < b.tensor; });
  return fewest;
}

std::string ranksText(const std::vector<int> &ranks) {
  constexpr size_t kMost = 16; // of a large mesh, some
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t named = std::min(ranks.size(), kMost);
  for (size_t i = 0; i < named; ++i) {
    bool isLast = i + 1 == ranks.size();
    text += (i == 0 ? "" : isLast ? " and " : ", ") + std::to_string(ranks[i]);
  }
  if (named < ranks.size())
    text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
}

std::string differenceText(const std::vector<ReplicaDifference> &differences,
                           const std::vector<std::string> &names) {
  constexpr size_t kNamed = 3;
  std::vector<size_t> tensors;
  for (const ReplicaDifference &each : differences)
    if (tensors.empty() || tensors.back() != each.tensor)
      tensors.push_back(each.tensor);
  std::string text = "the replicas of ";
  for (size_t i = 0; i < std::min(tensors.size(), kNamed); ++i)
    text += (i == 0 ? "" : i + 1 == tensors.size() ? " and " : ", ") + names[tensors[i]];
  if (tensors.size() > kNamed)
    text += " and " + grouped(int64_t(tensors.size() - kNamed)) + " more tensors";
  const ReplicaDifference &first = differences.front();
  text += " differ: ";
  if (!first.equal.empty())
    return text + ranksText(first.odd) + (first.odd.size() == 1 ? " has" : " have") +
           " other values than " + ranksText(first.equal);
  return text + ranksText(first.odd) +
         " have different values, and which are right is unknown: no "
         "value has a majority";
}

} // namespace partita_rt
