//===- ResidualMatmuls.cpp - matmuls that add to a residual stream ----------------------------===//
//
// A residual addition is x + f(x) where f ends in matmuls with parameters: the other operand
// depends on the stream, and is such a matmul except for biases, constant factors, dropout and its
// shape, or a sum of some (parallel attention and MLP). Additions whose streams depend on each
// other, perhaps through a normalization, form one stream.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Init/ResidualMatmuls.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace partita;

namespace {

/// Returns true if the result has the same numbers in another shape, type or order.
bool isView(Operation *op) {
  return isa_and_nonnull<tx::ReshapeOp, tx::TransposeOp, tx::CastOp, tx::BroadcastOp>(op);
}

Value withoutViews(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Returns true for a parameter or a constant.
bool isFixed(Value value) {
  return isa_and_nonnull<train::ReadOp, tx::ConstantOp>(withoutViews(value).getDefiningOp());
}

/// Returns the only operand of a binary elementwise op that is not fixed; null if none or both are.
Value onlyMoving(Operation *op) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  if (isFixed(a) == isFixed(b))
    return {};
  return isFixed(a) ? b : a;
}

/// Returns the parameter that `op` multiplies with, or null.
StringAttr factorOf(Operation *op) {
  if (!isa<tx::MatMulOp, tx::MatMulNTOp>(op))
    return {};
  auto read = withoutViews(op->getOperand(1)).getDefiningOp<train::ReadOp>();
  return read ? read.getSymbolAttr().getAttr() : StringAttr();
}

using Matmuls = llvm::SmallSetVector<Operation *, 4>;

/// The limit of ops between a matmul and its addition: a bias, views, a sum of a few.
constexpr unsigned maxSteps = 64;

/// Adds the matmuls with parameters that `value` is a sum of.
void addMatmuls(Value value, Matmuls &matmuls, unsigned steps = maxSteps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0)
    return;
  if (factorOf(op))
    matmuls.insert(op);
  else if (isView(op) || isa<tx::DropoutOp>(op))
    addMatmuls(op->getOperand(0), matmuls, steps - 1);
  else if (isa<tx::MulOp>(op) && onlyMoving(op))
    addMatmuls(onlyMoving(op), matmuls, steps - 1);
  else if (isa<tx::AddOp>(op))
    for (Value part : op->getOperands())
      if (!isFixed(part))
        addMatmuls(part, matmuls, steps / 2);
}

/// Returns true if `value` depends on `origin`. Ops before `origin` are not visited.
bool dependsOn(Value value, Value origin) {
  Operation *first = origin.getDefiningOp();
  llvm::SmallVector<Value> open{value};
  llvm::DenseSet<Operation *> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (next == origin)
      return true;
    Operation *op = next.getDefiningOp();
    if (op && !(first && op->isBeforeInBlock(first)) && seen.insert(op).second)
      open.append(op->operand_begin(), op->operand_end());
  }
  return false;
}

class Streams {
public:
  /// If the addition is a residual one, joins it to the stream that it continues.
  void follow(tx::AddOp add) {
    for (auto [stream, branch] : {std::pair(add->getOperand(0), add->getOperand(1)),
                                  std::pair(add->getOperand(1), add->getOperand(0))}) {
      if (isFixed(stream) || isFixed(branch))
        continue;
      Matmuls matmuls;
      addMatmuls(branch, matmuls);
      matmuls.remove_if([&](Operation *matmul) { return known.contains(matmul); });
      if (matmuls.empty() || !dependsOn(branch, stream))
        continue;
      unsigned number = numberOf(stream);
      streams[add->getResult(0)] = number;
      sizes[number] += matmuls.size();
      for (Operation *matmul : matmuls)
        known[matmul] = number;
      return;
    }
  }

  llvm::DenseMap<StringAttr, unsigned> count() const {
    llvm::DenseMap<StringAttr, unsigned> result;
    for (auto [matmul, number] : known) {
      unsigned &most = result[factorOf(matmul)];
      most = std::max(most, sizes[number]);
    }
    return result;
  }

private:
  /// Returns the number of the value's stream, or of a new one.
  unsigned numberOf(Value value) {
    while (true) {
      if (auto found = streams.find(value); found != streams.end())
        return found->second;
      Operation *op = value.getDefiningOp();
      if (isView(op) || isa_and_nonnull<tx::DropoutOp, tx::LayerNormOp, tx::RmsNormOp>(op))
        value = op->getOperand(0);
      else if (isa_and_nonnull<tx::AddOp, tx::MulOp>(op) && onlyMoving(op))
        value = onlyMoving(op);
      else
        break;
    }
    sizes.push_back(0);
    return sizes.size() - 1;
  }

  llvm::DenseMap<Value, unsigned> streams;
  llvm::DenseMap<Operation *, unsigned> known;
  llvm::SmallVector<unsigned> sizes; ///< matmuls of each stream
};

} // namespace

llvm::DenseMap<StringAttr, unsigned> init::countResidualMatmuls(func::FuncOp forward) {
  Streams streams;
  for (auto add : forward.getOps<tx::AddOp>())
    streams.follow(add);
  return streams.count();
}
