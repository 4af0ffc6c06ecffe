//===- Holders.h - the positions that have a value of a program of all stages -------*- C++ -*-===//
//
// What an op says of itself (PlacedInterface) to those that ask where values are
// (partita/Analysis/StageMap.h) and to the pass that takes the program apart (pipe-cut).
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_INTERFACES_HOLDERS_H
#define PARTITA_DIALECTS_INTERFACES_HOLDERS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <bitset>
#include <string>

namespace partita {

/// The max number of positions: chunks of all stages (dialects/Pipe/Positions.h).
inline constexpr int64_t kMaxPositions = 256;
/// On a program's module, an i64: how many stages it is to be cut into. Here because other dialects' attributes need it beside them.
inline constexpr llvm::StringLiteral kStagesAttribute = "pipe.stages";
using PositionSet = std::bitset<kMaxPositions>;

/// Returns the set's positions in ascending order.
llvm::SmallVector<int64_t> listPositions(const PositionSet &positions);

/// The positions that have a value, each in full or each part of a sum.
struct Holders {
  PositionSet positions = PositionSet().set();
  bool partial = false;

  static Holders only(int64_t position) { return {PositionSet().set(position), false}; }
  static Holders on(llvm::ArrayRef<int64_t> positions, bool partial = false);
  bool has(int64_t position) const { return positions.test(position); }
  bool isOne() const { return positions.count() == 1; }
  int64_t first() const;
  bool isEverywhere() const { return !partial && positions.all(); }
  bool isWithin(const Holders &other) const { return (positions & ~other.positions).none(); }
  /// Describes them: "on stage 1", "in parts on stages 0, 2". `noun` is what positions are called.
  std::string text(llvm::StringRef noun) const;
};

/// What one stage has of a program of all stages, while its module is built.
class StageShare {
public:
  virtual ~StageShare() = default;
  /// Returns true if the stage has the value, or part of it.
  virtual bool has(mlir::Value value) const = 0;
  /// Returns true if the stage has the first position of a value: what counts only once counts
  /// there.
  virtual bool hasFirst(mlir::Value value) const = 0;
  /// Returns true if several positions, or even several stages, have parts of the value.
  virtual bool isPartial(mlir::Value value) const = 0;
  virtual bool isPartialOverStages(mlir::Value value) const = 0;
  /// Returns the stage's copy of a value that it has.
  virtual mlir::Value copyOf(mlir::Value value) const = 0;
};

} // namespace partita

#endif // PARTITA_DIALECTS_INTERFACES_HOLDERS_H
