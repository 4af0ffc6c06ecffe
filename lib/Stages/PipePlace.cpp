//===- PipePlace.cpp - pipe-place ---------------------------------------------------------------===//
//
// Works on the forward program, before it is split or differentiated: the gradients of moves,
// shares and pins are what crosses stages in the backward pass. Ops are placed at positions
// (dialects/Pipe/Positions.h), which are the stages if each has one chunk.
//
// An activation depends on parameters and on inputs; it is placed with its layer. Values that
// depend on parameters alone (a transposed table, a position bias) are computed where they are
// needed, from the parameter, which is then at several positions: moving the value would cost its
// bytes per micro-batch, sharing the parameter costs one sum of its gradient per step. The same
// holds for values that ops without reductions compute from these and from inputs (a position bias
// plus a mask).
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "lib/Stages/Cuts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Layers.h"
#include "partita/Stages/Passes.h"
#include "partita/Stages/Schedule.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <map>

namespace partita {
#define GEN_PASS_DEF_PIPEPLACEPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::LayerAttr;

namespace {

/// The positions of one function's ops.
class FunctionPlacer {
public:
  FunctionPlacer(func::FuncOp function, const pipe::Positions &layout, const Cuts &cuts)
      : function(function), layout(layout), cuts(cuts), block(&function.getBody().front()) {
    for (auto loop : function.getOps<train::AccumulateOp>())
      block = &loop.getBody().front();
  }

  void findPositions() {
    classify();
    for (Operation &op : *block)
      if (isActivation(&op))
        placeActivation(&op);
    for (Operation &op : llvm::reverse(*block))
      needOperands(&op);
    for (Operation &op : llvm::reverse(function.getBody().front()))
      if (op.getBlock() != block)
        needOperands(&op);
  }

  /// Collects where each of the function's parameters is needed.
  void collect(DenseMap<StringAttr, PositionSet> &parameters) const {
    function->walk([&](train::ReadOp read) {
      auto found = needed.find(read.getResult());
      if (found != needed.end())
        parameters[read.getSymbolAttr().getAttr()] |= found->second;
    });
  }

  /// Inserts moves, and the ops through which shared parameters are read. Returns the number of
  /// moves.
  unsigned insert(const DenseMap<StringAttr, PositionSet> &parameters) {
    share(parameters);
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (isActivation(&op))
        for (OpOperand &operand : op.getOpOperands())
          place(operand, positions.lookup(&op));
    return moves;
  }

private:
  /// Whether a value is computed from a parameter, from an input, and from both by ops that every
  /// position repeats.
  struct Kind {
    bool parameter = false, input = false, repeated = false;
    bool isActivation() const { return parameter && input && !repeated; }
  };

  bool isActivation(Operation *op) const {
    return !op->hasTrait<OpTrait::IsTerminator>() &&
           llvm::any_of(op->getResults(), [&](Value result) { return isActivation(result); });
  }
  bool isActivation(Value value) const { return kinds.lookup(value).isActivation(); }
  bool isOfParameters(Value value) const {
    Kind kind = kinds.lookup(value);
    return kind.parameter && !kind.isActivation();
  }

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

  void classify() {
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

  /// Places an activation with its layer, or later: never before an operand.
  void placeActivation(Operation *op) {
    LayerAttr layer = LayerAttr::of(op);
    int64_t position = cuts.positionOf(layer ? layer.getNumber() : LayerAttr::kBefore);
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && isActivation(operand))
        position = std::max(position, positions.lookup(maker));
    positions[op] = position;
  }

  /// Notes that values computed from parameters, and not as activations, are needed where their
  /// users are.
  void needOperands(Operation *op) {
    PositionSet own;
    if (isActivation(op))
      own.set(positions.lookup(op));
    else
      for (Value result : op->getResults())
        if (auto found = needed.find(result); found != needed.end())
          own |= found->second;
    for (Value operand : op->getOperands())
      if (isOfParameters(operand))
        needed[operand] |= own;
  }

  void share(const DenseMap<StringAttr, PositionSet> &parameters) {
    SmallVector<train::ReadOp> reads;
    function->walk([&](train::ReadOp read) { reads.push_back(read); });
    for (train::ReadOp read : reads) {
      auto found = parameters.find(read.getSymbolAttr().getAttr());
      if (found == parameters.end() || found->second.count() < 2)
        continue;
      OpBuilder builder(read->getContext());
      builder.setInsertionPointAfter(read);
      auto shared = pipe::ShareOp::create(builder, read.getLoc(), read.getType(), read.getResult(),
                                          listPositions(found->second));
      read.getResult().replaceAllUsesExcept(shared.getResult(), shared);
      kinds[shared.getResult()] = kinds.lookup(read.getResult());
      needed[shared.getResult()] = found->second;
      markShared(shared.getResult(), found->second);
    }
  }

  /// Marks everything computed from a shared value as needed at all of its positions.
  void markShared(Value shared, const PositionSet &set) {
    SmallVector<Value> reached{shared};
    llvm::SmallPtrSet<Operation *, 8> seen;
    while (!reached.empty())
      for (Operation *user : reached.pop_back_val().getUsers())
        for (Value result : user->getResults())
          if (isOfParameters(result) && seen.insert(user).second) {
            needed[result] |= set;
            reached.push_back(result);
          }
  }

  /// Makes an activation's operand available at the op's position.
  void place(OpOperand &operand, int64_t position) {
    Value value = operand.get();
    if (isOfParameters(value) && needed[value].count() > 1) {
      operand.set(pinned(value, position, operand.getOwner()));
    } else if (Operation *maker = value.getDefiningOp(); maker && isActivation(value)) {
      operand.set(moved(value, positions.lookup(maker), position));
    }
  }

  Value pinned(Value value, int64_t position, Operation *user) {
    Value &known = copies[{value.getAsOpaquePointer(), position}];
    if (known)
      return known;
    OpBuilder builder(user); // before its first user
    auto pin = pipe::PinOp::create(builder, user->getLoc(), value.getType(), value, position);
    return known = pin.getResult();
  }

  /// Moves a value from the nearest position on the same stage that has it, which costs nothing,
  /// else step by step. Each move is placed where the value arrives.
  Value moved(Value value, int64_t from, int64_t to) {
    if (from == to)
      return value;
    Value &known = copies[{value.getAsOpaquePointer(), to}];
    if (known)
      return known;
    int64_t last = to - 1;
    for (int64_t other = to - 1; other >= from; --other)
      if (layout.stageOf(other) == layout.stageOf(to) &&
          (other == from || copies.count({value.getAsOpaquePointer(), other}))) {
        last = other;
        break;
      }
    Value before = moved(value, from, last);
    Operation *maker = before.getDefiningOp();
    OpBuilder builder(maker->getContext());
    builder.setInsertionPointAfter(maker);
    auto ends = std::minmax({layout.stageOf(last), layout.stageOf(to)});
    auto channel = pipe::ChannelAttr::get(builder.getContext(), last, to, numbers[ends]++);
    auto move = pipe::MoveOp::create(builder, value.getLoc(), value.getType(), before, channel);
    ++moves;
    return copies[{value.getAsOpaquePointer(), to}] = move.getResult();
  }

  func::FuncOp function;
  const pipe::Positions &layout;
  const Cuts &cuts;
  Block *block; ///< of the forward program
  DenseMap<Value, Kind> kinds;
  DenseMap<Operation *, int64_t> positions; ///< of activations
  DenseMap<Value, PositionSet> needed;      ///< for values of parameters that are no activations
  std::map<std::pair<const void *, int64_t>, Value> copies;
  std::map<std::pair<int64_t, int64_t>, int64_t>
      numbers; ///< of channels between two stages, both directions
  unsigned moves = 0;
};

struct PipePlace : partita::impl::PipePlacePassBase<PipePlace> {
  using PipePlacePassBase::PipePlacePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (stages == 1)
      return;
    if (failed(check(module)))
      return signalPassFailure();
    if (module->hasAttr(amp::AmpDialect::kFp8)) {
      module.emitError() << "precision fp8 does not work with pipeline stages: each stage would "
                            "know the maxima of its own layers only";
      return signalPassFailure();
    }
    std::string problem;
    std::optional<pipe::Positions> layout = stages::layoutOf(schedule, stages, chunks, problem);
    if (layout && layout->count() > kMaxPositions)
      problem = std::to_string(stages) + " stages of " + std::to_string(layout->chunks) +
                " chunks are more than " + std::to_string(kMaxPositions);
    if (!problem.empty()) {
      module.emitError() << "schedule: " << problem;
      return signalPassFailure();
    }
    FailureOr<Cuts> cuts = Cuts::choose(assign, *layout, notedWork(module), problem);
    if (failed(cuts)) {
      if (Cuts::countLayers(notedWork(module)) < layout->count())
        problem += skipsOf(module);
      module.emitError() << problem;
      return signalPassFailure();
    }
    note(module, *layout, *cuts);
    std::vector<FunctionPlacer> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isDeclaration() && !train::is(function, train::EntryPoint::Init))
        functions.emplace_back(function, *layout, *cuts);
    DenseMap<StringAttr, PositionSet> needed;
    for (FunctionPlacer &function : functions) {
      function.findPositions();
      function.collect(needed);
    }
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      PositionSet &set = needed[parameter.getSymNameAttr()];
      if (set.none())
        set.set(0); // nothing reads it
      shared += set.count() > 1;
      parameter->setAttr(pipe::PipeDialect::kHolders,
                         DenseI64ArrayAttr::get(&getContext(), listPositions(set)));
    }
    for (FunctionPlacer &function : functions)
      moves += function.insert(needed);
  }

private:
  /// Names a skip connection that keeps layers from being found, for a message.
  static std::string skipsOf(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>()) {
      analysis::Layers layers(function);
      for (analysis::Layers::Skip skip : layers.uncutSkips())
        return "; '" + provenance::nameOf(skip.to).str() + "' reads '" +
               provenance::nameOf(skip.from).str() +
               "' again, a skip connection over blocks that differ";
    }
    return "";
  }

  /// Notes how positions map to stages, and which layers they have.
  void note(ModuleOp module, const pipe::Positions &layout, const Cuts &cuts) {
    Builder b(module);
    module->setAttr(pipe::PipeDialect::kStages, b.getI64IntegerAttr(layout.stages));
    if (layout.chunks > 1)
      module->setAttr(pipe::PipeDialect::kChunks, b.getI64IntegerAttr(layout.chunks));
    if (layout.isWave)
      module->setAttr(pipe::PipeDialect::kWave, b.getUnitAttr());
    module->setAttr(pipe::PipeDialect::kCuts,
                    DenseI64ArrayAttr::get(&getContext(), cuts.firstLayers()));
    module->setAttr(pipe::PipeDialect::kAxis, b.getI64IntegerAttr(axis));
  }

  LogicalResult check(ModuleOp module) {
    if (stages < 1 || stages > pipe::PipeDialect::kMaxStages)
      return module.emitError() << "stages: " << stages.getValue() << ", expected 1 to "
                                << pipe::PipeDialect::kMaxStages;
    if (module->hasAttr(pipe::PipeDialect::kStages) || !module.getOps<ModuleOp>().empty())
      return module.emitError() << "stages: the program has some already";
    WalkResult result = module.walk([](Operation *op) {
      auto loop = dyn_cast<train::AccumulateOp>(op);
      return provenance::isBackward(op) || (loop && loop.hasBackward()) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return module.emitError()
             << "stages: the program is differentiated already, and what crosses "
                "stages backward follows from what crosses them forward";
    return success();
  }
};

} // namespace
