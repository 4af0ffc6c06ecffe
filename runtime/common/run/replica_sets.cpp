// Sets of replicas, and their differences (replica_sets.h).

#include "common/run/replica_sets.h"

#include "common/grouped.h"
#include "common/mesh/mesh.h"

#include <algorithm>
#include <map>

namespace partita_rt {

/// Returns, by rank, the first rank with the same shard; empty if no two ranks have the same.
static std::vector<int> firstOwners(const Program &program, const TensorShard &shard) {
  std::vector<int> first;
  bool shared = false;
  for (int r = 0; r < rankCount(program); ++r) {
    Rank rank;
    placeOnMesh(rank, program, r);
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

void findDifferences(const ReplicaSet &set, size_t tensor, const std::vector<uint64_t> &hashes,
                     std::vector<ReplicaDifference> &differences) {
  std::map<int, std::vector<int>> groups; // of replicas, by their first rank
  for (size_t r = 0; r < set.first.size(); ++r)
    if (set.first[r] >= 0)
      groups[set.first[r]].push_back(int(r));
  for (const auto &[first, ranks] : groups) {
    std::map<uint64_t, size_t> counts;
    for (int r : ranks)
      ++counts[hashes[size_t(r)]];
    if (counts.size() < 2)
      continue;
    ReplicaDifference difference{tensor, {}, {}};
    for (int r : ranks) {
      bool isMajority = 2 * counts[hashes[size_t(r)]] > ranks.size();
      (isMajority ? difference.equal : difference.odd).push_back(r);
    }
    differences.push_back(std::move(difference));
  }
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
  constexpr size_t kNamed =
      3; // others follow from the first: one rank's update from another's norm
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
