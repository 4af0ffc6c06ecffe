//===- TxLocalize.cpp - what changes in ops whose types become those of one rank --------------===//
//
// And, for ops that cannot be split as they are, the ops to put in their place (splitForm).
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include <numeric>

using namespace mlir;
using namespace partita;
using namespace partita::tx;

//===------------------------------------------------------------------------------------------------===//
// First indices
//===------------------------------------------------------------------------------------------------===//

/// Gives the op the index at which this rank's piece of dimension `dim` of a value begins, if it is
/// split.
static void addFirstIndex(Operation *op, MutableOperandRange first, Type type, unsigned dim) {
  par::Layout layout = par::Layout::of(type);
  if (layout.splits[dim].empty() || first.size() != 0)
    return;
  int64_t whole = layout.shape[dim];
  par::Layout pieces(
      static_cast<int64_t>(llvm::divideCeil(whole, cast<RankedTensorType>(type).getDimSize(dim))));
  pieces.splits[0] = layout.splits[dim];
  OpBuilder builder(op);
  auto index = RankedTensorType::get({1}, builder.getI64Type(), pieces.encoding(op->getContext()));
  first.assign(par::FirstIndexOp::create(builder, op->getLoc(), index, whole).getResult());
}

void EmbeddingOp::localize() { addFirstIndex(*this, getFirstMutable(), getTable().getType(), 0); }
void EmbeddingGradOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getDtable().getType(), 0);
}
void CrossEntropyGradOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getLogits().getType(),
                getLogits().getType().getRank() - 1);
}
void RepeatOp::localize() { addFirstIndex(*this, getFirstMutable(), getType(), getDim()); }
void RepeatSumOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getX().getType(), getDim());
}
void LogSumExpOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getX().getType(), getX().getType().getRank() - 1);
}
void TokenLossOp::localize() {
  addFirstIndex(*this, getFirstMutable(), getLogits().getType(),
                getLogits().getType().getRank() - 1);
}

//===------------------------------------------------------------------------------------------------===//
// Offsets within a rank's piece
//===------------------------------------------------------------------------------------------------===//

/// Every block shrinks alike, so an offset, a multiple of a block, shrinks with the dimension.
static SmallVector<int64_t> localOffsets(ArrayRef<int64_t> offsets, RankedTensorType cut) {
  par::Layout layout = par::Layout::of(cut);
  SmallVector<int64_t> local(offsets);
  for (auto [offset, whole, piece] : llvm::zip(local, layout.shape, cut.getShape()))
    if (whole != piece)
      offset = offset * piece / whole;
  return local;
}

void SliceOp::localize() { setOffsets(localOffsets(getOffsets(), getX().getType())); }
void PadOp::localize() { setOffsets(localOffsets(getOffsets(), getType())); }

//===------------------------------------------------------------------------------------------------===//
// Values of which a rank has a piece
//===------------------------------------------------------------------------------------------------===//

/// A splat is a smaller splat. Of other values every rank has all, and takes its piece of them,
/// axis by axis: which one is known when the program runs.
void ConstantOp::localize() {
  RankedTensorType piece = getType();
  auto dense = dyn_cast<DenseElementsAttr>(getValue());
  if (dense && dense.isSplat()) {
    auto plain = RankedTensorType::get(piece.getShape(), piece.getElementType());
    return setValueAttr(cast<ElementsAttr>(
        Attribute(DenseElementsAttr::get(plain, dense.getSplatValue<Attribute>()))));
  }
  par::MeshAttr mesh = par::MeshAttr::of(*this);
  par::Layout layout = par::Layout::of(piece), narrowed(layout.shape);
  OpBuilder builder(getContext());
  builder.setInsertionPointAfter(*this);
  Value part = getResult(), whole = part;
  Operation *first = nullptr;
  for (auto [dim, axes] : llvm::enumerate(layout.splits))
    for (const par::AxisSplit &split : axes) {
      narrowed.shard(split.axis, dim, split.blocks);
      auto type = narrowed.localType(piece.getElementType(), mesh, [](const Twine &) {});
      auto narrow =
          par::NarrowOp::create(builder, getLoc(), failed(type) ? piece : *type, part, split.axis,
                                builder.getI64IntegerAttr(dim),
                                builder.getI64IntegerAttr(split.blocks.count), StringAttr());
      part = narrow.getResult();
      first = first ? first : narrow;
    }
  if (!first)
    return;
  whole.setType(par::wholeType(piece));
  whole.replaceAllUsesExcept(part, first);
}

//===------------------------------------------------------------------------------------------------===//
// Split forms
//===------------------------------------------------------------------------------------------------===//

/// log(sum(exp(x))) over all parts is that over the parts' own.
SmallVector<Value> CrossEntropyOp::splitForm(OpBuilder &builder, int64_t parts) {
  auto type = getLogits().getType();
  if (!par::pieceSize(type.getShape().back(), parts))
    return {};
  auto of = [&](ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, type.getElementType());
  };
  SmallVector<int64_t> row(type.getShape().drop_back()), byPart(row), one(row);
  byPart.push_back(parts);
  one.push_back(1);
  int64_t last = static_cast<int64_t>(row.size());

  Location loc = getLoc();
  auto build = [&](auto op, ValueRange operands) -> Value {
    return decltype(op)::create(builder, loc, operands)->getResult(0);
  };
  // Ranks exchange two of these: each has a name of its own where that is told.
  auto named = [&](StringRef what) -> Location {
    auto name = loc->findInstanceOf<NameLoc>();
    std::string whole = (name ? name.getName().str() : "loss") + ", " + what.str();
    return NameLoc::get(builder.getStringAttr(whole), loc);
  };
  Value lses = LogSumExpOp::create(builder, loc, of(byPart), getLogits(), /*first=*/Value());
  Value greatest =
      ReduceMaxOp::create(builder, named("greatest logit"), of(row), lses, ArrayRef<int64_t>{last});
  Value spread = BroadcastOp::create(builder, loc, of(byPart),
                                     ReshapeOp::create(builder, loc, of(one), greatest));
  Value shares = build(ExpOp(), {build(SubOp(), {lses, spread})});
  Value sum = ReduceSumOp::create(builder, named("sum over the vocabulary"), of(row), shares,
                                  ArrayRef<int64_t>{last});
  Value lse = build(AddOp(), {build(LogOp(), {sum}), greatest});
  Value loss = TokenLossOp::create(builder, loc, ValueRange{getLogits(), getLabels(), lse},
                                   (*this)->getAttrs());
  return {loss, lse};
}

/// Key heads that `parts` do not share evenly, but query heads do: as many key heads as both
/// divide, each of the given ones several times, so that every rank has the key heads of its
/// queries.
SmallVector<Value> AttentionOp::splitForm(OpBuilder &builder, int64_t parts) {
  int64_t heads = getQ().getType().getDimSize(2), keyHeads = getK().getType().getDimSize(2);
  if (keyHeads == 1 || keyHeads % parts == 0 || heads % parts != 0)
    return {};
  int64_t times = std::lcm(keyHeads, parts) / keyHeads;
  auto repeated = [&](TypedValue<RankedTensorType> x) -> Value {
    SmallVector<int64_t> shape(x.getType().getShape());
    shape[2] *= times;
    return RepeatOp::create(builder, getLoc(),
                            RankedTensorType::get(shape, x.getType().getElementType()), x,
                            /*first=*/Value(), /*dim=*/2, times);
  };
  SmallVector<Value> operands(getOperands());
  operands[1] = repeated(getK());
  operands[2] = repeated(getV());
  return SmallVector<Value>(AttentionOp::create(builder, getLoc(), (*this)->getResultTypes(),
                                                operands, (*this)->getAttrs())
                                ->getResults());
}
