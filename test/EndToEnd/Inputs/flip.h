// Flips one bit of a rank's parameters and states, for tests: included by an emitted program whose source has calls of
// flipBit (flips.py). FLIP="RANK STEP MOMENT SEED" says when: MOMENT is the kind of work before which it flips. SEED draws
// the bit: an even one from all bits, an odd one from those of a tensor that is drawn first. FLIP_DUMP="STEP PREFIX": before
// that step each rank writes its parameters and states to PREFIX and its number, for programs of CPUs. FLIP_ONCE=FILE: only if
// there is no such file yet, so that a restarted run is undisturbed.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace partita_rt {
namespace flips {

struct Tensor {
  const char *name;
  char *data;
  int64_t bytes;
};

inline std::vector<Tensor> tensorsOf(const Rank &rank) {
  std::vector<Tensor> tensors;
  auto add = [&](const char *name, void *data, int64_t bytes) { tensors.push_back({name, static_cast<char *>(data), bytes}); };
  const Program &program = *rank.program;
  for (const Parameter &p : program.parameters)
    if (p.stages.contains(rank.stageNumber))
      add(p.name, rank.dataOf(p), p.localShape.elements() * sizeOf(p.dtype));
  for (const OptimizerState &s : program.optimizerStates)
    if (program.parameters[s.parameter].stages.contains(rank.stageNumber))
      add(s.name, rank.dataOf(s), s.localShape.elements() * sizeOf(s.dtype));
  return tensors;
}

inline void flip(char *at, int bit) {
#ifdef PARTITA_RT_PARTITA_RT_CUDA_H
  char value = 0;
  cudaMemcpy(&value, at, 1, cudaMemcpyDefault);
  value = char(value ^ 1 << bit);
  cudaMemcpy(at, &value, 1, cudaMemcpyDefault);
#else
  *at = char(*at ^ 1 << bit);
#endif
}

inline void dump(const Rank &rank, const char *text) {
  long long step = 0;
  char prefix[400] = "";
  static thread_local long long dumped = 0;
  if (std::sscanf(text, "%lld %399s", &step, prefix) != 2 || rank.step != step || dumped == step)
    return;
  dumped = step;
  FILE *file = std::fopen((prefix + std::to_string(rank.rank)).c_str(), "wb");
  for (const Tensor &tensor : tensorsOf(rank))
    std::fwrite(tensor.data, 1, size_t(tensor.bytes), file);
  std::fclose(file);
}

} // namespace flips

inline void flipBit(Rank &rank, const char *moment) {
  if (const char *text = std::getenv("FLIP_DUMP"))
    flips::dump(rank, text);
  int who = 0;
  long long step = 0;
  char when[32] = "";
  unsigned seed = 0;
  const char *text = std::getenv("FLIP");
  if (!text || std::sscanf(text, "%d %lld %31s %u", &who, &step, when, &seed) != 4)
    return;
  static thread_local bool done = false; // a step of several micro-batches has several passes
  if (done || rank.rank != who || rank.step != step || std::strcmp(when, moment) != 0)
    return;
  done = true;
  if (const char *path = std::getenv("FLIP_ONCE")) {
    FILE *file = std::fopen(path, "wx");
    if (!file)
      return;
    std::fclose(file);
  }
  std::vector<flips::Tensor> tensors = flips::tensorsOf(rank);
  int64_t all = 0;
  for (const flips::Tensor &tensor : tensors)
    all += tensor.bytes;
  std::mt19937_64 draw(seed);
  auto below = [&](int64_t n) { return int64_t(draw() % uint64_t(n)); };
  int64_t byte = below(all);
  const flips::Tensor *tensor = tensors.data();
  if (seed % 2) {
    tensor += below(int64_t(tensors.size()));
    byte = below(tensor->bytes);
  } else {
    for (; byte >= tensor->bytes; ++tensor)
      byte -= tensor->bytes;
  }
  int bit = int(below(8));
  flips::flip(tensor->data + byte, bit);
  std::fprintf(stderr, "flipped: %s byte %lld bit %d\n", tensor->name, (long long)byte, bit);
}

} // namespace partita_rt
