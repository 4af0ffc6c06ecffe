//===- Pipe.cpp - communication between pipeline stages ---------------------------------------===//

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

std::optional<Positions> pipe::positionsOf(Operation *op) {
  auto number = [](Operation *of, StringRef name) -> std::optional<int64_t> {
    Attribute value = of->getAttr(name);
    return isI64From(1, value) ? std::optional(cast<IntegerAttr>(value).getInt()) : std::nullopt;
  };
  for (; op; op = op->getParentOp())
    for (StringRef name : {PipeDialect::kStages, PipeDialect::kCount})
      if (std::optional<int64_t> stages = number(op, name))
        return Positions{*stages, number(op, PipeDialect::kChunks).value_or(1),
                         op->hasAttr(PipeDialect::kWave)};
  return std::nullopt;
}

SmallVector<int64_t> pipe::allOf(const Positions &positions) {
  return llvm::to_vector(llvm::seq<int64_t>(0, positions.count()));
}

std::optional<int64_t> pipe::stageCount(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto number = op->getAttrOfType<IntegerAttr>(PipeDialect::kCount))
      return number.getInt();
  return std::nullopt;
}

Location pipe::withRole(Location loc, par::Role role) {
  auto none = StringAttr::get(loc.getContext(), "");
  return par::withCause(loc, par::CauseAttr::get(loc.getContext(), role, none, none, none, none,
                                                 par::CauseAttr::kOnce, 0, {}));
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
  if (auto place = program->getAttrOfType<IntegerAttr>(PipeDialect::kAxis);
      place && stageOf(stages[0]))
    axes.insert(axes.begin() + std::min<int64_t>(place.getInt(), axes.size()),
                {StringAttr::get(program.getContext(), PipeDialect::kAxisName),
                 static_cast<int64_t>(stages.size())});
  return axes;
}

/// Checks that the op is on the stage at its end of the channel, and that the other end is another
/// stage of the program.
static LogicalResult verifyEnd(Operation *op, int64_t stage, int64_t peer, StringRef verb) {
  std::optional<int64_t> own = stageOf(op);
  if (!own)
    return op->emitOpError() << "is of no stage: no module around it has " << PipeDialect::kStage;
  if (*own != stage)
    return op->emitOpError() << "is of stage " << *own << ", but stage " << stage << ' ' << verb
                             << " over this channel";
  if (std::optional<int64_t> count = stageCount(op); count && peer >= *count)
    return op->emitOpError() << "has a channel to stage " << peer << "; there are " << *count
                             << " stages";
  return success();
}

LogicalResult SendOp::verify() {
  return verifyEnd(*this, getChannel().getFrom(), getChannel().getTo(), "sends");
}

LogicalResult RecvOp::verify() {
  return verifyEnd(*this, getChannel().getTo(), getChannel().getFrom(), "receives");
}

//===----------------------------------------------------------------------------------------------===//
// Programs of all stages
//===----------------------------------------------------------------------------------------------===//

LogicalResult MoveOp::verify() {
  if (stageOf(*this))
    return emitOpError() << "is within a stage; values leave one by pipe.send";
  int64_t ends[] = {std::min(getChannel().getFrom(), getChannel().getTo()),
                    std::max(getChannel().getFrom(), getChannel().getTo())};
  return verifyPositions(*this, ends);
}

SmallVector<Value> MoveOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  auto back = ChannelAttr::get(getContext(), getChannel().getTo(), getChannel().getFrom(),
                               getChannel().getNumber());
  return {MoveOp::create(builder, getLoc(), cotangents[0].getType(), cotangents[0], back)};
}

LogicalResult ShareOp::verify() { return verifyPositions(*this, getStages()); }

SmallVector<Value> ShareOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {SumOp::create(builder, withRole(getLoc(), par::Role::Held), cotangents[0].getType(),
                        cotangents[0], getStages(),
                        builder.getStringAttr("gradients of shared parameters"))};
}

LogicalResult SumOp::verify() {
  std::optional<int64_t> own = stageOf(*this);
  if (own && !llvm::is_contained(getStages(), *own))
    return emitOpError() << "is of stage " << *own << ", which is not among those that it sums";
  return verifyPositions(*this, getStages());
}

StringAttr SumOp::getAxisAttr() { return StringAttr::get(getContext(), PipeDialect::kAxisName); }

SmallVector<Value> SumOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {ShareOp::create(builder, getLoc(), cotangents[0].getType(), cotangents[0], getStages())};
}

LogicalResult PinOp::verify() { return verifyPositions(*this, getPosition()); }

SmallVector<Value> PinOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  return {PinOp::create(builder, getLoc(), cotangents[0].getType(), cotangents[0], getPosition())};
}

LogicalResult CopiesOp::verify() {
  if (getValues().size() != getStages().size())
    return emitOpError() << "has " << getValues().size() << " copies for " << getStages().size()
                         << " positions";
  for (Type type : getValues().getTypes())
    if (type != getType())
      return emitOpError() << "has a copy of " << type << ", expected " << getType();
  SmallVector<int64_t> stages(getStages());
  llvm::sort(stages);
  return verifyPositions(*this, stages);
}

ParseResult CopiesOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> values;
  DenseI64ArrayAttr stages;
  Type type;
  if (parser.parseOperandList(values) || parser.parseKeyword("on"))
    return failure();
  stages = dyn_cast_or_null<DenseI64ArrayAttr>(DenseI64ArrayAttr::parse(parser, Type()));
  if (!stages || parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type) ||
      parser.resolveOperands(values, type, result.operands))
    return failure();
  result.getOrAddProperties<Properties>().stages = stages;
  result.addTypes(type);
  return success();
}

void CopiesOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getValues() << " on ";
  getStagesAttr().print(printer);
  printer.printOptionalAttrDict((*this)->getAttrs(), {getStagesAttrName()});
  printer << " : " << getType();
}
