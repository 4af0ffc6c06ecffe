// The signatures of a group's collectives, sent ahead of their data: a rank that waits in a different
// collective learns of it, and nothing is sent to a rank that expects something else.

#ifndef PARTITA_RT_CPU_GROUPS_ANNOUNCEMENTS_H
#define PARTITA_RT_CPU_GROUPS_ANNOUNCEMENTS_H

#include "common/mesh/request.h"
#include "cpu/groups/messenger.h"

#include <set>
#include <string>
#include <vector>

namespace partita_rt {

class Announcements {
public:
  /// `itsPeers`: the members that this one tells, and that tell it. `ring`: collectives that may be
  /// pending.
  Announcements(Messenger &messenger, std::string axis, int member, const std::set<int> &itsPeers,
                uint64_t ring);

  /// Tells the peers; `mine` stays where it is while its collective is pending.
  void publish(const Signature &mine);
  /// Have all peers announced the collective? Throws Error if one has announced another.
  bool agree(const Signature &mine);
  bool isAgreed(uint64_t number) const { return number <= agreed; }
  /// Adds the peers that have not announced the collective.
  void addPeers(uint64_t number, std::set<int> &missing) const;

private:
  struct Entry {
    std::unique_ptr<Exchange> messages;
    std::vector<Signature> theirs; ///< by peer
  };
  Entry &entryOf(const Signature &mine) { return entries[mine.number % entries.size()]; }

  std::string axis;
  int member;
  std::vector<int> peers;
  std::vector<Entry> entries;
  uint64_t agreed = 0;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_ANNOUNCEMENTS_H
