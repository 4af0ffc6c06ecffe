// The target's functions for the common code, other than kernels, collectives, copies and the
// launch: implemented in cpu/ranks/target.cpp and cuda/launch/target.cpp.
//
// Common code runs on the host. It touches a rank's memory only through HostView and HostEdit, and
// calls the program's functions through call(): on a GPU, memory is elsewhere, and a step is
// launched, not run.

#ifndef PARTITA_RT_COMMON_TARGET_H
#define PARTITA_RT_COMMON_TARGET_H

#include "partita_rt/program.h"

#include <functional>
#include <string>
#include <vector>

namespace partita_rt {

struct RankPosition;
struct RunOptions;

/// Is a rank's device memory the host's, at the same addresses?
bool deviceIsHost();

/// Copies between a rank's memory and the host's, after everything that the rank has started;
/// returns when complete. If deviceIsHost() these are plain copies.
void readDevice(const Rank &rank, void *to, const void *device, int64_t bytes);
void writeDevice(const Rank &rank, void *device, const void *from, int64_t bytes);

/// A run of bytes in a rank's memory whose hash (replica_hash.h) is added to sum number `sum`.
struct HashedRun {
  const void *data;
  Home home;
  int64_t bytes;
  uint64_t firstWord;
  size_t sum;
};
/// Returns that many sums, after everything that the rank has started. Not within a function of the
/// program, unless deviceIsHost(): GPUs sum in the arena.
std::vector<uint64_t> hashRuns(const Rank &rank, const std::vector<HashedRun> &runs, size_t sums);

/// Starts writing the numbers first, first + 1, ... of the normal sequence of `key` (random.h),
/// times `std`, plus `mean`, to an array in a rank's memory: float, Half or BFloat16, rounded to
/// float and then to T.
template <typename T>
void drawNormal(const Rank &rank, T *values, int64_t n, uint64_t key, uint64_t first, double mean,
                double std);

/// Copies the first `microBatches` micro-batches in Rank::hostInputs to Rank::inputs, after
/// everything that the rank has started. Write the next inputs to the new value of
/// Rank::hostInputs: on a GPU it is different memory.
void sendInputs(Rank &rank, int64_t microBatches);

/// Runs one of the program's functions; its report and results are complete when it returns. Throws
/// Error if a kernel has found an error (an invalid token). `meanwhile` is work for the host while
/// the device computes; not called if the host is the device. Returns true if the host has issued, and counted, what the function
/// communicates; false if a device repeats what an earlier call has issued.
bool call(Rank &rank, void (*function)(Rank &), const std::function<void()> &meanwhile = {});

/// Stores a changed Rank::slot where reports of other ranks find it.
void noteSlot(const Rank &rank);
/// The same for Slot::layer alone, which changes often.
void noteLayer(const Rank &rank);
/// Marks that the rank is at no slot after a function of the program. For call().
void endSlots(Rank &rank);

/// Returns what the rank, 0, sees of another one; null if it sees nothing of it.
const RankPosition *positionOf(const Rank &rank, int other);

/// Tries the algorithms of matmuls (--tune) in one call of each function, whose inputs have been
/// sent, and writes the choices to `path`. All ranks call it; rank 0 chooses.
void tune(Rank &rank, const std::vector<void (*)(Rank &)> &functions, const std::string &path);

/// An amount of device memory that a rank uses, in bytes, and its purpose: a term of the sum that
/// the compiler announces.
struct MemoryPart {
  const char *what;
  int64_t bytes;
};
std::vector<MemoryPart> deviceParts(const Program &program, const Stage &stage,
                                    const RunOptions *options);

/// Reports memory beyond the announced amount, for the summary: as the device reports it or, for
/// host memory, as far as it can be counted.
std::string deviceMemoryText(const Rank &rank);
/// Lines of a run's summary that only this target has.
struct SummaryLine {
  std::string title, text;
};
std::vector<SummaryLine> targetLines(const Rank &rank);

/// Returns why programs for this target lack the option; "" if they have it.
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

/// Bytes of a rank's memory that host code writes, all of them; initially undefined. send()
/// delivers them.
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
