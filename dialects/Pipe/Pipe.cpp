//===- Pipe.cpp - communication between pipeline stages ---------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Par/Par.h"
#include "dialects/Pipe/Sums.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>
#include <tuple>

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
  auto number = dyn_cast_or_null<IntegerAttr>(attribute);
  return number && number.getType().isInteger(64) && number.getInt() >= least;
}

static LogicalResult verifyStageAttribute(Operation *op, NamedAttribute attribute) {
  Attribute stage = attribute.getValue();
  if (!isOfAtLeast(stage, 0))
    return op->emitError() << PipeDialect::kStage << " is " << stage
                           << ", expected the number of a stage, an i64 from 0";
  if (!isa<ModuleOp>(op) || !isa_and_nonnull<ModuleOp>(op->getParentOp()))
    return op->emitError() << PipeDialect::kStage
                           << " belongs on a module within the program's module";
  return success();
}

static LogicalResult verifyNumberOfStages(Operation *op, NamedAttribute count) {
  if (isOfAtLeast(count.getValue(), 2) &&
      !isOfAtLeast(count.getValue(), PipeDialect::kMaxStages + 1))
    return success();
  return op->emitError() << count.getName().strref() << " is " << count.getValue()
                         << ", expected a number of stages, an i64 from 2 to "
                         << PipeDialect::kMaxStages;
}

/// Checks that a channel number belongs to one move between two stages, and to the move that takes
/// its gradient back.
static LogicalResult verifyChannels(Operation *symbol, const Positions &positions) {
  std::map<std::tuple<int64_t, int64_t, int64_t>, SmallVector<MoveOp, 2>> byChannel;
  WalkResult result = symbol->walk([&](MoveOp move) -> WalkResult {
    ChannelAttr channel = move.getChannelAttr();
    if (!channel) // reported by the op's verifier
      return WalkResult::advance();
    auto [from, to] =
        std::minmax({positions.stageOf(channel.getFrom()), positions.stageOf(channel.getTo())});
    SmallVector<MoveOp, 2> &others = byChannel[{from, to, channel.getNumber()}];
    for (MoveOp other : others) {
      if (from == to || (other.getChannel().getFrom() == channel.getTo() &&
                         other.getChannel().getTo() == channel.getFrom()))
        continue;
      InFlightDiagnostic error = move.emitOpError() << "has channel number " << channel.getNumber()
                                                    << " between stages " << from << " and " << to
                                                    << ", which another move has";
      error.attachNote(other.getLoc())
          << "the other move, from " << other.getChannel().getFrom() << " to "
          << other.getChannel().getTo() << "; only the move of its gradient may share its number";
      return error;
    }
    others.push_back(move);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult verifyStagesAttribute(Operation *op, NamedAttribute stages) {
  if (failed(verifyNumberOfStages(op, stages)))
    return failure();
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return op->emitError() << PipeDialect::kStages << " belongs on a module";
  for (Operation &symbol : *module.getBody())
    if (failed(verifyChannels(&symbol, *positionsOf(op))))
      return failure();
  return success();
}

static LogicalResult verifyCount(Operation *op, NamedAttribute count) {
  if (failed(verifyNumberOfStages(op, count)))
    return failure();
  Attribute stage = op->getAttr(PipeDialect::kStage);
  int64_t stages = cast<IntegerAttr>(count.getValue()).getInt();
  if (!stage)
    return op->emitError() << PipeDialect::kCount << " belongs on a module with "
                           << PipeDialect::kStage;
  if (isOfAtLeast(stage, stages))
    return op->emitError() << PipeDialect::kStage << " is " << stage << " of " << stages
                           << " stages, which are numbered from 0 to " << stages - 1;
  return success();
}

/// Checks that a list is ascending, not empty, and only has the program's stages (within a stage)
/// or positions (in the program of all stages).
static LogicalResult verifyPositions(Operation *op, ArrayRef<int64_t> list) {
  auto module = op->getParentOfType<ModuleOp>();
  Positions positions{PipeDialect::kMaxStages};
  if (stageOf(op))
    positions.stages = stageCount(op).value_or(PipeDialect::kMaxStages);
  else if (module && module->hasAttr(PipeDialect::kStages))
    positions = *positionsOf(module);
  StringRef what = positionNoun(positions);
  for (auto [i, position] : llvm::enumerate(list))
    if (position < (i == 0 ? 0 : list[i - 1] + 1) || position >= positions.count())
      return op->emitError() << "lists " << what << "s [" << list << "]; expected distinct " << what
                             << "s below " << positions.count() << ", in ascending order";
  return list.empty() ? op->emitError() << "lists no " << what : success();
}

static LogicalResult verifyChunks(Operation *op, NamedAttribute attribute) {
  Attribute chunks = attribute.getValue();
  if (!isOfAtLeast(chunks, 1) || isOfAtLeast(chunks, kMaxPositions + 1))
    return op->emitError() << PipeDialect::kChunks << " is " << chunks
                           << ", expected a number of chunks, an i64 from 1 to " << kMaxPositions;
  std::optional<Positions> positions = positionsOf(op);
  if (!isa<ModuleOp>(op) || !positions)
    return op->emitError() << PipeDialect::kChunks << " belongs on a module with "
                           << PipeDialect::kStages << " or " << PipeDialect::kCount;
  if (positions->count() > kMaxPositions)
    return op->emitError() << PipeDialect::kChunks << " is " << positions->chunks << " of "
                           << positions->stages << " stages; " << kMaxPositions
                           << " chunks of all stages are possible";
  return success();
}

/// Checks the first layers of the program's positions.
static LogicalResult verifyCuts(Operation *op, NamedAttribute attribute) {
  Attribute value = attribute.getValue();
  auto cuts = dyn_cast<DenseI64ArrayAttr>(value);
  std::optional<Positions> positions = positionsOf(op);
  if (!cuts || (positions && cuts.size() != positions->count()))
    return op->emitError() << PipeDialect::kCuts << " is " << value
                           << ", expected the first layer of each of "
                           << (positions ? positions->count() : 0)
                           << (positions && positions->chunks > 1 ? " positions" : " stages");
  return success();
}

/// Reports that an attribute has another value than `expected`.
static LogicalResult refuse(Operation *op, NamedAttribute attribute, StringRef expected) {
  return op->emitError() << attribute.getName().strref() << " is " << attribute.getValue()
                         << ", expected " << expected;
}

static LogicalResult verifyNumber(Operation *op, NamedAttribute attribute) {
  return isOfAtLeast(attribute.getValue(), 0) ? success() : refuse(op, attribute, "an i64 from 0");
}

static LogicalResult verifyLimited(Operation *op, NamedAttribute attribute) {
  return isa<LimitedAttr>(attribute.getValue()) ? success()
                                                : refuse(op, attribute, "a #pipe.limited");
}

static LogicalResult verifyHyper(Operation *op, NamedAttribute attribute) {
  return isa<DictionaryAttr>(attribute.getValue())
             ? success()
             : refuse(op, attribute, "hyperparameters by name");
}

static LogicalResult verifySymbols(Operation *op, NamedAttribute attribute) {
  auto list = dyn_cast<ArrayAttr>(attribute.getValue());
  return list && llvm::all_of(list, llvm::IsaPred<FlatSymbolRefAttr>)
             ? success()
             : refuse(op, attribute, "a list of symbols");
}

/// A program has the list on all of its stages; there, it has cut sums.
static LogicalResult verifyParameters(Operation *op, NamedAttribute attribute) {
  if (failed(verifySymbols(op, attribute)))
    return failure();
  auto program = dyn_cast<ModuleOp>(op);
  return program ? verifySums(program) : success();
}

static LogicalResult verifyIdle(Operation *op, NamedAttribute attribute) {
  auto options = dyn_cast<DictionaryAttr>(attribute.getValue());
  if (!options || !llvm::all_of(options, [](NamedAttribute option) {
        return isa<StringAttr>(option.getValue());
      }))
    return refuse(op, attribute, "a reason for each option");
  return op->hasAttr(PipeDialect::kStage) ? success()
                                          : op->emitError() << PipeDialect::kIdle
                                                            << " belongs on a module with "
                                                            << PipeDialect::kStage;
}

static LogicalResult verifyUnit(Operation *op, NamedAttribute attribute) {
  return isa<UnitAttr>(attribute.getValue()) ? success() : refuse(op, attribute, "a unit");
}

static LogicalResult verifyWave(Operation *op, NamedAttribute attribute) {
  return isa<UnitAttr>(attribute.getValue()) && op->hasAttr(PipeDialect::kChunks)
             ? success()
             : op->emitError() << PipeDialect::kWave << " is a unit, beside "
                               << PipeDialect::kChunks;
}

static LogicalResult verifyHolders(Operation *op, NamedAttribute attribute) {
  auto list = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  return list ? verifyPositions(op, list.asArrayRef()) : refuse(op, attribute, "stages");
}

static constexpr std::pair<StringLiteral, LogicalResult (*)(Operation *, NamedAttribute)>
    kAttributes[] = {
        {PipeDialect::kStage, verifyStageAttribute},
        {PipeDialect::kStages, verifyStagesAttribute},
        {PipeDialect::kCount, verifyCount},
        {PipeDialect::kChunks, verifyChunks},
        {PipeDialect::kWave, verifyWave},
        {PipeDialect::kCuts, verifyCuts},
        {PipeDialect::kLimited, verifyLimited},
        {PipeDialect::kHolders, verifyHolders},
        {PipeDialect::kAxis, verifyNumber},
        {PipeDialect::kOffset, verifyNumber},
        {kSumNumber, verifyNumber},
        {PipeDialect::kMayJoin, verifyUnit},
        {PipeDialect::kParameters, verifyParameters},
        {PipeDialect::kParameterStates, verifySymbols},
        {PipeDialect::kHyper, verifyHyper},
        {PipeDialect::kIdle, verifyIdle},
};

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  for (auto [name, verify] : kAttributes)
    if (attribute.getName() == name)
      return verify(op, attribute);
  return op->emitError() << attribute.getName() << " is not an attribute of an op";
}

LogicalResult LimitedAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t limit,
                                  DenseI64ArrayAttr, int64_t stage, int64_t bytes, int64_t tried) {
  if (limit < 0 || stage < 0 || bytes <= limit || tried < 0)
    return emitError() << "stage " << stage << " needs " << bytes << " bytes, and the limit of "
                       << limit << " decided nothing";
  return success();
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

std::optional<Positions> pipe::positionsOf(Operation *op) {
  auto number = [](Operation *of, StringRef name) -> std::optional<int64_t> {
    Attribute value = of->getAttr(name);
    return isOfAtLeast(value, 1) ? std::optional(cast<IntegerAttr>(value).getInt()) : std::nullopt;
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
