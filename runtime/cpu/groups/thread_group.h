// Collectives between threads of one process: every rank reduces its share directly from the
// others' buffers and writes the result directly into them; nothing is staged.

#ifndef PARTITA_RT_CPU_GROUPS_THREAD_GROUP_H
#define PARTITA_RT_CPU_GROUPS_THREAD_GROUP_H

#include "cpu/groups/board.h"
#include "cpu/groups/rank_order.h"

namespace partita_rt {

class ThreadGroup final : public OrderedGroup {
public:
  /// State shared by the members of one group.
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
  void publish(uint64_t number) override { board.publish(signature(number)); }
  bool advance() override;
  std::string awaited() const override {
    return board.awaited(signature(completed + 1), memberText(awaitedRank()));
  }
  int awaitedRank() const override { return board.awaitedRank(signature(completed + 1)); }
  const FailureFlag *failureFlag() const override { return failure; }

  Range shareOfMine(const Request &request) const;
  void work(const Request &mine, uint64_t number, int64_t begin, int64_t count);

  std::shared_ptr<Shared> shared;
  FailureFlag *failure;
  Board board;
  /// Collectives whose share this rank has done; it may be ahead of `completed`.
  uint64_t shares = 0;
  int64_t position = 0; ///< finished elements of the next one's share
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_GROUPS_THREAD_GROUP_H
