// A rank's flight recorder: what it did last, in fixed rings that cost one reading of a clock per event: the last events, and
// for each second of the last minute how many there were. If the run fails after its first step, they become a file.
//
// The ring may lie in memory that processes share: of one that has stopped or was killed, another
// process of the node writes it.

#ifndef PARTITA_RT_COMMON_WATCH_FLIGHT_H
#define PARTITA_RT_COMMON_WATCH_FLIGHT_H

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace partita_rt {

enum class Flight : uint8_t {
  Phase,   ///< text: of the run
  Step,    ///< number: of the step that begins
  Work,    ///< text: the kind of work that begins
  Slot,    ///< number: of the schedule; text: what it is
  Start,   ///< of a collective: number, bytes; text: kind, group, purpose
  Done,    ///< a wait for a collective has ended: number; text: group
  Message, ///< the start of a message: number, bytes; text: channel, purpose
  Arrived, ///< a wait for a message has ended: number; text: channel
};
constexpr int kFlightEvents = 8;

/// Only its rank writes it.
struct FlightRing {
  static constexpr uint64_t kEvents = 4096;
  static constexpr int kTextWords = 5;
  /// Time; number and event; bytes; text.
  using Entry = std::array<std::atomic<uint64_t>, 3 + kTextWords>;
  std::atomic<uint64_t> count{0}; ///< of all events so far
  Entry entries[kEvents] = {};
  static constexpr uint64_t kSeconds = 64;
  /// CLOCK_MONOTONIC's second; the step that began last; bytes; the number of events of each kind.
  using Second = std::array<std::atomic<uint64_t>, 3 + kFlightEvents>;
  Second seconds[kSeconds] = {};
  enum class File : uint32_t { None, Foreseen, Begun, Written };
  std::atomic<File> file{File::None};

  /// The text is the three of them, as far as there is room.
  void note(Flight event, int64_t number, int64_t bytes, const char *text, const char *more = "",
            const char *most = "");

private:
  void countIn(Flight event, int64_t number, int64_t bytes, int64_t time);
  std::atomic<uint64_t> step{0}; ///< that began last
};

/// Sets the folder for files of this process's ranks, once; "": none are written. It is made with the first
/// file, and its missing parents too, as `parents` says: otherwise no file is written without them, such as
/// into a folder for checkpoints that somebody has removed. A new run's may be missing: while it has no
/// checkpoint, it is removed again.
enum class MakeParents : uint8_t { Never, UntilNoted, Always };
void setFlightFolder(const std::string &folder, MakeParents parents);
/// Do failures of this process leave files now? There is a folder, and a step is complete or another rank lost.
bool writesFlights();
/// When rank 0 of this start began, in microseconds of the time of day. Set it before any rank can fail. A file says of
/// which start it is, and a late rank of an earlier start replaces none of a later one: its own goes into FOLDER/earlier.
void setStartOfFlights(int64_t microseconds);
/// From here on no missing parents are made, unless the user has named the folder.
void noteFlightFolderHasParents();
/// Moves the flight recorders of an earlier start into FOLDER/earlier, in place of those there: those in the folder
/// itself are of one start. One process calls it, before any rank can fail.
void setEarlierFlightsAside();

/// Writes FOLDER/rank-R.jsonl, if there is a folder and this process has completed a step or lost another rank: a line
/// about the rank, and one per event of the last minute or, before the oldest that the ring has, one per second. `name`: the rank's. A ring is written once,
/// by whoever comes first; others wait for that briefly. Allocates nothing: a signal's handler may
/// call it. A file that cannot be written is not.
void writeFlight(FlightRing &ring, int rank, const char *name, const char *reason);
/// The reason for a rank that ends because another one has.
inline constexpr char kReportedByAnother[] = "another rank has reported why the run ends";
/// Writes the same for an end that may come too fast for writeFlight(), which replaces it.
void foreseeFlight(FlightRing &ring, int rank, const char *name, const char *reason);
/// Removes the file of foreseeFlight(), and the folder if it is empty and not one that the user has named: the rank ends
/// by itself.
void withdrawFlight(FlightRing &ring, int rank);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_WATCH_FLIGHT_H
