//===- Collectives.cpp - lists what ranks communicate -----------------------------------------===//

#include "partita/Analysis/Collectives.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Communicators.h"
#include "partita/Analysis/Transfers.h"

using namespace mlir;
using namespace partita;
using namespace partita::analysis;
namespace json = llvm::json;

//===----------------------------------------------------------------------------------------------===//
// Recording ops
//===----------------------------------------------------------------------------------------------===//

static std::string utf8(StringRef bytes) {
  return json::isUTF8(bytes) ? bytes.str() : json::fixUTF8(bytes);
}

/// Records the kind of a collective and its bytes. Returns false for other ops.
static bool measure(Operation *op, Collective &record) {
  auto collective = dyn_cast<CollectiveInterface>(op);
  if (!collective)
    return false;
  record.kind = collective.getCollectiveKind();
  record.bytes = collective.getWireBytes();
  record.tensors = collective.getTensorCount();
  record.type = collective.getSentType();
  return true;
}

/// Adds what takes the place of a recorded collective from some step on.
static void addLater(CollectiveInterface op, const Collective &record,
                     std::vector<Collective> &result) {
  LaterCollectives later = op.getLater();
  for (auto [kind, bytes] : later.all) {
    Collective &made = result.emplace_back(record);
    made.kind = kind, made.bytes = bytes, made.type = later.type.str();
    made.steps = {Steps::Others, later.exact};
  }
}

/// Returns the first dimension of a training step's inputs: the number of micro-batches.
static int64_t microBatchesOf(func::FuncOp function) {
  if (train::is(function, train::EntryPoint::TrainStep))
    for (Type type : function.getArgumentTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.getRank() > 0)
        return tensor.getDimSize(0);
  return 1;
}

/// Ranks causes by how much they say about a bucket's place, since a bucket may serve several ops:
/// most for a value within a layer, less for one outside, least for gradients of parameters, which
/// may be reduced at any time.
static int tellingPower(par::CauseAttr cause, CollectiveKind kind) {
  if (placeOfRole(cause.getRole(), kind))
    return 0;
  return cause.getLayer() >= 0 ? 2 : 1;
}

static std::vector<std::string> parametersOf(par::SeedAttr seed) {
  std::vector<std::string> names;
  for (auto parameter : seed.getParameters().getAsRange<StringAttr>())
    names.push_back(utf8(parameter.getValue()));
  return names;
}

static void takeCause(ArrayRef<par::CauseAttr> causes, Collective &record) {
  if (causes.empty())
    return;
  auto power = [&](par::CauseAttr cause) { return tellingPower(cause, record.kind); };
  par::CauseAttr first = *llvm::max_element(
      causes, [&](par::CauseAttr a, par::CauseAttr b) { return power(a) < power(b); });
  record.role = first.getRole();
  record.letter = first.getLetter().str();
  record.rule = first.getRule().str();
  record.op = first.getOp().str();
  record.node = utf8(first.getNode());
  record.layers = first.getLayers();
  record.place = placeOfRole(first.getRole(), record.kind).value_or(Place(first.getLayer()));
  par::SeedAttr seed = first.getSeed();
  if (!seed)
    return;
  record.seed = seed.getKind().str();
  record.words = utf8(seed.getWords());
  record.parameters = parametersOf(seed);
  llvm::SmallDenseSet<par::SeedAttr> seen{seed};
  for (par::CauseAttr cause : causes)
    if (power(cause) == power(first) && cause.getSeed() && seen.insert(cause.getSeed()).second) {
      if (power(first) > 0)
        record.merged.push_back(parametersOf(cause.getSeed()));
      else
        ++record.others;
    }
}

static std::string calledWithoutCause(Operation *op) {
  auto reason = op->getAttrOfType<StringAttr>("reason");
  return utf8(reason && !reason.empty() ? reason.str() : rt::readableName(op));
}

std::string partita::analysis::nameOf(Operation *op) {
  Collective record;
  if (auto collective = dyn_cast<CollectiveInterface>(op))
    record.kind = collective.getCollectiveKind();
  record.backward = provenance::isBackward(op);
  takeCause(par::causesOf(op), record);
  if (!record.role)
    record.called = calledWithoutCause(op);
  return record.name();
}

StringRef partita::analysis::functionName(Operation *function) {
  std::optional<train::EntryPoint> entry = train::entryPointOf(function);
  return entry ? train::nameOf(*entry) : SymbolTable::getSymbolName(function).getValue();
}

std::vector<Collective> partita::analysis::collectivesOf(ModuleOp module) {
  std::vector<Collective> result;
  int64_t number = pipe::stageOf(module).value_or(-1);
  for (ModuleOp stage : pipe::stagesOf(module))
    if (stage != module)
      llvm::append_range(result, collectivesOf(stage));
  if (auto program = rt::ProgramAttr::of(module)) { // after lowering, no ops on tensors remain
    for (auto noted : rt::elementsOf<rt::CollectiveAttr>(program.getCollectives())) {
      result.push_back(Collective::fromAttr(noted));
      result.back().stage = number;
    }
    return result;
  }
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      Collective record;
      if (!measure(op, record))
        return;
      record.function = functionName(function).str();
      record.stage = number;
      record.microBatches = microBatchesOf(function);
      record.axis = cast<CollectiveInterface>(op).getAxisAttr().str();
      record.communicator = communicatorOf(cast<CollectiveInterface>(op));
      record.backward = provenance::isBackward(op);
      record.mayScatter = module->hasAttr(kMaySplitSequence);
      record.calls *= timesOf(op);
      takeCause(par::causesOf(op), record);
      if (!record.role)
        record.called = calledWithoutCause(op);
      auto collective = cast<CollectiveInterface>(op);
      if (LaterCollectives later = collective.getLater(); !later.all.empty())
        record.steps = {Steps::Exact, later.exact};
      result.push_back(record);
      addLater(collective, record, result);
    });
  return result;
}

std::vector<std::vector<Collective>> partita::analysis::byStage(ArrayRef<Collective> collectives) {
  std::map<int64_t, std::vector<Collective>> stages;
  for (const Collective &each : collectives)
    stages[each.stage].push_back(each);
  std::vector<std::vector<Collective>> result;
  for (auto &[stage, list] : stages)
    result.push_back(std::move(list));
  if (result.empty())
    result.emplace_back();
  return result;
}

std::vector<LayerRange> partita::analysis::layerRangesOf(ModuleOp stage, int64_t layers) {
  std::vector<LayerRange> ranges;
  std::optional<int64_t> number = pipe::stageOf(stage);
  std::optional<pipe::Positions> positions = pipe::positionsOf(stage);
  auto program = stage->getParentOfType<ModuleOp>();
  auto cuts =
      (program ? program : stage)->getAttrOfType<DenseI64ArrayAttr>(pipe::PipeDialect::kCuts);
  if (!number || !positions || !cuts)
    return ranges;
  for (int64_t chunk = 0; chunk < positions->chunks; ++chunk) {
    int64_t position = positions->at(*number, chunk), size = cuts.size();
    if (position >= size)
      break;
    int64_t end = position + 1 < size ? cuts[position + 1] : layers;
    ranges.push_back({cuts[position], end - cuts[position]});
  }
  return ranges;
}

//===----------------------------------------------------------------------------------------------===//
// #rt.collective
//===----------------------------------------------------------------------------------------------===//

static ArrayAttr listOf(MLIRContext *context, ArrayRef<std::string> names) {
  SmallVector<Attribute> list;
  for (const std::string &name : names)
    list.push_back(StringAttr::get(context, name));
  return list.empty() ? ArrayAttr() : ArrayAttr::get(context, list);
}

static std::vector<std::string> namesIn(ArrayAttr list) {
  std::vector<std::string> names;
  for (StringAttr name : rt::elementsOf<StringAttr>(list))
    names.push_back(name.str());
  return names;
}

static StringRef roleName(std::optional<par::Role> role) {
  return role ? par::stringifyRole(*role) : StringRef();
}

rt::CollectiveAttr Collective::toAttr(MLIRContext *context) const {
  SmallVector<Attribute> together;
  for (const std::vector<std::string> &names : merged)
    together.push_back(ArrayAttr::get(context, names.empty() ? ArrayRef<Attribute>()
                                                             : listOf(context, names).getValue()));
  return rt::CollectiveAttr::get(context, function, kind, axis, communicator, type, called,
                                 backward, calls, bytes, tensors, microBatches, place, layers,
                                 roleName(role), letter, rule, op, node, seed, words,
                                 listOf(context, parameters),
                                 together.empty() ? ArrayAttr() : ArrayAttr::get(context, together),
                                 others, mayScatter, steps.part, exactStepsOf(steps, context));
}

Collective Collective::fromAttr(rt::CollectiveAttr from) {
  Collective c;
  c.kind = from.getKind(), c.function = from.getFunction().str(), c.axis = from.getAxis().str();
  c.communicator = from.getCommunicator().str();
  c.type = from.getType().str(), c.called = from.getCalled().str();
  c.backward = from.getBackward(), c.calls = from.getCalls(), c.bytes = from.getBytes();
  c.tensors = from.getTensors(), c.microBatches = from.getMicroBatches();
  c.place = from.getPlace(), c.layers = from.getLayers();
  c.role = par::symbolizeRole(from.getRole()); // verified by the attribute
  c.letter = from.getLetter().str(), c.rule = from.getRule().str();
  c.op = from.getOp().str(), c.node = from.getNode().str(), c.seed = from.getSeed().str();
  c.words = from.getWords().str(), c.parameters = namesIn(from.getParameters());
  for (ArrayAttr names : rt::elementsOf<ArrayAttr>(from.getMerged()))
    c.merged.push_back(namesIn(names));
  c.others = from.getOthers(), c.mayScatter = from.getMayScatter();
  c.steps.part = from.getSteps();
  if (par::ExactStepsAttr exact = from.getExact())
    c.steps.exact = exact.getSteps();
  return c;
}

//===----------------------------------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------------------------------===//

static json::Array arrayOf(ArrayRef<std::string> names) {
  json::Array array;
  for (const std::string &name : names)
    array.push_back(name);
  return array;
}

static std::vector<std::string> namesIn(const json::Array *array) {
  std::vector<std::string> names;
  if (array)
    for (const json::Value &name : *array)
      names.push_back(name.getAsString().value_or("").str());
  return names;
}

json::Object Collective::toJson() const {
  json::Array together;
  for (const std::vector<std::string> &names : merged)
    together.push_back(arrayOf(names));
  json::Object object{
      {"function", function},
      {"kind", row().name},
      {"name", name()},
      {"axis", axis},
      {"communicator", communicator},
      {"direction", backward ? "backward" : "forward"},
      {"calls", calls},
      {"bytes", bytes},
      {"type", type},
      {"tensors", tensors},
      {"micro_batches", microBatches},
      {"place", placeText(place)},
      {"place_number", place},
      {"layers", layers},
      {"role", roleName(role)},
      {"letter", letter},
      {"rule", rule},
      {"op", op},
      {"node", node},
      {"seed", json::Object{{"kind", seed}, {"words", words}, {"parameters", arrayOf(parameters)}}},
      {"merged", std::move(together)},
      {"further_splits", others},
      {"may_scatter", mayScatter},
      {"why", why()},
      {"removed_by", removal()}};
  if (stage >= 0)
    object["stage"] = stage;
  addSteps(steps, object);
  return object;
}

llvm::Expected<Collective> Collective::fromJson(const json::Object &object) {
  Collective c;
  auto text = [](const json::Object &from, StringRef key) {
    return from.getString(key).value_or("").str();
  };
  auto number = [&](StringRef key, int64_t otherwise) {
    return object.getInteger(key).value_or(otherwise);
  };
  std::string kind = text(object, "kind");
  const CollectiveRow *row = partita_rt::collectiveNamed(kind);
  if (!row)
    return llvm::createStringError("'" + kind + "' is not a kind of collective");
  c.kind = row->kind;
  c.function = text(object, "function"), c.type = text(object, "type");
  c.called = text(object, "name");
  c.axis = text(object, "axis"), c.communicator = text(object, "communicator");
  c.backward = text(object, "direction") == "backward";
  c.calls = number("calls", 1), c.bytes = number("bytes", 0), c.tensors = number("tensors", 1);
  c.microBatches = std::max<int64_t>(number("micro_batches", 1), 1);
  c.place = std::max<int64_t>(number("place_number", Elsewhere), Elsewhere);
  c.stage = std::max<int64_t>(number("stage", -1), -1);
  c.layers = number("layers", 0), c.others = number("further_splits", 0);
  c.mayScatter = object.getBoolean("may_scatter").value_or(false);
  std::string steps = text(object, "steps");
  c.steps.part = steps == "exact" ? Steps::Exact : steps == "others" ? Steps::Others : Steps::All;
  c.steps.exact = {std::max<int64_t>(number("until", 0), 0),
                   std::max<int64_t>(number("doubling", 0), 0)};
  std::string role = text(object, "role");
  c.role = par::symbolizeRole(role);
  if (!c.role && !role.empty())
    return llvm::createStringError("'" + role + "' is not a role of a collective");
  c.letter = text(object, "letter"), c.rule = text(object, "rule");
  c.op = text(object, "op"), c.node = text(object, "node");
  if (const json::Object *seed = object.getObject("seed")) {
    c.seed = text(*seed, "kind"), c.words = text(*seed, "words");
    c.parameters = namesIn(seed->getArray("parameters"));
  }
  if (const json::Array *others = object.getArray("merged"))
    for (const json::Value &names : *others)
      c.merged.push_back(namesIn(names.getAsArray()));
  return c;
}

llvm::Expected<std::vector<Collective>>
partita::analysis::collectivesIn(const json::Array *records) {
  std::vector<Collective> result;
  if (records)
    for (const json::Value &value : *records)
      if (const json::Object *record = value.getAsObject()) {
        llvm::Expected<Collective> collective = Collective::fromJson(*record);
        if (!collective)
          return collective.takeError();
        result.push_back(std::move(*collective));
      }
  return result;
}

//===----------------------------------------------------------------------------------------------===//
// Census
//===----------------------------------------------------------------------------------------------===//

std::string partita::analysis::placeText(int64_t place) {
  switch (place) {
  case Before:
    return "before the first layer";
  case After:
    return "after the last layer";
  case Once:
    return "around the micro-batches";
  case Gradients:
    return "gradient reductions";
  case Elsewhere:
    return "elsewhere";
  default:
    return "layer " + std::to_string(place);
  }
}

std::vector<CensusRow> partita::analysis::censusRows(ArrayRef<Collective> collectives) {
  std::vector<CensusRow> rows;
  for (const Collective &c : collectives) {
    std::string name = c.name();
    auto row = llvm::find_if(rows, [&](const CensusRow &row) {
      return row.function == c.function && row.kind == c.kind &&
             row.communicator == c.communicator && row.name == name && row.steps == c.steps;
    });
    if (row == rows.end())
      row = rows.insert(row, {c.function, c.kind, c.communicator, name, 0, 0, c.steps});
    row->calls += c.calls;
    row->bytes += c.calls * c.bytes;
  }
  return rows;
}

std::string Census::mainFunction(ArrayRef<Collective> collectives) {
  auto isOf = [&](train::EntryPoint entry) {
    return llvm::any_of(collectives,
                        [&](const Collective &c) { return c.function == train::nameOf(entry); });
  };
  // Only programs that train evaluate. A stage's step may have no collectives where evaluation has.
  if (isOf(train::EntryPoint::TrainStep) || isOf(train::EntryPoint::EvalStep))
    return train::nameOf(train::EntryPoint::TrainStep).str();
  if (isOf(train::EntryPoint::Forward))
    return train::nameOf(train::EntryPoint::Forward).str();
  return collectives.empty() ? train::nameOf(train::EntryPoint::TrainStep).str()
                             : collectives.front().function;
}

Census Census::of(ArrayRef<Collective> collectives, StringRef function, ArrayRef<LayerRange> ranges,
                  std::optional<Steps> steps) {
  Census census;
  census.function = function.str();
  census.steps = steps ? *steps : phasesOf(collectives).front();
  for (const Collective &c : collectives) {
    if (c.function != function || !c.steps.contains(census.steps))
      continue;
    census.microBatches = c.microBatches;
    census.layers = std::max(census.layers, c.layers);
    census.places[c.place][c.backward][c.row().name] += Count{c.calls, c.calls * c.bytes};
  }
  LayerRange all{0, census.layers};
  for (const LayerRange &range : ranges.empty() ? ArrayRef(all) : ranges) {
    census.layers = std::max(census.layers, range.first + range.count);
    for (int64_t layer = 0; layer < std::min<int64_t>(range.count, 1 << 20); ++layer)
      census.places[range.first + layer]; // also one without collectives
  }
  for (auto &[place, directions] : census.places)
    for (Kinds &kinds : directions)
      for (auto &[kind, count] : kinds)
        if (isPerMicroBatch(place))
          count.calls /= census.microBatches, count.bytes /= census.microBatches;
  return census;
}

std::vector<int64_t> Census::inOrder() const {
  std::vector<int64_t> order;
  auto take = [&](int64_t place) {
    if (places.count(place))
      order.push_back(place);
  };
  take(Before);
  for (const auto &[place, directions] : places)
    if (place >= 0)
      order.push_back(place);
  for (int64_t place : {After, Once, Gradients, Elsewhere})
    take(place);
  return order;
}

json::Object Census::toJson() const {
  json::Array all;
  for (int64_t place : inOrder()) {
    json::Object entry{{"place", placeText(place)},
                       {"per", isPerMicroBatch(place) ? "micro-batch" : "step"}};
    for (bool backward : {false, true}) {
      json::Object kinds;
      for (const auto &[kind, count] : places.at(place)[backward])
        kinds[kind] = json::Object{{"calls", count.calls}, {"bytes", count.bytes}};
      entry[backward ? "backward" : "forward"] = std::move(kinds);
    }
    all.push_back(std::move(entry));
  }
  json::Object object{{"function", function},
                      {"micro_batches", microBatches},
                      {"layers", layers},
                      {"places", std::move(all)}};
  addSteps(steps, object);
  return object;
}
