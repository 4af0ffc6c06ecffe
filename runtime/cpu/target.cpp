// The host and its device are one (common/target.h).

#include "common/target.h"

#include <cstring>

namespace partita_rt {

bool deviceIsHost() { return true; }

void readDevice(const Rank &, void *to, const void *device, int64_t bytes) {
  std::memcpy(to, device, size_t(bytes));
}

void writeDevice(const Rank &, void *device, const void *from, int64_t bytes) {
  std::memcpy(device, from, size_t(bytes));
}

void sendInputs(Rank &, int64_t) {}

void tune(Rank &, void (*)(Rank &), const std::string &) { fail("%s", whyNotHere("--tune").c_str()); }

std::string deviceMemoryText(const Rank &) { return ""; }

std::string whyNotHere(const std::string &option) {
  return option == "--tune" ? "matrix products are BLAS's here; programs for GPUs are tuned" : "";
}

void call(Rank &rank, void (*function)(Rank &)) { function(rank); }

} // namespace partita_rt
