// What a rank does between two tiles of a long kernel: it moves its pending collectives on.
//
// Polls that the program makes between two kernels are too seldom for one that takes as long as all others of a
// layer: a step of attention does, and the shift beside it has no other kernel to be hidden by (ring attention, Liu et
// al., arXiv 2310.01889). No bit of a result depends on it: a collective's operands belong to it until its wait.

#ifndef PARTITA_RT_CPU_KERNELS_BETWEEN_TILES_H
#define PARTITA_RT_CPU_KERNELS_BETWEEN_TILES_H

#include <functional>

namespace partita_rt {

/// What the kernels of this thread, which runs one rank, call between two tiles; nothing outside such a scope.
class BetweenTiles {
public:
  explicit BetweenTiles(std::function<void()> work) : work(std::move(work)), outer(current) {
    current = this;
  }
  ~BetweenTiles() { current = outer; }
  BetweenTiles(const BetweenTiles &) = delete;
  BetweenTiles &operator=(const BetweenTiles &) = delete;

  /// Does it, if there is anything to do: cheap if nothing is pending. May throw what a poll does.
  static void run() {
    if (current)
      current->work();
  }

private:
  std::function<void()> work;
  BetweenTiles *outer;
  inline static thread_local BetweenTiles *current = nullptr;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_KERNELS_BETWEEN_TILES_H
