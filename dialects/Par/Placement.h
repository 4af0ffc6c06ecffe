//===- Placement.h - working with the placements in tensor types --------------------*- C++ -*-===//
//
// `Layout` is the editable form of #par.place: a pass reads a type into one, changes it, and asks
// for the type of one rank's piece.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PAR_PLACEMENT_H
#define PARTITA_DIALECTS_PAR_PLACEMENT_H

#include "dialects/Interfaces/ShardRule.h"
#include "dialects/Par/Par.h"
#include "llvm/ADT/SetVector.h"

namespace partita::par {

/// What a dimension consists of, one after another: so many equal blocks, or some of these sizes.
struct Blocks {
  int64_t count = 1;
  llvm::SmallVector<int64_t, 0> sizes; ///< where they are not equal

  static constexpr size_t kMostUnequal = 8; // the runtime's tables have room for them

  Blocks(int64_t count = 1) : count(count) {} // a number is so many equal ones
  static Blocks of(llvm::ArrayRef<int64_t> sizes);
  /// The size of each, of a dimension of `size`.
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

/// The size of a rank's piece of `size` elements over `parts` ranks. A size that does not divide is
/// rounded up, as long as the last rank has an element: what lies beyond the whole is its piece's
/// padding, and zero in every value that is added up (unevenProblem). None where that leaves a rank
/// nothing.
std::optional<int64_t> pieceSize(int64_t size, int64_t parts);

/// A value's placement over all axes, with the whole shape.
struct Layout {
  llvm::SmallVector<int64_t> shape;   // of the whole value
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
  /// The blocks of its dimension that `axis` splits; 0 where it splits none.
  Blocks blocksOf(mlir::StringAttr axis) const;
  void clear(mlir::StringAttr axis) { set(axis, Kind::Invariant); }
  /// Axes that the layout mentions.
  void axes(llvm::SetVector<mlir::StringAttr> &result) const;

  /// The whole value's dimensions as their factors, each split by axes alone or not at all: `3 x
  /// 768 @tp` is two. For code that moves pieces; not of unequal blocks (unequalDim).
  Layout factored() const;

  /// The first dimension that is split in unequal blocks, or -1.
  int unequalDim() const;

  /// Replicated becomes partial, partial invariant: the placement of the cotangent.
  Layout dual() const;
  /// Replicated becomes invariant: the placement of the value alone.
  Layout valueOnly() const;

  /// The type of one rank's piece. A size that the mesh does not divide is rounded up where one
  /// axis alone splits the dimension, all of it as one block (pieceSize), and an error elsewhere.
  mlir::FailureOr<mlir::RankedTensorType>
  localType(mlir::Type element, MeshAttr mesh,
            llvm::function_ref<void(const llvm::Twine &)> error) const;
  /// What a rank would have were it not for the flat axes.
  Layout withoutFlat() const;
  /// The encoding; null when the layout is invariant over every axis.
  mlir::Attribute encoding(mlir::MLIRContext *context) const;

  bool operator==(const Layout &other) const;
};

/// The axes that split a value of this type, by dimensions or flat: ranks along them have other
/// pieces of it. In the order of their names.
llvm::SmallVector<mlir::StringAttr> splittingAxes(mlir::Type type);
/// The type of the whole value.
mlir::RankedTensorType wholeType(mlir::Type type);
/// The same piece's type with another layout of the same splits (shape unchanged).
mlir::RankedTensorType withLayout(mlir::Type type, const Layout &layout);
/// The type of the cotangent of a value of this type.
mlir::RankedTensorType cotangentType(mlir::Type type);
/// Are the types equal where replicated is read as invariant?
bool sameValues(mlir::TypeRange a, mlir::TypeRange b);
/// Could the value carry a cotangent (a floating-point tensor)?
bool isDifferentiable(mlir::Type type);

/// Applies an op's rule to placements: which are the results', given the operands' and (for letters
/// that only results have) wanted splits. In a program without cotangents an invariant operand
/// serves as a replicated one; an operand whose flag in `carriesCotangent` is false always does.
struct RuleProblem {
  int operand = -1; // the operand at fault, or -1
  int against = -1; // the operand that it contradicts, or -1
  mlir::StringAttr axis;
  Kind wanted = Kind::Invariant; // what would have been right, when `operand` is set
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
/// The letter that is split when a dimension is, in `blocks`: `3 x 768 @tp` of the dimension
/// (a b) with a = 3 splits b, `32 + 16 + 16 @tp` of a[32/64] the second block. None where no letter
/// of the dimension begins there.
std::optional<LetterSplit> splitLetter(const RuleDim &dim, Blocks blocks,
                                       llvm::ArrayRef<int64_t> letterSizes);
/// The other way round: the blocks of the dimension. Where the letter is a part of it, a guess: as
/// many such blocks as there is room for, or the part between what is before and behind it.
Blocks blocksOfDim(const RuleDim &dim, LetterSplit split, llvm::ArrayRef<int64_t> letterSizes);
/// The sizes of the letters of an op's rule, whole; false and `error` set on a contradiction.
bool letterSizes(const ShardRule &rule, mlir::Operation *op, llvm::SmallVectorImpl<int64_t> &sizes,
                 std::string &error);
bool placeResults(const ShardRule &rule, llvm::ArrayRef<Layout> operands,
                  llvm::ArrayRef<bool> carriesCotangent, llvm::MutableArrayRef<Layout> results,
                  RuleProblem &problem);

/// Why an op does not keep the padding of a shard zero, of a letter that the mesh splits unevenly;
/// empty where it does, or where nobody sees that it does not. See OpRule.cpp.
std::string unevenProblem(mlir::Operation *op, const ShardRule &rule,
                          llvm::ArrayRef<int64_t> letterSizes, llvm::ArrayRef<Layout> operands,
                          llvm::ArrayRef<Layout> results, MeshAttr mesh);

/// The rule of an op, parsed for its operands and results; reports an error of the rule.
const ShardRule *ruleOf(mlir::Operation *op, std::string &error);

/// For building ops without naming their result types: whole shapes by the rule's letters,
/// placements by the rule with replicated read as invariant, one rank's shape from both.
mlir::LogicalResult inferFromRule(llvm::StringRef rule, mlir::ValueRange operands,
                                  llvm::ArrayRef<mlir::Type> elementTypes,
                                  std::optional<mlir::Location> loc,
                                  llvm::SmallVectorImpl<mlir::Type> &inferred);

} // namespace partita::par

#endif // PARTITA_DIALECTS_PAR_PLACEMENT_H
