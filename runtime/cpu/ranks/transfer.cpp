// Copies on a thread of their own (transfer.h).

#include "cpu/ranks/transfer.h"

#include "cpu/process.h"
#include "partita_rt/types.h"
#include "partita_rt/work.h"

#include <algorithm>
#include <cstring>
#include <system_error>

namespace partita_rt {

TransferEngine::~TransferEngine() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ends = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void TransferEngine::startThread() {
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::system_error &error) {
    fail("the thread that copies to and from the host's memory cannot be started: %s%s",
         error.what(), addressSpaceText().c_str());
  }
}

HostCopy TransferEngine::start(void *to, const void *from, int64_t bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!thread.joinable())
      startThread();
    jobs.push_back({to, from, bytes});
  }
  changed.notify_all();
  return {++started};
}

void TransferEngine::wait(HostCopy copy) {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return done >= copy.number; });
  waited = std::max(waited, copy.number);
}

void TransferEngine::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return ends || !jobs.empty(); });
    if (jobs.empty())
      return;
    Job job = jobs.front();
    jobs.pop_front();
    lock.unlock();
    std::memcpy(job.to, job.from, size_t(job.bytes));
    lock.lock();
    ++done;
    changed.notify_all();
  }
}

HostCopy toHostStart(Rank &rank, void *host, const void *device, int64_t bytes) {
  rank.transfers->count.toHost += bytes;
  return rank.transfers->start(host, device, bytes);
}

HostCopy toDeviceStart(Rank &rank, void *device, const void *host, int64_t bytes) {
  rank.transfers->count.toDevice += bytes;
  return rank.transfers->start(device, host, bytes);
}

TransferBytes transferred(const Rank &rank) { return rank.transfers->count; }

int64_t transfersUnderWay(const Rank &rank) { return rank.transfers->outstanding(); }

void wait(Rank &rank, HostCopy copy) {
  WorkScope scope(rank.clock, Work::Transfers);
  rank.transfers->wait(copy);
}

} // namespace partita_rt
