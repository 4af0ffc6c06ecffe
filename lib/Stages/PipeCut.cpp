//===- PipeCut.cpp - pipe-cut -------------------------------------------------------------------===//
//
// Builds each stage's module op by op from the program of all stages, skipping ops that are not on
// the stage. Ops that are everywhere are copied to every stage; canonicalize and cse remove what a
// stage does not use.
//
// A stage with several chunks keeps their ops in the order of the program of all stages. Loops with
// a backward pass are the exception: there each chunk gets its own passes, which the schedule
// orders. A value that goes from one chunk to another on the same stage is saved by the pass that
// makes it.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Pipe/Sums.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/IR/IRMapping.h"
#include "partita/Analysis/StageMap.h"
#include "partita/Stages/Passes.h"
#include "llvm/ADT/BitVector.h"

namespace partita {
#define GEN_PASS_DEF_PIPECUTPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Builds a stage's share of a function; within a loop's pass, the share of one of its positions.
class StageBuilder : public StageShare {
public:
  StageBuilder(const StageMap &map, int64_t stage) : map(map), layout(map.layout()), stage(stage) {
    for (int64_t chunk = 0; chunk < layout.chunks; ++chunk)
      own.set(layout.at(stage, chunk));
  }

  void function(OpBuilder &builder, func::FuncOp from) {
    Operation *end = from.getBody().front().getTerminator();
    SmallVector<Value> results = here(end->getOperands());
    auto to = cast<func::FuncOp>(builder.cloneWithoutRegions(*from));
    to.setFunctionType(
        builder.getFunctionType(from.getArgumentTypes(), TypeRange(ValueRange(results))));
    keepResultAttributes(from, to);
    Block *block = to.addEntryBlock();
    mapping.map(from.getArguments(), block->getArguments());
    OpBuilder inside = OpBuilder::atBlockBegin(block);
    copy(inside, from.getBody().front());
    func::ReturnOp::create(inside, end->getLoc(), mapped(results))
        ->setDiscardableAttrs(end->getDiscardableAttrDictionary());
  }

  bool has(Value value) const override { return isHere(map.of(value)); }
  bool hasFirst(Value value) const override {
    return layout.stageOf(map.of(value).first()) == stage;
  }
  bool isPartial(Value value) const override { return map.of(value).partial; }
  bool isPartialOverStages(Value value) const override {
    return pipe::onStages(map.of(value), layout).partial;
  }
  Value copyOf(Value value) const override { return mapping.lookup(value); }

private:
  bool isHere(const Holders &holders) const { return (holders.positions & own).any(); }
  SmallVector<Value> here(ValueRange values) const {
    return llvm::to_vector(llvm::make_filter_range(values, [&](Value each) { return has(each); }));
  }
  SmallVector<Value> mapped(ValueRange values) const {
    return llvm::map_to_vector(values, [&](Value each) { return mapping.lookup(each); });
  }

  void keepResultAttributes(func::FuncOp from, func::FuncOp to) {
    SmallVector<Attribute> kept;
    for (auto [i, value] : llvm::enumerate(from.getBody().front().getTerminator()->getOperands()))
      if (has(value)) {
        NamedAttrList attributes(from.getResultAttrDict(i));
        if (kept.size() != i)
          attributes.set(pipe::PipeDialect::kResult,
                         IntegerAttr::get(IntegerType::get(from.getContext(), 64), int64_t(i)));
        kept.push_back(attributes.getDictionary(from.getContext()));
      }
    to.removeResAttrsAttr();
    if (llvm::any_of(kept, [](Attribute each) { return !cast<DictionaryAttr>(each).empty(); }))
      to.setResAttrsAttr(ArrayAttr::get(from.getContext(), kept));
  }

  void copy(OpBuilder &builder, Block &block) {
    for (Operation &op : block.without_terminator())
      copy(builder, &op);
  }

  void copy(OpBuilder &builder, Operation *op) {
    if (auto move = dyn_cast<pipe::MoveOp>(op))
      return copyMove(builder, move);
    if (!isHere(map.of(op)))
      return;
    if (auto loop = dyn_cast<train::AccumulateOp>(op))
      return copyLoop(builder, loop);
    if (auto sum = dyn_cast<pipe::SumOp>(op))
      return copySum(builder, sum);
    if (auto placed = dyn_cast<PlacedInterface>(op))
      if (SmallVector<Value> made = placed.cutTo(builder, *this); !made.empty())
        return mapping.map(op->getResults(), made);
    builder.clone(*op, mapping);
  }

  void copyMove(OpBuilder &builder, pipe::MoveOp move) {
    pipe::ChannelAttr channel = move.getChannel();
    int64_t from = layout.stageOf(channel.getFrom()), to = layout.stageOf(channel.getTo());
    if (from == to) {
      if (own.test(channel.getTo()))
        mapping.map(move.getResult(), fromOwnStage(move));
      return;
    }
    auto between = pipe::ChannelAttr::get(builder.getContext(), from, to, channel.getNumber());
    Operation *made = nullptr;
    if (own.test(channel.getFrom()))
      made = pipe::SendOp::create(builder, move.getLoc(), mapping.lookup(move.getValue()), between);
    if (own.test(channel.getTo())) {
      made = pipe::RecvOp::create(builder, move.getLoc(), move.getType(), between);
      mapping.map(move.getResult(), made->getResult(0));
    }
    if (made)
      made->setDiscardableAttrs(move->getDiscardableAttrDictionary());
  }

  /// Copies a sum over the stages of its positions. If they are all on one stage, there is nothing
  /// to sum.
  void copySum(OpBuilder &builder, pipe::SumOp sum) {
    Holders stages = pipe::onStages(Holders::on(sum.getStages()), layout);
    if (stages.isOne())
      return mapping.map(sum.getResult(), mapping.lookup(sum.getValue()));
    if (!has(sum.getValue())) {
      // Constants carry no provenance (node, layer), so the zero is not named after the sum's node.
      Value zero = tx::createSplat(builder, builder.getUnknownLoc(), sum.getType(), 0);
      mapping.map(sum.getValue(), zero);
    }
    cast<pipe::SumOp>(builder.clone(*sum, mapping)).setStages(listPositions(stages.positions));
  }

  /// Copies the loop with what its regions have on this stage.
  void copyLoop(OpBuilder &builder, train::AccumulateOp loop) {
    if (loop.hasBackward())
      return copyPasses(builder, loop);
    SmallVector<Value> sums = here(loop.getSums());
    auto copied = train::AccumulateOp::create(builder, loop.getLoc(), TypeRange(ValueRange(sums)),
                                              mapped(loop.getBatches()));
    copied->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    mapping.map(sums, copied.getSums());
    addBlock(loop.getBody(), copied.getBody());
    copyRegion(loop.getBody(), copied.getBody(),
               here(loop.getBody().front().getTerminator()->getOperands()));
  }

  //===-- A loop with a backward pass: a forward and a backward pass of each chunk

  /// A sum of the loop, and the number of the pass that yields it or part of it.
  struct Part {
    unsigned sum, pass;
  };

  struct LoopCopy {
    train::AccumulateOp from, to;
    SmallVector<Part> parts;
    std::vector<StageBuilder> passes; ///< passes of `to` built so far

    /// Returns how a later pass sees a value of `from` that another pass has made.
    Value inLater(unsigned reader, train::PassName maker, Value value) {
      Value made = passes[*to.findPass(maker)].mapping.lookup(value);
      return made.getParentRegion()->getParentOp() == to ? Value(to.save(made, reader)) : made;
    }
  };

  void copyPasses(OpBuilder &builder, train::AccumulateOp loop) {
    SmallVector<train::PassName> passes;
    for (int64_t chunk = 0; chunk < layout.chunks; ++chunk)
      passes.push_back({train::PassKind::Forward, chunk});
    for (int64_t chunk = layout.chunks; chunk-- > 0;)
      passes.push_back({train::PassKind::Backward, chunk});
    LoopCopy copy{loop, {}, partsOf(loop, passes), {}};
    auto types = llvm::map_to_vector(
        copy.parts, [&](Part part) { return loop->getResult(part.sum).getType(); });
    copy.to = train::AccumulateOp::create(builder, loop.getLoc(), types, mapped(loop.getBatches()),
                                          ArrayRef(passes).drop_front());
    copy.to->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    for (Region &region : copy.to->getRegions())
      addBlock(loop.getBody(), region);
    for (unsigned number = 0; number < passes.size(); ++number)
      copy.passes.emplace_back(*this).copyPass(copy, number);
    for (auto [part, result] : llvm::zip(copy.parts, copy.to.getSums())) {
      Value sum = loop->getResult(part.sum), before = mapping.lookupOrNull(sum);
      Location loc = loop.getPart(part.sum).get().getLoc();
      mapping.map(
          sum, before ? tx::AddOp::create(builder, loc, sum.getType(), before, result).getResult()
                      : Value(result));
    }
  }

  /// Returns the parts in the order of the passes. One pass yields a sum that is here in full; of a
  /// partial sum, each yields its part.
  SmallVector<Part> partsOf(train::AccumulateOp loop, ArrayRef<train::PassName> passes) const {
    SmallVector<Part> parts;
    llvm::BitVector isFull(loop.getNumResults());
    for (auto [number, pass] : llvm::enumerate(passes))
      for (unsigned sum = 0; sum < loop.getNumResults(); ++sum) {
        OpOperand &yielded = loop.getPart(sum);
        const Holders holders = map.of(yielded.get());
        if (yielded.getOwner()->getParentRegion() != &regionOf(loop, pass) || isFull[sum] ||
            !holders.has(layout.at(stage, pass.chunk)))
          continue;
        isFull[sum] = !holders.partial;
        parts.push_back({sum, static_cast<unsigned>(number)});
      }
    return parts;
  }

  static Region &regionOf(train::AccumulateOp loop, train::PassName pass) {
    return pass.kind == train::PassKind::Forward ? loop.getBody() : loop.getBackward();
  }

  /// Builds one pass; the passes before it are built already.
  void copyPass(LoopCopy &copy, unsigned number) {
    train::PassName pass = copy.to.getPass(number);
    Region &from = regionOf(copy.from, pass), &to = copy.to->getRegion(number);
    own.reset().set(layout.at(stage, pass.chunk));
    loop = &copy;
    this->number = number;
    for (BlockArgument argument : from.getArguments().drop_front(copy.from.getBatches().size()))
      if (has(argument) && !argument.use_empty())
        mapping.map(argument, copy.inLater(number, {train::PassKind::Forward, pass.chunk},
                                           train::forwardOf(argument)));
    SmallVector<Value> yielded;
    for (Part part : copy.parts)
      if (part.pass == number)
        yielded.push_back(copy.from.getPart(part.sum).get());
    copyRegion(from, to, yielded);
  }

  /// Returns what a move within the stage yields: the value itself, or what another chunk's pass
  /// saved.
  Value fromOwnStage(pipe::MoveOp move) {
    if (!loop)
      return mapping.lookup(move.getValue());
    int64_t chunk = layout.chunkOf(move.getChannel().getFrom());
    return loop->inLater(number, {loop->to.getPass(number).kind, chunk}, move.getValue());
  }

  static void addBlock(Region &from, Region &to) {
    Block &block = to.emplaceBlock();
    for (BlockArgument argument : from.getArguments())
      block.addArgument(argument.getType(), argument.getLoc());
  }

  /// Copies a region. The first arguments of every region are the micro-batches.
  void copyRegion(Region &from, Region &to, ValueRange yielded) {
    size_t batches = cast<train::AccumulateOp>(from.getParentOp()).getBatches().size();
    mapping.map(from.getArguments().take_front(batches), to.getArguments().take_front(batches));
    OpBuilder inside = OpBuilder::atBlockEnd(&to.front());
    copy(inside, from.front());
    auto yield = cast<train::YieldOp>(from.front().getTerminator());
    train::YieldOp::create(inside, yield.getLoc(), mapped(yielded))
        ->setDiscardableAttrs(yield->getDiscardableAttrDictionary());
  }

  const StageMap &map;
  pipe::Positions layout;
  int64_t stage;
  PositionSet own; ///< the positions whose ops are copied
  IRMapping mapping;
  LoopCopy *loop = nullptr; ///< the loop whose pass this builds; null outside of passes
  unsigned number = 0;      ///< number of that pass
};

struct PipeCut : partita::impl::PipeCutPassBase<PipeCut> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->hasAttr(pipe::PipeDialect::kStages))
      return;
    layout = *pipe::positionsOf(module);
    llvm::MapVector<Operation *, StageMap> functions;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      FailureOr<StageMap> map = StageMap::of(function);
      if (failed(map) || failed(check(function)) || failed(checkOperands(function, *map)))
        return signalPassFailure();
      pipe::numberSums(function);
      functions.insert({function, std::move(*map)});
    }
    SymbolTableCollection tables;
    SmallVector<std::pair<Operation *, Holders>> full; // with their stages
    for (Operation &op : *module.getBody())
      full.push_back({&op, pipe::onStages(StageMap::ofSymbol(&op, tables), layout)});
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    for (int64_t stage = 0; stage < layout.stages; ++stage) {
      build(builder, module, full, functions, stage);
      ++cut;
    }
    for (auto &[op, holders] : llvm::reverse(full))
      op->erase();
    module->removeAttr(pipe::PipeDialect::kStages);
    for (StringRef name : {pipe::PipeDialect::kChunks, pipe::PipeDialect::kWave})
      module->removeAttr(name);
  }

private:
  /// Refuses an op that a stage would copy without an operand: one that reads all stages, until a
  /// later pass sums over them.
  LogicalResult checkOperands(func::FuncOp function, const StageMap &map) const {
    WalkResult result = function.walk([&](Operation *op) -> WalkResult {
      Holders holders = map.of(op);
      if (holders.partial || isa<train::AccumulateOp>(op) ||
          op->hasTrait<OpTrait::IsTerminator>() ||
          isa_and_nonnull<pipe::PipeDialect>(op->getDialect()))
        return WalkResult::advance();
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        if (!holders.isWithin(map.of(operand)))
          return op->emitError() << "'" << op->getName() << "' reads operand " << i << " "
                                 << map.of(operand).text(pipe::positionNoun(layout))
                                 << ", and every stage needs its result: expand it before the cut";
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Checks loops with a backward pass. They get passes for each chunk, each of which reads what
  /// earlier ones save, in the order of a schedule.
  LogicalResult check(func::FuncOp function) const {
    WalkResult result =
        function.walk([&](Operation *op) -> WalkResult {
          auto full = dyn_cast<train::AccumulateOp>(op);
          if (full && full.hasBackward() &&
              (full->getNumRegions() > 2 ||
               full.getPass(1) != train::PassName{train::PassKind::Backward}))
            return full.emitError()
                   << "has a " << full.getPass(full->getNumRegions() - 1).text()
                   << " region; before the cut there are a forward and a backward one";
          auto loop = op->getParentOfType<train::AccumulateOp>();
          if (!loop || !loop.hasBackward())
            return WalkResult::advance();
          if (isa<pipe::SumOp>(op) && layout.chunks > 1)
            return op->emitError()
                   << "'pipe.sum' stands in a loop over micro-batches whose stages have "
                   << layout.chunks << " chunks, which run it at different times";
          auto move = dyn_cast<pipe::MoveOp>(op);
          if (!move)
            return WalkResult::advance();
          bool isBackward = op->getParentRegion() != &loop.getBody();
          int64_t from = move.getChannel().getFrom(), to = move.getChannel().getTo();
          int64_t ahead = isBackward ? from - to : to - from;
          if (ahead == 1 || (ahead > 1 && layout.stageOf(from) == layout.stageOf(to)))
            return WalkResult::advance();
          return op->emitError() << "'pipe.move' leads from " << from << " to " << to << ", and a "
                                 << (isBackward ? "backward" : "forward")
                                 << " pass sends only to the " << (isBackward ? "previous" : "next")
                                 << " position, or saves for a later chunk of its own stage";
        });
    return failure(result.wasInterrupted());
  }

  void build(OpBuilder &builder, ModuleOp module, ArrayRef<std::pair<Operation *, Holders>> full,
             const llvm::MapVector<Operation *, StageMap> &functions, int64_t stage) const {
    auto part = ModuleOp::create(builder, module.getLoc());
    part->setDiscardableAttrs(module->getDiscardableAttrDictionary());
    part->removeDiscardableAttr(pipe::PipeDialect::kStages);
    for (StringRef name : {train::TrainDialect::kWork, train::TrainDialect::kSpans,
                           train::TrainDialect::kPlan, train::TrainDialect::kSchedule})
      part->removeDiscardableAttr(name); // describes all stages
    part->setAttr(pipe::PipeDialect::kStage, builder.getI64IntegerAttr(stage));
    part->setAttr(pipe::PipeDialect::kCount, builder.getI64IntegerAttr(layout.stages));
    OpBuilder inside = OpBuilder::atBlockEnd(part.getBody());
    for (auto &[op, holders] : full) {
      if (auto function = functions.find(op); function != functions.end()) {
        StageBuilder(function->second, stage).function(inside, cast<func::FuncOp>(op));
      } else if (holders.has(stage)) {
        Operation *copied = inside.clone(*op);
        copied->removeDiscardableAttr(pipe::PipeDialect::kHolders);
      }
    }
  }

  pipe::Positions layout;
};

} // namespace
