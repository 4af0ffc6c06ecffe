// The thread that copies for a rank.

#ifndef PARTITA_RT_CPU_RANKS_TRANSFER_H
#define PARTITA_RT_CPU_RANKS_TRANSFER_H

#include "partita_rt/transfer.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace partita_rt {

class TransferEngine {
public:
  TransferEngine() = default;
  ~TransferEngine();
  TransferEngine(const TransferEngine &) = delete;
  TransferEngine &operator=(const TransferEngine &) = delete;

  HostCopy start(void *to, const void *from, int64_t bytes);
  void wait(HostCopy copy);
  int64_t outstanding() const { return started - waited; }

  TransferBytes count;

private:
  struct Job {
    void *to;
    const void *from;
    int64_t bytes;
  };
  void startThread();
  void run();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;
  int64_t started = 0, waited = 0, done = 0; ///< copies; the thread writes `done`
  bool ends = false;
  std::thread thread; ///< started by the first copy
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_RANKS_TRANSFER_H
