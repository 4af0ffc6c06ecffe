//===- Where.cpp --------------------------------------------------------------------------------===//

#include "lib/Stages/Where.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Par.h"
#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"

using namespace mlir;
using namespace partita;

Where Where::on(ArrayRef<int64_t> positions, bool partial) {
  Where where{{}, partial};
  for (int64_t position : positions)
    where.positions.set(position);
  return where;
}

int64_t Where::first() const {
  int64_t position = 0;
  while (position < pipe::PipeDialect::kMaxPositions && !positions.test(position))
    ++position;
  return position;
}

Where Where::stages(const pipe::Positions &layout) const {
  if (isEverywhere())
    return *this;
  Where where{{}, false};
  for (int64_t position = 0; position < layout.count(); ++position)
    if (has(position))
      where.positions.set(layout.stageOf(position));
  where.partial = partial && !where.isOne();
  return where;
}

/// Describes positions. With one chunk per stage they are called stages.
std::string StageMap::text(Where where) const {
  if (where.isEverywhere())
    return "everywhere";
  std::string list, noun = positions.chunks > 1 ? "position" : "stage";
  for (int64_t position = 0; position < pipe::PipeDialect::kMaxPositions; ++position)
    if (where.has(position))
      list += (list.empty() ? "" : ", ") + std::to_string(position);
  return (where.partial ? "in parts on " : "on ") + noun + (where.isOne() ? " " : "s ") + list;
}

/// Visits the symbols that an op names.
static void forSymbols(Operation *op,
                       llvm::function_ref<void(FlatSymbolRefAttr, Operation *)> visit) {
  for (NamedAttribute attribute : op->getAttrDictionary())
    if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
      if (Operation *symbol = SymbolTable::lookupNearestSymbolFrom(op, name))
        visit(name, symbol);
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
  map.positions = pipe::positionsOf(function).value_or(pipe::Positions());
  for (BlockArgument argument : function.getArguments())
    map.values[argument] = Where();
  if (failed(map.visit(function.getBody().front())))
    return failure();
  Operation *end = function.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(end->getOperands()))
    if (map.of(value).partial)
      return end->emitError() << "result " << i << " is " << map.text(map.of(value))
                              << ", and nothing completes the sum";
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
  FailureOr<Where> where = isa<pipe::MoveOp, pipe::ShareOp, pipe::SumOp, pipe::PinOp>(op)
                               ? pipeOp(op)
                           : isa<tx::AddOp>(op)          ? sumOfStages(op)
                           : isa<train::SquareSumOp>(op) ? squaresOf(op)
                                                         : anyOp(op);
  if (failed(where))
    return failure();
  ops[op] = *where;
  for (Value result : op->getResults())
    values[result] = *where;
  return success();
}

/// Places the loop on every stage, and its sums where they are yielded.
LogicalResult StageMap::loop(train::AccumulateOp loop) {
  ops[loop] = Where();
  if (loop.getGrown())
    return loop.emitError()
           << "adds to running sums, which is decided for each stage, after the cut";
  for (BlockArgument argument : loop.getBody().getArguments())
    values[argument] = of(loop.getBatchOf(argument));
  if (failed(visit(loop.getBody().front())))
    return failure();
  for (Region &region : loop.getLater()) {
    for (BlockArgument argument : region.getArguments())
      values[argument] = of(train::forwardOf(argument));
    if (failed(visit(region.front())))
      return failure();
  }
  for (auto [i, sum] : llvm::enumerate(loop.getSums()))
    values[sum] = of(loop.getPart(i).get());
  return success();
}

LogicalResult StageMap::misplaced(Operation *op) const {
  InFlightDiagnostic error = op->emitError()
                             << "'" << op->getName() << "' has no "
                             << (positions.chunks > 1 ? "position" : "stage") << " in common";
  StringRef separator = ": ";
  auto add = [&](const Twine &what, Where where) {
    if (where.isEverywhere())
      return;
    error << separator << what << " is " << text(where);
    separator = ", ";
  };
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    add("operand " + Twine(i), of(operand));
  forSymbols(op, [&](FlatSymbolRefAttr name, Operation *symbol) {
    add("@" + name.getValue(), ofSymbol(symbol));
  });
  return error;
}

FailureOr<Where> StageMap::pipeOp(Operation *op) {
  Where from = of(op->getOperand(0));
  auto refuse = [&](const Twine &what) -> FailureOr<Where> {
    return op->emitError() << "'" << op->getName() << "' expects " << what << ", but it is "
                           << (from.partial || from.isEverywhere() ? "" : "complete ")
                           << text(from);
  };
  auto at = [&](int64_t position) {
    return (positions.chunks > 1 ? "position " : "stage ") + std::to_string(position);
  };
  if (auto move = dyn_cast<pipe::MoveOp>(op)) {
    pipe::ChannelAttr channel = move.getChannel();
    if (!from.has(channel.getFrom()) || from.partial)
      return refuse("a value on " + at(channel.getFrom()));
    return Where::only(channel.getTo());
  }
  if (auto pin = dyn_cast<pipe::PinOp>(op))
    return from.has(pin.getPosition()) && !from.partial
               ? FailureOr<Where>(Where::only(pin.getPosition()))
               : refuse("a value on " + at(pin.getPosition()));
  ArrayRef<int64_t> list = isa<pipe::SumOp>(op) ? cast<pipe::SumOp>(op).getStages()
                                                : cast<pipe::ShareOp>(op).getStages();
  Where own = Where::on(list);
  bool isPart = isa<pipe::SumOp>(op) && (from.partial || from.isOne());
  if (isa<pipe::SumOp>(op) ? !isPart || !from.isWithin(own)
                           : from.partial || from.positions != own.positions)
    return refuse((isa<pipe::SumOp>(op) ? "a partial sum " : "a value ") + text(own));
  bool isAll = static_cast<int64_t>(list.size()) == positions.count();
  return isa<pipe::SumOp>(op) && isAll ? Where() : own; // a state without a parameter may take it
}

/// Terms at different positions are parts of a sum. A term that several positions have would count
/// several times.
FailureOr<Where> StageMap::sumOfStages(Operation *op) {
  Where a = of(op->getOperand(0)), b = of(op->getOperand(1));
  if (!a.partial && !b.partial && (a.positions & b.positions).any())
    return Where{a.positions & b.positions, false};
  if ((a.partial || a.isOne()) && (b.partial || b.isOne()))
    return Where{a.positions | b.positions, true};
  return misplaced(op);
}

/// Returns true if the op maps a part of this operand to a part of its result.
static bool isLinearIn(Operation *op, unsigned operand) {
  if (provenance::isBackward(op) ||
      isa_and_nonnull<par::ParDialect, zero::ZeroDialect>(op->getDialect()))
    return true; // a vector-Jacobian product, or an op that moves or adds up shards
  std::string ignored;
  const ShardRule *rule = par::ruleOf(op, ignored);
  return rule && operand < rule->operands.size() &&
         rule->operands[operand].linearity != Linearity::None;
}

FailureOr<Where> StageMap::anyOp(Operation *op) {
  Where common, memory;
  bool isPlaced = true;
  forSymbols(op, [&](FlatSymbolRefAttr, Operation *symbol) {
    isPlaced &= !isa<train::ParameterOp>(symbol) || symbol->hasAttr(pipe::PipeDialect::kOn);
    memory.positions &= ofSymbol(symbol).positions;
  });
  if (!isPlaced)
    return op->emitError() << "'" << op->getName() << "' is of a parameter without "
                           << pipe::PipeDialect::kOn;
  std::optional<unsigned> partial;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Where from = of(operand);
    if (from.partial && (partial || !isLinearIn(op, i)))
      return misplaced(op);
    if (from.partial)
      partial = i;
    else
      common.positions &= from.positions;
  }
  // A written value must be at every position that has the memory.
  if (isa<train::WriteOp>(op) && !memory.isWithin(common))
    return misplaced(op);
  common.positions &= memory.positions;
  if (!partial && common.positions.any())
    return common;
  if (!partial || !of(op->getOperand(*partial)).isWithin(common) || !isMemoryEffectFree(op))
    return misplaced(op);
  return of(op->getOperand(*partial));
}

/// Places the vector of one number per value: each position has the numbers of its own values, and
/// zeros for the others.
FailureOr<Where> StageMap::squaresOf(Operation *op) {
  Where common, all{{}, true};
  for (Value operand : op->getOperands()) {
    Where from = of(operand);
    if (from.partial)
      return misplaced(op);
    common.positions &= from.positions;
    all.positions |= from.isEverywhere() ? Where::only(0).positions : from.positions; // counts once
  }
  return common.isOne() || common.isEverywhere() ? common : all;
}
