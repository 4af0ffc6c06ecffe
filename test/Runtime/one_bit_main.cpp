// 1-bit Adam, 1-bit LAMB and 0/1 Adam by the calls that a program makes, on the gradients of test/Golden/make_onebit_adam.py, over -n ranks.
// Prints a JSON array of what that script, make_onebit_lamb.py or make_zero_one_adam.py writes for as many ranks, and the bytes of each kind of collective.
// Modes:
//     partita_rt_one_bit RANKS          results
//     partita_rt_one_bit RANKS zero-one results of 0/1 Adam
//     partita_rt_one_bit RANKS lamb     results of 1-bit LAMB
//     partita_rt_one_bit RANKS exact    in the warm-up, a sum has allReduce's bits
//     partita_rt_one_bit RANKS many     a hash of the sums of many elements, and the bytes sent
//     partita_rt_one_bit RANKS spoilt   a rank's NaN in one tensor: all values NaN, all errors kept

#include "common/mesh/launch.h"
#include "common/run_options.h"
#include "partita_rt/kernels.h"
#include "partita_rt/one_bit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace partita_rt;

namespace {

constexpr int kSteps = 50;

/// The steps that are exact, and those whose results are printed.
struct Algorithm {
  ExactSteps exact;
  std::vector<int> shown;
  bool isLamb = false;
  bool isExact(int step) const { return exact.contains(int64_t(step)); }
  bool isShown(int step) const {
    return std::find(shown.begin(), shown.end(), step) != shown.end();
  }
};
const Algorithm kOneBit{{10, 0}, {1, 10, 11, kSteps}},
    kZeroOne{{30, 4}, {1, 4, 5, 6, 30, 31, kSteps}}, kLamb{{10, 0}, {1, 10, 11, 15, kSteps}, true};
const FrozenRatioOptions kRatio{10, 0.01, 10, 0.9, 0.5, 4, 0.1};
constexpr double kRate = 1e-2, kDecay = 0.1, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

float number(int64_t step, int64_t rank, int64_t tensor, int64_t i) {
  int64_t seed = (i * 7919 + rank * 104729 + step * 15485863 + tensor * 32452843) % 1000003;
  return float(double(seed * seed % 1000003) / 1000003 * 2 - 1);
}

/// A parameter and its states.
struct Tensor {
  const char *name;
  int64_t number, n, chunk;
  std::vector<float> p, m, v, fresh, worker, server, x;
  float coefficient = 0, factor = 1; // of 1-bit LAMB
  Tensor(const char *name, int64_t number, int64_t n, int64_t ranks)
      : name(name), number(number), n(n), chunk(oneBitChunk(n, ranks)), p(size_t(n)), m(size_t(n)),
        v(size_t(n)), fresh(size_t(n)), worker(size_t(n)), server(size_t(chunk)), x(size_t(n)) {
    for (int64_t i = 0; i < n; ++i)
      p[size_t(i)] = ::number(0, 0, number, i);
  }
  /// A rank's share of the gradient's mean or, once momenta are compressed, of the momentum's.
  void share(int step, const Algorithm &of, const Rank &rank) {
    for (size_t i = 0; i < x.size(); ++i) {
      float g = ::number(step, rank.rank, number, int64_t(i)) / float(rank.ranks),
            part = m[i] / float(rank.ranks);
      x[i] = of.isExact(step) ? g : part + float(1 - kBeta1) * (g - part);
    }
  }
  void update(int step, const Algorithm &of) {
    for (size_t i = 0; i < x.size(); ++i) {
      m[i] = of.isExact(step) ? m[i] + float(1 - kBeta1) * (x[i] - m[i]) : x[i];
      v[i] += of.isExact(step) ? float(1 - kBeta2) * (x[i] * x[i] - v[i]) : 0.0f;
      p[i] -= float(kRate) * (m[i] / (std::sqrt(v[i]) + float(kEpsilon)) + float(kDecay) * p[i]);
    }
  }
  void updateByLamb(int step, const Algorithm &of) {
    std::vector<float> u(x.size());
    double squares[3] = {}, largest = 0;
    float t = float(step), keep = float(1 - kBeta1), ratio;
    for (size_t i = 0; i < x.size(); ++i) {
      float h = of.isExact(step) ? x[i] : m[i] + (x[i] - m[i]) / keep;
      m[i] = of.isExact(step) ? m[i] + keep * (x[i] - m[i]) : x[i];
      fresh[i] += float(1 - kBeta2) * (h * h - fresh[i]);
      v[i] = of.isExact(step) ? fresh[i] : v[i];
      float root = std::sqrt(v[i]) + float(kEpsilon), d = m[i] / root;
      u[i] = d + float(kDecay) * p[i];
      largest = std::max(largest, double(root / (std::sqrt(fresh[i]) + float(kEpsilon))));
      squares[0] += double(p[i]) * double(p[i]);
      squares[1] += double(u[i]) * double(u[i]);
      squares[2] += double(d) * double(d);
    }
    frozenRatio(&ratio, &coefficient, &factor, squares, &largest, &t, nullptr, kRatio);
    for (size_t i = 0; i < x.size(); ++i)
      p[i] -= float(kRate) * ratio * u[i];
  }
  OneBitTensor summed() { return {x.data(), worker.data(), server.data(), n}; }
};

void print(const char *name, const std::vector<float> &values, int64_t count, const char *end) {
  std::printf("\"%s\": [", name);
  for (int64_t i = 0; i < count; ++i)
    std::printf("%s%.9g", i ? ", " : "", double(values[size_t(i)]));
  std::printf("]%s", end);
}

void train(Rank &rank, const Algorithm &of) {
  Tensor w("w", 0, 35, rank.ranks), b("b", 1, 3, rank.ranks);
  OneBitTensors both = {w.summed(), b.summed()};
  std::vector<char> scratch(size_t(oneBitScratch(both, rank.ranks)));
  for (int step = 1; step <= kSteps; ++step) {
    w.share(step, of, rank);
    b.share(step, of, rank);
    oneBitAllReduce(*rank.world, both, !of.isExact(step), scratch.data(), "momenta");
    for (Tensor *each : {&w, &b}) {
      of.isLamb ? each->updateByLamb(step, of) : each->update(step, of);
      if (!of.isShown(step) || rank.rank != 0)
        continue;
      std::printf("%s{\"step\": %d, \"tensor\": \"%s\", ", step == 1 && each == &w ? "[" : "", step,
                  each->name);
      print("p", each->p, each->n, ", ");
      print("m", each->m, each->n, of.exact.doubling || of.isLamb ? ", " : "},\n");
      if (of.isLamb) {
        print("fresh", each->fresh, each->n, ", ");
        print("coefficient", {each->coefficient}, 1, ", ");
        print("factor", {each->factor}, 1, "},\n");
      }
      if (of.exact.doubling)
        print("v", each->v, each->n, "},\n");
    }
  }
  // Of the workers' errors the algorithm keeps the sum; a program's terms are shares of its mean.
  for (Tensor *each : {&w, &b}) {
    std::vector<float> server(size_t(each->chunk * rank.ranks));
    allReduce(*rank.world, {{each->worker.data(), each->n}}, "workers");
    allGather(*rank.world, {{each->server.data(), server.data(), each->chunk}}, "servers");
    if (rank.rank != 0)
      continue;
    std::printf("{\"step\": %d, \"tensor\": \"%s\", ", kSteps, each->name);
    print("worker", each->worker, each->n, ", ");
    print("server", server, each->n, each == &w ? "},\n" : "}]\n");
  }
}

/// Values of several tensors, one of them large enough for segments of a transport, one of one element.
struct Many {
  std::vector<float> a, b, c;
  std::vector<float> errors[6];
  std::vector<char> scratch;
  explicit Many(const Rank &rank) : a(300007), b(1), c(48) {
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
    OneBitTensors all = {{a.data(), errors[0].data(), errors[1].data(), int64_t(a.size())},
                         {b.data(), errors[2].data(), errors[3].data(), int64_t(b.size())},
                         {c.data(), errors[4].data(), errors[5].data(), int64_t(c.size())}};
    scratch.resize(size_t(oneBitScratch(all, rank.ranks)));
    oneBitAllReduce(*rank.world, all, compresses, scratch.data(), "momenta");
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

void spoilt(Rank &rank) {
  Many sums(rank);
  if (rank.rank == rank.ranks - 1)
    sums.c[7] = NAN;
  sums.sum(rank, true);
  for (const std::vector<float> *each : {&sums.a, &sums.b, &sums.c})
    for (float value : *each)
      if (!std::isnan(value))
        fail("a value survives another rank's NaN");
  if (!sums.keptErrors())
    fail("an error of a skipped step is not kept");
}

/// A hash of what compressed sums of many elements leave on all ranks, and the bytes counted.
void many(Rank &rank) {
  Many sums(rank);
  auto before = [&](CollectiveKind kind) { return rank.world->count(kind).bytes; };
  int64_t toAll = before(CollectiveKind::AllToAll), gathered = before(CollectiveKind::AllGather);
  sums.sum(rank, true);
  toAll = before(CollectiveKind::AllToAll) - toAll;
  gathered = before(CollectiveKind::AllGather) - gathered;
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
      return spoilt(rank);
    if (mode == "many")
      return many(rank);
    train(rank, mode == "zero-one" ? kZeroOne : mode == "lamb" ? kLamb : kOneBit);
  });
  if (error.empty())
    return 0;
  std::fprintf(stderr, "one_bit: error: %s\n", error.c_str());
  return 1;
}
