//===- Planner.h - the walk that assigns memory to every value ----------------------*- C++ -*-===//
//
// Plan.cpp has the rules and the walk, Loops.cpp plans loops over micro-batches, InPlace.cpp finds
// values that can use existing memory.
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

/// Returns the loop with an order that contains the op, or null.
train::AccumulateOp orderedLoopOf(mlir::Operation *op);

class Planner {
public:
  Planner(mlir::func::FuncOp function, const llvm::StringMap<Persistent> &persistent)
      : function(function), persistent(persistent) {}

  mlir::FailureOr<FunctionPlan> run();

private:
  //===- Lives

  void number(mlir::Block &block);
  /// Returns when the last user has read the value. A user inside a loop may read a value from
  /// outside until the loop ends; a started collective reads it until its wait.
  int lastUse(mlir::Value value);
  /// Returns the wait of a start, by its token; for any other op, the op itself.
  mlir::Operation *endOf(mlir::Operation *op);
  int newStorage(rt::Space space, mlir::Value holder, int64_t bytes, int64_t offset = 0);
  void place(mlir::Value value, int storage, rt::View view);
  void placeNew(mlir::Value value, rt::Space space = rt::Space::Arena);
  void findPersistentLives();

  //===- Views

  bool takesView(mlir::OpOperand &use, const rt::View &view);
  bool usersTake(mlir::Value value, const rt::View &view);
  static bool isViewOp(rt::KernelInterface kernel);
  /// Makes the result a view of the operand's memory if all users accept it.
  bool planView(rt::KernelInterface kernel);

  //===- Concatenations

  /// Places operands of `op` that can be computed into its result.
  void assignSlices(mlir::Operation *op);
  /// Walks up from an operand, through views that have no other use, to the op that computes it.
  /// Sets `source` to that op's result and returns the operand's view in its shape; none if it
  /// cannot be computed there.
  std::optional<rt::View> traceToProducer(mlir::Value &source, rt::View view,
                                          mlir::Operation *user);
  /// Returns the value in whose memory a collective makes `result`, if nothing else reads it; else
  /// null.
  static mlir::Value reducedInPlace(mlir::Value result);

  //===- In place

  /// Returns true if all values in the storage die at the op.
  bool dies(int storage, mlir::Operation *op);
  /// Returns true if another operand of `op` has another view of the same memory, or one that the
  /// kernel reads after it starts to write.
  bool seenOtherwise(mlir::Operation *op, const Place &place,
                     llvm::ArrayRef<unsigned> overwritable);
  bool isWrittenBack(mlir::Value result, llvm::StringRef symbol);
  /// Returns the place of an operand that the result may overwrite, or none.
  std::optional<Place> inPlace(rt::KernelInterface kernel, unsigned number,
                               llvm::SmallDenseSet<int> &taken);
  /// Returns the place of a parameter or state that the result is written to, if nothing reads the
  /// old value later.
  std::optional<Place> homeOf(mlir::Value result);
  /// Returns true if the parameter or state may be overwritten at op number `now`, since nothing
  /// reads it from there on.
  bool isFree(llvm::StringRef symbol);

  //===- Collectives

  /// Returns true if the collective from `op` to `end` may sum up in the operand's own memory:
  /// nothing else may access it from the start on.
  bool mayReduceInPlace(mlir::Value operand, mlir::Operation *op, mlir::Operation *end,
                        llvm::SmallDenseSet<int> &taken);
  /// Returns true if a pass's yield does not touch the storage: it hands the value out, or yields a
  /// sum that is already there and that is not used after the loop.
  bool staysInPlace(mlir::OpOperand &yielded, int storage);
  /// Lets a collective work in its operands' memory, or in copies of them.
  void planReduction(mlir::Operation *op);
  /// Places results of a collective in the memory that it worked in.
  void placeReduced(mlir::Operation *start, mlir::ValueRange results);

  //===- The walk

  mlir::LogicalResult planBlock(mlir::Block &block);
  mlir::LogicalResult planOp(mlir::Operation *op);
  void placeResults(rt::KernelInterface kernel);
  /// Returns the start that a wait belongs to.
  mlir::Operation *startOf(mlir::Operation *op);
  /// Returns true for a splat constant that all users write as a literal, so that it needs no
  /// memory.
  bool onlyLiteral(mlir::Value value);
  mlir::LogicalResult planRead(train::ReadOp read);
  /// Copies a value that was not computed in place; nothing may read the old one later.
  mlir::LogicalResult planWrite(train::WriteOp write);
  /// Copies results that are not in the arena in memory of their own.
  void planResults(mlir::func::ReturnOp end);
  mlir::LogicalResult planLoop(train::AccumulateOp loop);
  void placeMicroBatches(train::AccumulateOp loop, mlir::Region &region);
  void placeSums(train::AccumulateOp loop);
  /// Places what earlier regions saved where they put it.
  void findSaved(train::AccumulateOp loop, mlir::Region &region);
  /// Moves what a region saves into blocks in flight.
  void keepSaved(train::AccumulateOp loop, mlir::Region &region);
  /// Keeps what a later region sends, which may be read while earlier ones run.
  void keepSent(train::AccumulateOp loop, mlir::Region &region);
  /// Makes one ring for all storages with equal lives.
  void makeRings(train::AccumulateOp loop);
  /// Places what a loop hands out where its pass left it. Storages that live past a pass's last
  /// slot stay alive in passes that end later.
  void placeLast(train::AccumulateOp loop);
  /// Places the sums that the loop's region makes, after planning its ops, where the argument is.
  mlir::LogicalResult keepSums(train::AccumulateOp loop);

  mlir::func::FuncOp function;
  const llvm::StringMap<Persistent> &persistent;
  FunctionPlan plan;
  int counter = 0, now = 0;
  llvm::DenseMap<mlir::Operation *, int> ends;
  llvm::DenseMap<mlir::Value, Place> slices;
  llvm::StringMap<int> persistentStorage, persistentLast;
  llvm::DenseMap<int, llvm::StringRef> symbolOf;
  llvm::StringMap<mlir::Value> updated;
  llvm::StringSet<> written;

  /// The passes that use a storage in flight; those in `sends` use it until they run again.
  struct Keep {
    rt::Space space = rt::Space::Arena; // of its ring
    unsigned maker = 0;
    llvm::BitVector readers, sends;
  };
  llvm::MapVector<int, Keep> keeps; ///< by storage
};

} // namespace partita::memory

#endif // PARTITA_LIB_MEMORY_PLANNER_H
