// The host and its device are one (common/target.h).

#include "common/target.h"

#include "common/launch.h"
#include "cpu/storage.h"
#include "partita_rt/random.h"

#include <cstring>

namespace partita_rt {

bool deviceIsHost() { return true; }

void readDevice(const Rank &, void *to, const void *device, int64_t bytes) {
  std::memcpy(to, device, size_t(bytes));
}

void writeDevice(const Rank &, void *device, const void *from, int64_t bytes) {
  std::memcpy(device, from, size_t(bytes));
}

template <typename T>
void drawNormal(const Rank &, T *values, int64_t n, uint64_t key, uint64_t from, double mean,
                double std) {
  throughFloat(values, n, false, [&](float *to, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = float(mean + standardNormal(key, from + uint64_t(first + i)) * std);
  });
}
#define DRAW(T)                                                                                    \
  template void drawNormal(const Rank &, T *, int64_t, uint64_t, uint64_t, double, double);
FOR_STORAGE(DRAW)
#undef DRAW

void sendInputs(Rank &, int64_t) {}

void tune(Rank &, void (*)(Rank &), const std::string &) {
  fail("%s", whyNotHere("--tune").c_str());
}

std::vector<MemoryPart> deviceParts(const Program &program, const RunOptions *options) {
  return {{"persistent", program.persistentBytes},
          {"arena", arenaBytes(program, options)},
          {"inputs", inputBytes(program)}};
}

std::string deviceMemoryText(const Rank &) { return ""; }
std::string attentionText(const Rank &) { return ""; }

std::string whyNotHere(const std::string &option) {
  return option == "--tune" ? "matrix products are BLAS's here; programs for GPUs are tuned" : "";
}

void call(Rank &rank, void (*function)(Rank &), const std::function<void()> &) { function(rank); }

} // namespace partita_rt
