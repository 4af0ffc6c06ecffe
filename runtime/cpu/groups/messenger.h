// Point-to-point messages between processes: what groups and channels need of whatever carries them.
// There are two kinds of links, MPI and TCP sockets (cpu/links/). Neither has a thread: messages move
// while Exchange::test is called.

#ifndef PARTITA_RT_CPU_GROUPS_MESSENGER_H
#define PARTITA_RT_CPU_GROUPS_MESSENGER_H

#include <cstdint>
#include <memory>
#include <set>

namespace partita_rt {

enum class Sending : uint8_t {
  Eager,       ///< may arrive before its receive starts: few or small ones
  Bulk,        ///< of any size; may wait for its receive
  Synchronous, ///< complete only once its receive has started
};

/// Operations that are pending together. Their memory must stay until they are complete. Like its messenger,
/// it belongs to the rank's own thread. Functions throw Error if a process that is awaited is gone, or has
/// sent what it should not (over MPI, MPI ends the job instead); nothing is complete after that.
class Exchange {
public:
  virtual ~Exchange() = default;
  /// Start an operation of any number of bytes, also 0. `to`, `from`: a member of the messenger, by its
  /// number. Both ends give the same number of bytes and the same tag, from 0 to 32767.
  virtual void send(const void *data, int64_t bytes, int to, int tag, Sending how) = 0;
  virtual void receive(void *data, int64_t bytes, int from, int tag) = 0;
  /// Are all complete? Then there are none any more. Moves messages of the whole process, and waits for
  /// none: whoever waits calls it again and again.
  virtual bool test() = 0;
  /// Adds the members with whom operations are pending.
  virtual void addPeers(std::set<int> &peers) const = 0;
};

/// Messages among some of a run's processes, which are numbered from 0. Messages of one tag from one
/// member to another arrive in the order in which they were sent; those of other messengers and tags
/// neither wait for them nor mix with them.
class Messenger {
public:
  virtual ~Messenger() = default;
  /// Returns an empty one, which must not outlive the messenger. There may be several at a time.
  virtual std::unique_ptr<Exchange> exchange() = 0;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_MESSENGER_H
