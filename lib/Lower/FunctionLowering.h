//===- FunctionLowering.h - one function of tensors as one of calls -----------------*- C++ -*-===//
//
// LowerToRt.cpp lowers a function op by op; LowerOrder.cpp a loop with an order, whose passes are functions.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_LOWER_FUNCTIONLOWERING_H
#define PARTITA_LIB_LOWER_FUNCTIONLOWERING_H

#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Lower/Lowering.h"
#include <string>

namespace partita::rt {

class FunctionLowering {
public:
  FunctionLowering(ModuleLowering &shared, mlir::func::FuncOp from, mlir::func::FuncOp to)
      : from(from), to(to), builder(mlir::OpBuilder::atBlockEnd(to.addEntryBlock())),
        l(shared, from, builder), marksLayers(marks(from)) {}

  mlir::LogicalResult run();

private:
  mlir::LogicalResult lowerBlock(mlir::Block &block);

  /// The op's calls, behind rt.begin_changes where they are the block's first that change persistent memory.
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  mlir::LogicalResult lowerCalls(mlir::Operation *op);

  /// What was not computed in place is copied there.
  mlir::LogicalResult lowerWrite(train::WriteOp write);

  /// Zeroes the sums, runs the region per micro-batch and adds what it yields, or keeps it where
  /// the region has added it up itself. Of a loop with an order each region is a function.
  mlir::LogicalResult lowerLoop(train::AccumulateOp loop);

  mlir::LogicalResult lowerRegion(train::AccumulateOp loop, mlir::Region &region,
                                  mlir::Value micro);

  /// For micro-batch `number` alone. Pointers are numbers and may be made for all; so may polls, which find nothing.
  mlir::LogicalResult lowerLast(mlir::Operation *op, int64_t number);

  void addUp(train::YieldOp yield, train::AccumulateOp loop);

  //===-- A loop with an order: functions of its passes, and the loops of its schedule
  mlir::LogicalResult lowerOrder(train::AccumulateOp loop);

  /// The variables, in the function of a lowering, of what the region begins in its last slot; null where that is nothing.
  static PendingsAttr pendingsOf(mlir::Region &region, Lowering &lowering);

  /// What a region computes, its words joined by `separator`.
  static std::string nameOf(train::AccumulateOp loop, mlir::Region &region,
                            llvm::StringRef separator);

  /// The function of a region, in front of the one that is made; its name.
  mlir::FailureOr<llvm::StringRef> lowerPass(train::AccumulateOp loop, mlir::Region &region);

  /// What the region's ops have begun to send.
  void awaitSent(mlir::Region &region);

  /// The ops that `make` inserts, those of loops without what is in them.
  llvm::iterator_range<mlir::Block::iterator> madeBy(llvm::function_ref<mlir::LogicalResult()> make,
                                                     mlir::LogicalResult &result);

  mlir::LogicalResult lowerReturn(mlir::func::ReturnOp end);

  /// What the host reads stands where `plan-memory` said, or is copied there.
  mlir::LogicalResult lowerResults(mlir::func::ReturnOp end);

  /// The number of tokens over all ranks, for the report: the count, or its sum where it is
  /// reduced.
  mlir::Value findTotalCount();

  /// Says which module the op belongs to, unless the last comment did. One that no call follows is
  /// taken back.
  void comment(mlir::Operation *op);
  bool isEmpty();

  /// Where a training step's computation changes between the forward pass, the backward pass and
  /// the updates; the runtime sees by itself what is communicated and copied.
  void markWork(mlir::Operation *op);

  void forgetWork();

  /// Does the host know in which layer the function is? Work that is queued has not begun.
  static bool marks(mlir::func::FuncOp from);

  /// Where the computation goes on in another layer. Messages and collectives wait for others, so they change nothing.
  void markLayer(mlir::Operation *op);

  mlir::func::FuncOp from, to;
  mlir::OpBuilder builder;
  Lowering l;
  mlir::Value totalCount;
  std::string lastComment, commentBefore;
  CommentOp heading; ///< the last comment
  std::optional<Work> lastWork;
  bool marksLayers;                                           ///< where the computation is
  std::optional<int64_t> lastLayer = train::LayerAttr::kOnce; ///< at first, by the runtime
  bool hasChanges = false; ///< rt.begin_changes stands before: in the block, or around it
  bool inBackward = false; ///< of a micro-batch: what follows in it belongs to no forward pass
  bool backward = false;   ///< for the reader: after the first gradient
};

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_FUNCTIONLOWERING_H
