// The thread that limits waits within MPI (meetings.h).

#include "cpu/links/mpi/meetings.h"
#include "common/last_line.h"
#include "common/mesh/launch.h"
#include "common/start_marks.h"
#include "common/temporary_file.h"
#include "common/watch/watch.h"
#include "partita_rt/signal_masks.h"
#include "partita_rt/timeout.h"

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace partita_rt {

Meetings::Meetings(std::string program) : program(std::move(program)), thread([this] { loop(); }) {}

Meetings::~Meetings() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ends = true;
  }
  changed.notify_all();
  thread.join();
}

void Meetings::know(int itsSelf, std::vector<Member> itsNode, bool areAllRanks) {
  std::lock_guard<std::mutex> lock(mutex);
  self = itsSelf;
  node = std::move(itsNode);
  areAll = areAllRanks;
}

void Meetings::forget() {
  std::lock_guard<std::mutex> lock(mutex);
  for (Member &each : node)
    each.shown = nullptr;
}

void Meetings::enter(const char *what) {
  std::lock_guard<std::mutex> lock(mutex);
  current = what;
  ++entered;
}

Meetings::Scope::Scope(Meetings &itsMeetings, const char *what, bool isCounted)
    : meetings(itsMeetings), before(itsMeetings.current) {
  meetings.enter(what);
  for (const Member &each : meetings.node)
    if (isCounted && each.rank == meetings.self && each.shown)
      ++each.shown->meetings;
}

Meetings::Scope::~Scope() { meetings.enter(before); }

std::string Meetings::lateText(const char *what, double seconds) const {
  std::string own = "a rank (process " + std::to_string(getpid()) + ")", late;
  uint32_t mine = 0;
  for (const Member &each : node)
    if (each.rank == self) {
      own = each.name;
      mine = each.shown ? each.shown->meetings.load() : 0;
    }
  for (const Member &each : node)
    if (each.shown && each.shown->meetings < mine)
      late += (late.empty() ? "" : ", ") + each.name;
  return own + " has waited " + std::to_string(int64_t(seconds)) + " s in " + what + " for " +
         (!late.empty()            ? late
          : areAll || node.empty() ? "other ranks (MPI does not say which)"
                                   : "ranks of other nodes") +
         "; has one stopped?";
}

void Meetings::loop() {
  blockSignals(); // they are for the rank's own thread
  double timeout = kTimeoutSeconds;
  OwnClock clock(0.5);
  uint64_t known = 0;
  double since = 0;
  std::unique_lock<std::mutex> lock(mutex);
  for (; !ends; changed.wait_for(lock, std::chrono::milliseconds(100))) {
    double now = clock.advance();
    if (known != entered)
      since = now;
    known = entered;
    try {
      timeout = timeoutSeconds();
    } catch (const std::exception &) { // the set-up reports it
    }
    if (!current || now - since <= timeout)
      continue;
    std::string text = lateText(current, now - since);
    int turn = std::clamp(self, 0, 20);
    lock.unlock();
    usleep(useconds_t(200'000) *
           useconds_t(turn)); // the lowest prints, and its launcher ends the others
    printLastLine(program, text);
    noteLostRank(text.c_str());
    removeTemporaryFiles();
    _exit(failureStatus());
  }
}

} // namespace partita_rt
