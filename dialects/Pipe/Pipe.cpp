//===- Pipe.cpp - between pipeline stages -----------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Par/Par.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita;
using namespace partita::pipe;

#include "dialects/Pipe/PipeDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Pipe/PipeAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Pipe/PipeOps.cpp.inc"

void PipeDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Pipe/PipeAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Pipe/PipeOps.cpp.inc"
      >();
}

static bool isOfAtLeast(Attribute attribute, int64_t least) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  return number && number.getType().isInteger(64) && number.getInt() >= least;
}

static LogicalResult verifyStageAttribute(Operation *op, Attribute stage) {
  if (!isOfAtLeast(stage, 0))
    return op->emitError() << PipeDialect::kStage << " is " << stage
                           << ", expected the number of a stage, an i64 from 0";
  if (!isa<ModuleOp>(op) || !isa_and_nonnull<ModuleOp>(op->getParentOp()))
    return op->emitError() << PipeDialect::kStage
                           << " belongs on a module within the program's module";
  return success();
}

static LogicalResult verifyStagesAttribute(Operation *op, Attribute stages) {
  if (!isOfAtLeast(stages, 2) || isOfAtLeast(stages, PipeDialect::kMaxStages + 1))
    return op->emitError() << PipeDialect::kStages << " is " << stages
                           << ", expected a number of stages, an i64 from 2 to "
                           << PipeDialect::kMaxStages;
  if (!isa<ModuleOp>(op))
    return op->emitError() << PipeDialect::kStages << " belongs on a module";
  return success();
}

/// One at least, ascending, each of the program's.
static LogicalResult verifyStageList(Operation *op, ArrayRef<int64_t> list) {
  auto module = op->getParentOfType<ModuleOp>();
  auto count = module ? module->getAttrOfType<IntegerAttr>(PipeDialect::kStages) : IntegerAttr();
  int64_t end = count ? count.getInt() : PipeDialect::kMaxStages;
  for (auto [i, stage] : llvm::enumerate(list))
    if (stage < (i == 0 ? 0 : list[i - 1] + 1) || stage >= end)
      return op->emitError() << "lists stages [" << list << "]; expected distinct stages below "
                             << end << ", in ascending order";
  return list.empty() ? op->emitError() << "lists no stage" : success();
}

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kStage)
    return verifyStageAttribute(op, attribute.getValue());
  if (attribute.getName() == kStages)
    return verifyStagesAttribute(op, attribute.getValue());
  if (llvm::is_contained({kAxis, kCount, kOffset}, attribute.getName()))
    return isOfAtLeast(attribute.getValue(), 0)
               ? success()
               : op->emitError() << attribute.getName() << " is " << attribute.getValue()
                                 << ", expected an i64 from 0";
  if (attribute.getName() == kHyper)
    return isa<DictionaryAttr>(attribute.getValue())
               ? success()
               : op->emitError() << kHyper << " is " << attribute.getValue()
                                 << ", expected hyperparameters by name";
  if (llvm::is_contained({kParameters, kMoments}, attribute.getName())) {
    auto list = dyn_cast<ArrayAttr>(attribute.getValue());
    return list && llvm::all_of(list, llvm::IsaPred<FlatSymbolRefAttr>)
               ? success()
               : op->emitError() << attribute.getName() << " is " << attribute.getValue()
                                 << ", expected a list of symbols";
  }
  if (attribute.getName() == kCuts)
    return isa<DenseI64ArrayAttr>(attribute.getValue())
               ? success()
               : op->emitError() << kCuts << " is " << attribute.getValue()
                                 << ", expected the first layer of each stage";
  if (attribute.getName() != kOn)
    return op->emitError() << attribute.getName() << " is no attribute of an op";
  auto list = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  if (!list)
    return op->emitError() << kOn << " is " << attribute.getValue() << ", expected stages";
  return verifyStageList(op, list.asArrayRef());
}

LogicalResult ChannelAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t from,
                                  int64_t to, int64_t number) {
  if (from < 0 || to < 0 || number < 0)
    return emitError() << "stages and channels are numbered from 0";
  if (from == to)
    return emitError() << "a channel leads to another stage, not from " << from << " to itself";
  return success();
}

std::optional<int64_t> pipe::stageOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto number = op->getAttrOfType<IntegerAttr>(PipeDialect::kStage))
      return number.getInt();
  return std::nullopt;
}

int64_t pipe::axisNumber(Operation *op, int64_t number) {
  for (; op; op = op->getParentOp())
    if (auto place = op->getAttrOfType<IntegerAttr>(PipeDialect::kAxis))
      return number + (number >= place.getInt());
  return number;
}

std::optional<int64_t> pipe::stageCount(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto number = op->getAttrOfType<IntegerAttr>(PipeDialect::kCount))
      return number.getInt();
  return std::nullopt;
}

Location pipe::withRole(Location loc, StringRef role) {
  MLIRContext *context = loc.getContext();
  auto none = StringAttr::get(context, "");
  return par::withCause(loc, par::CauseAttr::get(context, StringAttr::get(context, role), none, none,
                                                 none, none, par::CauseAttr::kOnce, 0, {}));
}

SmallVector<ModuleOp> pipe::stagesOf(ModuleOp program) {
  SmallVector<ModuleOp> stages;
  for (auto each : program.getOps<ModuleOp>())
    if (each->hasAttr(PipeDialect::kStage))
      stages.push_back(each);
  llvm::sort(stages, [](ModuleOp a, ModuleOp b) { return *stageOf(a) < *stageOf(b); });
  return stages.empty() ? SmallVector<ModuleOp>{program} : stages;
}

SmallVector<std::pair<StringAttr, int64_t>> pipe::meshOf(ModuleOp program) {
  SmallVector<std::pair<StringAttr, int64_t>> axes;
  auto mesh = par::MeshAttr::of(program);
  for (auto [axis, size] : llvm::zip(mesh.getAxes(), mesh.getSizes()))
    axes.push_back({axis, size});
  SmallVector<ModuleOp> stages = stagesOf(program);
  if (auto place = program->getAttrOfType<IntegerAttr>(PipeDialect::kAxis); place && stageOf(stages[0]))
    axes.insert(axes.begin() + std::min<int64_t>(place.getInt(), axes.size()),
                {StringAttr::get(program.getContext(), PipeDialect::kAxisName),
                 static_cast<int64_t>(stages.size())});
  return axes;
}

/// Is the op of the stage at its end of the channel?
static LogicalResult verifyEnd(Operation *op, int64_t stage, StringRef verb) {
  std::optional<int64_t> own = stageOf(op);
  if (!own)
    return op->emitOpError() << "is of no stage: no module around it has " << PipeDialect::kStage;
  if (*own != stage)
    return op->emitOpError() << "is of stage " << *own << ", but stage " << stage << ' ' << verb
                             << " over this channel";
  return success();
}

LogicalResult SendOp::verify() { return verifyEnd(*this, getChannel().getFrom(), "sends"); }

LogicalResult RecvOp::verify() { return verifyEnd(*this, getChannel().getTo(), "receives"); }

//===----------------------------------------------------------------------------------------------===//
// One program of all stages
//===----------------------------------------------------------------------------------------------===//

LogicalResult MoveOp::verify() {
  if (stageOf(*this))
    return emitOpError() << "is within a stage; values leave one by pipe.send";
  int64_t ends[] = {std::min(getChannel().getFrom(), getChannel().getTo()),
                    std::max(getChannel().getFrom(), getChannel().getTo())};
  return verifyStageList(*this, ends);
}

SmallVector<Value> MoveOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  auto back = ChannelAttr::get(getContext(), getChannel().getTo(), getChannel().getFrom(),
                               getChannel().getNumber());
  return {MoveOp::create(builder, getLoc(), cotangents[0].getType(), cotangents[0], back)};
}

LogicalResult ShareOp::verify() { return verifyStageList(*this, getStages()); }

SmallVector<Value> ShareOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {SumOp::create(builder, withRole(getLoc(), "held"), cotangents[0].getType(), cotangents[0], getStages(),
                        builder.getStringAttr("gradients of shared parameters"))};
}

LogicalResult SumOp::verify() {
  std::optional<int64_t> own = stageOf(*this);
  if (own && !llvm::is_contained(getStages(), *own))
    return emitOpError() << "is of stage " << *own << ", which is none of those that it adds up";
  return verifyStageList(*this, getStages());
}

StringAttr SumOp::getAxisAttr() { return StringAttr::get(getContext(), PipeDialect::kAxisName); }

SmallVector<Value> SumOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {ShareOp::create(builder, getLoc(), cotangents[0].getType(), cotangents[0], getStages())};
}

LogicalResult PinOp::verify() { return verifyStageList(*this, getStage()); }

SmallVector<Value> PinOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {PinOp::create(builder, getLoc(), cotangents[0].getType(), cotangents[0], getStage())};
}
