// Chooses which of a host's processes prints the reason if they fail before they know each
// other.

#ifndef PARTITA_RT_PROCESSES_HOST_SPEAKER_H
#define PARTITA_RT_PROCESSES_HOST_SPEAKER_H

#include "processes/wire.h"

namespace partita_rt::processes {

/// The first process of a user on this host to fail on an occasion prints the reason; the others
/// are silent while the object lives. (The name is that of a Unix socket with an abstract name: the
/// system gives it to one process, and releases it however that process ends.)
class HostSpeaker {
public:
  explicit HostSpeaker(const std::string &occasion);
  /// Also true if the system has no such names: printing twice is better than not at all.
  bool speaks() const { return isFirst; }
  /// Keeps the name until the others have failed too.
  void linger() const;

  /// Has a process just printed for this occasion?
  static bool hasSpoken(const std::string &occasion);

private:
  Socket name;
  bool isFirst = true;
};

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_HOST_SPEAKER_H
