// 1-bit Adam, 1-bit LAMB and 0/1 Adam by the calls that a program makes, on the gradients of test/Golden/make_onebit_adam.py. Prints a JSON array of what
// that script, make_onebit_lamb.py or make_zero_one_adam.py writes for as many ranks. A target has the tensors where its kernels work on them.

#ifndef PARTITA_TEST_RUNTIME_ONE_BIT_TRAINING_H
#define PARTITA_TEST_RUNTIME_ONE_BIT_TRAINING_H

#include "partita_rt/kernels.h"
#include "partita_rt/one_bit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace partita_rt::one_bit {

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
/// That of a mode: "zero-one", "lamb", or 1-bit Adam.
inline Algorithm algorithmOf(const std::string &mode) {
  if (mode == "zero-one")
    return {{30, 4}, {1, 4, 5, 6, 30, 31, kSteps}};
  if (mode == "lamb")
    return {{10, 0}, {1, 10, 11, 15, kSteps}, true};
  return {{10, 0}, {1, 10, 11, kSteps}};
}
const FrozenRatioOptions kRatio{10, 0.01, 10, 0.9, 0.5, 4, 0.1};
constexpr double kRate = 1e-2, kDecay = 0.1, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

inline float number(int64_t step, int64_t rank, int64_t tensor, int64_t i) {
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
      p[size_t(i)] = one_bit::number(0, 0, number, i);
  }
  /// A rank's share of the gradient's mean.
  void share(int step, const Rank &rank) {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = one_bit::number(step, rank.rank, number, int64_t(i)) / float(rank.ranks);
  }
  void update(int step, const Algorithm &of) {
    for (size_t i = 0; i < x.size(); ++i) {
      m[i] = of.isExact(step) ? m[i] + float(1 - kBeta1) * (x[i] - m[i]) : x[i];
      v[i] += of.isExact(step) ? float(1 - kBeta2) * (x[i] * x[i] - v[i]) : 0.0f;
      p[i] -= float(kRate) * (m[i] / (std::sqrt(v[i]) + float(kEpsilon)) + float(kDecay) * p[i]);
    }
  }
  template <typename Target> void updateByLamb(int step, const Algorithm &of, Target &target) {
    std::vector<float> u(x.size());
    double squares[3] = {}, largest = 0;
    float t = float(step), keep = float(1 - kBeta1), ratio = 1;
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
    target.frozenRatio(&ratio, &coefficient, &factor, squares, &largest, &t, kRatio);
    for (size_t i = 0; i < x.size(); ++i)
      p[i] -= float(kRate) * ratio * u[i];
  }
};

inline void print(const char *name, const std::vector<float> &values, int64_t count,
                  const char *end) {
  std::printf("\"%s\": [", name);
  for (int64_t i = 0; i < count; ++i)
    std::printf("%s%.9g", i ? ", " : "", double(values[size_t(i)]));
  std::printf("]%s", end);
}

/// Trains with `target`, whose sum(tensors, exact) makes each x the sum of all ranks' terms, and errors(tensor) puts the workers' sum, and the errors of all
/// servers, in place of this rank's.
template <typename Target> void train(Rank &rank, const Algorithm &of, Target &target) {
  Tensor w("w", 0, 35, rank.ranks), b("b", 1, 3, rank.ranks);
  std::vector<Tensor *> both{&w, &b};
  for (int step = 1; step <= kSteps; ++step) {
    for (Tensor *each : both)
      each->share(step, rank);
    target.sum(both, of.isExact(step));
    for (Tensor *each : both) {
      of.isLamb ? each->updateByLamb(step, of, target) : each->update(step, of);
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
  for (Tensor *each : both) {
    target.errors(*each);
    if (rank.rank != 0)
      continue;
    std::printf("{\"step\": %d, \"tensor\": \"%s\", ", kSteps, each->name);
    print("worker", each->worker, each->n, ", ");
    print("server", each->server, each->n, each == &w ? "},\n" : "}]\n");
  }
}

} // namespace partita_rt::one_bit

#endif // PARTITA_TEST_RUNTIME_ONE_BIT_TRAINING_H
