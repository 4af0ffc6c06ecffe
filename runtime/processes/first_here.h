// Who speaks among the processes of one machine that fail before they know each other.

#ifndef PARTITA_RT_PROCESSES_FIRST_HERE_H
#define PARTITA_RT_PROCESSES_FIRST_HERE_H

#include "processes/wire.h"

namespace partita_rt::processes {

/// The first process of a user on this machine that fails on an occasion is the one to say why, the
/// others are silent, as long as the object lives. (A Unix socket of an abstract name: the system
/// gives a name to one process, and takes it back whatever becomes of that.)
class FirstHere {
public:
  explicit FirstHere(const std::string &occasion);
  /// Also where the system has no such names: better twice than not at all.
  bool speaks() const { return isFirst; }
  /// Keeps the name until the others have failed as well.
  void linger() const;

  /// Has a process spoken on the occasion, just now?
  static bool hasSpoken(const std::string &occasion);

private:
  Socket name;
  bool isFirst = true;
};

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_FIRST_HERE_H
