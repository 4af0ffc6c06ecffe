//===- Matmuls.cpp - helpers for passes that extend a matmul's kernel -------------------------===//

#include "lib/Fuse/Matmuls.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/FusedMatmul.h"
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

Value partita::unshaped(Value value) {
  while (auto reshape = value.getDefiningOp<tx::ReshapeOp>())
    value = reshape.getX();
  return value;
}

SmallVector<Operation *> partita::usersOf(Value value) {
  SmallVector<Operation *> users;
  for (Operation *user : value.getUsers())
    if (isa<tx::ReshapeOp>(user))
      llvm::append_range(users, usersOf(user->getResult(0)));
    else
      users.push_back(user);
  return users;
}

bool partita::isFollowedByArithmetic(Value value) {
  return llvm::any_of(usersOf(value), tx::isElementwise);
}

bool partita::sameElements(ArrayRef<Value> values) {
  return llvm::all_of(values, [&](Value value) {
    return getElementTypeOrSelf(value.getType()) == getElementTypeOrSelf(values[0].getType());
  });
}

RankedTensorType partita::reducedType(RankedTensorType type, ArrayRef<int64_t> dims,
                                      par::Kind split) {
  par::Layout full = par::Layout::of(type).valueOnly(), kept;
  kept.partial = full.partial;
  kept.max = full.max;
  SmallVector<int64_t> local;
  for (auto [i, size] : llvm::enumerate(type.getShape())) {
    if (llvm::is_contained(dims, static_cast<int64_t>(i))) {
      for (const par::AxisSplit &axis : full.splits[i])
        kept.set(axis.axis, split);
      continue;
    }
    kept.shape.push_back(full.shape[i]);
    kept.splits.push_back(full.splits[i]);
    local.push_back(size);
  }
  return RankedTensorType::get(local, type.getElementType(), kept.encoding(type.getContext()));
}

tx::ReduceSumOp partita::rowSumsOf(Value matrix, Block *block) {
  auto shape = cast<RankedTensorType>(matrix.getType()).getShape();
  for (Operation *user : usersOf(unshaped(matrix))) {
    auto sums = dyn_cast<tx::ReduceSumOp>(user);
    if (!sums || sums->getBlock() != block || sums.getType().getRank() != 1 ||
        sums.getType().getDimSize(0) != shape.back())
      continue;
    auto summed = cast<RankedTensorType>(sums.getX().getType());
    bool rows = !llvm::is_contained(sums.getDims(), summed.getRank() - 1) &&
                summed.getShape().back() == shape.back();
    if (rows)
      return sums;
  }
  return {};
}

bool partita::isAddedWider(tx::ReduceSumOp sums) {
  return llvm::any_of(sums->getUses(), [&](OpOperand &use) {
    if (auto cast = dyn_cast<tx::CastOp>(use.getOwner()))
      return llvm::any_of(cast->getUsers(), llvm::IsaPred<tx::AddOp>);
    auto yield = dyn_cast<train::YieldOp>(use.getOwner());
    auto loop = yield ? dyn_cast<train::AccumulateOp>(yield->getParentOp()) : nullptr;
    std::optional<unsigned> number = loop ? loop.getSumOf(use) : std::nullopt;
    return number && !sameElements({loop.getSums()[*number], sums.getResult()});
  });
}

bool partita::isBefore(Value value, Operation *op) {
  Operation *definer = value.getDefiningOp();
  return !definer || definer->getBlock() != op->getBlock() || definer->isBeforeInBlock(op);
}

bool partita::isMatmul(Operation *op) {
  return isa_and_nonnull<tx::MatMulOp, tx::MatMulNTOp, tx::ScaledMatMulOp, tx::ScaledMatMulNTOp>(
      op);
}

bool partita::sameElements(Operation *matmul, ArrayRef<Value> values) {
  SmallVector<Value> all(values);
  all.push_back(matmul->getResult(0));
  if (!tx::isScaled(matmul))
    llvm::append_range(all, matmul->getOperands());
  return sameElements(all);
}

BiasedMatmul BiasedMatmul::of(tx::AddOp add) {
  for (auto [matmul, other] :
       {std::pair{add.getA(), add.getB()}, std::pair{add.getB(), add.getA()}})
    if (Value row = repeatedRow(other);
        row && isMatmul(matmul.getDefiningOp()) && matmul.hasOneUse())
      return {matmul.getDefiningOp(), row};
  return {};
}

Value BiasedMatmul::create(OpBuilder &builder, Location loc, Type type) const {
  SmallVector<Value> operands(matmul->getOperands());
  operands.push_back(row);
  SmallVector<NamedAttribute> numbers; // of the scales of operands in 8 bits
  for (StringRef name : {"number_a", "number_b"})
    if (Attribute number = matmul->getAttr(name))
      numbers.push_back(builder.getNamedAttr(name, number));
  auto make = [&](auto kind) -> Value {
    return decltype(kind)::create(builder, loc, TypeRange{type}, operands, numbers)->getResult(0);
  };
  if (isa<tx::ScaledMatMulOp>(matmul))
    return make(tx::ScaledMatMulBiasOp());
  if (isa<tx::ScaledMatMulNTOp>(matmul))
    return make(tx::ScaledMatMulNTBiasOp());
  if (isa<tx::MatMulOp>(matmul))
    return make(tx::MatMulBiasOp());
  return make(tx::MatMulNTBiasOp());
}

template <typename Fused>
static Fused fuseOps(OpBuilder &builder, Location loc, ArrayRef<Operation *> ops,
                     ValueRange results) {
  llvm::SmallDenseSet<Operation *> inside(ops.begin(), ops.end());
  llvm::SetVector<Value> inputs;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp() || !inside.contains(operand.getDefiningOp()))
        inputs.insert(operand);
  SmallVector<Value> values = inputs.takeVector();
  OpBuilder::InsertionGuard guard(builder);
  auto fused = Fused::create(builder, loc, results.getTypes(), values);
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

tx::FusedMatmulOp partita::fuseMatmul(OpBuilder &builder, Location loc, ArrayRef<Operation *> ops,
                                      ValueRange results) {
  return fuseOps<tx::FusedMatmulOp>(builder, loc, ops, results);
}

tx::FusedLookupOp partita::fuseLookup(OpBuilder &builder, Location loc, ArrayRef<Operation *> ops,
                                      ValueRange results) {
  return fuseOps<tx::FusedLookupOp>(builder, loc, ops, results);
}

Unfused partita::unfused(OpBuilder &builder, Operation *op) {
  Unfused parts;
  auto fused = dyn_cast<tx::FusedMatmulOp>(op);
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
