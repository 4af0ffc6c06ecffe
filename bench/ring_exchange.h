// Included before an emitted program by bench/ring_exchange: measures its collectives, and leaves out a part of it.
//
// RING_PART: 0 all; 1 every shift after the first $RING_SHIFTS (the runtime compares the first step's with the program's
// census) is replaced by a copy of the rank's own keys; 2 without what runs beside the shifts: attention, matmuls, norms
// and rotary embeddings.
//
// At its end each rank writes the seconds of every start and wait of the shifts, in order, into $RING_TIMES.N.

#ifndef BENCH_RING_EXCHANGE_H
#define BENCH_RING_EXCHANGE_H

#include <partita_rt/partita_rt.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

namespace partita_rt {

/// The calls of a rank, which is a thread or a process.
class RingCalls {
  std::vector<double> seconds;
  std::vector<Pending> pending; // shifts that are not waited for

public:
  ~RingCalls() {
    static std::atomic<int> number{0};
    const char *path = std::getenv("RING_TIMES");
    if (!path || seconds.empty())
      return;
    std::string name =
        std::string(path) + "." + std::to_string(getpid()) + "." + std::to_string(number++);
    if (FILE *file = std::fopen(name.c_str(), "w")) {
      for (double each : seconds)
        std::fprintf(file, "%.9f\n", each);
      std::fclose(file);
    }
  }
  template <typename Call> auto time(Call call) {
    struct Clock {
      RingCalls &calls;
      std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
      ~Clock() {
        calls.seconds.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
    } clock{*this};
    return call();
  }
  static RingCalls &ofThisRank() {
    static thread_local RingCalls calls;
    return calls;
  }
  Pending note(Pending started) {
    pending.push_back(started);
    return started;
  }
  /// Is this one a shift?
  bool takes(Pending one) {
    for (size_t i = 0; i < pending.size(); ++i)
      if (pending[i].group == one.group && pending[i].number == one.number) {
        pending.erase(pending.begin() + int64_t(i));
        return true;
      }
    return false;
  }
};

/// Is this one of the rank's first $RING_SHIFTS shifts, which part 1 makes? In place of the others it copies the rank's own
/// keys, so that values stay sane, and notes the copies' time, to be taken off.
inline bool isEarlyShift() {
  static thread_local long left =
      std::getenv("RING_SHIFTS") ? std::atol(std::getenv("RING_SHIFTS")) : 0;
  return left-- > 0;
}
inline Pending copyInstead(Communicator &group, Transfers transfers, const char *why,
                           bool back = false) {
  if (isEarlyShift())
    return shiftStart(group, transfers, why, back);
  RingCalls::ofThisRank().time([&] {
    for (const Transfer &each : transfers)
      std::memcpy(each.to, each.from, size_t(each.count * each.blocks) * sizeof(float));
  });
  return Pending();
}

/// A shift's start.
inline Pending timedShiftStart(Communicator &group, Transfers transfers, const char *why,
                               bool back = false) {
  auto &calls = RingCalls::ofThisRank();
  return calls.note(calls.time([&] { return shiftStart(group, transfers, why, back); }));
}
inline void timedShift(Communicator &group, Transfers transfers, const char *why,
                       bool back = false) {
  RingCalls::ofThisRank().time([&] { shift(group, transfers, why, back); });
}
inline void timedWait(Pending pending) {
  auto &calls = RingCalls::ofThisRank();
  if (calls.takes(pending))
    calls.time([&] { wait(pending); });
  else
    wait(pending);
}

} // namespace partita_rt

#if RING_PART == 1
#define shiftStart(...) copyInstead(__VA_ARGS__)
#define shift(...) wait(copyInstead(__VA_ARGS__))
#else
#define shiftStart(...) timedShiftStart(__VA_ARGS__)
#define shift(...) timedShift(__VA_ARGS__)
#define wait(...) timedWait(__VA_ARGS__)
#endif
#if RING_PART == 2
#define poll(...) ((void)0)
#define attentionStep(...) ((void)0)
#define attentionStepBackward(...) ((void)0)
#define gemm(...) ((void)0)
#define rotary(...) ((void)0)
#define rmsNormForward(...) ((void)0)
#define rmsNormBackward(...) ((void)0)
#endif

#endif // BENCH_RING_EXCHANGE_H
