// The thread of a rendezvous (monitor.h).

#include "processes/monitor.h"
#include "common/last_line.h"
#include "common/start_marks.h"
#include "common/temporary_file.h"
#include "common/watch/flight.h"
#include "partita_rt/signal_masks.h"
#include "partita_rt/types.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace partita_rt::processes {

//===-- The end of a process ----------------------------------------------------------------===//

void endProcess(const FailureExit &ending, const std::string &message, bool speaks) {
  if (speaks)
    printLastLine(ending.name, message);
  else
    flushUnlessStuck();
  if (ending.record)
    ending.record(message.empty() ? kReportedByAnother : message);
  if (ending.abort) {
    struct Done {
      std::mutex mutex;
      std::condition_variable changed;
      bool done = false;
    };
    auto state = std::make_shared<Done>();
    std::thread([state, abort = ending.abort] {
      abort();
      std::lock_guard<std::mutex> lock(state->mutex);
      state->done = true;
      state->changed.notify_all();
    }).detach();
    std::unique_lock<std::mutex> lock(state->mutex);
    state->changed.wait_for(lock, std::chrono::seconds(3), [&] { return state->done; });
  }
  removeTemporaryFiles();
  _exit(failureStatus()); // without waiting for other threads
}

//===-- Functions for the process -----------------------------------------------------------===//

Monitor::Monitor(int rank, Joined joined, double timeout, std::string itsRun, Socket listener,
                 FailureExit itsEnding)
    : rank(rank), timeout(timeout), run(std::move(itsRun)), known(std::move(joined.peers)),
      connections(std::move(joined.connections)), port(std::move(listener), run),
      clock(OwnClock::longest(timeout)), ending(std::move(itsEnding)) {
  if (rank == 0)
    hub = std::make_unique<Hub>(known, timeout, [this](int to, Frame frame) {
      if (to == 0)
        toSelf.push_back(std::move(frame));
      else if (auto &connection = connections[size_t(to)])
        connection->send(frame);
    });
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0)
    partita_rt::fail("no pipe for the thread that watches the other ranks");
  wakeRead = Socket(ends[0]);
  wakeWrite = Socket(ends[1]);
  thread = std::thread([this] { loop(); });
}

Monitor::~Monitor() {
  send({FrameKind::Goodbye, 0, ""});
  thread.join();
  if (successor.joinable())
    successor.join();
}

void Monitor::send(Frame frame) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    outgoing.push_back(std::move(frame));
  }
  wake();
}

void Monitor::wake() {
  char byte = 0;
  (void)!write(wakeWrite.get(), &byte, 1); // a full pipe wakes the thread too
}

std::vector<std::string> Monitor::gather(const std::string &what, const std::string &text) {
  uint32_t number = ++gathers;
  send({FrameKind::Gather, number, pack({what, text})});
  WaitScope waiting(own, "a gather of all ranks: " + what);
  std::unique_lock<std::mutex> lock(mutex);
  // Rank 0 reports who is late; the thread notices if rank 0 is silent.
  news.wait(lock, [&] { return gathered.count(number) > 0; });
  std::vector<std::string> result = std::move(gathered[number]);
  gathered.erase(number);
  return result;
}

void Monitor::report(Cause cause, const std::string &message, const std::string &question) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    reported = known[size_t(rank)].name + ": " + message;
  }
  // The rank's scope in which signals are deferred has ended with its error. A launcher that has seen another rank end
  // would end this process before its flight recorder is written.
  blockSignals();
  send({FrameKind::Report, uint32_t(cause), pack({message, question})});
  for (;;) // the thread ends the process
    pause();
}

void Monitor::setPosition(RankPosition &position) {
  own = &position;
  heartbeatIsDue = true;
  wake();
}

void Monitor::see(int rank, const RankPosition &position) {
  if (hub)
    hub->see(rank, position);
  else if (rank == 0)
    near = &position;
}

void Monitor::setName(const std::string &name) {
  std::lock_guard<std::mutex> lock(mutex);
  ending.name = name;
}

void Monitor::setAnswer(std::function<std::string(const std::string &)> value) {
  std::lock_guard<std::mutex> lock(mutex);
  answer = std::move(value);
}

void Monitor::setRecord(std::function<void(const std::string &)> value) {
  std::lock_guard<std::mutex> lock(mutex);
  ending.record = std::move(value);
}

void Monitor::setAbort(std::function<void()> value) {
  std::lock_guard<std::mutex> lock(mutex);
  ending.abort = std::move(value);
}

//===-- Functions of the thread -------------------------------------------------------------===//

void Monitor::loop() {
  blockSignals(); // they are for the rank's own thread; the threads that this one starts inherit that
  try {
    while (!farewell) {
      waitForNews();
      exchange();
    }
    // The last frames must arrive: closing a connection with unread bytes in it discards what was sent. So rank 0 waits
    // until the others have closed theirs.
    int looks = 0;
    for (auto &connection : connections)
      while (connection && looks++ < 100 && connection->flush() &&
             (connection->hasUnsent() || (rank == 0 && connection->receive())))
        usleep(10'000);
  } catch (const std::exception &error) {
    end(known[size_t(rank)].name + ": " + error.what(), true);
  }
}

void Monitor::waitForNews() {
  std::vector<pollfd> waits{{wakeRead.get(), POLLIN, 0}};
  for (auto &connection : connections)
    if (connection)
      waits.push_back(
          {connection->descriptor(), short(POLLIN | (connection->hasUnsent() ? POLLOUT : 0)), 0});
  if (!hub)
    port.addTo(waits);
  poll(waits.data(), waits.size(), hub ? 20 : int(std::clamp(timeout.load() * 100, 10.0, 200.0)));
  char bytes[256];
  while (read(wakeRead.get(), bytes, sizeof(bytes)) > 0)
    ;
}

/// Tells rank 0 that this process lives, and where its rank is. Rank 0 tells the others (Hub::tick).
void Monitor::sendHeartbeat() {
  RankPosition *position = own;
  if (!position || (now < nextHeartbeat && !heartbeatIsDue.exchange(false)))
    return;
  nextHeartbeat = now + heartbeatEvery(timeout);
  ++position->beats;
  if (hub)
    hub->setPosition(position);
  else if (connections[0])
    connections[0]->send({FrameKind::Alive, 0, imageOf(*position)});
}

void Monitor::exchange() {
  clock.setMost(OwnClock::longest(timeout)); // --timeout is known after the ranks have met
  now = Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(clock.advance())));
  sendHeartbeat();
  std::deque<Frame> mine;
  {
    std::lock_guard<std::mutex> lock(mutex);
    mine.swap(outgoing);
  }
  for (const Frame &frame : mine) {
    if (hub)
      hub->handle(0, frame, now);
    else if (connections[0])
      connections[0]->send(frame);
  }
  for (size_t i = 0; i < connections.size(); ++i) {
    auto &connection = connections[i];
    if (!connection)
      continue;
    bool open = connection->flush();
    open = connection->receive() && open;
    while (std::optional<Frame> frame = connection->next()) {
      heard = now;
      if (hub)
        hub->handle(int(i), *frame, now);
      else
        received(*frame);
    }
    if (open)
      continue;
    bool isSilent = connection->error() == ETIMEDOUT;
    connection.reset();
    if (hub)
      hub->closed(int(i), now, isSilent);
    else if (!farewell) {
      double silence = std::chrono::duration<double>(now - heard).count();
      std::string text = isSilent ? lostRankText("", silence) : deathOfRankZero();
      noteLostRank(text.c_str());
      takeOver(text);
    }
  }
  if (!hub)
    return checkSilence();
  hub->setTimeout(timeout);
  hub->tick(now);
  for (auto &connection : connections)
    if (connection)
      connection->flush();
  while (!toSelf.empty()) {
    Frame frame = std::move(toSelf.front());
    toSelf.pop_front();
    received(frame);
  }
}

void Monitor::received(const Frame &frame) {
  switch (frame.kind) {
  case FrameKind::Gathered: {
    std::vector<std::string> texts = unpack(frame.text, known.size());
    std::lock_guard<std::mutex> lock(mutex);
    gathered[frame.number] = std::move(texts);
    news.notify_all();
    return;
  }
  case FrameKind::Question:
  case FrameKind::WhereAreYou: {
    bool asksWhere = frame.kind == FrameKind::WhereAreYou;
    std::function<std::string(const std::string &)> its;
    {
      std::lock_guard<std::mutex> lock(mutex);
      its = answer;
    }
    std::string text = its ? its(asksWhere ? kWhereAreYou : frame.text) : "";
    RankPosition *position = own;
    if (text.empty() && position && asksWhere)
      text = waitText(*position);
    return send({FrameKind::Answer, frame.number, text});
  }
  case FrameKind::EndByLostRank:
    noteLostRank(frame.text.c_str());
    [[fallthrough]];
  case FrameKind::End:
    end(frame.text, int(frame.number) == rank);
  case FrameKind::Farewell:
    farewell = true;
    return;
  case FrameKind::Heartbeat:
    if (!frame.text.empty())
      readImage(ofRankZero, frame.text);
    return;
  default:
    partita_rt::fail("received a malformed message from rank 0");
  }
}

/// What is known of rank 0.
const RankPosition &Monitor::positionOfRankZero() const {
  const RankPosition *its = near;
  return its && its->isPublished() ? *its : ofRankZero;
}

/// Why all end when rank 0 has died, and where that leaves this rank.
std::string Monitor::deathOfRankZero() const {
  const RankPosition &its = positionOfRankZero();
  std::string text = deathText(nameOf(known, 0), its.isPublished() ? &its : nullptr,
                               std::chrono::duration<double>(now - heard).count());
  return text + ownWaitText();
}

/// Why all end when rank 0 is silent; `mine`: what this rank has reported, if anything.
std::string Monitor::lostRankText(const std::string &mine, double seconds) const {
  std::string name = nameOf(known, 0);
  if (!mine.empty() && ofRankZero.beats == 0)
    return mine + "; " + name + " does not answer";
  return silentText(name, runsBeside(known[0], known[size_t(rank)]), seconds,
                    positionOfRankZero()) +
         (mine.empty() ? ownWaitText() : "; " + mine);
}

/// "; rank 1 (host gpu-2, process 4711) waits in ..."; "" if it does not wait.
std::string Monitor::ownWaitText() const {
  const RankPosition *mine = own;
  std::string wait = mine ? waitText(*mine) : "";
  return wait.empty() ? "" : "; " + nameOf(known, rank) + " " + wait;
}

/// Checks for silence of rank 0, and for other ranks that have lost it. A rank that has reported
/// something waits briefly for the outcome; the others wait a second longer than a collective's
/// time-out, whose report is more specific.
void Monitor::checkSilence() {
  std::string mine;
  {
    std::lock_guard<std::mutex> lock(mutex);
    mine = reported;
  }
  double silence = std::chrono::duration<double>(now - heard).count(), most = timeout;
  if (!farewell && silence > (mine.empty() ? most + 1 : std::min(most, 3.0))) {
    std::string text = lostRankText(mine, silence);
    noteLostRank(text.c_str());
    takeOver(text);
  }
  for (const Frame &frame : port.serve()) {
    noteLostRank(frame.text.c_str()); // another one has lost rank 0
    if (frame.kind == FrameKind::Over)
      end("", false);
    takeOver(frame.text);
  }
}

/// Handles the loss of rank 0, on another thread: this one keeps answering other ranks that ask.
/// Nothing is printed if rank 0 was only slow and has said farewell in the meantime.
void Monitor::takeOver(const std::string &message) {
  if (succeeding)
    return;
  succeeding = true;
  successor = std::thread([this, message] {
    bool another = anotherSpeaks(known, rank, run, message);
    for (int i = 0; another && !farewell && i < 100; ++i)
      usleep(100'000); // until it has printed: launchers end all ranks when one has ended
    if (farewell)
      return;
    if (another)
      end("", false);
    FailureExit last;
    {
      std::lock_guard<std::mutex> lock(mutex);
      last = ending;
    }
    last.abort = [this, abort = std::move(last.abort)] {
      send({FrameKind::Over, 0, ""}); // to rank 0
      tellOver(known, rank, run);
      usleep(500'000); // for ranks that are still asking
      if (abort)
        abort();
    };
    endProcess(last, message, true);
  });
}

void Monitor::end(const std::string &message, bool speaks) {
  for (int i = 0; hub && i < 100; ++i) { // let the others be told
    bool unsent = false;
    for (auto &connection : connections)
      unsent = (connection && connection->flush() && connection->hasUnsent()) || unsent;
    if (!unsent)
      break;
    usleep(10'000);
  }
  FailureExit last;
  {
    std::lock_guard<std::mutex> lock(mutex);
    last = ending;
  }
  endProcess(last, message, speaks);
}

} // namespace partita_rt::processes
