// Flips one bit of a rank's parameters and states, for tests: included by an emitted program whose source has calls of
// flipBit (flips.py). FLIP="RANK STEP MOMENT SEED" says when: MOMENT is the kind of work before which it flips. SEED draws
// the bit: an even one from all bits, an odd one from those of a tensor that is drawn first.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace partita_rt {

inline void flipBit(Rank &rank, const char *moment) {
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
  struct Tensor {
    const char *name;
    char *data;
    int64_t bytes;
  };
  std::vector<Tensor> tensors;
  int64_t all = 0;
  auto add = [&](const char *name, void *data, int64_t bytes) {
    tensors.push_back({name, static_cast<char *>(data), bytes});
    all += bytes;
  };
  const Program &program = *rank.program;
  for (const Parameter &p : program.parameters)
    if (p.stages.contains(rank.stageNumber))
      add(p.name, rank.dataOf(p), p.localShape.elements() * sizeOf(p.dtype));
  for (const OptimizerState &s : program.optimizerStates)
    if (program.parameters[s.parameter].stages.contains(rank.stageNumber))
      add(s.name, rank.dataOf(s), s.localShape.elements() * sizeOf(s.dtype));
  std::mt19937_64 draw(seed);
  auto below = [&](int64_t n) { return int64_t(draw() % uint64_t(n)); };
  int64_t byte = below(all);
  const Tensor *tensor = tensors.data();
  if (seed % 2) {
    tensor += below(int64_t(tensors.size()));
    byte = below(tensor->bytes);
  } else {
    for (; byte >= tensor->bytes; ++tensor)
      byte -= tensor->bytes;
  }
  int bit = int(below(8));
  tensor->data[byte] = char(tensor->data[byte] ^ 1 << bit);
  std::fprintf(stderr, "flipped: %s byte %lld bit %d\n", tensor->name, (long long)byte, bit);
}

} // namespace partita_rt
