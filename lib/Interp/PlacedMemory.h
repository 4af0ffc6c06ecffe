//===- PlacedMemory.h - the planned memory of one rank ------------------------------*- C++ -*-===//
//
// A program that `plan-memory` has been over says where each tensor stands (`rt.buffers`). Rank 0
// computes there: every result is also written to its place, and every operand must still be in
// its place when it is read. What overwrites a value that is still needed, writes to a buffer while
// a collective works in it, or computes over an operand that its kernel may not overwrite, is an
// error that names both ops. Values and not lifetimes are compared: the plan is not trusted.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_INTERP_PLACEDMEMORY_H
#define PARTITA_LIB_INTERP_PLACEDMEMORY_H

#include "dialects/Rt/Rt.h"
#include "mlir/IR/BuiltinOps.h"
#include "partita/Interp/Tensor.h"
#include "llvm/ADT/DenseMap.h"

namespace partita::interp {

class PlacedMemory {
public:
  /// Null when the module has no plan.
  static std::unique_ptr<PlacedMemory> create(mlir::ModuleOp module);

  /// Before an op computes: are its operands where they were put?
  mlir::LogicalResult checkOperands(mlir::Operation *op,
                                    llvm::function_ref<const Tensor &(mlir::Value)> valueOf);
  /// After it has: puts its results in their places.
  mlir::LogicalResult putResults(mlir::Operation *op, llvm::ArrayRef<const Tensor *> results);
  /// Puts and checks one of an op's results, by the op's own account: the sums of a loop.
  mlir::LogicalResult put(mlir::OpResult result, const Tensor &tensor);
  /// From here on #rt.at<in_flight> is in the blocks of this micro-batch.
  void setInFlight(rt::InFlightAttr memory, int64_t microBatch) { inFlight = {memory, microBatch}; }
  /// The value stands where `other` does.
  void putWhere(mlir::Value value, mlir::Value other) { places[value] = places.lookup(other); }
  mlir::LogicalResult check(mlir::Operation *user, mlir::Value value, const Tensor &tensor);
  /// A return: copies what it returns to where the host looks, one after the other.
  mlir::LogicalResult putReturned(mlir::Operation *end, llvm::ArrayRef<const Tensor *> values);
  /// train.write: copies the value to its symbol's place.
  mlir::LogicalResult write(mlir::Operation *op, mlir::StringRef symbol, const Tensor &tensor);

private:
  struct Slot {
    double value = 0;
    mlir::Operation *writer = nullptr;
  };
  /// The slots of a tensor, in the order of its elements.
  struct Place {
    std::vector<Slot> *space = nullptr;
    std::vector<int64_t> first; ///< of each element
    int64_t width = 0;          ///< slots of an element
  };
  /// Where a type stands; nothing where it has no memory of ours. A place outside the memory that
  /// the plan announces is an error at `op`.
  mlir::FailureOr<Place> placeOf(mlir::Operation *op, mlir::Attribute at, mlir::Type type);
  std::pair<rt::Space, int64_t> locateInFlight(int64_t offset) const;
  void fill(mlir::Operation *op, const Place &place, const Tensor *tensor);
  bool holds(const Place &place, const Tensor &tensor) const;
  mlir::LogicalResult beginCollective(mlir::Operation *op);
  mlir::LogicalResult endCollective(mlir::Operation *start);
  mlir::LogicalResult checkOverwrites(mlir::Operation *op, unsigned result, const Place &place);
  void scribble(mlir::Operation *op);

  int64_t unit = 1;                              ///< bytes of a slot
  std::pair<rt::InFlightAttr, int64_t> inFlight; ///< and the micro-batch
  using Memory = std::vector<Slot>;
  /// The memory of a space; null of one that the plan does not announce.
  Memory *memoryOf(rt::Space space);
  Memory arena, persistent, host, pinned;
  llvm::DenseMap<mlir::Value, mlir::Attribute> places;
};

} // namespace partita::interp

#endif // PARTITA_LIB_INTERP_PLACEDMEMORY_H
