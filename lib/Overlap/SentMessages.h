//===- SentMessages.h - what a pipeline stage sends while it computes -------------*- C++ -*-===//

#ifndef PARTITA_LIB_OVERLAP_SENTMESSAGES_H
#define PARTITA_LIB_OVERLAP_SENTMESSAGES_H

#include "dialects/Train/Train.h"
#include "lib/Overlap/Races.h"
#include <set>

namespace partita::overlap {

/// The messages of a loop with an order. The runtime awaits a send before its pass runs again, for
/// any micro-batch, or after the loop. Until then the rest of the pass and the slots in between
/// must not touch the bytes that it reads. A receive completes before the next op, so it is an
/// access like any other.
///
/// Values in flight are in the block of their micro-batch. So what runs concurrently is compared
/// slot by slot, for actual micro-batches, but only once for pairs of passes whose micro-batches
/// have the same blocks.
class SentMessages {
public:
  explicit SentMessages(train::AccumulateOp loop);

  /// Notes an op's accesses, in the order of the pass.
  void add(mlir::Operation *op, const Accesses &accesses);
  /// Reports an op that writes what is still being sent.
  mlir::LogicalResult check();

private:
  struct Step {
    mlir::Operation *op;
    Accesses accesses;
    bool isInFlight; ///< whether it accesses its micro-batch's block
  };
  struct Slot {
    unsigned pass;
    int64_t microBatch;
  };

  mlir::LogicalResult checkBeside(Slot sender, Slot other);
  mlir::LogicalResult checkSend(const Step &send, Slot sender, Slot other, bool isKnown) const;
  /// Returns the accesses for a micro-batch.
  Accesses resolve(const Accesses &accesses, int64_t microBatch) const;
  void resolve(Access &access, int64_t microBatch) const;

  std::vector<Slot> slots;
  std::vector<std::vector<Step>> steps; ///< by pass
  llvm::SmallVector<rt::InFlightAttr::Ring> rings;
  std::set<std::pair<unsigned, unsigned>> checked;
  std::set<std::vector<int64_t>> checkedBlocks;
  train::AccumulateOp loop;
};

} // namespace partita::overlap

#endif // PARTITA_LIB_OVERLAP_SENTMESSAGES_H
