// Flight recorders and their files (flight.h). The folder belongs to the process.

#include "common/watch/flight.h"
#include "common/start_marks.h"
#include "partita_rt/exit_status.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace partita_rt {

constexpr int64_t kSecond = 1'000'000'000;
/// How much of the past is written.
constexpr int64_t kLast = 60 * kSecond;

static char flightFolder[PATH_MAX - 64];
static std::atomic<MakeParents> makesParents{MakeParents::Never};
static std::atomic<int64_t> startedAt{0}; ///< microseconds

void setStartOfFlights(int64_t microseconds) { startedAt = microseconds; }

void setFlightFolder(const std::string &folder, MakeParents parents) {
  if (folder.size() < sizeof(flightFolder)) // a longer one cannot be made
    std::strcpy(flightFolder, folder.c_str());
  makesParents = parents;
}

void noteFlightFolderHasParents() {
  auto until = MakeParents::UntilNoted;
  makesParents.compare_exchange_strong(until, MakeParents::Never);
}

namespace fs = std::filesystem;

/// Is this rank-R.jsonl?
static bool isFlightName(const std::string &name) {
  int rank = -1;
  return std::sscanf(name.c_str(), "rank-%d", &rank) == 1 && rank >= 0 &&
         name == "rank-" + std::to_string(rank) + ".jsonl";
}

/// Returns the flight recorders' files in a folder, which may have others, of the user's.
static std::vector<fs::path> flightsIn(const fs::path &folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none))
    if (isFlightName(entry->path().filename().string()))
      found.push_back(entry->path());
  return found;
}

void setEarlierFlightsAside() {
  std::vector<fs::path> found = flightsIn(flightFolder);
  if (found.empty())
    return;
  std::error_code none; // what cannot be moved is overwritten
  fs::path earlier = fs::path(flightFolder) / "earlier";
  for (const fs::path &path : flightsIn(earlier))
    fs::remove(path, none);
  fs::create_directory(earlier, none);
  for (const fs::path &path : found)
    fs::rename(path, earlier / path.filename(), none);
}

static int64_t nanoseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

/// Adds the event to those of its second.
void FlightRing::countIn(Flight event, int64_t number, int64_t bytes, int64_t time) {
  auto add = [](std::atomic<uint64_t> &to, int64_t value) { // no other thread writes it
    to.store(to.load(std::memory_order_relaxed) + uint64_t(value), std::memory_order_relaxed);
  };
  if (event == Flight::Step)
    step.store(uint64_t(number), std::memory_order_relaxed);
  auto now = uint64_t(time / kSecond);
  Second &second = seconds[now % kSeconds];
  if (second[0].load(std::memory_order_relaxed) != now) {
    for (std::atomic<uint64_t> &each : second)
      each.store(0, std::memory_order_relaxed);
    second[0].store(now, std::memory_order_release);
  }
  second[1].store(step.load(std::memory_order_relaxed), std::memory_order_relaxed);
  add(second[2], bytes);
  add(second[3 + size_t(event)], 1);
}

void FlightRing::note(Flight event, int64_t number, int64_t bytes, const char *text,
                      const char *more, const char *most) {
  char all[kTextWords * sizeof(uint64_t)] = {};
  size_t size = 0;
  for (const char *each : {text, more, most})
    for (; *each && size + 1 < sizeof(all); ++each)
      all[size++] = *each;
  int64_t time = nanoseconds(CLOCK_MONOTONIC);
  countIn(event, number, bytes, time);
  uint64_t at = count.load(std::memory_order_relaxed);
  Entry &entry = entries[at % kEvents];
  entry[0].store(uint64_t(time), std::memory_order_relaxed);
  entry[1].store(uint64_t(number) << 8 | uint64_t(event), std::memory_order_relaxed);
  entry[2].store(uint64_t(bytes), std::memory_order_relaxed);
  for (size_t i = 0; i < kTextWords; ++i) {
    uint64_t word;
    std::memcpy(&word, all + i * sizeof(word), sizeof(word));
    entry[3 + i].store(word, std::memory_order_relaxed);
  }
  count.store(at + 1, std::memory_order_release);
}

//===-- Files -------------------------------------------------------------------------------===//

namespace {

/// A file, written through a buffer without allocating memory.
class FlightFile {
public:
  /// `opened`: what open() has returned just now.
  explicit FlightFile(int opened) : descriptor(opened), problem(opened < 0 ? errno : 0) {}
  /// Returns the error of the first call that has failed, or 0.
  int end() {
    flush();
    if (descriptor >= 0 && close(descriptor) != 0 && problem == 0)
      problem = errno;
    return problem;
  }
  FlightFile &operator<<(const char *text) {
    for (; *text; ++text)
      put(*text);
    return *this;
  }
  FlightFile &operator<<(int64_t value) {
    char digits[24];
    size_t size = 0;
    for (uint64_t left = value < 0 ? 0 - uint64_t(value) : uint64_t(value); left || !size;
         left /= 10)
      digits[size++] = char('0' + left % 10);
    if (value < 0)
      put('-');
    while (size > 0)
      put(digits[--size]);
    return *this;
  }
  /// Seconds with six digits.
  void seconds(int64_t nanoseconds) {
    int64_t micro = nanoseconds / 1000 % 1'000'000;
    *this << nanoseconds / kSecond;
    put('.');
    for (int64_t unit = 100'000; unit > 0; unit /= 10)
      put(char('0' + micro / unit % 10));
  }
  void quoted(const char *text) {
    put('"');
    for (; *text; ++text) {
      if (*text == '"' || *text == '\\')
        put('\\');
      put(static_cast<unsigned char>(*text) < ' ' ? ' ' : *text);
    }
    put('"');
  }

private:
  void put(char c) {
    if (size == sizeof(buffer))
      flush();
    buffer[size++] = c;
  }
  void flush() {
    for (size_t at = 0; problem == 0 && at < size;) {
      ssize_t n = write(descriptor, buffer + at, size - at);
      if (n >= 0)
        at += size_t(n);
      else if (errno != EINTR)
        problem = errno;
    }
    size = 0;
  }
  int descriptor, problem;
  char buffer[4096];
  size_t size = 0;
};

const char *nameOfEvent(Flight event) {
  constexpr const char *kNames[] = {"phase", "step", "work",    "slot",
                                    "start", "done", "message", "arrived"};
  return size_t(event) < std::size(kNames) ? kNames[size_t(event)] : "?";
}

/// Writes an event; `toReal` turns its time into the time of day.
void writeEvent(FlightFile &file, const FlightRing::Entry &entry, int64_t toReal) {
  auto event = Flight(entry[1].load(std::memory_order_relaxed) & 0xff);
  auto number = int64_t(entry[1].load(std::memory_order_relaxed)) >> 8;
  auto bytes = int64_t(entry[2].load(std::memory_order_relaxed));
  char text[FlightRing::kTextWords * sizeof(uint64_t) + 1] = {};
  for (size_t i = 0; i < FlightRing::kTextWords; ++i) {
    uint64_t word = entry[3 + i].load(std::memory_order_relaxed);
    std::memcpy(text + i * sizeof(word), &word, sizeof(word));
  }
  file << "{\"time\": ";
  file.seconds(int64_t(entry[0].load(std::memory_order_relaxed)) + toReal);
  file << ", \"event\": \"" << nameOfEvent(event) << "\"";
  if (event != Flight::Phase && event != Flight::Work)
    file << ", \"number\": " << number;
  if (event == Flight::Start || event == Flight::Message)
    file << ", \"bytes\": " << bytes;
  if (*text) {
    file << ", \"text\": ";
    file.quoted(text);
  }
  file << "}\n";
}

/// Writes a line for each second from that of one time to that of another one, of CLOCK_MONOTONIC, in which something happened.
void writeSeconds(FlightFile &file, const FlightRing &ring, int64_t from, int64_t to,
                  int64_t toReal) {
  for (int64_t at = from / kSecond; at <= to / kSecond; ++at) {
    const FlightRing::Second &second = ring.seconds[uint64_t(at) % FlightRing::kSeconds];
    auto get = [&](size_t i) { return int64_t(second[i].load(std::memory_order_relaxed)); };
    auto events = [&](Flight event) { return get(3 + size_t(event)); };
    if (get(0) != at)
      continue;
    file << "{\"time\": ";
    file.seconds(at * kSecond + toReal);
    file << ", \"event\": \"second\", \"number\": " << get(1)
         << ", \"steps\": " << events(Flight::Step)
         << ", \"collectives\": " << events(Flight::Start)
         << ", \"messages\": " << events(Flight::Message) << ", \"bytes\": " << get(2) << "}\n";
  }
}

constexpr char kStart[] = "{\"start\": "; ///< of a file

/// Returns the start of which a file is, in microseconds; 0 if there is none.
int64_t startIn(const char *path) {
  char text[64] = {};
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool isRead = file >= 0 && read(file, text, sizeof(text) - 1) > 0;
  if (file >= 0)
    close(file);
  size_t at = std::strlen(kStart);
  if (!isRead || std::strncmp(text, kStart, at) != 0)
    return 0;
  int64_t value = 0;
  for (; (text[at] >= '0' && text[at] <= '9') || text[at] == '.'; ++at)
    if (text[at] != '.' && value < INT64_MAX / 100)
      value = 10 * value + (text[at] - '0');
  return value;
}

/// Puts "FOLDER/rank-7.jsonl" into the text; "FOLDER/earlier/rank-7.jsonl" with `below` "/earlier".
void putPath(char (&path)[PATH_MAX], int rank, const char *below = "") {
  char digits[16];
  size_t size = 0, end = std::strlen(flightFolder);
  for (int left = rank; left || !size; left /= 10)
    digits[size++] = char('0' + left % 10);
  std::memcpy(path, flightFolder, end);
  for (; *below; ++below)
    path[end++] = *below;
  std::memcpy(path + end, "/rank-", 6);
  end += 6;
  while (size > 0)
    path[end++] = digits[--size];
  std::memcpy(path + end, ".jsonl", 7);
}

/// Makes the folder of the file, and those above it that may be made, as far as they are missing.
void makeFolders(char (&path)[PATH_MAX]) {
  for (char *at = path + (makesParents != MakeParents::Never ? 1 : std::strlen(flightFolder)); *at;
       ++at)
    if (*at == '/') {
      *at = 0;
      mkdir(path, 0777);
      *at = '/';
    }
}

/// Opens the file, in its folder. Another rank that fails may remove a folder that is empty and that its start made.
int openFile(char (&path)[PATH_MAX]) {
  constexpr int kTries = 3;
  int descriptor = -1;
  for (int i = 0; i < kTries && descriptor < 0 && (i == 0 || errno == ENOENT); ++i) {
    makeFolders(path);
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  }
  return descriptor;
}

/// Prints that a file is not all there; allocates nothing.
void sayIncomplete(const char *path, int problem) {
  const char *why = strerrordesc_np(problem),
             *texts[] = {"warning: the flight recorder's file ", path,
                         " is incomplete or missing: ", why ? why : "unknown error", "\n"};
  char line[PATH_MAX + 128];
  size_t size = 0;
  for (const char *text : texts)
    for (; *text && size < sizeof(line); ++text)
      line[size++] = *text;
  (void)!write(STDERR_FILENO, line, size);
}

} // namespace

static void writeFile(const FlightRing &ring, int rank, const char *name, const char *reason) {
  int64_t now = nanoseconds(CLOCK_MONOTONIC), toReal = nanoseconds(CLOCK_REALTIME) - now;
  char path[PATH_MAX];
  putPath(path, rank);
  if (startIn(path) > startedAt)
    putPath(path, rank, "/earlier");
  FlightFile file(openFile(path));
  file << kStart;
  file.seconds(startedAt * 1000);
  file << ", \"rank\": " << int64_t(rank) << ", \"name\": ";
  file.quoted(name);
  file << ", \"written\": ";
  file.seconds(now + toReal);
  file << ", \"monotonic\": ";
  file.seconds(now);
  file << ", \"reason\": ";
  file.quoted(reason);
  file << "}\n";
  uint64_t end = ring.count.load(std::memory_order_acquire),
           begin = end > FlightRing::kEvents ? end - FlightRing::kEvents : 0;
  if (begin > 0) // what came before is forgotten
    writeSeconds(file, ring, now - kLast,
                 int64_t(ring.entries[begin % FlightRing::kEvents][0].load()), toReal);
  for (uint64_t at = begin; at < end; ++at) {
    const FlightRing::Entry &entry = ring.entries[at % FlightRing::kEvents];
    auto time = int64_t(entry[0].load(std::memory_order_relaxed));
    if (time >= now - kLast && time <= now) // the rank may go on meanwhile
      writeEvent(file, entry, toReal);
  }
  if (int problem = file.end())
    sayIncomplete(path, problem);
}

/// Returns true if nobody has begun the ring's file; else waits until it is written, but not for a
/// thread that this one's signal has interrupted.
static bool mayWrite(FlightRing &ring) {
  for (auto before : {FlightRing::File::None, FlightRing::File::Foreseen})
    if (ring.file.compare_exchange_strong(before, FlightRing::File::Begun))
      return true;
  timespec pause{0, 5'000'000};
  for (int i = 0; i < 60 && ring.file.load() != FlightRing::File::Written; ++i)
    nanosleep(&pause, nullptr);
  return false;
}

bool writesFlights() { return *flightFolder && failureStatus() == kFailedWhileTraining; }

void foreseeFlight(FlightRing &ring, int rank, const char *name, const char *reason) {
  auto none = FlightRing::File::None;
  if (!writesFlights() || !ring.file.compare_exchange_strong(none, FlightRing::File::Begun))
    return;
  writeFile(ring, rank, name, reason);
  ring.file = FlightRing::File::Foreseen;
}

void withdrawFlight(FlightRing &ring, int rank) {
  auto foreseen = FlightRing::File::Foreseen;
  if (!ring.file.compare_exchange_strong(foreseen, FlightRing::File::None))
    return;
  char path[PATH_MAX];
  putPath(path, rank);
  if (startIn(path) == startedAt)
    unlink(path);
  if (makesParents != MakeParents::Always)
    rmdir(flightFolder);
}

void writeFlight(FlightRing &ring, int rank, const char *name, const char *reason) {
  if (!writesFlights() || !mayWrite(ring))
    return;
  writeFile(ring, rank, name, reason);
  ring.file = FlightRing::File::Written;
}

} // namespace partita_rt
