// What a target does for the common code beside kernels, collectives, copies and the launch:
// implemented in cpu/target.cpp and cuda/launch/target.cpp.
//
// Common code is the host's. It touches a rank's memory through HostView and HostEdit alone, and
// calls the program's functions through call(): on a GPU memory is elsewhere, and a step is
// launched, not run.

#ifndef PARTITA_RT_COMMON_TARGET_H
#define PARTITA_RT_COMMON_TARGET_H

#include "partita_rt/program.h"

#include <functional>
#include <string>
#include <vector>

namespace partita_rt {

struct RunOptions;

/// Is a rank's device memory the host's, at the same addresses?
bool deviceIsHost();

/// Copies between a rank's memory and the host's, complete when they return, behind all that the
/// rank has begun. Where deviceIsHost() they are plain copies.
void readDevice(const Rank &rank, void *to, const void *device, int64_t bytes);
void writeDevice(const Rank &rank, void *device, const void *from, int64_t bytes);

/// Begins to write the numbers first, first + 1, ... of the normal sequence of `key` (random.h), times
/// `std`, plus `mean`, to an array in a rank's memory: float, Half or BFloat16, rounded to float and
/// from that to T.
template <typename T>
void drawNormal(const Rank &rank, T *values, int64_t n, uint64_t key, uint64_t first, double mean,
                double std);

/// Brings what was written to Rank::hostInputs, the first so many micro-batches, to Rank::inputs,
/// behind all that the rank has begun. The next inputs are written to Rank::hostInputs as it is
/// then: on a GPU other memory than these were.
void sendInputs(Rank &rank, int64_t microBatches);

/// Runs one of the program's functions; its report and all it computes are there when it returns.
/// Throws Error when a kernel has found an error (an invalid token). `meanwhile`: what the host may
/// do while the device computes; not called where the host is the device.
void call(Rank &rank, void (*function)(Rank &), const std::function<void()> &meanwhile = {});

/// Rank::slot has changed: keeps it where reports of other ranks find it.
void noteSlot(const Rank &rank);
/// Behind a function of the program: the rank is at no slot. For call().
void endSlots(Rank &rank);

/// Tries the algorithms of matmuls (--tune) in one call of the function, whose inputs are all zero,
/// and writes the choices to `path`. All ranks call it; rank 0 chooses.
void tune(Rank &rank, void (*function)(Rank &), const std::string &path);

/// What a rank takes of its device's memory, in bytes, and why: the sum that the compiler
/// announces.
struct MemoryPart {
  const char *what;
  int64_t bytes;
};
std::vector<MemoryPart> deviceParts(const Program &program, const Stage &stage,
                                    const RunOptions *options);

/// Memory beside what is announced, for the summary: as the device reports it or, of host memory, as
/// far as it can be counted.
std::string deviceMemoryText(const Rank &rank);
/// Which kernels compute attention, if there is a choice; "" otherwise.
std::string attentionText(const Rank &rank);

/// Why programs for this target do not have the option; "" if they do.
std::string whyNotHere(const std::string &option);

/// Bytes of a rank's memory as host code reads them: in place, or a copy.
class HostView {
public:
  HostView(const Rank &rank, const void *device, int64_t bytes) : seen(device) {
    if (deviceIsHost())
      return;
    copy.resize(size_t(bytes));
    readDevice(rank, copy.data(), device, bytes);
    seen = copy.data();
  }
  HostView(const HostView &) = delete;
  HostView &operator=(const HostView &) = delete;
  const char *data() const { return static_cast<const char *>(seen); }

private:
  std::vector<char> copy;
  const void *seen;
};

/// Bytes of a rank's memory that host code writes, all of them; undefined at first. They arrive with
/// send().
class HostEdit {
public:
  HostEdit(const Rank &rank, void *device, int64_t bytes)
      : rank(rank), device(device), bytes(bytes), copy(deviceIsHost() ? 0 : size_t(bytes)) {}
  HostEdit(const HostEdit &) = delete;
  HostEdit &operator=(const HostEdit &) = delete;
  char *data() { return deviceIsHost() ? static_cast<char *>(device) : copy.data(); }
  void send() {
    if (!deviceIsHost())
      writeDevice(rank, device, copy.data(), bytes);
  }

private:
  const Rank &rank;
  void *device;
  int64_t bytes;
  std::vector<char> copy;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_TARGET_H
