//===- Placement.h - editable placements of tensor types ----------------------------*- C++ -*-===//
//
// `Layout` is the editable form of #par.place: a pass reads it from a type, changes it, and gets
// the type of one rank's shard.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_PAR_PLACEMENT_H
#define PARTITA_DIALECTS_PAR_PLACEMENT_H

#include "dialects/Interfaces/ShardRule.h"
#include "dialects/Par/Par.h"
#include "llvm/ADT/SetVector.h"

namespace partita::par {

/// An axis that splits a dimension, within each of the dimension's blocks. A fused weight of
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

/// Returns the size of a rank's shard of `size` elements over `parts` ranks. A size that does not
/// divide is rounded up (partita_rt::shardSize), as long as the last rank has an element: the elements past the end
/// of the full dimension are the shard's padding, which is zero in every value that is summed
/// (unevenProblem). None if a rank would have no element.
std::optional<int64_t> shardSize(int64_t size, int64_t parts);

/// A value's placement over all axes, with the full shape.
struct Layout {
  llvm::SmallVector<int64_t> shape;   // of the full value
  llvm::SmallVector<DimSplit> splits; // per dimension
  llvm::SmallVector<mlir::StringAttr> replicated, partial, max;
  llvm::SmallVector<mlir::StringAttr> flat; // outermost first: they split what the others leave

  Layout() = default;
  explicit Layout(llvm::ArrayRef<int64_t> shape)
      : shape(shape.begin(), shape.end()), splits(shape.size()) {}
  /// Returns the layout in a type's encoding; invariant if the type has none.
  static Layout of(mlir::Type type);
  static Layout of(PlacementAttr placement);

  Kind kind(mlir::StringAttr axis) const;
  /// Returns the dimension that `axis` splits, or -1.
  int dimOf(mlir::StringAttr axis) const;
  void set(mlir::StringAttr axis, Kind kind); // not Sharded; a flat axis becomes the innermost one
  void shard(mlir::StringAttr axis, unsigned dim, Blocks blocks = 1);
  /// Returns the blocks in which `axis` splits its dimension; 0 if it splits none.
  Blocks blocksOf(mlir::StringAttr axis) const;
  void clear(mlir::StringAttr axis) { set(axis, Kind::Invariant); }
  /// Collects the axes that the layout mentions.
  void axes(llvm::SetVector<mlir::StringAttr> &result) const;

  /// Returns the full value's dimensions as their factors, each split in full or not at all: `3 x
  /// 768 @tp` becomes two. For code that moves shards; not for unequal or mirrored blocks.
  Layout factored() const;

  /// Returns the first dimension that is split in unequal blocks, or -1.
  int unequalDim() const;
  /// Returns the first dimension whose blocks are mirrored, or -1.
  int mirroredDim() const;

  /// Returns the placement of the cotangent: replicated becomes partial, partial invariant.
  Layout dual() const;
  /// Returns the placement of the value alone: replicated becomes invariant.
  Layout valueOnly() const;

  /// Returns the type of one rank's shard. A size that the mesh does not divide is rounded up if
  /// only one axis splits the dimension, as one block (shardSize); else it is an error.
  mlir::FailureOr<mlir::RankedTensorType>
  localType(mlir::Type element, MeshAttr mesh,
            llvm::function_ref<void(const llvm::Twine &)> error) const;
  /// Returns what a rank would hold without the flat axes.
  Layout withoutFlat() const;
  /// Returns the encoding; null if the layout is invariant over every axis.
  mlir::Attribute encoding(mlir::MLIRContext *context) const;

  bool operator==(const Layout &other) const;
};

/// Returns the axes that split a value of this type, by dimensions or flat, so that ranks along
/// them have different shards; sorted by name.
llvm::SmallVector<mlir::StringAttr> splittingAxes(mlir::Type type);
/// Returns the type of the full value.
mlir::RankedTensorType fullType(mlir::Type type);
/// Does a rank hold blocks of so many consecutive elements of the last dimension whole, if flat axes are left
/// out? Only then is what is computed per block the same on any mesh.
bool holdsWholeBlocks(mlir::Type type, int64_t block, MeshAttr mesh);
/// Returns the type of the same shard with another layout of the same splits (shape unchanged).
mlir::RankedTensorType withLayout(mlir::Type type, const Layout &layout);
/// Returns the type of the cotangent of a value of this type.
mlir::RankedTensorType cotangentType(mlir::Type type);
/// Returns true if the types are equal, treating replicated as invariant.
bool sameValues(mlir::TypeRange a, mlir::TypeRange b);
/// Returns true if the value could carry a cotangent (a floating-point tensor).
bool isDifferentiable(mlir::Type type);

/// Applies an op's rule to placements: finds those of the results from those of the operands and
/// (for letters that only results have) requested splits. In a program without cotangents an
/// invariant operand serves as a replicated one; an operand whose flag in `carriesCotangent` is
/// false always does.
struct RuleProblem {
  int operand = -1; // the operand at fault, or -1
  int against = -1; // the operand that it contradicts, or -1
  mlir::StringAttr axis;
  Kind wanted = Kind::Invariant; // the right kind, if `operand` is set
  std::string text;
};

/// A letter that is split, in full or within each of its blocks.
struct LetterSplit {
  unsigned letter = 0;
  Blocks blocks = 1;
  bool operator==(const LetterSplit &other) const {
    return letter == other.letter && blocks == other.blocks;
  }
};
/// Can an op be split along a letter within these blocks of it?
bool allows(const RuleLetter &letter, const Blocks &blocks);
/// Returns the letter that a split of a dimension in `blocks` splits: `3 x 768 @tp` of the
/// dimension (a b) with a = 3 splits b, `32 + 16 + 16 @tp` of a[32/64] splits the second block.
/// None if no letter of the dimension begins there.
std::optional<LetterSplit> splitLetter(const RuleDim &dim, Blocks blocks,
                                       llvm::ArrayRef<int64_t> letterSizes);
/// The inverse: returns the blocks of the dimension. If the letter is a slice of it, this is a
/// guess: as many such blocks as fit, or the slice between what is before and after it.
Blocks blocksOfDim(const RuleDim &dim, LetterSplit split, llvm::ArrayRef<int64_t> letterSizes);
/// Computes the full sizes of the letters of an op's rule. Returns false and sets `error` on a
/// contradiction.
bool letterSizes(const ShardRule &rule, mlir::Operation *op, llvm::SmallVectorImpl<int64_t> &sizes,
                 std::string &error);
bool placeResults(const ShardRule &rule, llvm::ArrayRef<Layout> operands,
                  llvm::ArrayRef<bool> carriesCotangent, llvm::MutableArrayRef<Layout> results,
                  RuleProblem &problem);

/// Returns why an op does not keep a shard's padding zero, along a letter that the mesh splits
/// unevenly; empty if it does, or if the difference is not observable. See OpRule.cpp.
std::string unevenProblem(mlir::Operation *op, const ShardRule &rule,
                          llvm::ArrayRef<int64_t> letterSizes, llvm::ArrayRef<Layout> operands,
                          llvm::ArrayRef<Layout> results, MeshAttr mesh);

/// Returns the rule of an op, parsed for its operands and results. Returns null and sets `error` if
/// the rule is wrong.
const ShardRule *ruleOf(mlir::Operation *op, std::string &error);

/// Infers result types for building ops: full shapes from the rule's letters, placements from the
/// rule, treating replicated as invariant, and one rank's shape from both.
mlir::LogicalResult inferFromRule(llvm::StringRef rule, mlir::ValueRange operands,
                                  llvm::ArrayRef<mlir::Type> elementTypes,
                                  std::optional<mlir::Location> loc,
                                  llvm::SmallVectorImpl<mlir::Type> &inferred);

} // namespace partita::par

#endif // PARTITA_DIALECTS_PAR_PLACEMENT_H
