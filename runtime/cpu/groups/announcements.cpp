// Compares signatures by messages (announcements.h).

#include "cpu/groups/announcements.h"

namespace partita_rt {

static constexpr int kSignatureTag = 1; ///< groups have others for their data

Announcements::Announcements(Messenger &messenger, std::string itsAxis, int member,
                             const std::set<int> &itsPeers, uint64_t ring)
    : axis(std::move(itsAxis)), member(member), peers(itsPeers.begin(), itsPeers.end()),
      entries(static_cast<size_t>(ring)) {
  for (Entry &each : entries) {
    each.messages = messenger.exchange();
    each.theirs.resize(peers.size());
  }
}

void Announcements::publish(const Signature &mine) {
  Entry &entry = entryOf(mine);
  for (size_t i = 0; i < peers.size(); ++i) {
    entry.messages->send(&mine, sizeof(Signature), peers[i], kSignatureTag, Sending::Eager);
    entry.messages->receive(&entry.theirs[i], sizeof(Signature), peers[i], kSignatureTag);
  }
}

bool Announcements::agree(const Signature &mine) {
  if (isAgreed(mine.number))
    return true;
  Entry &entry = entryOf(mine);
  if (!entry.messages->test())
    return false;
  for (size_t i = 0; i < peers.size(); ++i)
    if (!entry.theirs[i].matches(mine))
      throw Error(mismatchText(axis, member, mine, peers[i], entry.theirs[i]));
  agreed = mine.number;
  return true;
}

void Announcements::addPeers(uint64_t number, std::set<int> &missing) const {
  entries[number % entries.size()].messages->addPeers(missing);
}

} // namespace partita_rt
