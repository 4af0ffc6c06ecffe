//===- Plan.h - which memory every tensor of a function uses ------------------------*- C++ -*-===//

#ifndef PARTITA_MEMORY_PLAN_H
#define PARTITA_MEMORY_PLAN_H

#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Memory/Ledger.h"

namespace partita::memory {

/// A range of memory with one lifetime: from op number `first` to op number `last`, both included.
struct Storage {
  rt::Space space = rt::Space::Arena;
  int64_t bytes = 0;
  int64_t offset = 0; // in its space; the argument's number for inputs
  unsigned ring = 0;  // in flight: the ring of its block
  int first = 0, last = 0;
  Kind kind = Kind::Activation;
  mlir::Value holder; // the value that it was made for
  mlir::Operation *scratchOf = nullptr;
  llvm::SmallVector<mlir::Value> values; // all values in it
};

/// The memory of micro-batches in flight: rings of equal blocks in the arena or in pinned memory,
/// one in each for each lifetime of saved values. Values in them have Space::InFlight, and an
/// offset as #rt.in_flight counts it.
struct InFlight {
  struct Ring {
    rt::Space space = rt::Space::Arena; // or Pinned
    int64_t blocks = 0, bytes = 0, offset = 0;
    int64_t start = 0; // where its block begins as #rt.in_flight counts
  };
  train::AccumulateOp loop; // its loop; null if the function has none
  llvm::SmallVector<Ring> rings;
  int first = 0, last = 0; // its lifetime
};

struct Place {
  int storage = -1; // none: a literal or a value without users
  rt::View view;
};

/// Where the parameters and states are.
struct Persistent {
  rt::Space space = rt::Space::Persistent; // or Host
  int64_t offset = 0, bytes = 0;
};

struct FunctionPlan {
  std::vector<Storage> storages;
  llvm::DenseMap<mlir::Value, Place> places;
  llvm::DenseMap<mlir::Operation *, int> workspace; // scratch per op
  /// Per operand of a collective: where it is summed; of @forward's return: where the host finds
  /// it.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int>> operandsInto;
  llvm::DenseMap<mlir::Operation *, int> number; // position of each op
  InFlight inFlight;
  int64_t arenaBytes = 0, pinnedBytes = 0;
  unsigned views = 0, copies = 0, inPlace = 0;
};

/// Decides which storage each value uses, without offsets in the arena. Reports an op without a
/// kernel, and a parameter that is read after it was overwritten.
mlir::FailureOr<FunctionPlan> planFunction(mlir::func::FuncOp function,
                                           const llvm::StringMap<Persistent> &persistent);

/// Assigns offsets to the storages in `space` (the arena, pinned memory, a block of a ring).
/// Returns its size.
int64_t assignOffsets(std::vector<Storage> &storages, rt::Space space, unsigned ring = 0);
/// Assigns offsets to all storages of a function, and to the saved values of its micro-batches in
/// flight.
void assignOffsets(FunctionPlan &plan);

/// If updates can be one launch, extends the lifetime of what they read to the last of them, unless
/// that makes the arena larger; gives the storages new offsets.
void keepForUpdates(mlir::func::FuncOp function, FunctionPlan &plan);

/// Distinguishes gradients from activations, for the ledger.
void markGradients(mlir::func::FuncOp function, FunctionPlan &plan);

/// Returns the ledger of a function's use of the arena and, if it uses any, of pinned memory;
/// `Ledger::of` reads them.
llvm::SmallVector<rt::LedgerAttr> ledgersOf(mlir::func::FuncOp function, const FunctionPlan &plan);

} // namespace partita::memory

#endif // PARTITA_MEMORY_PLAN_H
