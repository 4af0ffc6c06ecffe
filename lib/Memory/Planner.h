//===- Planner.h - the walk that gives every value its memory -----------------------*- C++ -*-===//
//
// Plan.cpp says by which rules, and walks; Loops.cpp plans loops over micro-batches; InPlace.cpp finds what can stand in memory that is there
// already.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_MEMORY_PLANNER_H
#define PARTITA_LIB_MEMORY_PLANNER_H

#include "dialects/Train/Train.h"
#include "partita/Memory/Plan.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace partita::memory {

inline int64_t bytesOf(mlir::RankedTensorType type) {
  return type.getNumElements() * rt::elementBytes(type.getElementType());
}

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
}

/// The loop with an order that an op is in; null where it is in none.
train::AccumulateOp orderedLoopOf(mlir::Operation *op);

class Planner {
public:
  Planner(mlir::func::FuncOp function, const llvm::StringMap<Persistent> &persistent)
      : function(function), persistent(persistent) {}

  mlir::FailureOr<FunctionPlan> run();

private:
  //===- Lives

  void number(mlir::Block &block);
  /// When the last user has read the value. A user inside a loop that the value is from outside of
  /// may read it again, until the loop ends; a collective that is started reads it until its wait.
  int lastUse(mlir::Value value);
  /// The wait of what a collective's start begins, which its token says; of another op itself.
  mlir::Operation *endOf(mlir::Operation *op);
  int newStorage(rt::Space space, mlir::Value holder, int64_t bytes, int64_t offset = 0);
  void place(mlir::Value value, int storage, rt::View view);
  void placeNew(mlir::Value value, rt::Space space = rt::Space::Arena);
  void findPersistentLives();

  //===- Views

  bool takesView(mlir::OpOperand &use, const rt::View &view);
  bool usersTake(mlir::Value value, const rt::View &view);
  static bool isViewOp(rt::KernelInterface kernel);
  /// Makes the result a view of the operand's memory, if all who use it can read it so.
  bool planView(rt::KernelInterface kernel);

  //===- Concatenations

  /// Gives operands of `op` that can be computed into its result their places there.
  void assignPieces(mlir::Operation *op);
  /// Walks up from an operand through views that it alone uses to the op that computes it; `source`
  /// becomes that op's result, the view what the part is in its shape. None when it cannot be
  /// computed there.
  std::optional<rt::View> traceToProducer(mlir::Value &source, rt::View view,
                                          mlir::Operation *user);

  //===- In place

  /// Do all values in the storage die at the op?
  bool dies(int storage, mlir::Operation *op);
  /// Does another operand of `op` see the same memory in another way, or one that the kernel reads
  /// after it has begun to write?
  bool seenOtherwise(mlir::Operation *op, const Place &place,
                     llvm::ArrayRef<unsigned> overwritable);
  bool isWrittenBack(mlir::Value result, llvm::StringRef symbol);
  /// The place of an operand that the result may overwrite; none if there is none.
  std::optional<Place> inPlace(rt::KernelInterface kernel, unsigned number,
                               llvm::SmallDenseSet<int> &taken);
  /// The place of a parameter or state that the result is written to and whose old value nobody
  /// wants any more.
  std::optional<Place> homeOf(mlir::Value result);
  /// May the parameter or state be overwritten by the op at number `now`? Nobody reads it from
  /// there on.
  bool isFree(llvm::StringRef symbol);

  //===- Collectives

  /// May the collective that begins at `op` and ends at `end` sum up in the operand's own memory?
  /// Nobody else may look at it from the beginning on.
  bool mayReduceInPlace(mlir::Value operand, mlir::Operation *op, mlir::Operation *end,
                        llvm::SmallDenseSet<int> &taken);
  /// Does a pass's yield leave the storage alone: because it hands the value out, or because it is a sum
  /// that stands there already and that nobody wants behind the loop?
  bool staysInPlace(mlir::OpOperand &yielded, int storage);
  /// A collective works in its operands' memory, or in copies of them.
  void planReduction(mlir::Operation *op);
  /// Results of a collective: the memory that it worked in.
  void placeReduced(mlir::Operation *start, mlir::ValueRange results);

  //===- The walk

  mlir::LogicalResult planBlock(mlir::Block &block);
  mlir::LogicalResult planOp(mlir::Operation *op);
  void placeResults(rt::KernelInterface kernel);
  /// The start that a wait belongs to.
  mlir::Operation *startOf(mlir::Operation *op);
  /// A splat constant whose users all write it as a literal needs no memory.
  bool onlyLiteral(mlir::Value value);
  mlir::LogicalResult planRead(train::ReadOp read);
  /// A value that was not computed in place is copied there; nobody may read the old one later.
  mlir::LogicalResult planWrite(train::WriteOp write);
  /// What does not stand in the arena by itself is copied there.
  void planResults(mlir::func::ReturnOp end);
  mlir::LogicalResult planLoop(train::AccumulateOp loop);
  void placeMicroBatches(train::AccumulateOp loop, mlir::Region &region);
  void placeSums(train::AccumulateOp loop);
  /// A region finds what earlier ones have saved where they have put it.
  void findSaved(train::AccumulateOp loop, mlir::Region &region);
  /// What a region saves goes into blocks in flight.
  void keepSaved(train::AccumulateOp loop, mlir::Region &region);
  /// What a later region sends may be read while earlier ones run.
  void keepSent(train::AccumulateOp loop, mlir::Region &region);
  /// Those that live equally long have one ring.
  void makeRings(train::AccumulateOp loop);
  /// What a loop hands out stands where its pass has left it; and what lives on behind a pass's last slot
  /// does so in passes that run later.
  void placeLast(train::AccumulateOp loop);
  /// The sums that the loop's region makes, after its ops: where the argument stands.
  mlir::LogicalResult keepSums(train::AccumulateOp loop);

  mlir::func::FuncOp function;
  const llvm::StringMap<Persistent> &persistent;
  FunctionPlan plan;
  int counter = 0, now = 0;
  llvm::DenseMap<mlir::Operation *, int> ends;
  llvm::DenseMap<mlir::Value, Place> pieces;
  llvm::StringMap<int> persistentStorage, persistentLast;
  llvm::DenseMap<int, llvm::StringRef> symbolOf;
  llvm::StringMap<mlir::Value> updated;
  llvm::StringSet<> written;

  /// Which passes use a storage in flight; those in `sends` until they run again.
  struct Keep {
    rt::Space space = rt::Space::Arena; // of its ring
    unsigned maker = 0;
    llvm::BitVector readers, sends;
  };
  llvm::MapVector<int, Keep> keeps; ///< by storage
};

} // namespace partita::memory

#endif // PARTITA_LIB_MEMORY_PLANNER_H
