//===- Kinds.cpp ----------------------------------------------------------------------------------===//

#include "lib/Stages/Kinds.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace partita;

/// Returns true if each element of the op's results depends on at most one of each operand (it may
/// also move or repeat elements): then computing it again costs little.
static bool reducesNothing(Operation *op) {
  std::string ignored;
  const ShardRule *rule = par::ruleOf(op, ignored);
  return rule && isMemoryEffectFree(op) &&
         llvm::none_of(rule->letters, [](const RuleLetter &letter) {
           return letter.summed || letter.max || letter.never;
         });
}

Kinds::Kinds(func::FuncOp function, Block *block) {
  for (BlockArgument argument : function.getArguments())
    kinds[argument].input = true;
  for (BlockArgument argument : block->getArguments())
    kinds[argument].input = true;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function || isa<train::AccumulateOp>(op))
      return;
    Kind kind;
    if (auto read = dyn_cast<train::ReadOp>(op))
      kind.parameter = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(
                           read, read.getSymbolAttr()) != nullptr;
    bool readsActivation = false;
    for (Value operand : op->getOperands()) {
      Kind from = kinds.lookup(operand);
      kind.parameter |= from.parameter;
      kind.input |= from.input;
      readsActivation |= from.isActivation();
    }
    kind.repeated = kind.parameter && kind.input && !readsActivation && reducesNothing(op);
    for (Value result : op->getResults())
      kinds[result] = kind;
  });
}

bool Kinds::isActivation(Operation *op) const {
  return !op->hasTrait<OpTrait::IsTerminator>() &&
         llvm::any_of(op->getResults(), [&](Value result) { return isActivation(result); });
}

Block *partita::forwardBlock(func::FuncOp function) {
  for (auto loop : function.getOps<train::AccumulateOp>())
    return &loop.getBody().front();
  return &function.getBody().front();
}
