//===- Spots.h - where the values of a function stand, as the program says ----------*- C++ -*-===//

#ifndef PARTITA_LIB_MEMORY_CHECK_SPOTS_H
#define PARTITA_LIB_MEMORY_CHECK_SPOTS_H

#include "dialects/Train/Train.h"
#include "lib/Memory/Check/Contents.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace partita::memory::check {

/// Bytes by memory space.
using Sizes = std::array<int64_t, 8>;
inline int64_t &sizeOf(Sizes &sizes, rt::Space space) { return sizes[static_cast<size_t>(space)]; }
inline int64_t sizeOf(const Sizes &sizes, rt::Space space) {
  return sizes[static_cast<size_t>(space)];
}

/// "arena", "persistent memory".
std::string textOf(rt::Space space);

/// A parameter or state in persistent memory.
struct SymbolSpot {
  mlir::Operation *op;
  rt::AtAttr at;
  Bytes bytes;
  Bytes padded; ///< with the zeros behind it, which no op writes
};
using SymbolSpots = llvm::MapVector<mlir::StringAttr, SymbolSpot>;

struct Spot {
  rt::AtAttr at; ///< null for a token
  Bytes bytes;
  rt::View view;             ///< as `lower-to-rt` reads `at`
  int content = -1;          ///< none outside the program's own memory: an input, a literal
  bool isMicroBatch = false; ///< of the batch that `bytes` are
};

/// The place of each value of a function, the content that is there, and its last read. Views of an operand, buffers that
/// a collective worked in, and values that a loop saves or hands out share existing contents. It is an error if a place
/// is missing, does not fit its tensor, lies outside its memory, or is in a space that the kernel cannot use.
class Spots {
public:
  Spots(mlir::func::FuncOp function, const SymbolSpots &symbols, const Sizes &limits)
      : function(function), symbols(symbols), limits(limits) {}

  mlir::LogicalResult find();

  const Spot &of(mlir::Value value) const;
  int numberOf(mlir::Operation *op) const { return numbers.lookup(op); }
  int endOf(mlir::Operation *op) const { return ends.lookup(op); }
  /// The places where a collective works or where a return puts values for the host, one for each operand.
  llvm::ArrayRef<Spot> workedIn(mlir::Operation *op) const;
  /// The content that a write to a symbol leaves there.
  int contentOf(train::WriteOp write) const { return written.lookup(write); }
  /// The value of a symbol when the function begins.
  int initialOf(mlir::StringAttr symbol) const { return initial.lookup(symbol); }
  /// The last write to a symbol; null if there is none.
  train::WriteOp lastWriteTo(mlir::StringAttr symbol) const { return lastWrites.lookup(symbol); }
  /// The scratch memory of a kernel; none if it needs none.
  std::optional<Bytes> workspaceOf(mlir::Operation *op) const;
  static bool worksInOperands(mlir::Operation *op);

  Contents contents;
  Sizes used{}; ///< where the last place of each space ends

private:
  void number(mlir::Block &block);
  mlir::LogicalResult note(mlir::Block &block);
  mlir::LogicalResult note(mlir::Operation *op);
  mlir::LogicalResult noteRead(train::ReadOp read);
  mlir::LogicalResult noteWrite(train::WriteOp write);
  mlir::LogicalResult noteLoop(train::AccumulateOp loop);
  mlir::LogicalResult noteRings(train::AccumulateOp loop);
  mlir::LogicalResult noteArguments(train::AccumulateOp loop, mlir::Region &region);
  mlir::LogicalResult noteYield(train::YieldOp yield);
  mlir::LogicalResult noteLast(train::AccumulateOp loop, llvm::ArrayRef<rt::AtAttr> places);
  mlir::LogicalResult noteReturn(mlir::func::ReturnOp end);
  mlir::LogicalResult noteWorkspace(rt::KernelInterface kernel);
  mlir::LogicalResult noteWorkedIn(mlir::Operation *op);
  mlir::LogicalResult noteWait(AsyncWaitInterface wait);
  mlir::LogicalResult noteResults(rt::KernelInterface kernel);

  /// Notes that the op reads the value: at its number or, if a loop around it repeats the read,
  /// until the end of the loop.
  void want(mlir::Value value, mlir::Operation *user);
  void want(int content, mlir::Operation *user);
  /// Returns the op's `rt.buffers`; it must have `count` of them.
  mlir::FailureOr<llvm::SmallVector<rt::AtAttr>> placesOf(mlir::Operation *op, size_t count,
                                                          const char *ofWhat);
  /// Checks a place; the result has no content yet.
  mlir::FailureOr<Spot> spotAt(mlir::Operation *op, rt::AtAttr at, mlir::Type type);
  mlir::LogicalResult checkInFlight(mlir::Operation *op, const Spot &spot);
  mlir::LogicalResult checkPersistent();
  mlir::LogicalResult checkLiteral(mlir::OpResult result);
  mlir::LogicalResult checkSpace(rt::KernelInterface kernel, mlir::OpResult result,
                                 const Spot &spot);
  bool isViewOf(rt::KernelInterface kernel, const Spot &from, const Spot &to) const;
  int addContent(const Spot &spot, mlir::Operation *maker);
  void setSpot(mlir::Value value, Spot spot);

  mlir::func::FuncOp function;
  const SymbolSpots &symbols;
  const Sizes &limits;
  std::vector<Spot> spots;
  llvm::DenseMap<mlir::Value, unsigned> spotOf;
  llvm::DenseMap<mlir::Operation *, int> numbers, ends;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Spot, 1>> worked;
  llvm::DenseMap<mlir::Operation *, Bytes> workspaces;
  llvm::DenseMap<mlir::Operation *, int> written;
  llvm::DenseMap<mlir::StringAttr, int> initial;
  llvm::DenseMap<mlir::StringAttr, train::WriteOp> lastWrites;
  rt::InFlightAttr inFlight; ///< of the enclosing loop
  int counter = 0;
};

} // namespace partita::memory::check

#endif // PARTITA_LIB_MEMORY_CHECK_SPOTS_H
