// Writes what would run, as lines of a file (record.h).

#include "simulated/record.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace simulated {

namespace {

/// Returns the file that the environment names, or null.
std::FILE *file() {
  static std::FILE *opened = [] {
    const char *name = std::getenv("PARTITA_SIMULATED_LAUNCHES");
    std::FILE *made = name && *name ? std::fopen(name, "w") : nullptr;
    if (name && *name && !made) {
      std::fprintf(stderr, "simulated CUDA: PARTITA_SIMULATED_LAUNCHES=%s cannot be written\n",
                   name);
      std::exit(2);
    }
    return made;
  }();
  return opened;
}

std::string threeOf(const dim3 &size) {
  return "[" + std::to_string(size.x) + ", " + std::to_string(size.y) + ", " +
         std::to_string(size.z) + "]";
}

} // namespace

bool recording() { return file() != nullptr; }

void record(const std::string &line) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (std::fprintf(file(), "%s\n", line.c_str()) < 0 || std::fflush(file()) != 0) {
    std::perror("simulated CUDA: PARTITA_SIMULATED_LAUNCHES");
    std::exit(2);
  }
}

LaunchLine::LaunchLine(const simt::Launch &shape, const void *function) {
  Dl_info where{};
  dladdr(function, &where);
  auto address = static_cast<const char *>(function) - static_cast<const char *>(where.dli_fbase);
  text = "{\"kernel\": \"" + std::string(shape.kernel) +
         "\", \"address\": " + std::to_string(address) + ", \"grid\": " + threeOf(shape.grid) +
         ", \"block\": " + threeOf(shape.block) + ", \"shared\": " + std::to_string(shape.shared) +
         ", \"arguments\": [";
}

void LaunchLine::append(const std::string &value) {
  text += (first ? "" : ", ") + value;
  first = false;
}

void LaunchLine::appendNumber(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.17g", value);
  append(std::isfinite(value) ? digits : "null");
}

void LaunchLine::appendWords(const unsigned char *bytes, size_t count) {
  std::string words;
  for (size_t at = 0; at < count; at += sizeof(int64_t)) {
    int64_t word = 0;
    std::memcpy(&word, bytes + at, count - at < sizeof word ? count - at : sizeof word);
    words += (at > 0 ? ", " : "") + std::to_string(word);
  }
  append("[" + words + "]");
}

void LaunchLine::write() { record(text + "]}"); }

} // namespace simulated
