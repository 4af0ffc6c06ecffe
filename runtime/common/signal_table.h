// A table that a signal handler reads. A handler may look at plain memory and atomics only, so the
// table has a fixed number of slots.

#ifndef PARTITA_RT_COMMON_SIGNAL_TABLE_H
#define PARTITA_RT_COMMON_SIGNAL_TABLE_H

#include <atomic>

namespace partita_rt {

template <typename Entry, int Slots> class SignalTable {
public:
  /// Fills a slot and returns its number, or -1 if none is free.
  template <typename Fill> int add(Fill fill) {
    for (int number = 0; number < Slots; ++number)
      if (Slot &slot = slots[number]; !slot.taken.exchange(true)) {
        fill(slot.entry);
        slot.ready = true;
        return number;
      }
    return -1;
  }

  /// Empties a slot; ignores -1.
  void remove(int number) {
    if (number < 0)
      return;
    slots[number].ready = false;
    slots[number].taken = false;
  }

  template <typename Use> void forEach(Use use) const {
    for (const Slot &slot : slots)
      if (slot.ready)
        use(slot.entry);
  }

private:
  struct Slot {
    std::atomic<bool> taken{false}, ready{false};
    Entry entry;
  };
  Slot slots[Slots];
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_SIGNAL_TABLE_H
