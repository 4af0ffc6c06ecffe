//===- LowerToRt.cpp - lower-to-rt ------------------------------------------------------------===//
//
// Function by function, op by op: begin(op), then the op's own model builds its calls. Only what
// has regions, symbols or is read by the host is handled here: reads, writes, loops (those with an
// order in LowerOrder.cpp), returns. A comment is set where the ops' module in the model changes.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Lower/FunctionLowering.h"
#include "lib/Lower/ProgramTables.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Analysis/Work.h"
#include "partita/Lower/Lowering.h"
#include "partita/Lower/Passes.h"
#include "llvm/Support/SaveAndRestore.h"

namespace partita {
#define GEN_PASS_DEF_LOWERTORT
#include "partita/Lower/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// Checks that the target has kernels for an element type. float64 is allowed only for norms and for
/// combining the norms of pipeline stages; phase `import` leaves no other.
LogicalResult checkType(Operation *op, RankedTensorType type) {
  Type element = type.getElementType();
  bool computes =
      isa<tx::TxDialect>(op->getDialect()) && !isa<tx::ConcatOp, tx::SliceOp, tx::ConstantOp>(op);
  bool isNorm = element.isF64() && !computes && type.getRank() <= 1;
  bool isStored = element.isF32() || isShortFloat(element) || isByteFloat(element);
  if (isa<FloatType>(element) && !isStored && !isNorm)
    return op->emitOpError() << "has no kernel on this target for " << type
                             << "; run single-precision first";
  if (!isa<FloatType>(element) && !element.isInteger(64) && !element.isInteger(32) &&
      !element.isInteger(1) && (computes || !element.isInteger(8)))
    return op->emitOpError() << "has no kernel on this target for " << type;
  if (type.getRank() > kMaxDims)
    return op->emitOpError() << "has no kernel on this target for " << type << ": it has "
                             << type.getRank() << " dimensions, more than " << kMaxDims;
  return success();
}

LogicalResult checkTypes(Operation *op) {
  WalkResult result = op->walk([&](Operation *inner) -> WalkResult {
    for (Value value : llvm::concat<Value>(inner->getOperands(), inner->getResults()))
      if (auto type = dyn_cast<RankedTensorType>(value.getType()))
        if (failed(checkType(inner, type)))
          return failure();
    return success();
  });
  return failure(result.wasInterrupted());
}

/// Does the op have a place for each of its tensors, of a collective that works in its operands for each of those, and
/// scratch memory if its kernel needs it? Text that was edited may lack them.
LogicalResult checkPlaces(Operation *op) {
  auto kernel = dyn_cast<KernelInterface>(op);
  auto places = op->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
  bool worksInOperands = kernel && op->getNumOperands() > 0 && kernel.overwritesOperand(0);
  size_t wanted = worksInOperands
                      ? op->getNumOperands()
                      : llvm::count_if(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  if (places && (places.size() != wanted || !llvm::all_of(places, llvm::IsaPred<AtAttr>)))
    return op->emitOpError() << "has " << places << " as " << RtDialect::kBuffers << ", and "
                             << wanted << (worksInOperands ? " operands" : " results")
                             << " need a place each (#rt.at)";
  if (kernel && kernel.workspaceElements() > 0 && !op->getAttrOfType<AtAttr>(RtDialect::kWorkspace))
    return op->emitOpError() << "has no " << RtDialect::kWorkspace
                             << ", and its kernel needs scratch memory for "
                             << kernel.workspaceElements() << " floats";
  return success();
}

} // namespace

LogicalResult FunctionLowering::run() {
  totalCount = findTotalCount();
  return lowerBlock(from.getBody().front());
}

LogicalResult FunctionLowering::lowerBlock(Block &block) {
  for (Operation &op : block) {
    l.begin(&op);
    comment(&op);
    markWork(&op);
    markLayer(&op);
    if (failed(lowerOp(&op)))
      return failure();
    if (totalCount && totalCount.getDefiningOp() == &op)
      l.create<ReportOp>("tokenCount", l.buffer(totalCount), Value());
  }
  return success();
}

llvm::iterator_range<Block::iterator> FunctionLowering::madeBy(function_ref<LogicalResult()> make,
                                                               LogicalResult &result) {
  Block &block = *builder.getInsertionBlock();
  bool isFirst = builder.getInsertionPoint() == block.begin();
  Block::iterator before = isFirst ? block.end() : std::prev(builder.getInsertionPoint());
  result = make();
  return {isFirst ? block.begin() : std::next(before), builder.getInsertionPoint()};
}

/// Does the op have a place in memory that lives on after the function? Then its calls, if it has any, write there: a
/// view, or a read, has none.
static bool worksInPersistent(Operation *op) {
  auto isThere = [](Attribute place) {
    auto at = dyn_cast_or_null<AtAttr>(place);
    return at && isPersistent(at.getSpace());
  };
  auto places = op->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
  return isa<train::WriteOp>(op) || isThere(op->getAttr(RtDialect::kWorkspace)) ||
         (places && llvm::any_of(places, isThere));
}

LogicalResult FunctionLowering::lowerOp(Operation *op) {
  if (hasChanges || !worksInPersistent(op) || train::is(from, train::EntryPoint::Init) ||
      Target::of(from).queuesWork())
    return lowerCalls(op);
  LogicalResult lowered = success();
  for (Operation &made : madeBy([&] { return lowerCalls(op); }, lowered))
    if (!isPointer(&made)) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(&made);
      l.create<BeginChangesOp>();
      hasChanges = true;
      break;
    }
  return lowered;
}

LogicalResult FunctionLowering::lowerCalls(Operation *op) {
  if (isa<train::ReadOp>(op))
    return success();
  if (!isa<func::ReturnOp, train::YieldOp>(op) && failed(checkPlaces(op)))
    return failure();
  if (auto write = dyn_cast<train::WriteOp>(op))
    return lowerWrite(write);
  if (auto loop = dyn_cast<train::AccumulateOp>(op))
    return lowerLoop(loop);
  if (auto end = dyn_cast<func::ReturnOp>(op))
    return lowerReturn(end);
  auto kernel = dyn_cast<KernelInterface>(op);
  if (!kernel || !(op->hasAttr(RtDialect::kBuffers) || op->getNumResults() == 0))
    return op->emitOpError() << "has no place in memory; run plan-memory first";
  return failed(checkTypes(op)) ? failure() : kernel.lower(l);
}

LogicalResult FunctionLowering::lowerWrite(train::WriteOp write) {
  Operation *symbol = SymbolTable::lookupNearestSymbolFrom(write, write.getSymbolAttr());
  auto at = symbol->getAttrOfType<AtAttr>(RtDialect::kAt);
  if (l.at(write.getValue()) == at)
    return success();
  RankedTensorType type = l.type(write.getValue());
  Value target = l.pointer(at, type.getElementType(), type.getShape(), write.getSymbol());
  l.copy(target, View::dense(type.getShape()), write.getValue());
  return success();
}

LogicalResult FunctionLowering::lowerLoop(train::AccumulateOp loop) {
  for (Value sum : loop.getSums()) {
    if (!isa<FloatType>(l.type(sum).getElementType()))
      return loop.emitOpError() << "adds up floats on this target, not " << sum.getType();
    l.create<FillOp>(l.buffer(sum), APFloat(0.0), l.elements(sum));
  }
  if (loop.getOrder())
    return lowerOrder(loop);
  auto made = l.create<ForOp>(loop.getCount());
  OpBuilder::InsertionGuard guard(builder);
  Block &body = made.getBody().front();
  builder.setInsertionPoint(body.getTerminator());
  return lowerRegion(loop, loop.getBody(), body.getArgument(0));
}

LogicalResult FunctionLowering::lowerRegion(train::AccumulateOp loop, Region &region, Value micro) {
  llvm::SaveAndRestore outside(hasChanges);
  l.enterLoop(loop, region, micro);
  forgetWork(); // a micro-batch begins with another kind than the one before ended with
  for (Operation &op : region.front()) {
    l.begin(&op);
    comment(&op);
    markWork(&op);
    markLayer(&op);
    if (auto yield = dyn_cast<train::YieldOp>(op))
      addUp(yield, loop);
    else if (failed(op.hasAttr(train::TrainDialect::kLast)
                        ? lowerLast(&op, loop.getLastMicroBatch(loop.numberOf(region)))
                        : lowerOp(&op)))
      return failure();
  }
  l.leaveLoop();
  forgetWork();
  return success();
}

void FunctionLowering::addUp(train::YieldOp yield, train::AccumulateOp loop) {
  for (OpOperand &part : yield->getOpOperands()) {
    std::optional<unsigned> number = loop.getSumOf(part);
    if (!number) // saved: it stands where later passes look
      continue;
    Value value = part.get(), sum = loop.getSums()[*number];
    if (!loop.getSoFar(*number))
      l.create<AccumulateOp>(l.buffer(sum), l.buffer(value), l.elements(sum));
    else if (!l.samePlace(value, sum))
      l.copy(l.buffer(sum), l.view(sum), value);
  }
}

LogicalResult FunctionLowering::lowerReturn(func::ReturnOp end) {
  OperandRange results = end.getOperands();
  if (train::is(from, train::EntryPoint::TrainStep) && !results.empty())
    l.create<ReportOp>("loss", l.buffer(results[0]), Value());
  if (train::is(from, train::EntryPoint::EvalStep) && results.size() == 2) {
    l.create<ReportOp>("loss", l.buffer(results[0]), Value()); // the mean already
    l.create<ReportOp>("tokenCount", l.buffer(results[1]), Value());
  }
  if (train::is(from, train::EntryPoint::Forward) && !results.empty() && failed(lowerResults(end)))
    return failure();
  func::ReturnOp::create(builder, end.getLoc());
  return success();
}

LogicalResult FunctionLowering::lowerResults(func::ReturnOp end) {
  auto places = end->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
  if (!places)
    return end.emitOpError() << "has no place for its results; run plan-memory first";
  for (auto [result, place] : llvm::zip(end.getOperands(), places.getAsRange<AtAttr>())) {
    if (l.at(result) == place)
      continue;
    RankedTensorType type = l.type(result);
    Value target = l.pointer(place, type.getElementType(), type.getShape(), "result");
    l.copy(target, View::dense(type.getShape()), result);
  }
  return success();
}

Value FunctionLowering::findTotalCount() {
  Value count;
  if (train::is(from, train::EntryPoint::TrainStep))
    from.walk([&](train::TokenCountOp op) { count = op.getCount(); });
  while (count) {
    Value sum;
    for (OpOperand &use : count.getUses()) {
      if (isa<par::AllReduceOp>(use.getOwner()))
        sum = use.getOwner()->getResult(use.getOperandNumber());
      else if (isa<AsyncWaitInterface>(use.getOwner()))
        sum = use.getOwner()->getResult(use.getOperandNumber() - 1);
    }
    if (!sum)
      break;
    count = sum;
  }
  return count;
}

void FunctionLowering::comment(Operation *op) {
  if (isa<tx::ConstantOp>(op))
    return;
  backward |= computesGradients(op);
  std::string path = l.naming.moduleOf(op);
  bool update = isa<train::OptimizerInterface>(op);
  if (update)
    path = "update";
  else if (path.empty())
    return;
  else if (backward)
    path += ", backward";
  if (path != lastComment && heading && isEmpty()) {
    heading.erase();
    heading = {};
    lastComment = commentBefore;
  }
  if (path == lastComment)
    return;
  commentBefore = lastComment;
  lastComment = path;
  heading = l.create<CommentOp>(path);
}

bool FunctionLowering::isEmpty() {
  if (heading->getBlock() != builder.getInsertionBlock())
    return false;
  auto after = llvm::make_range(std::next(Block::iterator(heading)), builder.getInsertionPoint());
  return llvm::all_of(after, [](Operation &op) { return isPointer(&op); });
}

static bool computes(Operation *op) {
  bool isTensorOp = isa<tx::TxDialect>(op->getDialect()); // a region of these is one kernel
  bool isOther = isa<train::TrainDialect, amp::AmpDialect>(op->getDialect());
  return (isTensorOp || (isOther && op->getNumRegions() == 0)) &&
         op->hasAttr(RtDialect::kBuffers) && op->getNumOperands() > 0 && !analysis::isView(op);
}

bool FunctionLowering::marks(func::FuncOp from) {
  return train::entryPointOf(from) && !train::is(from, train::EntryPoint::Init) &&
         !Target::of(from).queuesWork();
}

void FunctionLowering::markLayer(Operation *op) {
  train::LayerAttr layer = train::LayerAttr::of(op);
  if (!marksLayers || !layer || !computes(op))
    return;
  bool isUpdate = op->hasTrait<UpdateWork>(); // one call makes those of all layers
  int64_t number = isUpdate ? train::LayerAttr::kOnce : layer.getNumber();
  if (number == lastLayer)
    return;
  lastLayer = number;
  l.create<BeginLayerOp>(*lastLayer);
}

void FunctionLowering::markWork(Operation *op) {
  if (!train::is(from, train::EntryPoint::TrainStep) || !computes(op))
    return;
  inBackward |= computesGradients(op);
  Work work = op->hasTrait<UpdateWork>() ? Work::Update
              : inBackward               ? Work::Backward
                                         : Work::Forward;
  if (work != lastWork)
    l.create<WorkOp>(work);
  lastWork = work;
}

void FunctionLowering::forgetWork() {
  lastWork.reset();
  lastLayer.reset();
  inBackward = backward = false;
}

namespace {

/// The hyperparameters that go into the rank's table: of a stage of a pipeline those that all stages
/// share.
void shareHyperparameters(ModuleLowering &shared) {
  auto share = [&](StringRef name, double value) {
    if (StringRef field = hyperField(name); !field.empty())
      shared.hyper.try_emplace(field.str(), value);
  };
  if (auto noted = shared.module->getAttrOfType<DictionaryAttr>(pipe::PipeDialect::kHyper)) {
    for (NamedAttribute each : noted)
      if (auto value = dyn_cast<FloatAttr>(each.getValue()))
        share(each.getName(), value.getValueAsDouble());
    return;
  }
  for (auto &[name, value] : analysis::sharedHyperparameters(shared.module))
    share(name, value);
}

/// Numbers the rows of the program's tables, which are those of all its stages.
void numberSymbols(ModuleLowering &shared) {
  auto number = [&](StringRef noted, llvm::StringMap<int> &index) {
    auto list = shared.module->getAttrOfType<ArrayAttr>(noted);
    for (auto symbol : rt::elementsOf<FlatSymbolRefAttr>(list))
      index.try_emplace(symbol.getValue(), index.size());
    return bool(list);
  };
  if (!number(pipe::PipeDialect::kParameters, shared.parameterIndex))
    for (auto parameter : shared.module.getOps<train::ParameterOp>())
      shared.parameterIndex[parameter.getSymName()] = shared.parameterIndex.size();
  if (!number(pipe::PipeDialect::kParameterStates, shared.stateIndex))
    for (auto state : shared.module.getOps<train::StateOp>())
      if (state.getOf())
        shared.stateIndex[state.getSymName()] = shared.stateIndex.size();
}

/// Nothing else gives a parameter or state its first value.
LogicalResult checkInit(ModuleOp module) {
  auto init = train::lookup<func::FuncOp>(module, train::EntryPoint::Init);
  if (!init)
    return success(); // a fragment; emission refuses it
  llvm::StringSet<> written;
  init.walk([&](train::WriteOp write) { written.insert(write.getSymbol()); });
  for (Operation &op : *module.getBody())
    if (isa<train::ParameterOp, train::StateOp>(op) &&
        !written.contains(SymbolTable::getSymbolName(&op).getValue()))
      return op.emitOpError() << "gets no initial value: the entry point '"
                              << train::nameOf(train::EntryPoint::Init) << "', @" << init.getName()
                              << ", does not write it";
  return success();
}

/// Kernels run one after another, so the largest scratch memory serves them all.
void noteScratch(ModuleOp module) {
  if (!Target::of(module).takesScratch())
    return;
  int64_t bytes = 0;
  module.walk([&](CallInterface call) { bytes = std::max(bytes, call.getScratchBytes()); });
  module->setAttr(RtDialect::kScratchBytes, Builder(module.getContext()).getI64IntegerAttr(bytes));
}

void noteCapability(ModuleOp module) {
  int64_t least = 0;
  module.walk([&](CallInterface call) { least = std::max(least, call.getLeastCapability()); });
  if (least > 0 && !Target::of(module).getArchitectures().empty())
    module->setAttr(RtDialect::kLeastCapability,
                    Builder(module.getContext()).getI64IntegerAttr(least));
}

struct LowerToRt : partita::impl::LowerToRtBase<LowerToRt> {
  using Base::Base;
  void runOnOperation() override {
    if (failed(expectScheduled(*this, getOperation())))
      return signalPassFailure();
    ModuleOp module = getOperation();
    if (module->hasAttr(RtDialect::kProgram)) {
      module.emitError() << "lower-to-rt: the program is lowered already: the module has "
                         << RtDialect::kProgram;
      return signalPassFailure();
    }
    ModuleLowering shared;
    shared.module = module;
    numberSymbols(shared);
    shareHyperparameters(shared);
    shared.learningRate = learningRate;
    shared.lrSchedule = lrSchedule;
    FailureOr<ProgramTables> tables = collectTables(module, shared);
    if (failed(tables) || failed(checkInit(module)))
      return signalPassFailure();
    SmallVector<func::FuncOp> sources(module.getOps<func::FuncOp>());
    for (func::FuncOp function : sources) {
      OpBuilder at(function);
      auto made = func::FuncOp::create(at, function.getLoc(), function.getName(),
                                       at.getFunctionType({}, {}));
      SymbolTable::setSymbolVisibility(made, SymbolTable::Visibility::Public);
      if (Attribute entry = function->getAttr(train::TrainDialect::kEntryPoint))
        made->setAttr(train::TrainDialect::kEntryPoint, entry);
      if (failed(FunctionLowering(shared, function, made).run()))
        return signalPassFailure();
      function.erase();
      ++functions;
    }
    kernels += llvm::range_size(module.getOps<KernelOp>());
    FailureOr<ProgramAttr> program = tables->asAttribute(module, shared.lrSchedule);
    if (failed(program))
      return signalPassFailure();
    module->setAttr(RtDialect::kProgram, *program);
    noteScratch(module);
    noteCapability(module);
  }
};

} // namespace
