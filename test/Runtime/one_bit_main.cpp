// 1-bit Adam, 1-bit LAMB and 0/1 Adam by the calls that a program makes, over RANKS ranks (one_bit_training.h).
// Modes:
//     partita_rt_one_bit RANKS          results
//     partita_rt_one_bit RANKS zero-one results of 0/1 Adam
//     partita_rt_one_bit RANKS lamb     results of 1-bit LAMB
//     partita_rt_one_bit RANKS exact    in the warm-up, a sum has allReduce's bits
//     partita_rt_one_bit RANKS many     a hash of the sums of many elements, and the bytes sent
//     partita_rt_one_bit RANKS padded   the same of tensors that end in padding, which is 0 and keeps its errors, with a rank's NaN too
//     partita_rt_one_bit RANKS spoilt   a rank's NaN in one tensor: all values NaN, all errors kept

#include "common/mesh/launch.h"
#include "common/run_options.h"
#include "one_bit_training.h"

#include <cstdlib>
#include <cstring>

using namespace partita_rt;
using namespace partita_rt::one_bit;

namespace {

/// The tensors are where they are.
struct Host {
  Rank &rank;
  std::vector<char> scratch;
  void sum(const std::vector<Tensor *> &tensors, bool exact) {
    for (Tensor *each : tensors)
      oneBitTerm(each->x.data(), each->x.data(), each->m.data(), each->n, rank.ranks, kBeta1, 1,
                 exact);
    OneBitTensors all = {summed(*tensors[0]), summed(*tensors[1])};
    scratch.resize(size_t(oneBitScratch(all, rank.ranks)));
    oneBitAllReduce(*rank.world, all, !exact, scratch.data(), "momenta");
  }
  static OneBitTensor summed(Tensor &of) {
    return {of.x.data(), of.worker.data(), of.server.data(), of.n};
  }
  static void frozenRatio(float *ratio, float *coefficient, float *factor, const double *squares,
                          const double *largest, const float *t,
                          const FrozenRatioOptions &options) {
    partita_rt::frozenRatio(ratio, coefficient, factor, squares, largest, t, nullptr, options);
  }
  void errors(Tensor &of) {
    std::vector<float> servers(size_t(of.chunk * rank.ranks));
    allReduce(*rank.world, {{of.worker.data(), of.n}}, "workers");
    allGather(*rank.world, {{of.server.data(), servers.data(), of.chunk}}, "servers");
    of.server = servers;
  }
};

/// Values of several tensors, one of them large enough for segments of a transport, one of one element.
struct Many {
  std::vector<float> a, b, c;
  std::vector<float> errors[6];
  std::vector<char> scratch;
  bool isPadded;
  explicit Many(const Rank &rank, bool isPadded = false)
      : a(300007), b(1), c(48), isPadded(isPadded) {
    for (std::vector<float> *each : {&a, &b, &c})
      for (size_t i = 0; i < each->size(); ++i)
        (*each)[i] = number(3, rank.rank, int64_t(each->size()), int64_t(i)) * (rank.rank + 1);
    size_t i = 0;
    for (std::vector<float> *each : {&a, &b, &c}) {
      errors[i++].assign(each->size(), 0.25f);
      errors[i++].assign(size_t(oneBitChunk(int64_t(each->size()), rank.ranks)), 0.125f);
    }
  }
  void sum(Rank &rank, bool compresses) {
    OneBitTensors all = {
        {a.data(), errors[0].data(), errors[1].data(), int64_t(a.size()), validOf(a)},
        {b.data(), errors[2].data(), errors[3].data(), int64_t(b.size()), validOf(b)},
        {c.data(), errors[4].data(), errors[5].data(), int64_t(c.size()), validOf(c)}};
    scratch.resize(size_t(oneBitScratch(all, rank.ranks)));
    oneBitAllReduce(*rank.world, all, compresses, scratch.data(), "momenta");
  }
  int64_t validOf(const std::vector<float> &of) const {
    return int64_t(isPadded ? of.size() * 5 / 8 : of.size());
  }
  /// Are the padding's values 0, and its workers' errors what they were?
  bool leftPaddingOut() const {
    bool left = true;
    const std::vector<float> *all[] = {&a, &b, &c};
    for (int number = 0; number < 3; ++number)
      for (auto i = size_t(validOf(*all[number])); i < all[number]->size(); ++i)
        left &= (*all[number])[i] == 0 && errors[2 * number][i] == 0.25f;
    return left;
  }
  bool keptErrors() const {
    bool kept = true;
    for (int i = 0; i < 6; ++i)
      for (float each : errors[i])
        kept &= each == (i % 2 ? 0.125f : 0.25f);
    return kept;
  }
};

void exact(Rank &rank) {
  Many sums(rank), plain(rank);
  sums.sum(rank, false);
  allReduce(*rank.world,
            {{plain.a.data(), int64_t(plain.a.size())}, {plain.b.data(), 1}, {plain.c.data(), 48}},
            "sum");
  if (sums.a != plain.a || sums.b != plain.b || sums.c != plain.c || !sums.keptErrors())
    fail("a sum of the warm-up is not allReduce's");
}

void spoilt(Rank &rank, bool isPadded) {
  Many sums(rank, isPadded);
  if (rank.rank == rank.ranks - 1)
    sums.c[7] = NAN;
  sums.sum(rank, true);
  for (const std::vector<float> *each : {&sums.a, &sums.b, &sums.c})
    for (int64_t i = 0; i < sums.validOf(*each); ++i)
      if (!std::isnan((*each)[size_t(i)]))
        fail("a value survives another rank's NaN");
  if (!sums.keptErrors() || !sums.leftPaddingOut())
    fail("an error of a skipped step is not kept, or padding is not 0");
}

/// A hash of what compressed sums of many elements leave on all ranks, and the bytes counted.
void many(Rank &rank, bool isPadded) {
  Many sums(rank, isPadded);
  auto before = [&](CollectiveKind kind) { return rank.world->count(kind).bytes; };
  int64_t toAll = before(CollectiveKind::AllToAll), gathered = before(CollectiveKind::AllGather);
  sums.sum(rank, true);
  toAll = before(CollectiveKind::AllToAll) - toAll;
  gathered = before(CollectiveKind::AllGather) - gathered;
  if (!sums.leftPaddingOut())
    fail("padding has a value, or another error");
  uint64_t hash = 0xCBF29CE484222325u;
  for (const std::vector<float> *each : {&sums.a, &sums.b, &sums.c})
    for (float value : *each) {
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      hash = (hash ^ bits) * 0x100000001B3u;
    }
  std::vector<int64_t> all(static_cast<size_t>(rank.ranks));
  auto mine = int64_t(hash);
  allGather(*rank.world, {{&mine, all.data(), 1}}, "hashes");
  for (int64_t other : all)
    if (other != mine)
      fail("the ranks' sums differ");
  if (rank.rank == 0)
    std::printf("hash %016llx, all_to_all of %lld bytes, all_gather of %lld\n",
                (unsigned long long)hash, (long long)toAll, (long long)gathered);
}

} // namespace

int main(int argc, char **argv) {
  int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  std::string mode = argc > 2 ? argv[2] : "";
  Axis mesh[] = {{"dp", ranks}};
  Group groups[] = {{"dp", {0}}};
  Program program;
  program.name = "one_bit";
  program.mesh = mesh;
  program.groups = groups;
  World world(program);
  RunOptions options;
  std::string error = world.run(program, &options, [&](Rank &rank) {
    if (mode == "exact")
      return exact(rank);
    if (mode == "spoilt")
      return spoilt(rank, false);
    if (mode == "many")
      return many(rank, false);
    if (mode == "padded")
      return spoilt(rank, true), many(rank, true);
    Host host{rank, {}};
    train(rank, algorithmOf(mode), host);
  });
  if (error.empty())
    return 0;
  std::fprintf(stderr, "one_bit: error: %s\n", error.c_str());
  return 1;
}
