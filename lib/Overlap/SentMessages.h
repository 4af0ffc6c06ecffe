//===- SentMessages.h - what a pipeline stage sends while it computes -------------*- C++ -*-===//

#ifndef PARTITA_LIB_OVERLAP_SENTMESSAGES_H
#define PARTITA_LIB_OVERLAP_SENTMESSAGES_H

#include "dialects/Train/Train.h"
#include "lib/Overlap/Races.h"
#include <set>

namespace partita::overlap {

/// The messages of a loop with an order. The runtime awaits a send before its pass runs again, of
/// whichever micro-batch, or behind the loop. Until then the rest of the pass and the slots in between
/// must leave the bytes alone that it reads. A receive is complete where it stands: it is an access like
/// any other.
///
/// Values in flight stand in the block of their micro-batch, so what runs at the same time is compared
/// slot by slot, by micro-batches; but pairs of passes whose micro-batches have the same blocks, once.
class SentMessages {
public:
  explicit SentMessages(train::AccumulateOp loop);

  /// Notes what an op of a pass accesses, in the order of the pass.
  void add(mlir::Operation *op, const Accesses &accesses);
  /// Reports an op that writes what is still being sent.
  mlir::LogicalResult check();

private:
  struct Step {
    mlir::Operation *op;
    Accesses accesses;
    bool isInFlight; ///< does it access what stands in its micro-batch's block?
  };
  struct Slot {
    unsigned pass;
    int64_t microBatch;
  };

  mlir::LogicalResult checkBeside(Slot sender, Slot other);
  mlir::LogicalResult checkSend(const Step &send, Slot sender, Slot other, bool isKnown) const;
  /// What the accesses are for a micro-batch.
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
