//===- PassStatistic.h - counts what passes change ---------------------------------*- C++ -*-===//
//
// MLIR's own statistics count nothing if LLVM was built without assertions, as Debian's is. So the
// statistics of our Passes.td use this class (partita_passes in cmake/Partita.cmake), which always
// counts.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_SUPPORT_PASSSTATISTIC_H
#define PARTITA_SUPPORT_PASSSTATISTIC_H

#include "mlir/Pass/Pass.h"
#include <atomic>

namespace partita {

/// One count of one pass. When the pass is destroyed, the count joins those that
/// printPassStatistics prints.
class PassStatistic {
public:
  PassStatistic(mlir::Pass *owner, const char *name, const char *description)
      : pass(owner->getArgument()), name(name), description(description) {}
  ~PassStatistic();

  PassStatistic &operator++() { return *this += 1; }
  PassStatistic &operator+=(uint64_t more) {
    count.fetch_add(more, std::memory_order_relaxed);
    return *this;
  }

private:
  llvm::StringRef pass;
  const char *name, *description;
  std::atomic<uint64_t> count{0};
};

/// Prints a line for each count above zero of the destroyed passes, in the order of their names.
void printPassStatistics(llvm::raw_ostream &os);

} // namespace partita

#endif // PARTITA_SUPPORT_PASSSTATISTIC_H
