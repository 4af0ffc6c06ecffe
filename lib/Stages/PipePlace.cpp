//===- PipePlace.cpp - pipe-place ---------------------------------------------------------------===//
//
// Works on the forward program, before it is split or differentiated: the gradients of moves, shares
// and pins are what crosses stages in the backward pass.
//
// An activation depends on parameters and on the inputs; it stands where its layer is. What depends on
// parameters alone (a transposed table, a position bias) is computed where it is needed, from the
// parameter, which is then on several stages: to move it would cost its bytes for every micro-batch,
// to share the parameter costs a sum of its gradient per step.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "lib/Stages/Cuts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Stages/Passes.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <map>
#include <set>

namespace partita {
#define GEN_PASS_DEF_PIPEPLACEPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::LayerAttr;

namespace {

using StageSet = std::set<int64_t>;

/// The stages of one function's ops.
class FunctionPlacer {
public:
  FunctionPlacer(func::FuncOp function, const Cuts &cuts)
      : function(function), cuts(cuts), block(&function.getBody().front()) {
    for (auto loop : function.getOps<train::AccumulateOp>())
      block = &loop.getBody().front();
  }

  void findStages() {
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

  /// Where each of the function's parameters is needed.
  void collect(DenseMap<StringAttr, StageSet> &parameters) const {
    function->walk([&](train::ReadOp read) {
      auto found = needed.find(read.getResult());
      if (found != needed.end())
        parameters[read.getSymbolAttr().getAttr()].insert(found->second.begin(),
                                                          found->second.end());
    });
  }

  /// Inserts moves, and what shared parameters are read through. Returns the number of moves.
  unsigned insert(const DenseMap<StringAttr, StageSet> &parameters) {
    share(parameters);
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (isActivation(&op))
        for (OpOperand &operand : op.getOpOperands())
          place(operand, stages.lookup(&op));
    return moves;
  }

private:
  /// Is a value computed from a parameter, and from an input?
  struct Kind {
    bool parameter = false, input = false;
  };

  bool isActivation(Operation *op) const {
    return !op->hasTrait<OpTrait::IsTerminator>() &&
           llvm::any_of(op->getResults(), [&](Value result) { return isActivation(result); });
  }
  bool isActivation(Value value) const {
    Kind kind = kinds.lookup(value);
    return kind.parameter && kind.input;
  }
  bool isOfParameters(Value value) const {
    Kind kind = kinds.lookup(value);
    return kind.parameter && !kind.input;
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
      for (Value operand : op->getOperands()) {
        Kind from = kinds.lookup(operand);
        kind.parameter |= from.parameter;
        kind.input |= from.input;
      }
      for (Value result : op->getResults())
        kinds[result] = kind;
    });
  }

  /// Where its layer is, or behind: an op never stands in front of what it reads.
  void placeActivation(Operation *op) {
    LayerAttr layer = LayerAttr::of(op);
    int64_t stage = cuts.stageOf(layer ? layer.getNumber() : LayerAttr::kBefore);
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && isActivation(operand))
        stage = std::max(stage, stages.lookup(maker));
    stages[op] = stage;
  }

  /// What is computed from parameters alone is needed where its users are.
  void needOperands(Operation *op) {
    StageSet own;
    if (isActivation(op))
      own.insert(stages.lookup(op));
    else
      for (Value result : op->getResults())
        if (auto found = needed.find(result); found != needed.end())
          own.insert(found->second.begin(), found->second.end());
    for (Value operand : op->getOperands())
      if (isOfParameters(operand))
        needed[operand].insert(own.begin(), own.end());
  }

  void share(const DenseMap<StringAttr, StageSet> &parameters) {
    SmallVector<train::ReadOp> reads;
    function->walk([&](train::ReadOp read) { reads.push_back(read); });
    for (train::ReadOp read : reads) {
      auto found = parameters.find(read.getSymbolAttr().getAttr());
      if (found == parameters.end() || found->second.size() < 2)
        continue;
      OpBuilder builder(read->getContext());
      builder.setInsertionPointAfter(read);
      auto shared =
          pipe::ShareOp::create(builder, read.getLoc(), read.getType(), read.getResult(),
                                SmallVector<int64_t>(found->second.begin(), found->second.end()));
      read.getResult().replaceAllUsesExcept(shared.getResult(), shared);
      kinds[shared.getResult()] = kinds.lookup(read.getResult());
      needed[shared.getResult()] = found->second;
      markShared(shared.getResult(), found->second);
    }
  }

  /// All that is computed from it is on all of its stages.
  void markShared(Value shared, const StageSet &set) {
    SmallVector<Value> reached{shared};
    llvm::SmallPtrSet<Operation *, 8> seen;
    while (!reached.empty())
      for (Operation *user : reached.pop_back_val().getUsers())
        for (Value result : user->getResults())
          if (isOfParameters(result) && seen.insert(user).second) {
            needed[result].insert(set.begin(), set.end());
            reached.push_back(result);
          }
  }

  /// Has an activation's operand be where the op is.
  void place(OpOperand &operand, int64_t stage) {
    Value value = operand.get();
    if (isOfParameters(value) && needed[value].size() > 1) {
      operand.set(pinned(value, stage, operand.getOwner()));
    } else if (Operation *maker = value.getDefiningOp(); maker && isActivation(value)) {
      operand.set(moved(value, stages.lookup(maker), stage));
    }
  }

  Value pinned(Value value, int64_t stage, Operation *user) {
    Value &known = copies[{value.getAsOpaquePointer(), stage}];
    if (known)
      return known;
    OpBuilder builder(user); // in front of its first user
    auto pin = pipe::PinOp::create(builder, user->getLoc(), value.getType(), value, stage);
    return known = pin.getResult();
  }

  /// Step by step, each where the value arrives.
  Value moved(Value value, int64_t from, int64_t to) {
    if (from == to)
      return value;
    Value &known = copies[{value.getAsOpaquePointer(), to}];
    if (known)
      return known;
    Value before = moved(value, from, to - 1);
    Operation *maker = before.getDefiningOp();
    OpBuilder builder(maker->getContext());
    builder.setInsertionPointAfter(maker);
    auto channel = pipe::ChannelAttr::get(builder.getContext(), to - 1, to, numbers[to]++);
    auto move = pipe::MoveOp::create(builder, value.getLoc(), value.getType(), before, channel);
    ++moves;
    return copies[{value.getAsOpaquePointer(), to}] = move.getResult();
  }

  func::FuncOp function;
  const Cuts &cuts;
  Block *block; ///< of the forward program
  DenseMap<Value, Kind> kinds;
  DenseMap<Operation *, int64_t> stages; ///< of activations
  DenseMap<Value, StageSet> needed;      ///< of what is computed from parameters alone
  std::map<std::pair<const void *, int64_t>, Value> copies;
  std::map<int64_t, int64_t> numbers; ///< of channels to a stage
  unsigned moves = 0;
};

struct PipePlace : partita::impl::PipePlacePassBase<PipePlace> {
  using PipePlacePassBase::PipePlacePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (stages == 1)
      return;
    std::string problem;
    if (failed(check(module)))
      return signalPassFailure();
    FailureOr<Cuts> cuts = Cuts::choose(assign, stages, notedWork(module), problem);
    if (failed(cuts)) {
      module.emitError() << problem;
      return signalPassFailure();
    }
    module->setAttr(pipe::PipeDialect::kStages, Builder(module).getI64IntegerAttr(stages));
    module->setAttr(pipe::PipeDialect::kCuts,
                    DenseI64ArrayAttr::get(&getContext(), cuts->firstLayers()));
    module->setAttr(pipe::PipeDialect::kAxis, Builder(module).getI64IntegerAttr(axis));
    std::vector<FunctionPlacer> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isDeclaration() && !train::is(function, train::EntryPoint::Init))
        functions.emplace_back(function, *cuts);
    DenseMap<StringAttr, StageSet> needed;
    for (FunctionPlacer &function : functions) {
      function.findStages();
      function.collect(needed);
    }
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      StageSet &set = needed[parameter.getSymNameAttr()];
      if (set.empty())
        set.insert(0); // read by nothing
      shared += set.size() > 1;
      parameter->setAttr(
          pipe::PipeDialect::kOn,
          DenseI64ArrayAttr::get(&getContext(), SmallVector<int64_t>(set.begin(), set.end())));
    }
    for (FunctionPlacer &function : functions)
      moves += function.insert(needed);
  }

private:
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
