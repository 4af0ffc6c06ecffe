// Limits the waits for other ranks within MPI itself: in the set-up, before ranks watch each other, and at the end, when
// they no longer do. MPI waits there without end, for a process that has stopped too.

#ifndef PARTITA_RT_CPU_LINKS_MPI_MEETINGS_H
#define PARTITA_RT_CPU_LINKS_MPI_MEETINGS_H

#include "cpu/watch/waits.h"

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace partita_rt {

/// A thread that ends the process if it is at one meeting of all ranks for longer than the time-out. The message names
/// the ranks of this node that have not come; which of another node has not, MPI does not say.
class Meetings {
public:
  /// `program`: its name, which begins the message.
  explicit Meetings(std::string program);
  ~Meetings();
  Meetings(const Meetings &) = delete;
  Meetings &operator=(const Meetings &) = delete;

  /// A rank of this node, and what it shows.
  struct Member {
    int rank;
    std::string name;
    ShownRank *shown;
  };
  /// From here on ranks are known: this one, `self`, its name, and the node's, this one among them. `areAll`: there are no
  /// others. They must live until forget().
  void know(int self, std::vector<Member> node, bool areAll);
  void forget();

  /// A call of MPI that returns when all ranks have come to it. One in another, such as in that of the whole set-up,
  /// counts from its own beginning, and so does what is left of the other. `isCounted`: ranks show that they have come;
  /// all of them enter such meetings in one order.
  class Scope {
  public:
    Scope(Meetings &meetings, const char *what, bool isCounted = false);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    Meetings &meetings;
    const char *before;
  };

private:
  void enter(const char *what);
  void loop();
  std::string lateText(const char *what, double seconds) const;

  const std::string program;
  int self = -1;
  std::vector<Member> node;
  bool areAll = false;
  std::mutex mutex; ///< of all these
  std::condition_variable changed;
  const char *current = nullptr; ///< null: this rank is at no meeting
  uint64_t entered = 0;          ///< changes of `current`
  bool ends = false;
  std::thread thread; ///< the last member: it uses all others
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_LINKS_MPI_MEETINGS_H
