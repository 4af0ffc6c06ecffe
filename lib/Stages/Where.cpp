//===- Where.cpp --------------------------------------------------------------------------------===//

#include "lib/Stages/Where.h"
#include "dialects/Tx/Tx.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita;

Where Where::on(ArrayRef<int64_t> stages, bool partial) {
  Where where{0, partial};
  for (int64_t stage : stages)
    where.stages |= only(stage).stages;
  return where;
}

static std::string text(Where where) {
  if (where.isEverywhere())
    return "everywhere";
  std::string list;
  for (int64_t stage = 0; stage < 64; ++stage)
    if (where.has(stage))
      list += (list.empty() ? "" : ", ") + std::to_string(stage);
  return (where.partial ? "in parts on " : "on ") +
         std::string(where.isOne() ? "stage " : "stages ") + list;
}

Where StageMap::ofSymbol(Operation *symbol) {
  if (auto state = dyn_cast<train::StateOp>(symbol))
    if (FlatSymbolRefAttr of = state.getOfAttr())
      if (Operation *parameter = SymbolTable::lookupNearestSymbolFrom(state, of))
        symbol = parameter;
  auto on = symbol->getAttrOfType<DenseI64ArrayAttr>(pipe::PipeDialect::kOn);
  return on ? Where::on(on.asArrayRef()) : Where();
}

FailureOr<StageMap> StageMap::of(func::FuncOp function) {
  StageMap map;
  for (BlockArgument argument : function.getArguments())
    map.values[argument] = Where();
  if (failed(map.visit(function.getBody().front())))
    return failure();
  return map;
}

LogicalResult StageMap::visit(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult StageMap::visit(Operation *op) {
  if (auto accumulate = dyn_cast<train::AccumulateOp>(op))
    return loop(accumulate);
  if (op->hasTrait<OpTrait::IsTerminator>())
    return success();
  FailureOr<Where> where = isa<pipe::MoveOp, pipe::ShareOp, pipe::SumOp, pipe::PinOp>(op) ? pipeOp(op)
                           : isa<tx::AddOp>(op)            ? sumOfStages(op)
                           : isa<train::SquareSumOp>(op) ? squaresOf(op)
                                                         : anyOp(op);
  if (failed(where))
    return failure();
  ops[op] = *where;
  for (Value result : op->getResults())
    values[result] = *where;
  return success();
}

/// The sums are where they are yielded; the loop runs on every stage.
LogicalResult StageMap::loop(train::AccumulateOp loop) {
  ops[loop] = Where();
  for (BlockArgument argument : loop.getBody().getArguments())
    values[argument] = of(loop.getBatchOf(argument));
  if (failed(visit(loop.getBody().front())))
    return failure();
  if (loop.hasBackward()) {
    for (BlockArgument argument : loop.getBackward().getArguments())
      values[argument] = of(train::forwardOf(argument));
    if (failed(visit(loop.getBackward().front())))
      return failure();
  }
  for (auto [i, sum] : llvm::enumerate(loop.getSums()))
    values[sum] = of(loop.getPart(i).get());
  return success();
}

LogicalResult StageMap::misplaced(Operation *op) const {
  InFlightDiagnostic error = op->emitError() << "'" << op->getName() << "' reads values of different stages";
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (Where where = of(operand); !where.isEverywhere())
      error << (i == 0 ? ": " : ", ") << "operand " << i << " is " << text(where);
  return error;
}

FailureOr<Where> StageMap::pipeOp(Operation *op) {
  Where from = of(op->getOperand(0));
  auto refuse = [&](const Twine &what) -> FailureOr<Where> {
    return op->emitError() << "'" << op->getName() << "' " << what << ", and the value is " << text(from);
  };
  if (auto move = dyn_cast<pipe::MoveOp>(op)) {
    pipe::ChannelAttr channel = move.getChannel();
    if (!from.has(channel.getFrom()) || from.partial)
      return refuse("moves a value of stage " + Twine(channel.getFrom()));
    return Where::only(channel.getTo());
  }
  if (auto pin = dyn_cast<pipe::PinOp>(op))
    return from.has(pin.getStage()) && !from.partial
               ? FailureOr<Where>(Where::only(pin.getStage()))
               : refuse("is to stage " + Twine(pin.getStage()));
  ArrayRef<int64_t> list =
      isa<pipe::SumOp>(op) ? cast<pipe::SumOp>(op).getStages() : cast<pipe::ShareOp>(op).getStages();
  Where own = Where::on(list);
  bool isPart = isa<pipe::SumOp>(op) && (from.partial || from.isOne());
  if (isa<pipe::SumOp>(op) ? !isPart || (from.stages & ~own.stages) != 0
                           : from.partial || from.stages != own.stages)
    return refuse("is of " + text(own).substr(3));
  return own;
}

/// Terms of different stages are parts; one that several stages have would count several times.
FailureOr<Where> StageMap::sumOfStages(Operation *op) {
  Where a = of(op->getOperand(0)), b = of(op->getOperand(1));
  if (!a.partial && !b.partial && (a.stages & b.stages) != 0)
    return Where{a.stages & b.stages, false};
  if ((a.partial || a.isOne()) && (b.partial || b.isOne()))
    return Where{a.stages | b.stages, true};
  return misplaced(op);
}

FailureOr<Where> StageMap::symbolsOf(Operation *op) const {
  Where where;
  for (NamedAttribute attribute : op->getAttrDictionary())
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
      if (Operation *found = SymbolTable::lookupNearestSymbolFrom(op, symbol))
        where.stages &= ofSymbol(found).stages;
  return where;
}

FailureOr<Where> StageMap::anyOp(Operation *op) {
  FailureOr<Where> where = symbolsOf(op);
  Value partial;
  for (Value operand : op->getOperands()) {
    Where from = of(operand);
    if (from.partial && partial)
      return misplaced(op);
    if (from.partial)
      partial = operand;
    else
      where->stages &= from.stages;
  }
  if (!partial && where->stages)
    return where;
  if (!partial || (of(partial).stages & ~where->stages) != 0 || !isMemoryEffectFree(op))
    return FailureOr<Where>(misplaced(op));
  return of(partial);
}

/// A number for each value, of which a stage has those of its own values, and zeros.
FailureOr<Where> StageMap::squaresOf(Operation *op) {
  Where common, all{0, true};
  for (Value operand : op->getOperands()) {
    Where from = of(operand);
    if (from.partial)
      return misplaced(op);
    common.stages &= from.stages;
    all.stages |= from.stages;
  }
  return common.stages ? common : all;
}
