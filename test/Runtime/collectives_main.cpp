// Issues one of every collective, with odd sizes and several buffers, over -n ranks, and prints a
// hash of all results, which is equal on all ranks, and for threads, the shared window and
// messages. Modes:
//     partita_rt_collectives RANKS          results
//     partita_rt_collectives RANKS poll     the same results, with polls between start and wait
//     partita_rt_collectives RANKS differ   rank 1 issues another collective: must fail, not hang
//     partita_rt_collectives RANKS ways     rank 1 shifts back, the others forth
//     partita_rt_collectives RANKS types    rank 1 reduces bfloat16, the others float16
//     partita_rt_collectives RANKS die      rank 1 throws while the others wait
//     partita_rt_collectives RANKS leave    rank 1 returns early
//     partita_rt_collectives RANKS hang-R   rank R hangs, as in a read that never returns
//     partita_rt_collectives RANKS ring-hang-R  likewise, before a shift
//     partita_rt_collectives RANKS stop     rank 1 is stopped while the others wait
//     partita_rt_collectives RANKS stop-tp  likewise the last rank, on a mesh of two axes

#include "common/mesh/launch.h"
#include "common/run_options.h"

#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

using namespace partita_rt;

namespace {

uint64_t hashOf(uint64_t hash, const void *data, size_t bytes) {
  const unsigned char *p = static_cast<const unsigned char *>(data);
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ p[i]) * 0x100000001B3u;
  return hash;
}

/// Returns values whose float sum depends on the order of addition.
float value(int rank, int64_t i) {
  return float((i * 7919 + rank * 104729) % 1000003) * (rank % 2 ? 1e-3f : 1e3f);
}

uint64_t exercise(Rank &rank, bool polls) {
  Communicator &group = *rank.world;
  uint64_t hash = 0xCBF29CE484222325u;
  for (int64_t n : {1, 17, 1000, 70001, 1500003}) {
    std::vector<float> a(size_t(n), 0), b(5);
    for (int64_t i = 0; i < n; ++i)
      a[size_t(i)] = value(rank.rank, i);
    for (int64_t i = 0; i < 5; ++i)
      b[size_t(i)] = value(rank.rank, n + i);
    std::vector<float> largest = b, part(static_cast<size_t>(n)),
                       full(size_t(n) * size_t(rank.ranks)), scattered(static_cast<size_t>(n));
    for (int64_t i = 0; i < n * rank.ranks; ++i)
      full[size_t(i)] = value(rank.rank, 3 * i);
    std::vector<float> gathered(full.size());
    int64_t count = rank.rank + n;
    double precise = 1.0 / (rank.rank + 3);

    Pending scatter = reduceScatterStart(group, {{full.data(), scattered.data(), n}}, "scatter");
    Pending sum = allReduceStart(group, {{a.data(), n}, {b.data(), 5}}, "sum");
    Pending max = allReduceStart(group, {{largest.data(), 5}}, "max", Reduce::Max);
    for (int i = 0; polls && i < 5; ++i)
      poll(group, 1 << (16 + i));
    wait(sum);
    allReduce(group, {{&count, 1}}, "count");
    allReduce(group, {{&precise, 1}}, "precise");
    wait(scatter);
    wait(max);
    allGather(group, {{scattered.data(), gathered.data(), n}}, "gather");
    float *mine = full.data() + rank.rank * n; // in place: the shard is a block of the full tensor
    std::memcpy(mine, a.data(), size_t(n) * 4);
    allGather(group, {{mine, full.data(), n}}, "gather in place");
    broadcast(group, {{b.data(), 5}, {part.data(), n}}, rank.ranks - 1, "broadcast");
    barrier(group, "barrier");
    hash = hashOf(hash, a.data(), a.size() * 4);
    hash = hashOf(hash, b.data(), b.size() * 4);
    hash = hashOf(hash, largest.data(), largest.size() * 4);
    hash = hashOf(hash, gathered.data(), gathered.size() * 4);
    hash = hashOf(hash, full.data(), full.size() * 4);
    hash = hashOf(hash, &count, 8);
    hash = hashOf(hash, &precise, 8);
  }
  return hash;
}

/// Shards of an inner dimension, that is of several blocks. A reduce-scatter equals an all-reduce
/// and takeShard, and a gather of all shards gives the sum; alone and beside another buffer.
uint64_t exerciseBlocks(Rank &rank, uint64_t hash) {
  Communicator &group = *rank.world;
  for (int64_t blocks : {1, 3, 29})
    for (int64_t n : {1, 33, 9001}) {
      size_t part = size_t(n * blocks), full = part * size_t(rank.ranks);
      std::vector<float> sum(full), from(full), gathered(full), scattered(part), taken(part),
          other(part), others(full);
      for (size_t i = 0; i < full; ++i)
        sum[i] = from[i] = value(rank.rank, int64_t(i));
      allReduce(group, {{sum.data(), int64_t(full)}}, "sum");
      reduceScatter(group, {{from.data(), scattered.data(), n, blocks}}, "scatter");
      takeShard({group.rank(), group.size()}, sum.data(), taken.data(), n, blocks);
      other = taken;
      allGather(group,
                {{scattered.data(), gathered.data(), n, blocks},
                 {other.data(), others.data(), n * blocks}},
                "gather");
      if (scattered != taken || gathered != sum)
        fail("parts of %lld blocks of %lld elements are wrong", (long long)blocks, (long long)n);
      hash = hashOf(hash, gathered.data(), full * 4);
      hash = hashOf(hash, others.data(), full * 4);
    }
  return hash;
}

/// Shards of full tensors that do not divide evenly: elements beyond the full tensor are neither
/// read nor written, and are zero in a reduced shard. A guard follows the full tensor, and the
/// shard has previous contents.
uint64_t exerciseEnds(Rank &rank, uint64_t hash) {
  Communicator &group = *rank.world;
  for (int64_t full : {1, 2, 3, 61, 30011, 1500007}) {
    int64_t n = (full + rank.ranks - 1) / rank.ranks;
    std::vector<float> sum(static_cast<size_t>(full)), from(size_t(full) + 1, NAN),
        gathered(size_t(full) + 1, -3), scattered(size_t(n), 7), taken(size_t(n), 8);
    for (size_t i = 0; i < size_t(full); ++i)
      sum[i] = from[i] = value(rank.rank, int64_t(i));
    allReduce(group, {{sum.data(), full}}, "sum");
    std::vector<float> other = sum, others(static_cast<size_t>(full));
    takeShard({group.rank(), group.size()}, sum.data(), taken.data(), n, 1, full);
    reduceScatter(group, {{from.data(), scattered.data(), n, 1, full}}, "scatter");
    allGather(group,
              {{scattered.data(), gathered.data(), n, 1, full},
               {taken.data(), others.data(), n, 1, full}},
              "gather");
    bool guarded = gathered.back() == -3;
    gathered.pop_back();
    if (scattered != taken || gathered != sum || others != sum || !guarded)
      fail("parts of a whole of %lld elements are wrong", (long long)full);
    for (int64_t i = std::max<int64_t>(0, full - rank.rank * n); i < n; ++i)
      if (scattered[size_t(i)] != 0)
        fail("the padding of a part of %lld elements is not zero", (long long)full);
    hash = hashOf(hash, gathered.data(), gathered.size() * 4);
  }
  return hash;
}

/// Shards go around the ring, both ways, several in one call; blocks of full tensors go to their ranks. Elements say
/// whose they are; a guard follows each result.
template <typename T> void exerciseMoves(Rank &rank, bool polls) {
  Communicator &group = *rank.world;
  const int ranks = rank.ranks, me = rank.rank;
  auto element = [](int r, int64_t i) { return T(float((i * 7919 + r * 4729) % 2003)); };
  for (int64_t n : {1, 17, 1001, 700003}) {
    std::vector<T> k(static_cast<size_t>(n)), v(5), kNext(size_t(n) + 1, T(-3.f)),
        vNext(6, T(-3.f)), kBack = kNext;
    for (int64_t i = 0; i < n; ++i)
      k[size_t(i)] = element(me, i);
    for (int64_t i = 0; i < 5; ++i)
      v[size_t(i)] = element(me, n + i);
    int64_t before = group.count(CollectiveKind::Shift).bytes;
    Pending next =
        shiftStart(group, {{k.data(), kNext.data(), n}, {v.data(), vNext.data(), 5}}, "h.0.attn");
    Pending back = shiftStart(group, {{k.data(), kBack.data(), n}}, "h.1.attn", /*back=*/true);
    for (int i = 0; polls && i < 5; ++i)
      poll(group, 1 << (16 + i));
    wait(back);
    wait(next);
    if (ranks > 1 &&
        group.count(CollectiveKind::Shift).bytes - before != (2 * n + 5) * int64_t(sizeof(T)))
      fail("a shift does not count what a rank sends");
    auto expect = [&](const std::vector<T> &found, int64_t offset, int64_t count, bool isBack) {
      int source = (me + (isBack ? 1 : ranks - 1)) % ranks;
      for (int64_t i = 0; i < count; ++i)
        if (float(found[size_t(i)]) != float(element(source, offset + i)))
          fail("a shift%s of %lld elements is wrong at %lld", isBack ? " back" : "", (long long)n,
               (long long)i);
      if (float(found[size_t(count)]) != -3.f)
        fail("a shift of %lld elements writes too much", (long long)n);
    };
    expect(kNext, 0, n, false);
    expect(vNext, n, 5, false);
    expect(kBack, 0, n, true);
  }
  for (int64_t blocks : {1, 3, 29})
    for (int64_t n : {1, 33, 9001}) {
      int64_t full = n * blocks * ranks;
      std::vector<T> from(static_cast<size_t>(full)), to(size_t(full) + 1, T(-3.f)), again = to;
      for (int64_t i = 0; i < full; ++i)
        from[size_t(i)] = element(me, i);
      Pending exchange = allToAllStart(group, {{from.data(), to.data(), n, blocks}}, "h.0.heads");
      for (int i = 0; polls && i < 5; ++i)
        poll(group, 1 << (16 + i));
      wait(exchange);
      for (int64_t i = 0; i < full; ++i) { // to[b][r] is from[b][me] of rank r
        int64_t block = i / (n * ranks), r = i / n % ranks,
                source = (block * ranks + me) * n + i % n;
        if (float(to[size_t(i)]) != float(element(int(r), source)))
          fail("an all-to-all of %lld blocks of %lld elements is wrong at %lld", (long long)blocks,
               (long long)n, (long long)i);
      }
      allToAll(group, {{to.data(), again.data(), n, blocks}}, "h.0.heads");
      from.push_back(T(-3.f));
      if (float(to.back()) != -3.f ||
          std::memcmp(again.data(), from.data(), from.size() * sizeof(T)) != 0)
        fail("two all-to-alls of %lld blocks of %lld elements do not cancel", (long long)blocks,
             (long long)n);
    }
}

/// All collectives on 16-bit elements: sums are in rank order in float and rounded once, data that
/// only move keep their bits, and every element counts two bytes.
template <typename T> uint64_t exerciseNarrow(Rank &rank, uint64_t hash, bool polls) {
  Communicator &group = *rank.world;
  const int ranks = rank.ranks;
  auto element = [](int r, int64_t i) { return T(value(r, i) * (i % 2 ? 1e-4f : -3e-8f)); };
  auto bytesOf = [&](CollectiveKind kind) { return group.count(kind).bytes; };
  for (int64_t n : {1, 17, 1001, 300003}) {
    size_t full = size_t(n) * size_t(ranks);
    std::vector<T> sum(full), from(full), largest(full), part(static_cast<size_t>(n)),
        gathered(full), taken(part), sent(part);
    for (size_t i = 0; i < full; ++i)
      sum[i] = from[i] = largest[i] = element(rank.rank, int64_t(i));
    if (rank.rank == ranks - 1)
      largest[0] = T(NAN);
    int64_t before[3] = {bytesOf(CollectiveKind::AllReduce), bytesOf(CollectiveKind::ReduceScatter),
                         bytesOf(CollectiveKind::AllGather)};
    Pending scatter = reduceScatterStart(group, {{from.data(), part.data(), n}}, "scatter");
    Pending add =
        allReduceStart(group, {{sum.data(), n}, {sum.data() + n, int64_t(full) - n}}, "sum");
    for (int i = 0; polls && i < 5; ++i)
      poll(group, 1 << (16 + i));
    wait(add);
    allReduce(group, {{largest.data(), int64_t(full)}}, "max", Reduce::Max);
    wait(scatter);
    allGather(group, {{part.data(), gathered.data(), n}}, "gather");
    takeShard({group.rank(), group.size()}, sum.data(), taken.data(), n, 1);
    if (rank.rank == 0)
      sent = taken;
    broadcast(group, {{sent.data(), n}}, 0, "broadcast");
    int64_t bytes = int64_t(full) * 2;
    if (ranks > 1 && // a group of one rank counts nothing
        (bytesOf(CollectiveKind::AllReduce) - before[0] != 2 * bytes ||
         bytesOf(CollectiveKind::ReduceScatter) - before[1] != bytes ||
         bytesOf(CollectiveKind::AllGather) - before[2] != bytes))
      fail("16-bit elements are not counted as two bytes");
    for (size_t i = 0; i < full; ++i) {
      float expected = element(0, int64_t(i)), most = element(0, int64_t(i));
      for (int r = 1; r < ranks; ++r) {
        expected += float(element(r, int64_t(i)));
        most = std::max(most, float(element(r, int64_t(i))));
      }
      bool right = i == 0 ? std::isnan(float(largest[i])) : float(largest[i]) == most;
      if (sum[i].bits != T(expected).bits || gathered[i].bits != sum[i].bits || !right ||
          (i < size_t(n) && sent[i].bits != sum[i].bits))
        fail("16-bit sums or moves of %lld elements are wrong at %zu", (long long)n, i);
    }
    hash = hashOf(hash, gathered.data(), full * 2);
  }
  return hash;
}

/// Shards of several blocks, and of a full tensor that does not divide evenly: padding is zero.
template <typename T> uint64_t exerciseNarrowParts(Rank &rank, uint64_t hash) {
  Communicator &group = *rank.world;
  for (int64_t blocks : {1, 3})
    for (int64_t full : {5, 4099}) {
      int64_t n = (full + rank.ranks - 1) / rank.ranks, all = blocks == 1 ? full : n * rank.ranks;
      std::vector<T> from(size_t(all * blocks)), sum(from), gathered(from),
          part(size_t(n * blocks), T(7)), taken(part);
      for (size_t i = 0; i < from.size(); ++i)
        sum[i] = from[i] = T(value(rank.rank, int64_t(i)) * 1e-4f);
      int64_t length = blocks == 1 ? full : 0; // 0: as many as all shards
      allReduce(group, {{sum.data(), int64_t(sum.size())}}, "sum");
      reduceScatter(group, {{from.data(), part.data(), n, blocks, length}}, "scatter");
      takeShard({group.rank(), group.size()}, sum.data(), taken.data(), n, blocks, length);
      allGather(group, {{part.data(), gathered.data(), n, blocks, length}}, "gather");
      if (std::memcmp(part.data(), taken.data(), part.size() * 2) != 0 ||
          std::memcmp(gathered.data(), sum.data(), sum.size() * 2) != 0)
        fail("16-bit parts of a whole of %lld elements are wrong", (long long)full);
      hash = hashOf(hash, gathered.data(), gathered.size() * 2);
    }
  return hash;
}

/// Only polls: the wait finds the sum complete.
void onlyPoll(Rank &rank) {
  Communicator &group = *rank.world;
  std::vector<float> x(700001);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = value(rank.rank, int64_t(i));
  barrier(group, "barrier");
  ReducedCount before = group.reduced();
  Pending sum = allReduceStart(group, {{x.data(), int64_t(x.size())}}, "polled");
  while (!group.isComplete(sum.number))
    poll(group, 1 << 20);
  wait(sum);
  if (group.reduced().inWaits != before.inWaits || group.reduced().inPolls == before.inPolls)
    fail("the sum was not made in polls");
}

/// A gather that starts after a sum of the same ranks completes before it, since nothing has worked
/// on the sum. Then polls of the axis complete both.
uint64_t exerciseGathersAhead(Rank &rank, uint64_t hash, bool polls) {
  const size_t n = 300001, full = n * size_t(rank.ranks);
  std::vector<float> from(full), scattered(n), part(n), gathered(full);
  for (size_t i = 0; i < full; ++i)
    from[i] = value(rank.rank, int64_t(i));
  for (size_t i = 0; i < n; ++i)
    part[i] = value(rank.rank, int64_t(5 * i));
  Communicator &sums = rank.group(0), &gathers = rank.group(1);
  Pending scatter = reduceScatterStart(sums, {{from.data(), scattered.data(), int64_t(n)}}, "sum");
  Pending gather = allGatherStart(gathers, {{part.data(), gathered.data(), int64_t(n)}}, "ahead");
  while (polls && !(gathers.isComplete(gather.number) && sums.isComplete(scatter.number)))
    poll(rank, {1, 0}, 1 << 20);
  wait(gather);
  if (!polls && rank.ranks > 1 && sums.isComplete(scatter.number))
    fail("the wait for a gather completed the sum before it");
  for (size_t i = 0; i < full; ++i)
    if (gathered[i] != value(int(i / n), int64_t(5 * (i % n))))
      fail("the gather ahead is wrong at element %zu", i);
  wait(scatter);
  allGather(sums, {{scattered.data(), gathered.data(), int64_t(n)}}, "sums");
  return hashOf(hash, gathered.data(), full * 4);
}

/// More collectives are pending than a group remembers: a start completes the oldest first, while
/// another rank pauses between two starts.
uint64_t exerciseMany(Rank &rank, uint64_t hash) {
  constexpr int kCollectives = 300, kElements = 5;
  std::vector<std::array<int64_t, kElements>> sums(kCollectives);
  std::vector<Pending> pending;
  for (int i = 0; i < kCollectives; ++i) {
    for (int e = 0; e < kElements; ++e)
      sums[size_t(i)][size_t(e)] = (i + 1) * (e + 1) * (rank.rank + 1);
    timespec pause{0, 10'000'000};
    if (i % 64 == 0 && i / 64 % rank.ranks == rank.rank)
      nanosleep(&pause, nullptr);
    pending.push_back(
        allReduceStart(*rank.world, {{sums[size_t(i)].data(), kElements}}, "one of many"));
  }
  for (const Pending &each : pending)
    wait(each);
  for (int i = 0; i < kCollectives; ++i)
    for (int e = 0; e < kElements; ++e)
      if (sums[size_t(i)][size_t(e)] != (i + 1) * (e + 1) * rank.ranks * (rank.ranks + 1) / 2)
        fail("sum %d of many is wrong at element %d", i, e);
  return hashOf(hash, sums.data(), sums.size() * sizeof sums[0]);
}

/// Makes a rank sleep for longer than any test waits, while the others wait for it.
void hang(Rank &rank, int which) {
  barrier(*rank.world, "all are there");
  timespec minute{60, 0};
  if (rank.rank == which)
    nanosleep(&minute, nullptr);
  float x[4] = {1, 2, 3, 4};
  allReduce(*rank.world, {{x, 4}}, "h.0.mlp");
}

/// Likewise, in a ring: its neighbour waits for it, and the others for their neighbours.
void hangInRing(Rank &rank, int which) {
  barrier(*rank.world, "all are there");
  timespec minute{60, 0};
  if (rank.rank == which)
    nanosleep(&minute, nullptr);
  float x[4] = {1, 2, 3, 4}, y[4];
  shift(*rank.world, {{x, y, 4}}, "h.0.attn");
}

/// Stops rank 1 before it reaches the others' collective.
void stop(Rank &rank) {
  barrier(*rank.world, "all are there");
  if (rank.rank == 1)
    raise(SIGSTOP);
  float x[4] = {1, 2, 3, 4};
  allReduce(*rank.world, {{x, 4}}, "h.0.mlp");
}

/// Stops rank 1 when it has started the others' collective.
void stopInside(Rank &rank) {
  barrier(*rank.world, "all are there");
  float x[4] = {1, 2, 3, 4};
  Pending sum = allReduceStart(*rank.world, {{x, 4}}, "h.0.mlp");
  if (rank.rank == 1)
    raise(SIGSTOP);
  wait(sum);
}

/// Rank 0 waits for the stopped rank's neighbour, which waits for the stopped rank.
void stopOfTwoAxes(Rank &rank) {
  barrier(*rank.world, "all are there");
  if (rank.rank == rank.ranks - 1)
    raise(SIGSTOP);
  float x[4] = {1, 2, 3, 4};
  allReduce(rank.group(1), {{x, 4}}, "h.0.mlp");
  allReduce(rank.group(0), {{x, 4}}, "gradients");
}

} // namespace

int main(int argc, char **argv) {
  int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  std::string mode = argc > 2 ? argv[2] : "";
  Axis mesh[] = {{"dp", ranks}}, two[] = {{"dp", ranks / 2}, {"tp", 2}};
  Group groups[] = {{"dp", {0}}, {"dp", {0}}}; // sums, and gathers ahead of their use
  Group ofTwo[] = {{"dp", {0}}, {"tp", {1}}};
  Program program;
  program.name = "collectives";
  program.mesh = mesh;
  program.groups = groups;
  if (mode == "stop-tp") {
    program.mesh = two;
    program.groups = ofTwo;
  }
  World world(program);
  RunOptions options;
  std::string error = world.run(program, &options, [&](Rank &rank) {
    if (mode.compare(0, 5, "hang-") == 0)
      return hang(rank, std::atoi(mode.c_str() + 5));
    if (mode.compare(0, 10, "ring-hang-") == 0)
      return hangInRing(rank, std::atoi(mode.c_str() + 10));
    if (mode == "stop")
      return stop(rank);
    if (mode == "stop-inside")
      return stopInside(rank);
    if (mode == "stop-tp")
      return stopOfTwoAxes(rank);
    uint64_t hash = exerciseEnds(rank, exerciseBlocks(rank, exercise(rank, mode == "poll")));
    hash = exerciseGathersAhead(rank, exerciseMany(rank, hash), mode == "poll");
    hash = exerciseNarrow<Half>(rank, hash, mode == "poll");
    hash = exerciseNarrow<BFloat16>(rank, hash, mode == "poll");
    hash = exerciseNarrowParts<Half>(rank, exerciseNarrowParts<BFloat16>(rank, hash));
    exerciseMoves<float>(rank, mode == "poll");
    exerciseMoves<BFloat16>(rank, mode == "poll");
    if (mode == "poll")
      onlyPoll(rank);
    float x[4] = {1, 2, 3, 4}, y[4];
    Half half[8] = {};
    BFloat16 brain[8] = {};
    if (mode == "types" && rank.rank == 1)
      allReduce(*rank.world, {{brain, 8}}, "h.0.attn");
    else if (mode == "types")
      allReduce(*rank.world, {{half, 8}}, "h.0.attn");
    if (mode == "ways") // rank 1 shifts the other way
      shift(*rank.world, {{x, y, 4}}, "h.0.attn", rank.rank == 1);
    if (rank.rank == 1 && mode == "leave")
      return;
    if (rank.rank == 1 && mode == "die")
      fail("something broke");
    if (rank.rank == 1 && mode == "differ")
      allReduce(*rank.world, {{x, 3}}, "h.1.mlp");
    else
      allReduce(*rank.world, {{x, 4}}, "h.0.mlp");
    if (hash == 0)
      allGather(*rank.world, {{y, x, 1}}, "never");
    // All ranks must have the same results.
    std::vector<int64_t> all(static_cast<size_t>(rank.ranks));
    int64_t mine = int64_t(hash);
    allGather(*rank.world, {{&mine, all.data(), 1}}, "hashes");
    for (int64_t other : all)
      if (other != mine)
        fail("the ranks' results differ");
    if (rank.rank == 0)
      std::printf("hash %016llx\n", (unsigned long long)hash);
  });
  if (error.empty())
    return 0;
  std::fprintf(stderr, "collectives: error: %s\n", error.c_str());
  return 1;
}
