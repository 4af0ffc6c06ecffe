//===- Subgraph.cpp - see Subgraph.h ----------------------------------------------------------===//

#include "partita/Raise/Subgraph.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Tx/Rounding.h"

using namespace mlir;
using namespace partita;
using namespace partita::raise;

std::optional<double> raise::splatOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto constant = dyn_cast<tx::ConstantOp>(op)) {
      auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!dense || !dense.isSplat())
        return std::nullopt;
      if (isa<FloatType>(dense.getElementType()))
        return dense.getSplatValue<APFloat>().convertToDouble();
      auto integer = dense.getSplatValue<APInt>();
      return integer.getBitWidth() == 1 ? integer.getZExtValue() : integer.getSExtValue();
    }
    // A cast to an integer or boolean would change the value.
    auto cast = dyn_cast<tx::CastOp>(op);
    if (!isa<tx::BroadcastOp, tx::ReshapeOp, tx::TransposeOp, tx::SliceOp>(op) &&
        !(cast && isa<FloatType>(cast.getType().getElementType())))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

Independent::Independent(Operation *function) {
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<tx::TxDialect>(op->getDialect()) &&
        llvm::all_of(op->getOperands(), [&](Value v) { return contains(v); }))
      values.insert(op->result_begin(), op->result_end());
  });
}

static Operation *takeExtreme(SmallVectorImpl<Operation *> &pending, bool latest) {
  auto *found = llvm::min_element(pending, [&](Operation *a, Operation *b) {
    return latest ? b->isBeforeInBlock(a) : a->isBeforeInBlock(b);
  });
  Operation *op = *found;
  pending.erase(found);
  return op;
}

SmallVector<Value> raise::findExits(Operation *anchor, IsInterior isInterior, unsigned limit) {
  SmallVector<Value> exits;
  SmallVector<Operation *> pending{anchor};
  for (unsigned count = 0; !pending.empty() && count < limit; ++count) {
    Operation *op = takeExtreme(pending, /*latest=*/false);
    if (pending.empty())
      exits.push_back(op->getResult(0));
    for (Operation *user : op->getResult(0).getUsers()) {
      if (user->getBlock() != anchor->getBlock() || !isInterior(user) || tx::isOwnRounding(user))
        return exits;
      if (!llvm::is_contained(pending, user))
        pending.push_back(user);
    }
  }
  return exits;
}

void raise::growBackward(Value root, IsInterior isInterior, function_ref<bool(Value)> isLeaf,
                         const Independent &independent, function_ref<bool(const Subgraph &)> visit,
                         unsigned limit) {
  SmallVector<Operation *> pending, taken;
  SmallVector<Value> fixed;
  Block *block = root.getParentBlock();
  auto add = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (independent.contains(value) && !isLeaf(value))
      return;
    if (!op || op->getBlock() != block || isLeaf(value) || !isInterior(op) ||
        tx::isOwnRounding(op)) {
      if (!llvm::is_contained(fixed, value))
        fixed.push_back(value);
    } else if (!llvm::is_contained(pending, op)) {
      pending.push_back(op);
    }
  };
  add(root);
  while (!pending.empty() && taken.size() < limit) {
    Operation *op = takeExtreme(pending, /*latest=*/true);
    taken.push_back(op);
    for (Value operand : op->getOperands())
      add(operand);
    Subgraph subgraph{root, SmallVector<Operation *>(llvm::reverse(taken)), fixed};
    for (Operation *next : pending)
      subgraph.leaves.push_back(next->getResult(0));
    if (!visit(subgraph))
      return;
  }
}

namespace {
/// Numbers values in the order in which they are met; what depends on nothing is walked into.
class KeyBuilder {
public:
  void number(Value value) { numbers.try_emplace(value, numbers.size()); }
  void leaf(Value value) {
    number(value);
    key.push_back(reinterpret_cast<uintptr_t>(value.getType().getAsOpaquePointer()));
  }
  void op(Operation *op) {
    for (Value operand : op->getOperands())
      if (!numbers.count(operand))
        bring(operand);
    key.push_back(reinterpret_cast<uintptr_t>(op->getName().getAsOpaquePointer()));
    NamedAttrList attributes(provenance::attributesWithout(op));
    if (auto dropout = dyn_cast<DropoutInterface>(op))
      attributes.erase(dropout.getDropoutIdName());
    key.push_back(reinterpret_cast<uintptr_t>(
        attributes.getDictionary(op->getContext()).getAsOpaquePointer()));
    for (Type type : op->getResultTypes())
      key.push_back(reinterpret_cast<uintptr_t>(type.getAsOpaquePointer()));
    for (Value operand : op->getOperands())
      key.push_back(numbers.lookup(operand));
    for (Value result : op->getResults())
      number(result);
  }
  StructuralKey key;

private:
  /// Post-order over the ops that compute an operand, without recursion.
  void bring(Value value) {
    SmallVector<Value> stack{value};
    while (!stack.empty()) {
      Value top = stack.back();
      Operation *defining = top.getDefiningOp();
      if (numbers.count(top) || !defining) {
        stack.pop_back();
        if (!defining)
          leaf(top);
        continue;
      }
      bool ready = true;
      for (Value operand : defining->getOperands())
        if (!numbers.count(operand)) {
          stack.push_back(operand);
          ready = false;
        }
      if (ready) {
        stack.pop_back();
        op(defining);
      }
    }
  }
  DenseMap<Value, unsigned> numbers;
};
} // namespace

StructuralKey raise::structuralKey(const Subgraph &subgraph) {
  KeyBuilder builder;
  for (Value leaf : subgraph.leaves)
    builder.leaf(leaf);
  builder.key.push_back(subgraph.leaves.size());
  for (Operation *op : subgraph.ops)
    builder.op(op);
  return builder.key;
}

void raise::eraseDead(Operation *function) {
  SmallVector<Operation *> ops;
  function->walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops))
    if (op != function && isOpTriviallyDead(op))
      op->erase();
}
