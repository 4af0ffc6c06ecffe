//===- SeparateBlocks.cpp - turns blocks of fused weights into weights ------------------------===//

#include "lib/Partition/SeparateBlocks.h"
#include "dialects/Tx/Tx.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace partita;

//===----------------------------------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------------------------------===//

/// Returns the number that all elements of an integer value are, if it is computed from constants
/// alone.
static std::optional<int64_t> numberOf(Value value) {
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat() &&
      elements.getElementType().isInteger())
    return elements.getElementType().isInteger(1) ? int64_t(elements.getSplatValue<bool>())
                                                  : elements.getSplatValue<APInt>().getSExtValue();
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() == 0 || op->getNumRegions() != 0)
    return {};
  SmallVector<int64_t> operands;
  for (Value operand : op->getOperands()) {
    auto number = numberOf(operand);
    if (!number)
      return {};
    operands.push_back(*number);
  }
  if (isa<tx::ReshapeOp, tx::BroadcastOp>(op))
    return operands[0];
  if (isa<tx::AddOp>(op))
    return operands[0] + operands[1];
  if (isa<tx::LessOp>(op))
    return operands[0] < operands[1];
  if (isa<tx::SelectOp>(op))
    return operands[0] ? operands[1] : operands[2];
  return {};
}

bool partita::isBlockOfParameter(Operation *op) {
  return isa<tx::SliceOp>(op) && op->getOperand(0).getDefiningOp<train::ReadOp>() &&
         op->getBlock() == op->getOperand(0).getParentBlock();
}

/// Returns the only dimension that a slice cuts, if it takes a contiguous range of it; otherwise
/// -1.
static int cutDim(tx::SliceOp slice) {
  int found = -1;
  for (auto [dim, size] : llvm::enumerate(slice.getX().getType().getShape())) {
    if (slice.getType().getDimSize(dim) == size)
      continue;
    if (found >= 0 || slice.getStrides()[dim] != 1)
      return -1;
    found = static_cast<int>(dim);
  }
  return found;
}

/// Removes matmuls whose full results are no longer read; they would tie the blocks together.
static void removeDead(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops))
    if (hasRule(op) && isOpTriviallyDead(op))
      op->erase();
}

bool SeparateBlocks::separate(ModuleOp module, StringAttr overAxis,
                              const llvm::DenseSet<StringAttr> &of) {
  axis = overAxis;
  parameters = &of;
  SmallVector<Operation *> candidates;
  module.walk([&](Operation *op) {
    if (isa<tx::SliceOp, tx::EmbeddingOp>(op))
      candidates.push_back(op);
  });
  bool any = false;
  for (Operation *op : candidates) {
    if (auto slice = dyn_cast<tx::SliceOp>(op)) {
      if (int dim = cutDim(slice); dim >= 0)
        any |= replace(
            op, slice.getX(),
            {static_cast<unsigned>(dim), slice.getOffsets()[dim], slice.getType().getDimSize(dim)});
      continue;
    }
    // A lookup of one row with a constant index is a slice.
    auto lookup = cast<tx::EmbeddingOp>(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    auto row = numberOf(op->getOperand(1));
    if (row && op->getNumOperands() == 2 && type.getRank() == 2 && type.getDimSize(0) == 1)
      any |= replace(lookup, op->getOperand(0), {0, *row, 1});
  }
  known.clear();
  if (any)
    removeDead(module);
  return any;
}

/// Replaces a slice by a computation from a parameter's own slice, if this passes through a matmul.
bool SeparateBlocks::replace(Operation *slice, Value of, Cut cut) {
  built.clear();
  auto knownBefore = known;
  size_t narrowsBefore = narrows.size();
  passedMatmul = reachedParameter = false;
  Value made = sliced(of, cut);
  if (made && passedMatmul && reachedParameter && made.getType() == slice->getResult(0).getType()) {
    slice->getResult(0).replaceAllUsesWith(made);
    return true;
  }
  for (Operation *op : llvm::reverse(built))
    op->erase();
  narrows.truncate(narrowsBefore);
  known = std::move(knownBefore);
  return false;
}

//===----------------------------------------------------------------------------------------------===//
// Moving slices up
//===----------------------------------------------------------------------------------------------===//

Value SeparateBlocks::sliced(Value value, Cut cut) {
  if (auto found = known.find({value.getAsOpaquePointer(), cut}); found != known.end()) {
    passedMatmul = reachedParameter = true; // for another slice, up to its end
    return found->second;
  }
  Value made;
  if (auto read = value.getDefiningOp<train::ReadOp>())
    made = slicedRead(read, cut);
  else if (auto result = dyn_cast<OpResult>(value))
    made = slicedOp(result, cut);
  if (made)
    known[{value.getAsOpaquePointer(), cut}] = made;
  return made;
}

Value SeparateBlocks::slicedRead(train::ReadOp read, Cut cut) {
  if (!parameters->contains(read.getSymbolAttr().getAttr()))
    return {};
  reachedParameter = true;
  OpBuilder builder(read->getBlock(), std::next(read->getIterator()));
  auto type = cast<RankedTensorType>(read.getType());
  SmallVector<int64_t> shape(type.getShape()), offsets(shape.size(), 0), strides(shape.size(), 1);
  shape[cut.dim] = cut.size;
  offsets[cut.dim] = cut.first;
  auto slice = tx::SliceOp::create(builder, read.getLoc(), type.clone(shape), read.getResult(),
                                   offsets, strides);
  auto narrow = par::NarrowOp::create(builder, read.getLoc(), slice.getType(), slice, axis,
                                      builder.getI64IntegerAttr(cut.dim),
                                      builder.getI64IntegerAttr(1), StringAttr());
  narrow->setAttr(kUndecided, builder.getUnitAttr());
  built.append({slice, narrow});
  narrows.push_back(narrow);
  return narrow.getResult();
}

/// Returns true if the op is the same on any range of the dimension.
static bool worksOnParts(const RuleLetter &letter) {
  return !letter.never && !letter.byForm && !letter.lacksFirstIndex && !letter.summed &&
         !letter.max;
}

Value SeparateBlocks::slicedOp(OpResult value, Cut cut) {
  Operation *op = value.getOwner();
  std::string error;
  SmallVector<int64_t> sizes;
  if (!isa<ShardInterface>(op) || op->getNumResults() != 1 || op->getNumOperands() == 0)
    return {};
  const ShardRule *rule = par::ruleOf(op, error);
  if (!rule || !par::letterSizes(*rule, op, sizes, error))
    return {};
  // The letter that begins the dimension is cut; the dimension's other letters are inside of it.
  auto inside = [&](const RuleDim &dim) {
    int64_t size = 1;
    for (unsigned other : ArrayRef(dim.letters).drop_front())
      size *= sizes[other];
    return size;
  };
  const RuleDim &dim = rule->results[0].dims[cut.dim];
  if (dim.letters.empty() || dim.isPart() || cut.first % inside(dim) != 0 ||
      cut.size % inside(dim) != 0)
    return {};
  unsigned letter = dim.letters.front();
  if (!worksOnParts(rule->letters[letter]))
    return {};
  int64_t first = cut.first / inside(dim), size = cut.size / inside(dim);
  IRMapping mapping;
  bool anyHas = false, anyLacks = false;
  for (auto [pattern, operand] : llvm::zip(rule->operands, op->getOperands())) {
    int at = pattern.dimOf(letter);
    anyLacks |= at < 0 && pattern.linearity == Linearity::Separately;
    if (at < 0)
      continue;
    const RuleDim &of = pattern.dims[at];
    if (of.isPart() || of.letters.front() != letter)
      return {};
    Value part =
        sliced(operand, {static_cast<unsigned>(at), first * inside(of), size * inside(of)});
    if (!part)
      return {};
    anyHas = true;
    mapping.map(operand, part);
  }
  if (!anyHas && !isa<tx::BroadcastOp>(op))
    return {};
  passedMatmul |= anyHas && anyLacks; // a matmul with the sliced weight
  OpBuilder builder(op);
  Operation *part = builder.clone(*op, mapping);
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  shape[cut.dim] = cut.size;
  part->getResult(0).setType(cast<RankedTensorType>(value.getType()).clone(shape));
  built.push_back(part);
  return part->getResult(0);
}

//===----------------------------------------------------------------------------------------------===//
// Deciding
//===----------------------------------------------------------------------------------------------===//

void SeparateBlocks::find(ModuleOp module, StringAttr overAxis) {
  axis = overAxis;
  module.walk([&](par::NarrowOp narrow) {
    if (narrow->hasAttr(kUndecided) && narrow.getAxisAttr() == axis)
      narrows.push_back(narrow);
  });
}

void SeparateBlocks::keepSplit(const Propagation &propagation) {
  llvm::erase_if(narrows, [&](par::NarrowOp narrow) {
    int dim = propagation.layoutOf(narrow.getResult()).dimOf(axis);
    if (dim != static_cast<int>(narrow.getDim()))
      return false;
    narrow->removeAttr(kUndecided);
    return true;
  });
}

void SeparateBlocks::decide(const Propagation &propagation) {
  keepSplit(propagation);
  for (par::NarrowOp narrow : narrows) {
    narrow.getResult().replaceAllUsesWith(narrow.getValue());
    narrow.erase();
  }
  narrows.clear();
}
