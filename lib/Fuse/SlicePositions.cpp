//===- SlicePositions.cpp - rows of a table by consecutive ids ----------------------------------===//
//
// Ids that count up by one, as a position embedding's do, name consecutive rows. Then the lookup is
// a view of the table, and its gradient has each row of dy once: no gather, and no sort of ids.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "partita/Fuse/Passes.h"

namespace partita {
#define GEN_PASS_DEF_SLICEPOSITIONSPASS
#include "partita/Fuse/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Consecutive rows of a table.
struct Rows {
  int64_t first, count;
};

/// Returns the rows that the ids, row-major, name, if they count up by one.
std::optional<Rows> rowsOf(Value ids) {
  while (auto reshape = ids.getDefiningOp<tx::ReshapeOp>())
    ids = reshape.getX();
  auto iota = ids.getDefiningOp<tx::IotaOp>();
  if (!iota || iota.getStep().convertToDouble() != 1.0)
    return std::nullopt;
  double start = iota.getStart().convertToDouble();
  auto first = static_cast<int64_t>(start);
  if (start < 0 || static_cast<double>(first) != start)
    return std::nullopt;
  return Rows{first, iota.getType().getDimSize(0)};
}

bool hasSameSums(Type a, Type b) {
  par::Layout one = par::Layout::of(a), other = par::Layout::of(b);
  return one.partial == other.partial && one.replicated == other.replicated && one.max == other.max;
}

/// Returns the type of these rows of a table that every rank has in full, whose sums over ranks are
/// as open as `like`'s; null for another table, or for rows beyond it (an error of the run's).
RankedTensorType typeOfRows(RankedTensorType table, RankedTensorType like, const Rows &rows) {
  par::Layout layout = par::Layout::of(table);
  if (table.getRank() != 2 || par::fullType(table).getDimSize(0) != table.getDimSize(0) ||
      table.getElementType() != like.getElementType() || !hasSameSums(table, like) ||
      rows.first + rows.count > table.getDimSize(0))
    return {};
  if (!table.getEncoding())
    return table.clone({rows.count, table.getDimSize(1)});
  layout.shape[0] = rows.count;
  return RankedTensorType::get({rows.count, table.getDimSize(1)}, table.getElementType(),
                               layout.encoding(table.getContext()));
}

bool slice(tx::EmbeddingOp op) {
  std::optional<Rows> rows = rowsOf(op.getIds());
  auto table = cast<RankedTensorType>(op.getTable().getType());
  auto result = cast<RankedTensorType>(op.getResult().getType());
  RankedTensorType type = rows && !op.getFirst() ? typeOfRows(table, result, *rows) : nullptr;
  if (!type)
    return false;
  OpBuilder builder(op);
  Value sliced = tx::SliceOp::create(builder, op.getLoc(), type, op.getTable(),
                                     ArrayRef<int64_t>{rows->first, 0}, ArrayRef<int64_t>{1, 1});
  op.replaceAllUsesWith(tx::ReshapeOp::create(builder, op.getLoc(), result, sliced).getResult());
  op.erase();
  return true;
}

bool pad(tx::EmbeddingGradOp op) {
  std::optional<Rows> rows = rowsOf(op.getIds());
  auto dy = cast<RankedTensorType>(op.getDy().getType());
  auto table = cast<RankedTensorType>(op.getDtable().getType());
  RankedTensorType type =
      rows && !op.getFirst() && !op.getPadding() ? typeOfRows(table, dy, *rows) : nullptr;
  if (!type)
    return false;
  OpBuilder builder(op);
  Value given = tx::ReshapeOp::create(builder, op.getLoc(), type, op.getDy());
  if (rows->count < table.getDimSize(0))
    given = tx::PadOp::create(builder, op.getLoc(), table, given, ArrayRef<int64_t>{rows->first, 0},
                              ArrayRef<int64_t>{1, 1});
  op.replaceAllUsesWith(given);
  op.erase();
  return true;
}

struct SlicePositions : partita::impl::SlicePositionsPassBase<SlicePositions> {
  void runOnOperation() override {
    SmallVector<Operation *> lookups;
    getOperation().walk([&](Operation *op) {
      if (isa<tx::EmbeddingOp, tx::EmbeddingGradOp>(op))
        lookups.push_back(op);
    });
    for (Operation *op : lookups) {
      auto lookup = dyn_cast<tx::EmbeddingOp>(op);
      sliced += lookup ? slice(lookup) : pad(cast<tx::EmbeddingGradOp>(op));
    }
  }
};

} // namespace
