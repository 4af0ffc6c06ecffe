//===- HeadExchange.cpp - heads dealt out to the ranks that share a sequence ------------------------===//

#include "lib/Partition/ContextParallel.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace partita;

bool partita::hasOneKeyHead(tx::AttentionOp op) { return op.getK().getType().getDimSize(2) == 1; }

std::string HeadExchange::problem(tx::AttentionOp op, int64_t others) const {
  int64_t heads = op.getQ().getType().getDimSize(2), keys = op.getK().getType().getDimSize(2);
  if (heads == 1)
    return "deals out heads, of which there is one";
  if (heads % (axes.dealingRanks() * others) != 0)
    return llvm::formatv("deals out {0} heads to {1} ranks{2}, which do not divide them", heads,
                         axes.dealingRanks(),
                         others > 1 ? " times the " + std::to_string(others) + " of tp" : "")
        .str();
  auto together = [&](const char *what) {
    return llvm::formatv("{0}, which tp and {1} split together", what,
                         axes.dealingAxis().getValue())
        .str();
  };
  if (others > 1 && keys > 1 && keys % others != 0)
    return together("deals out key heads that tp does not divide");
  if (others > 1 && op.getRatio())
    return together("numbers the elements that dropout drops by the heads of one rank");
  if (others > 1 && op.getBlocksAttr() && op.getBlocksAttr().isPerHead())
    return together("deals out heads, each with blocks of its own");
  return {};
}

std::string HeadExchange::advice(tx::AttentionOp op, int64_t others) const {
  int64_t heads = op.getQ().getType().getDimSize(2);
  std::string name = axes.dealingAxis().str(), sizes;
  if (heads % (axes.dealingRanks() * others) != 0)
    for (int64_t size = 2; size * others <= heads; ++size)
      if (heads % (size * others) == 0)
        sizes += (sizes.empty() ? " = " : " or ") + std::to_string(size);
  if (name == par::kContextAxis)
    return "; take ring" + (sizes.empty() ? "" : ", or " + name + sizes);
  std::string ring = "the ring of " + par::kContextAxis.str() + " in its place";
  return "; take " + (sizes.empty() ? ring : name + sizes + ", or " + ring);
}

/// Repeats key heads that this many ranks do not divide, as often as needed; a single one remains. Each is repeated where
/// it is, so that tp may split them, unlike a tx.repeat's.
static void repeatKeys(tx::AttentionOp op, int64_t parts) {
  int64_t keys = op.getK().getType().getDimSize(2), times = std::lcm(keys, parts) / keys;
  if (keys == 1 || times == 1)
    return;
  OpBuilder builder(op);
  for (OpOperand *operand : {&op.getKMutable(), &op.getVMutable()}) {
    auto type = cast<RankedTensorType>(operand->get().getType());
    SmallVector<int64_t> shape(type.getShape());
    auto reshaped = [&](Value value) -> Value {
      return tx::ReshapeOp::create(builder, op.getLoc(), type.clone(shape), value);
    };
    shape.insert(shape.begin() + 3, 1);
    Value apart = reshaped(operand->get());
    shape[3] = times;
    Value repeated = tx::BroadcastOp::create(builder, op.getLoc(), type.clone(shape), apart);
    shape.erase(shape.begin() + 3);
    shape[2] *= times;
    operand->set(reshaped(repeated));
  }
}

int64_t HeadExchange::insert(tx::AttentionOp op, int64_t others, int64_t runs) const {
  repeatKeys(op, axes.dealingRanks() * others);
  OpBuilder builder(op);
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  auto exchange = [&](Value value, int64_t from, int64_t to) {
    return par::AllToAllOp::create(builder, op.getLoc(), value.getType(), value, axes.dealingAxis(),
                                   number(from), number(to), number(others), StringAttr(),
                                   number(runs));
  };
  unsigned operands = hasOneKeyHead(op) ? 1 : 3;
  for (unsigned operand = 0; operand < operands; ++operand)
    op->setOperand(operand, exchange(op->getOperand(operand), 1, 2));
  if (Value bias = op.getBias(); bias && op.getBias().getType().getDimSize(1) != 1)
    op.getBiasMutable().assign(par::NarrowOp::create(builder, op.getLoc(), bias.getType(), bias,
                                                     axes.dealingAxis(), number(1), number(others),
                                                     StringAttr(), UnitAttr()));
  builder.setInsertionPointAfter(op);
  par::AllToAllOp back = exchange(op.getOut(), 2, 1);
  op.getOut().replaceAllUsesExcept(back.getResult(), back);
  return operands + 1;
}

void HeadExchange::addCoarse(tx::AttentionOp op, llvm::DenseSet<OpOperand *> &coarse) {
  for (OpOperand &operand : op->getOpOperands().drop_front(hasOneKeyHead(op) ? 1 : 3))
    coarse.insert(&operand);
}
