//===- Attributes.cpp - checks the attributes of pipe -------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Pipe/Sums.h"
#include "dialects/Train/Tensors.h"
#include "dialects/Train/Train.h"
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

using namespace mlir;
using namespace partita;
using namespace partita::pipe;

bool pipe::isI64From(int64_t least, Attribute attribute) {
  auto number = dyn_cast_or_null<IntegerAttr>(attribute);
  return number && number.getType().isInteger(64) && number.getInt() >= least;
}

static LogicalResult verifyStageAttribute(Operation *op, NamedAttribute attribute) {
  Attribute stage = attribute.getValue();
  if (!isI64From(0, stage))
    return op->emitError() << PipeDialect::kStage << " is " << stage
                           << ", expected the number of a stage, an i64 from 0";
  if (!isa<ModuleOp>(op) || !isa_and_nonnull<ModuleOp>(op->getParentOp()))
    return op->emitError() << PipeDialect::kStage
                           << " belongs on a module within the program's module";
  return success();
}

static LogicalResult verifyNumberOfStages(Operation *op, NamedAttribute count) {
  if (isI64From(2, count.getValue()) && !isI64From(PipeDialect::kMaxStages + 1, count.getValue()))
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
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return op->emitError() << PipeDialect::kStages << " belongs on a module";
  int64_t count = cast<IntegerAttr>(stages.getValue()).getInt();
  if (auto schedule = op->getAttrOfType<train::ScheduleAttr>(train::TrainDialect::kSchedule);
      schedule && static_cast<int64_t>(schedule.getOrders().size()) != count)
    return op->emitError() << PipeDialect::kStages << " is " << count << ", and "
                           << train::TrainDialect::kSchedule << " is for "
                           << schedule.getOrders().size() << " stages";
  for (Operation &symbol : *module.getBody())
    if (failed(verifyChannels(&symbol, *positionsOf(op))))
      return failure();
  return success();
}

static LogicalResult verifyCount(Operation *op, NamedAttribute count) {
  Attribute stage = op->getAttr(PipeDialect::kStage);
  int64_t stages = cast<IntegerAttr>(count.getValue()).getInt();
  if (!stage)
    return op->emitError() << PipeDialect::kCount << " belongs on a module with "
                           << PipeDialect::kStage;
  if (isI64From(stages, stage))
    return op->emitError() << PipeDialect::kStage << " is " << stage << " of " << stages
                           << " stages, which are numbered from 0 to " << stages - 1;
  return success();
}

LogicalResult pipe::verifyPositions(Operation *op, ArrayRef<int64_t> list) {
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
  if (!isI64From(1, chunks) || isI64From(kMaxPositions + 1, chunks))
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

/// Reports that an attribute has another value than `expected`.
static LogicalResult refuse(Operation *op, NamedAttribute attribute, StringRef expected) {
  return op->emitError() << attribute.getName().strref() << " is " << attribute.getValue()
                         << ", expected " << expected;
}

static LogicalResult verifyNumber(Operation *op, NamedAttribute attribute) {
  return isI64From(0, attribute.getValue()) ? success() : refuse(op, attribute, "an i64 from 0");
}

/// Returns the positions of a program or of one of its stages; none of another op.
static std::optional<Positions> layoutOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  return module ? positionsOf(stagesOf(module).front()) : std::nullopt;
}

/// Returns true for the first layer of each position.
static bool areCuts(ArrayRef<int64_t> cuts, const Positions &positions) {
  return static_cast<int64_t>(cuts.size()) == positions.count() && !cuts.empty() && cuts[0] == 0 &&
         std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end();
}

static LogicalResult verifyCuts(Operation *op, NamedAttribute attribute) {
  std::optional<Positions> positions = layoutOf(op);
  if (!positions)
    return op->emitError() << PipeDialect::kCuts << " belongs on a module of stages: with "
                           << PipeDialect::kStages << ", or after the cut";
  auto cuts = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  if (!cuts || !areCuts(cuts, *positions))
    return refuse(op, attribute,
                  "the first layer of each of " + std::to_string(positions->count()) + ' ' +
                      positionNoun(*positions).str() + "s, ascending from 0");
  if (int64_t layers = train::layersOf(op); layers > 0 && cuts.asArrayRef().back() >= layers)
    return refuse(op, attribute, "layers below " + std::to_string(layers));
  return success();
}

/// Before the program is partitioned, its mesh is not known.
static LogicalResult verifyAxis(Operation *op, NamedAttribute attribute) {
  if (failed(verifyNumber(op, attribute)))
    return failure();
  size_t axes = par::MeshAttr::of(op).getAxes().size();
  bool hasMesh = op->hasAttr(par::ParDialect::kMesh) || !op->hasAttr(PipeDialect::kStages);
  if (hasMesh && isI64From(axes + 1, attribute.getValue()))
    return refuse(op, attribute,
                  "a place among the " + std::to_string(axes) + " axes of " +
                      par::ParDialect::kMesh.str());
  return success();
}

static LogicalResult verifyLimited(Operation *op, NamedAttribute attribute) {
  auto limited = dyn_cast<LimitedAttr>(attribute.getValue());
  if (!limited)
    return refuse(op, attribute, "a #pipe.limited");
  // The driver notes it before the stages.
  Positions positions = layoutOf(op).value_or(Positions{limited.getCuts().size()});
  if (!areCuts(limited.getCuts(), positions) || limited.getStage() >= positions.stages)
    return refuse(op, attribute, "cuts, and the fullest stage, of the module's stages");
  return success();
}

static LogicalResult verifyHyper(Operation *op, NamedAttribute attribute) {
  auto list = dyn_cast<DictionaryAttr>(attribute.getValue());
  return list && llvm::all_of(list,
                              [](NamedAttribute each) {
                                auto value = dyn_cast<FloatAttr>(each.getValue());
                                return value && value.getType().isF64();
                              })
             ? success()
             : refuse(op, attribute, "hyperparameters by name, each an f64");
}

static LogicalResult verifySymbols(Operation *op, NamedAttribute attribute) {
  auto list = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!list || !llvm::all_of(list, llvm::IsaPred<FlatSymbolRefAttr>))
    return refuse(op, attribute, "a list of symbols");
  llvm::SmallDenseSet<Attribute> seen;
  for (Attribute symbol : list)
    if (!seen.insert(symbol).second)
      return op->emitError() << attribute.getName().strref() << " lists " << symbol << " twice";
  return success();
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
        {PipeDialect::kAxis, verifyAxis},
        {PipeDialect::kOffset, verifyNumber},
        {kSumNumber, verifyNumber},
        {PipeDialect::kMayJoin, verifyUnit},
        {PipeDialect::kParameters, verifyParameters},
        {PipeDialect::kParameterStates, verifySymbols},
        {PipeDialect::kHyper, verifyHyper},
        {PipeDialect::kIdle, verifyIdle},
};

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  // The number of stages comes first: what others must be depends on it.
  for (StringRef name : {kStages, kCount})
    if (std::optional<NamedAttribute> stages = op->getAttrDictionary().getNamed(name))
      if (failed(verifyNumberOfStages(op, *stages)))
        return failure();
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
  static constexpr int64_t kMost = int64_t(1)
                                   << 31; // more numbers than ops, and another still fits
  if (from < 0 || to < 0 || number < 0 || number >= kMost)
    return emitError() << "stages and channels are numbered from 0, channels to " << kMost - 1;
  if (from == to)
    return emitError() << "a channel leads to another stage, not from " << from << " to itself";
  return success();
}
