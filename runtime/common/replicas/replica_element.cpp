// Where replicas differ (replica_element.h).

#include "common/replicas/replica_element.h"

#include "common/grouped.h"
#include "common/mesh/gathered.h"
#include "partita_rt/comm.h"
#include "partita_rt/replica_hash.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace partita_rt {

void addHashedRuns(const Rank &rank, const TensorShard &shard, size_t sum,
                   std::vector<HashedRun> &runs) {
  if (!shard.data || !shard.stages.contains(rank.stageNumber))
    return;
  int64_t width = sizeOf(shard.dtype);
  Slices slices = slicesOf(*rank.program, rank.coordinates, shard.global, shard.splits);
  std::vector<Run> parts = {{0, 0, shard.local.elements()}};
  if (slices.elements() != shard.local.elements())
    parts = runsOf(rank, shard.global, shard.splits);
  uint64_t word = 0;
  for (const Run &part : parts) {
    int64_t bytes = part.count * width;
    runs.push_back(
        {static_cast<const char *>(shard.data) + part.local * width, shard.home, bytes, word, sum});
    word += uint64_t(hashWords(bytes));
  }
}

namespace {

/// A tensor's elements on the ranks of a difference, of which the others only take part in gathers.
class Narrowing {
public:
  Narrowing(const Rank &rank, const TensorShard &shard, const ReplicaDifference &difference)
      : rank(rank), difference(difference) {
    for (const std::vector<int> *ranks : {&difference.odd, &difference.equal})
      isOne |= std::find(ranks->begin(), ranks->end(), rank.rank) != ranks->end();
    std::vector<HashedRun> runs;
    if (isOne)
      addHashedRuns(rank, shard, 0, runs);
    for (const HashedRun &run : runs) {
      HostView view(rank, run.data, run.bytes);
      bytes.insert(bytes.end(), view.data(), view.data() + run.bytes);
    }
  }
  /// Returns the first byte that differs; -1 if none does any more.
  int64_t firstByte() {
    int64_t begin = 0, end = agreedSize();
    while (end - begin > 1) {
      int64_t part = (end - begin + kParts - 1) / kParts, at = firstPart(begin, end, part);
      if (at < 0)
        return -1;
      begin = at;
      end = std::min(end, begin + part);
    }
    return begin;
  }
  /// Returns an element's bits on every rank.
  std::vector<int64_t> elementAt(int64_t byte, int64_t width) {
    int64_t mine = 0, first = byte / width * width;
    if (isOne)
      std::memcpy(&mine, bytes.data() + first, size_t(width));
    return gather({mine});
  }

private:
  static constexpr int64_t kParts = 64;

  std::vector<int64_t> gather(const std::vector<int64_t> &mine) {
    return gathered(rank, mine, "the element in which replicas differ");
  }
  int64_t agreedSize() { return gather({int64_t(bytes.size())})[size_t(difference.odd.front())]; }
  int64_t firstPart(int64_t begin, int64_t end, int64_t part) {
    std::vector<int64_t> mine(kParts);
    for (int64_t p = 0; p < kParts && isOne; ++p)
      if (int64_t from = begin + p * part; from < end)
        mine[size_t(p)] = int64_t(replicaHash(bytes.data() + from, std::min(part, end - from), 0));
    std::vector<int64_t> all = gather(mine);
    int odd = difference.odd.front();
    for (int64_t p = 0; p < kParts; ++p)
      for (const std::vector<int> *ranks : {&difference.odd, &difference.equal})
        for (int other : *ranks)
          if (all[size_t(odd * kParts + p)] != all[size_t(other * kParts + p)])
            return begin + p * part;
    return -1;
  }

  const Rank &rank;
  const ReplicaDifference &difference;
  bool isOne = false;
  std::vector<char> bytes;
};

} // namespace

std::string differingElementText(const Rank &rank, const TensorShard &shard,
                                 const ReplicaDifference &difference) {
  Narrowing narrowing(rank, shard, difference);
  int64_t byte = narrowing.firstByte();
  if (byte < 0)
    return "";
  int64_t width = sizeOf(shard.dtype);
  std::vector<int64_t> bits = narrowing.elementAt(byte, width);
  int odd = difference.odd.front();
  std::vector<int> others = difference.equal.empty() ? difference.odd : difference.equal;
  auto other = std::find_if(others.begin(), others.end(),
                            [&](int r) { return bits[size_t(r)] != bits[size_t(odd)]; });
  if (other == others.end())
    return "";
  auto text = [&](int r) {
    char digits[2 * sizeof(int64_t) + 1];
    std::snprintf(digits, sizeof(digits), "%0*llx", int(2 * width),
                  static_cast<unsigned long long>(bits[size_t(r)]));
    return std::string("0x") + digits + " on rank " + std::to_string(r);
  };
  return ", first in element " + grouped(byte / width) +
         (shard.splits.count ? " of its shard" : "") + ": " + text(odd) + ", " + text(*other);
}

} // namespace partita_rt
