//===- Products.cpp - what passes that extend a product's kernel share ------------------------===//

#include "lib/Fuse/Products.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace partita;

Value partita::repeatedRow(Value value) {
  auto broadcast = value.getDefiningOp<tx::BroadcastOp>();
  if (!broadcast)
    return {};
  auto row = cast<RankedTensorType>(broadcast.getX().getType());
  bool fits = row.getRank() == 1 && row.getDimSize(0) == broadcast.getType().getShape().back();
  return fits ? broadcast.getX() : Value();
}

tx::FusedProductOp partita::fuseProduct(OpBuilder &builder, Location loc, ArrayRef<Operation *> ops,
                                        ValueRange results) {
  llvm::SmallDenseSet<Operation *> inside(ops.begin(), ops.end());
  llvm::SetVector<Value> inputs;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp() || !inside.contains(operand.getDefiningOp()))
        inputs.insert(operand);
  SmallVector<Value> values = inputs.takeVector();
  OpBuilder::InsertionGuard guard(builder);
  auto fused = tx::FusedProductOp::create(builder, loc, results.getTypes(), values);
  Block *body = builder.createBlock(&fused.getBody(), {}, TypeRange(ValueRange(values)),
                                    SmallVector<Location>(values.size(), loc));
  IRMapping mapping;
  mapping.map(values, body->getArguments());
  for (Operation *op : ops)
    builder.clone(*op, mapping);
  tx::FusedOp::create(builder, loc, llvm::map_to_vector(results, [&](Value result) {
                        return mapping.lookup(result);
                      }));
  return fused;
}

Unfused partita::unfused(OpBuilder &builder, Operation *op) {
  Unfused parts;
  auto fused = dyn_cast<tx::FusedProductOp>(op);
  if (!fused) {
    parts.ops.push_back(builder.clone(*op));
    llvm::append_range(parts.results, parts.ops.front()->getResults());
    return parts;
  }
  IRMapping mapping;
  Block &body = fused.getBody().front();
  mapping.map(body.getArguments(), fused.getInputs());
  for (Operation &inner : body.without_terminator())
    parts.ops.push_back(builder.clone(inner, mapping));
  for (Value result : body.getTerminator()->getOperands())
    parts.results.push_back(mapping.lookup(result));
  return parts;
}

void partita::eraseUnused(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops))
    if (op && isOpTriviallyDead(op))
      op->erase();
}
