//===- Placement.h - working with the placements in tensor types --------------------*- C++ -*-===//
//
// `Layout` is the editable form of #par.place: a pass reads a type into one, changes it, and asks
// for the type of one rank's shard.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PAR_PLACEMENT_H
#define PARTITA_DIALECTS_PAR_PLACEMENT_H

#include "dialects/Interfaces/ShardRule.h"
#include "dialects/Par/Par.h"
#include "llvm/ADT/SetVector.h"

namespace partita::par {

/// The blocks of a dimension, in order: a number of equal ones, or ones of these sizes.
struct Blocks {
  int64_t count = 1;
  llvm::SmallVector<int64_t, 0> sizes; ///< unless they are equal

  static constexpr size_t kMostUnequal = 8; // as many as the runtime's tables have room for

  Blocks(int64_t count = 1) : count(count) {} // a number of equal blocks
  static Blocks of(llvm::ArrayRef<int64_t> sizes);
  /// The sizes of the blocks of a dimension of `size`.
  llvm::SmallVector<int64_t> sizesIn(int64_t size) const;
  bool operator==(const Blocks &other) const {
    return count == other.count && sizes == other.sizes;
  }
  bool operator!=(const Blocks &other) const { return !(*this == other); }
};

/// An axis that splits a dimension: each of the dimension's blocks is split. A fused weight of
/// queries, keys and values [h, 3 h] that is split by heads has three; with fewer key heads than
/// query heads their sizes differ, and the axis is the only one that splits the dimension.
struct AxisSplit {
  mlir::StringAttr axis;
  Blocks blocks = 1;
  bool operator==(const AxisSplit &other) const {
    return axis == other.axis && blocks == other.blocks;
  }
};
/// The axes that split one dimension: fewer blocks first, outermost first among equals.
using DimSplit = llvm::SmallVector<AxisSplit, 1>;

/// The size of a rank's shard of `size` elements over `parts` ranks. A size that does not divide is
/// rounded up, as long as the last rank has an element: what lies beyond the full dimension is its
/// shard's padding, which is zero in every value that is summed (unevenProblem). None if a rank would
/// have nothing.
std::optional<int64_t> pieceSize(int64_t size, int64_t parts);

/// A value's placement over all axes, with the full shape.
struct Layout {
  llvm::SmallVector<int64_t> shape;   // of the full value
  llvm::SmallVector<DimSplit> splits; // per dimension
  llvm::SmallVector<mlir::StringAttr> replicated, partial, max;
  llvm::SmallVector<mlir::StringAttr> flat; // outermost first: they split what the others leave

  Layout() = default;
  explicit Layout(llvm::ArrayRef<int64_t> shape)
      : shape(shape.begin(), shape.end()), splits(shape.size()) {}
  /// The layout in a type's encoding; invariant where the type has none.
  static Layout of(mlir::Type type);
  static Layout of(PlacementAttr placement);

  Kind kind(mlir::StringAttr axis) const;
  /// The dimension that `axis` splits, or -1.
  int dimOf(mlir::StringAttr axis) const;
  void set(mlir::StringAttr axis, Kind kind); // not Sharded; a flat axis becomes the innermost one
  void shard(mlir::StringAttr axis, unsigned dim, Blocks blocks = 1);
  /// The blocks in which `axis` splits its dimension; 0 if it splits none.
  Blocks blocksOf(mlir::StringAttr axis) const;
  void clear(mlir::StringAttr axis) { set(axis, Kind::Invariant); }
  /// Axes that the layout mentions.
  void axes(llvm::SetVector<mlir::StringAttr> &result) const;

  /// The full value's dimensions as their factors, each split in full or not at all: `3 x 768 @tp`
  /// becomes two. For code that moves shards; not for unequal blocks (unequalDim).
  Layout factored() const;

  /// The first dimension that is split in unequal blocks, or -1.
  int unequalDim() const;

  /// Replicated becomes partial, partial invariant: the placement of the cotangent.
  Layout dual() const;
  /// Replicated becomes invariant: the placement of the value alone.
  Layout valueOnly() const;

  /// The type of one rank's shard. A size that the mesh does not divide is rounded up if only one
  /// axis splits the dimension, as one block (pieceSize); else it is an error.
  mlir::FailureOr<mlir::RankedTensorType>
  localType(mlir::Type element, MeshAttr mesh,
            llvm::function_ref<void(const llvm::Twine &)> error) const;
  /// What a rank would have without the flat axes.
  Layout withoutFlat() const;
  /// The encoding; null when the layout is invariant over every axis.
  mlir::Attribute encoding(mlir::MLIRContext *context) const;

  bool operator==(const Layout &other) const;
};

/// The axes that split a value of this type, by dimensions or flat: ranks along them have different
/// shards. In the order of their names.
llvm::SmallVector<mlir::StringAttr> splittingAxes(mlir::Type type);
/// The type of the full value.
mlir::RankedTensorType wholeType(mlir::Type type);
/// The type of the same shard with another layout of the same splits (shape unchanged).
mlir::RankedTensorType withLayout(mlir::Type type, const Layout &layout);
/// The type of the cotangent of a value of this type.
mlir::RankedTensorType cotangentType(mlir::Type type);
/// Are the types equal where replicated is read as invariant?
bool sameValues(mlir::TypeRange a, mlir::TypeRange b);
/// Could the value carry a cotangent (a floating-point tensor)?
bool isDifferentiable(mlir::Type type);

/// Applies an op's rule to placements: finds those of the results from those of the operands and (for
/// letters that only results have) requested splits. In a program without cotangents an invariant
/// operand serves as a replicated one; an operand whose flag in `carriesCotangent` is false always does.
struct RuleProblem {
  int operand = -1; // the operand at fault, or -1
  int against = -1; // the operand that it contradicts, or -1
  mlir::StringAttr axis;
  Kind wanted = Kind::Invariant; // the right kind, if `operand` is set
  std::string text;
};

/// A letter that is split: all of it, or each of its blocks.
struct LetterSplit {
  unsigned letter = 0;
  Blocks blocks = 1;
  bool operator==(const LetterSplit &other) const {
    return letter == other.letter && blocks == other.blocks;
  }
};
/// The letter that a split of a dimension in `blocks` splits: `3 x 768 @tp` of the dimension (a b) with
/// a = 3 splits b, `32 + 16 + 16 @tp` of a[32/64] splits the second block. None if no letter of the
/// dimension begins there.
std::optional<LetterSplit> splitLetter(const RuleDim &dim, Blocks blocks,
                                       llvm::ArrayRef<int64_t> letterSizes);
/// The reverse: the blocks of the dimension. If the letter is a slice of it, this is a guess: as many
/// such blocks as there is room for, or the slice between what is before and after it.
Blocks blocksOfDim(const RuleDim &dim, LetterSplit split, llvm::ArrayRef<int64_t> letterSizes);
/// The full sizes of the letters of an op's rule; false, with `error` set, on a contradiction.
bool letterSizes(const ShardRule &rule, mlir::Operation *op, llvm::SmallVectorImpl<int64_t> &sizes,
                 std::string &error);
bool placeResults(const ShardRule &rule, llvm::ArrayRef<Layout> operands,
                  llvm::ArrayRef<bool> carriesCotangent, llvm::MutableArrayRef<Layout> results,
                  RuleProblem &problem);

/// Why an op does not keep a shard's padding zero, along a letter that the mesh splits unevenly; empty
/// if it does, or if the difference is not observable. See OpRule.cpp.
std::string unevenProblem(mlir::Operation *op, const ShardRule &rule,
                          llvm::ArrayRef<int64_t> letterSizes, llvm::ArrayRef<Layout> operands,
                          llvm::ArrayRef<Layout> results, MeshAttr mesh);

/// The rule of an op, parsed for its operands and results; reports an error of the rule.
const ShardRule *ruleOf(mlir::Operation *op, std::string &error);

/// For building ops without their result types: full shapes from the rule's letters, placements from
/// the rule with replicated read as invariant, and one rank's shape from both.
mlir::LogicalResult inferFromRule(llvm::StringRef rule, mlir::ValueRange operands,
                                  llvm::ArrayRef<mlir::Type> elementTypes,
                                  std::optional<mlir::Location> loc,
                                  llvm::SmallVectorImpl<mlir::Type> &inferred);

} // namespace partita::par

#endif // PARTITA_DIALECTS_PAR_PLACEMENT_H
