//===- ResidualProducts.cpp - matrices whose products are added to a residual stream ----------===//
//
// A residual addition is x + f(x) where f ends in products with parameters: one operand, the
// stream, is among what the other is computed from, and the other is such a product but for biases,
// constant factors, dropout and its shape, or a sum of some (attention and MLP side by side).
// Additions whose streams come from one another, perhaps through a normalization, are one stream.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Init/ResidualProducts.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace partita;

namespace {

/// The same numbers in another shape, type or order.
bool isView(Operation *op) {
  return isa_and_nonnull<tx::ReshapeOp, tx::TransposeOp, tx::CastOp, tx::BroadcastOp>(op);
}

Value withoutViews(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// A parameter or a constant.
bool isFixed(Value value) {
  return isa_and_nonnull<train::ReadOp, tx::ConstantOp>(withoutViews(value).getDefiningOp());
}

/// The one operand that is not fixed of an elementwise op of two; null when none or both are.
Value onlyMoving(Operation *op) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  if (isFixed(a) == isFixed(b))
    return {};
  return isFixed(a) ? b : a;
}

/// The parameter that `op` is a product with.
StringAttr factorOf(Operation *op) {
  if (!isa<tx::MatMulOp, tx::MatMulNTOp>(op))
    return {};
  auto read = withoutViews(op->getOperand(1)).getDefiningOp<train::ReadOp>();
  return read ? read.getSymbolAttr().getAttr() : StringAttr();
}

using Products = llvm::SmallSetVector<Operation *, 4>;

/// Ops between a product and where it is added: a bias, views, a sum of a few.
constexpr unsigned maxSteps = 64;

/// The products with parameters that `value` is a sum of.
void addProducts(Value value, Products &products, unsigned steps = maxSteps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0)
    return;
  if (factorOf(op))
    products.insert(op);
  else if (isView(op) || isa<tx::DropoutOp>(op))
    addProducts(op->getOperand(0), products, steps - 1);
  else if (isa<tx::MulOp>(op) && onlyMoving(op))
    addProducts(onlyMoving(op), products, steps - 1);
  else if (isa<tx::AddOp>(op))
    for (Value part : op->getOperands())
      if (!isFixed(part))
        addProducts(part, products, steps / 2);
}

/// Is `origin` among what `value` is computed from? Nothing before it is looked at.
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
  /// Joins the addition to the stream that it goes on with, where it is a residual one.
  void follow(tx::AddOp add) {
    for (auto [stream, branch] : {std::pair(add->getOperand(0), add->getOperand(1)),
                                  std::pair(add->getOperand(1), add->getOperand(0))}) {
      if (isFixed(stream) || isFixed(branch))
        continue;
      Products products;
      addProducts(branch, products);
      products.remove_if([&](Operation *product) { return known.contains(product); });
      if (products.empty() || !dependsOn(branch, stream))
        continue;
      unsigned number = numberOf(stream);
      streams[add->getResult(0)] = number;
      sizes[number] += products.size();
      for (Operation *product : products)
        known[product] = number;
      return;
    }
  }

  llvm::DenseMap<StringAttr, unsigned> count() const {
    llvm::DenseMap<StringAttr, unsigned> result;
    for (auto [product, number] : known) {
      unsigned &most = result[factorOf(product)];
      most = std::max(most, sizes[number]);
    }
    return result;
  }

private:
  /// Of the stream that the value is of, or a new one.
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
  llvm::SmallVector<unsigned> sizes; ///< products of each stream
};

} // namespace

llvm::DenseMap<StringAttr, unsigned> objective::countResidualProducts(func::FuncOp forward) {
  Streams streams;
  for (auto add : forward.getOps<tx::AddOp>())
    streams.follow(add);
  return streams.count();
}
