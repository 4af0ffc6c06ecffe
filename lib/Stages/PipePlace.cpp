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
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "lib/Stages/Cuts.h"
#include "lib/Stages/Kinds.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Layers.h"
#include "partita/Stages/Passes.h"
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
      : function(function), layout(layout), cuts(cuts), block(forwardBlock(function)),
        kinds(function, block) {}

  void findPositions() {
    for (Operation &op : *block)
      if (kinds.isActivation(&op))
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
    noteUsers();
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (kinds.isActivation(&op))
        for (OpOperand &operand : op.getOpOperands())
          place(operand, positions.lookup(&op));
    return moves;
  }

private:
  /// Places an activation with its layer, or later: never before an operand.
  void placeActivation(Operation *op) {
    LayerAttr layer = LayerAttr::of(op);
    int64_t position = cuts.positionOf(layer ? layer.getNumber() : LayerAttr::kBefore);
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && kinds.isActivation(operand))
        position = std::max(position, positions.lookup(maker));
    positions[op] = position;
  }

  /// Notes that values computed from parameters, and not as activations, are needed where their
  /// users are.
  void needOperands(Operation *op) {
    PositionSet own;
    if (kinds.isActivation(op))
      own.set(positions.lookup(op));
    else
      for (Value result : op->getResults())
        if (auto found = needed.find(result); found != needed.end())
          own |= found->second;
    for (Value operand : op->getOperands())
      if (kinds.isOfParameters(operand))
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
      kinds.set(shared.getResult(), read.getResult());
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
          if (kinds.isOfParameters(result) && seen.insert(user).second) {
            needed[result] |= set;
            reached.push_back(result);
          }
  }

  /// Makes an activation's operand available at the op's position.
  void place(OpOperand &operand, int64_t position) {
    Value value = operand.get();
    if (kinds.isOfParameters(value) && needed[value].count() > 1) {
      operand.set(pinned(value, position, operand.getOwner()));
    } else if (Operation *maker = value.getDefiningOp(); maker && kinds.isActivation(value)) {
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

  /// Notes, in order, at which positions each activation is used.
  void noteUsers() {
    for (Operation &op : *block)
      if (kinds.isActivation(&op))
        for (Value operand : op.getOperands())
          if (operand.getDefiningOp() && kinds.isActivation(operand))
            users[operand].push_back(&op);
  }

  /// Returns the op behind which `value`, which is `copy` at position `from`, leaves that position:
  /// the last user there that precedes all users at later positions. A gradient sums its cotangents
  /// from the last user to the first; so does the sum of what comes back from later positions and
  /// the cotangents of this one, in the same order.
  Operation *lastBefore(Value value, Value copy, int64_t from) {
    Operation *last = copy.getDefiningOp();
    for (Operation *user : users[value]) {
      int64_t position = positions.lookup(user);
      if (position > from)
        break;
      if (position == from && last->isBeforeInBlock(user))
        last = user;
    }
    return last;
  }

  /// Moves a value from the nearest position on the same stage that has it, which costs nothing,
  /// else step by step.
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
    Operation *&behind = leaves[{value.getAsOpaquePointer(), last}];
    if (!behind)
      behind = lastBefore(value, before, last);
    OpBuilder builder(behind->getContext());
    builder.setInsertionPointAfter(behind);
    auto ends = std::minmax({layout.stageOf(last), layout.stageOf(to)});
    auto channel = pipe::ChannelAttr::get(builder.getContext(), last, to, numbers[ends]++);
    behind = pipe::MoveOp::create(builder, value.getLoc(), value.getType(), before, channel);
    ++moves;
    return copies[{value.getAsOpaquePointer(), to}] = behind->getResult(0);
  }

  func::FuncOp function;
  const pipe::Positions &layout;
  const Cuts &cuts;
  Block *block; ///< of the forward program
  Kinds kinds;
  DenseMap<Operation *, int64_t> positions; ///< of activations
  DenseMap<Value, PositionSet> needed;      ///< for values of parameters that are no activations
  std::map<std::pair<const void *, int64_t>, Value> copies;
  DenseMap<Value, SmallVector<Operation *>> users; ///< of activations, in the block's order
  std::map<std::pair<const void *, int64_t>, Operation *>
      leaves; ///< behind which a value's next move from a position is placed
  std::map<std::pair<int64_t, int64_t>, int64_t>
      numbers; ///< of channels between two stages, both directions
  unsigned moves = 0;
};

struct PipePlace : partita::impl::PipePlacePassBase<PipePlace> {
  using PipePlacePassBase::PipePlacePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->hasAttr(pipe::PipeDialect::kStages))
      return;
    if (failed(check(module)))
      return signalPassFailure();
    std::string problem;
    pipe::Positions layout = *pipe::positionsOf(module);
    std::optional<stages::Schedule> schedule;
    if (auto noted = module->getAttrOfType<train::ScheduleAttr>(train::TrainDialect::kSchedule))
      schedule = stages::fromAttribute(noted, layout);
    FailureOr<Cuts> cuts =
        Cuts::choose(assign, layout, notedWork(module),
                     stages::RangeCosts(stages::notedSpans(module)), schedule, problem);
    if (failed(cuts)) {
      if (countLayers(notedWork(module)) < layout.count())
        problem += skipsOf(module);
      module.emitError() << problem;
      return signalPassFailure();
    }
    note(module, *cuts);
    std::vector<FunctionPlacer> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isDeclaration() && !train::is(function, train::EntryPoint::Init))
        functions.emplace_back(function, layout, *cuts);
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

  /// Notes which layers the positions have.
  void note(ModuleOp module, const Cuts &cuts) {
    module->setAttr(pipe::PipeDialect::kCuts,
                    DenseI64ArrayAttr::get(&getContext(), cuts.firstLayers()));
    module->setAttr(pipe::PipeDialect::kAxis, Builder(module).getI64IntegerAttr(axis));
  }

  static LogicalResult check(ModuleOp module) {
    if (module->hasAttr(pipe::PipeDialect::kCuts))
      return module.emitError() << "stages: the program has layers on them already";
    if (!module->hasAttr(train::TrainDialect::kWork))
      return module.emitError() << "has no " << train::TrainDialect::kWork
                                << "; note-flops records what each layer computes";
    if (module->hasAttr(amp::AmpDialect::kFp8))
      return module.emitError() << "precision fp8 does not work with pipeline stages: each stage "
                                   "would know the maxima of its own layers only";
    return success();
  }
};

} // namespace
