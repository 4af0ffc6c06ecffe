//===- PipeCut.cpp - pipe-cut -------------------------------------------------------------------===//
//
// Each stage's module is built op by op from the program of all stages: what is not on the stage is
// looked at and not copied. What is everywhere is copied to each; canonicalize and cse take away what
// a stage does not use.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Stages/Where.h"
#include "mlir/IR/IRMapping.h"
#include "partita/Analysis/Flops.h"
#include "partita/Stages/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PIPECUTPASS
#include "partita/Stages/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// One stage's part of a function.
class StageBuilder {
public:
  StageBuilder(const StageMap &map, int64_t stage) : map(map), stage(stage) {}

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

private:
  bool isHere(Value value) const { return map.of(value).has(stage); }
  SmallVector<Value> here(ValueRange values) const {
    return llvm::to_vector(
        llvm::make_filter_range(values, [&](Value each) { return isHere(each); }));
  }
  SmallVector<Value> mapped(ValueRange values) const {
    return llvm::map_to_vector(values, [&](Value each) { return mapping.lookup(each); });
  }

  void keepResultAttributes(func::FuncOp from, func::FuncOp to) {
    SmallVector<Attribute> kept;
    for (auto [i, value] : llvm::enumerate(from.getBody().front().getTerminator()->getOperands()))
      if (isHere(value)) {
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
    if (!map.isOn(op, stage))
      return;
    if (auto loop = dyn_cast<train::AccumulateOp>(op))
      return copyLoop(builder, loop);
    if (isa<pipe::ShareOp, pipe::PinOp>(op))
      return mapping.map(op->getResult(0), mapping.lookup(op->getOperand(0)));
    if (auto sum = dyn_cast<pipe::SumOp>(op); sum && !isHere(sum.getValue())) {
      // A constant has no provenance, so a name in its location would be all that keeps it.
      Value zero = tx::createSplat(builder, builder.getUnknownLoc(), sum.getType(), 0);
      mapping.map(sum.getValue(), zero);
    }
    if (auto squares = dyn_cast<train::SquareSumOp>(op);
        squares && map.of(squares.getSum()).partial)
      return copySquares(builder, squares);
    if (isa<tx::AddOp>(op) && map.of(op->getResult(0)).partial)
      if (SmallVector<Value> terms = here(op->getOperands()); terms.size() == 1)
        return mapping.map(op->getResult(0), mapping.lookup(terms.front()));
    builder.clone(*op, mapping);
  }

  void copyMove(OpBuilder &builder, pipe::MoveOp move) {
    pipe::ChannelAttr channel = move.getChannel();
    Operation *made = nullptr;
    if (channel.getFrom() == stage)
      made = pipe::SendOp::create(builder, move.getLoc(), mapping.lookup(move.getValue()), channel);
    if (channel.getTo() == stage) {
      made = pipe::RecvOp::create(builder, move.getLoc(), move.getType(), channel);
      mapping.map(move.getResult(), made->getResult(0));
    }
    if (made)
      made->setDiscardableAttrs(move->getDiscardableAttrDictionary());
  }

  /// Zeros where the numbers of other stages' values stand. What several stages have counts on the first of them.
  void copySquares(OpBuilder &builder, train::SquareSumOp squares) {
    auto type = cast<RankedTensorType>(squares.getSum().getType());
    auto sized = [&](int64_t size) {
      par::Layout layout = par::Layout::of(type);
      layout.shape = {size};
      return RankedTensorType::get({size}, type.getElementType(),
                                   layout.encoding(builder.getContext()));
    };
    SmallVector<Value> own, parts;
    SmallVector<bool> isOwn;
    for (Value value : squares->getOperands()) {
      isOwn.push_back(map.of(value).first() == stage);
      if (isOwn.back())
        own.push_back(value);
    }
    auto count = static_cast<int64_t>(own.size());
    if (count == 0)
      return mapping.map(squares.getSum(),
                         tx::createSplat(builder, builder.getUnknownLoc(), type, 0));
    auto made = train::SquareSumOp::create(builder, squares.getLoc(), sized(count), mapped(own));
    made->setDiscardableAttrs(squares->getDiscardableAttrDictionary());
    int64_t taken = 0;
    for (size_t begin = 0, end = 0; begin < isOwn.size(); begin = end) {
      while (end < isOwn.size() && isOwn[end] == isOwn[begin])
        ++end;
      auto size = static_cast<int64_t>(end - begin);
      Operation *part =
          !isOwn[begin] ? tx::createSplat(builder, builder.getUnknownLoc(), sized(size), 0)
                              .getDefiningOp()
                        : tx::SliceOp::create(builder, squares.getLoc(), sized(size), made.getSum(),
                                              ArrayRef<int64_t>{taken}, ArrayRef<int64_t>{1});
      part->setDiscardableAttrs(squares->getDiscardableAttrDictionary());
      taken += isOwn[begin] ? size : 0;
      parts.push_back(part->getResult(0));
    }
    auto whole = tx::ConcatOp::create(builder, squares.getLoc(), type, parts, 0);
    whole->setDiscardableAttrs(squares->getDiscardableAttrDictionary());
    mapping.map(squares.getSum(), whole.getResult());
  }

  /// The loop with the sums and saved values of this stage.
  void copyLoop(OpBuilder &builder, train::AccumulateOp loop) {
    SmallVector<Value> sums = here(loop.getSums());
    auto copied = train::AccumulateOp::create(builder, loop.getLoc(), TypeRange(ValueRange(sums)),
                                              mapped(loop.getBatches()),
                                              ArrayRef(loop.getPasses()).drop_front());
    copied->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    mapping.map(sums, copied.getSums());
    for (auto [from, to] : llvm::zip(loop->getRegions(), copied->getRegions()))
      copyRegion(from, to);
  }

  void copyRegion(Region &from, Region &to) {
    Block *block = &to.emplaceBlock();
    for (BlockArgument argument : from.getArguments())
      if (isHere(argument))
        mapping.map(argument, block->addArgument(argument.getType(), argument.getLoc()));
    OpBuilder inside = OpBuilder::atBlockEnd(block);
    copy(inside, from.front());
    auto yield = cast<train::YieldOp>(from.front().getTerminator());
    train::YieldOp::create(inside, yield.getLoc(), mapped(here(yield.getValues())),
                           mapped(here(yield.getSaved())))
        ->setDiscardableAttrs(yield->getDiscardableAttrDictionary());
  }

  const StageMap &map;
  int64_t stage;
  IRMapping mapping;
};

struct PipeCut : partita::impl::PipeCutPassBase<PipeCut> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto count = module->getAttrOfType<IntegerAttr>(pipe::PipeDialect::kStages);
    if (!count)
      return;
    llvm::MapVector<Operation *, StageMap> functions;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      FailureOr<StageMap> map = StageMap::of(function);
      if (failed(map))
        return signalPassFailure();
      functions.insert({function, std::move(*map)});
    }
    SmallVector<Operation *> whole;
    for (Operation &op : *module.getBody())
      whole.push_back(&op);
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    for (int64_t stage = 0; stage < count.getInt(); ++stage) {
      build(builder, module, whole, functions, stage, count);
      ++cut;
    }
    for (Operation *op : llvm::reverse(whole))
      op->erase();
    module->removeAttr(pipe::PipeDialect::kStages);
  }

private:
  static void build(OpBuilder &builder, ModuleOp module, ArrayRef<Operation *> whole,
                    const llvm::MapVector<Operation *, StageMap> &functions, int64_t stage,
                    IntegerAttr count) {
    auto part = ModuleOp::create(builder, module.getLoc());
    part->setDiscardableAttrs(module->getDiscardableAttrDictionary());
    part->removeDiscardableAttr(pipe::PipeDialect::kStages);
    part->removeDiscardableAttr(kNotedWork); // of all stages
    part->removeDiscardableAttr(train::TrainDialect::kPlan);
    part->setAttr(pipe::PipeDialect::kStage, builder.getI64IntegerAttr(stage));
    part->setAttr(pipe::PipeDialect::kCount, count);
    OpBuilder inside = OpBuilder::atBlockEnd(part.getBody());
    for (Operation *op : whole) {
      if (auto function = functions.find(op); function != functions.end()) {
        StageBuilder(function->second, stage).function(inside, cast<func::FuncOp>(op));
      } else if (StageMap::ofSymbol(op).has(stage)) {
        Operation *copied = inside.clone(*op);
        copied->removeDiscardableAttr(pipe::PipeDialect::kOn);
      }
    }
  }
};

} // namespace
