// Collectives over memory that all ranks of a group see: threads of one process, or MPI processes
// of one node with a shared window. Both synchronize through a Board of atomic counters.

#ifndef PARTITA_RT_CPU_SHARED_GROUP_H
#define PARTITA_RT_CPU_SHARED_GROUP_H

#include "cpu/group.h"

namespace partita_rt {

/// One rank's entry on the board; written by that rank alone. Plain memory and lock-free atomics,
/// so it may lie in a window shared by processes.
struct alignas(64) BoardSlot {
  /// Twice the collectives that may be under way: a rank can overwrite an entry only after the
  /// others have started collectives that they start after reading it.
  static constexpr uint64_t kRing = 128;
  std::atomic<uint64_t> started;            ///< collectives published
  alignas(64) std::atomic<uint64_t> filled; ///< staging segments written (window)
  alignas(
      64) std::atomic<uint64_t> done; ///< shares computed: collectives (threads), segments (window)
  alignas(64) Signature ring[kRing];
};

/// The part that threads and window groups share.
class BoardGroup : public OrderedGroup {
public:
  BoardGroup(std::string axis, int rank, int size, BoardSlot *const *slots, FailureFlag *failure)
      : OrderedGroup(std::move(axis), rank, size), slots(slots, slots + size), failure(failure) {}

protected:
  void publish(uint64_t number) override;
  bool allStarted(uint64_t number) const;
  /// Waits until every rank has published collective `number` and compares the signatures.
  void agree(uint64_t number);
  void waitForAll(std::atomic<uint64_t> BoardSlot::*counter, uint64_t target, uint64_t number);

  std::vector<BoardSlot *> slots;
  FailureFlag *failure;
};

/// Ranks as threads: every rank reduces its share straight out of the others' buffers and writes
/// the result straight into them; nothing is staged.
class ThreadGroup final : public BoardGroup {
public:
  /// What the members of one group share.
  struct Shared {
    explicit Shared(int size) : board(size), members(size) {
      for (BoardSlot &slot : board)
        slots.push_back(&slot);
    }
    std::vector<BoardSlot> board;
    std::vector<BoardSlot *> slots;
    std::vector<ThreadGroup *> members;
  };
  /// All members must be constructed before any of them communicates.
  ThreadGroup(std::string axis, int rank, std::shared_ptr<Shared> shared, FailureFlag *failure);

private:
  void execute(uint64_t number) override;
  void progress() override;
  void doShare(uint64_t number);
  void allReduceShare(uint64_t number);

  std::shared_ptr<Shared> shared;
  uint64_t shares = 0; ///< collectives whose share this rank has done
};

/// Ranks as processes of one node: buffers are private, so they pass through two staging halves
/// per rank in a shared window, segment by segment.
class WindowGroup final : public BoardGroup {
public:
  /// staging[r]: 2 * halfBytes bytes of rank r, visible to all.
  WindowGroup(std::string axis, int rank, int size, BoardSlot *const *slots, char *const *staging,
              int64_t halfBytes, std::shared_ptr<void> window)
      : BoardGroup(std::move(axis), rank, size, slots, nullptr), staging(staging, staging + size),
        halfBytes(halfBytes), window(std::move(window)) {}

private:
  void execute(uint64_t number) override;
  void allReduceSegment(const Request &request, int64_t begin, int64_t count, uint64_t number);
  void reduceScatterSegment(const Request &request, int64_t begin, int64_t count, uint64_t number);
  void allGatherSegment(const Request &request, int64_t begin, int64_t count, uint64_t number);
  void broadcastSegment(const Request &request, int64_t begin, int64_t count, uint64_t number);
  char *half(int rank) const { return staging[size_t(rank)] + (segments % 2) * halfBytes; }
  void announceFilled(uint64_t number);

  std::vector<char *> staging;
  int64_t halfBytes;
  uint64_t segments = 0; ///< segments processed since the start
  std::shared_ptr<void> window;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_SHARED_GROUP_H
