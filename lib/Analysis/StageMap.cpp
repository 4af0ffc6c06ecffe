//===- StageMap.cpp -----------------------------------------------------------------------------===//

#include "partita/Analysis/StageMap.h"
#include "dialects/Par/Placement.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;
using namespace partita;

/// Visits the symbols that an op names.
static void forSymbols(Operation *op, SymbolTableCollection &tables,
                       llvm::function_ref<void(FlatSymbolRefAttr, Operation *)> visit) {
  for (NamedAttribute attribute : op->getAttrDictionary())
    if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
      if (Operation *symbol = tables.lookupNearestSymbolFrom(op, name))
        visit(name, symbol);
}

Holders StageMap::ofSymbol(Operation *symbol, SymbolTableCollection &tables) {
  if (auto state = dyn_cast<train::StateOp>(symbol))
    if (FlatSymbolRefAttr of = state.getOfAttr())
      if (Operation *parameter = tables.lookupNearestSymbolFrom(state, of))
        symbol = parameter;
  auto on = symbol->getAttrOfType<DenseI64ArrayAttr>(pipe::PipeDialect::kHolders);
  return on ? Holders::on(on.asArrayRef()) : Holders();
}

FailureOr<StageMap> StageMap::of(func::FuncOp function) {
  StageMap map;
  map.positions = pipe::positionsOf(function).value_or(pipe::Positions());
  for (BlockArgument argument : function.getArguments())
    map.values[argument] = Holders();
  if (failed(map.visit(function.getBody().front())))
    return failure();
  Operation *end = function.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(end->getOperands()))
    if (map.of(value).partial)
      return end->emitError() << "result " << i << " is " << map.of(value).text(map.noun())
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
  auto placed = dyn_cast<PlacedInterface>(op);
  FailureOr<Holders> holders = placed ? placedOp(placed) : anyOp(op);
  if (failed(holders))
    return failure();
  ops[op] = *holders;
  for (Value result : op->getResults())
    values[result] = *holders;
  return success();
}

/// Places the loop on every stage, and its sums where they are yielded.
LogicalResult StageMap::loop(train::AccumulateOp loop) {
  ops[loop] = Holders();
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
                             << "'" << op->getName() << "' has no " << noun() << " in common";
  StringRef separator = ": ";
  auto add = [&](const Twine &what, const Holders &holders) {
    if (holders.isEverywhere())
      return;
    error << separator << what << " is " << holders.text(noun());
    separator = ", ";
  };
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    add("operand " + Twine(i), of(operand));
  forSymbols(op, *tables, [&](FlatSymbolRefAttr name, Operation *symbol) {
    add("@" + name.getValue(), ofSymbol(symbol, *tables));
  });
  return error;
}

FailureOr<Holders> StageMap::placedOp(PlacedInterface op) {
  auto operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return of(operand); });
  std::string problem;
  if (std::optional<Holders> holders = op.placeResults(operands, problem))
    return *holders;
  if (problem.empty())
    return misplaced(op);
  return op->emitError() << "'" << op->getName() << "' " << problem;
}

static Linearity linearityIn(Operation *op, unsigned operand) {
  if (op->hasTrait<Linear>())
    return Linearity::Separately;
  std::string ignored;
  const ShardRule *rule = par::ruleOf(op, ignored);
  return rule && operand < rule->operands.size() ? rule->operands[operand].linearity
                                                 : Linearity::None;
}

/// Returns true for a constant zero, perhaps behind ops that map zero to zero.
static bool isZero(Value value) {
  while (true) {
    value = train::forwardOf(value);
    if (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()))
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumOperands() != 1 || linearityIn(op, 0) == Linearity::None)
      return false;
    value = op->getOperand(0);
  }
}

/// Returns true if the op maps a part of this operand to a part of its result. If it is linear in
/// several operands together, a full one counts once per part, unless it is zero.
static bool isLinearIn(Operation *op, unsigned operand) {
  Linearity linearity = linearityIn(op, operand);
  if (linearity != Linearity::Together)
    return linearity != Linearity::None;
  for (unsigned other = 0; other < op->getNumOperands(); ++other)
    if (other != operand && linearityIn(op, other) == Linearity::Together &&
        !isZero(op->getOperand(other)))
      return false;
  return true;
}

FailureOr<Holders> StageMap::anyOp(Operation *op) {
  Holders common, memory;
  bool isPlaced = true;
  forSymbols(op, *tables, [&](FlatSymbolRefAttr, Operation *symbol) {
    isPlaced &= !isa<train::ParameterOp>(symbol) || symbol->hasAttr(pipe::PipeDialect::kHolders);
    memory.positions &= ofSymbol(symbol, *tables).positions;
  });
  if (!isPlaced)
    return op->emitError() << "'" << op->getName() << "' is of a parameter without "
                           << pipe::PipeDialect::kHolders;
  std::optional<unsigned> partial;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Holders from = of(operand);
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
