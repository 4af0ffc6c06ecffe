//===- LedgerJson.cpp - converts the ledger to and from JSON ----------------------------------===//

#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Memory/Ledger.h"
#include <map>

using namespace mlir;
using namespace partita;
using namespace partita::memory;
namespace json = llvm::json;
using rt::RtDialect;

/// Returns valid UTF-8, as JSON requires; names in a model need not be.
static std::string utf8(StringRef bytes) {
  return json::isUTF8(bytes) ? bytes.str() : json::fixUTF8(bytes);
}

static int64_t number(const json::Object &object, StringRef key) {
  return object.getInteger(key).value_or(0);
}

//===----------------------------------------------------------------------------------------------===//
// Persistent memory
//===----------------------------------------------------------------------------------------------===//

namespace {
/// A parameter or state, which lives as long as the program.
struct Held {
  StringRef name, group; ///< for states, which one ("m", "v")
  Kind kind;
  int64_t bytes, offset;
  int64_t padding; ///< bytes of the buffer beyond the tensor's share of a rank
};

/// Returns the bytes that a rank keeps beyond its share of the tensor: the padding of flat shards,
/// averaged over the ranks, and the alignment of the buffer.
int64_t paddingOf(ModuleOp module, Operation *symbol, RankedTensorType type) {
  int64_t width = rt::elementBytes(type.getElementType()), bytes = type.getNumElements() * width;
  int64_t padding = alignPersistent(rt::bytesInMemory(symbol, type)) - bytes;
  par::MeshAttr mesh = par::MeshAttr::of(module);
  int64_t ranks = 1;
  for (StringAttr axis : par::Layout::of(type).flat)
    ranks *= mesh.sizeOf(axis);
  return padding + zero::paddingOf(type, mesh) * width / ranks;
}
} // namespace

static std::vector<Held> heldBy(ModuleOp module, Side side) {
  std::vector<Held> result;
  for (Operation &op : *module.getBody()) {
    auto at = op.getAttrOfType<rt::AtAttr>(RtDialect::kAt);
    auto type = op.getAttrOfType<TypeAttr>(RtDialect::kLocal);
    if (!at || !type || (at.getSpace() == rt::Space::Host) != (side == Side::Host))
      continue;
    auto tensor = cast<RankedTensorType>(type.getValue());
    auto state = dyn_cast<train::StateOp>(op);
    StringRef group = state && state.getKind() ? *state.getKind() : StringRef();
    result.push_back({SymbolTable::getSymbolName(&op).getValue(), group,
                      state ? Kind::State : Kind::Parameter, rt::bytesInMemory(&op, tensor),
                      at.getOffset(), paddingOf(module, &op, tensor)});
  }
  return result;
}

static int64_t persistentPadding(ModuleOp module, Side side) {
  int64_t padding = 0;
  for (const Held &held : heldBy(module, side))
    padding += held.padding;
  return padding;
}

static Sums persistentSums(ModuleOp module, Side side) {
  Sums sums{};
  for (const Held &held : heldBy(module, side))
    sums[static_cast<size_t>(held.kind)] += alignPersistent(held.bytes);
  return sums;
}

/// Lists persistent memory by kind; states also by group.
static json::Array persistentKinds(ModuleOp module, Side side) {
  std::map<Kind, std::map<std::string, std::pair<int64_t, int64_t>>> found; // count, bytes
  for (const Held &held : heldBy(module, side)) {
    auto &[count, bytes] = found[held.kind][utf8(held.group)];
    ++count, bytes += alignPersistent(held.bytes);
  }
  json::Array result;
  for (auto &[kind, groups] : found) {
    json::Array parts;
    int64_t count = 0, bytes = 0;
    for (auto &[group, sum] : groups) {
      count += sum.first, bytes += sum.second;
      if (!group.empty())
        parts.push_back(
            json::Object{{"name", group}, {"buffers", sum.first}, {"bytes", sum.second}});
    }
    result.push_back(json::Object{{"kind", rt::stringifyMemoryKind(kind)},
                                  {"title", rowOf(kind).title},
                                  {"buffers", count},
                                  {"bytes", bytes},
                                  {"parts", std::move(parts)}});
  }
  return result;
}

//===----------------------------------------------------------------------------------------------===//
// From the module
//===----------------------------------------------------------------------------------------------===//

static Buffer bufferOf(rt::BufferAttr buffer) {
  return {buffer.getName().str(), buffer.getKind(), buffer.getBytes(), buffer.getOffset(),
          buffer.getBegin(),      buffer.getEnd(),  buffer.getPlace(), buffer.getBackward()};
}

/// Returns the function whose buffers are listed individually: @train_step, else @forward, else the
/// first one.
static StringRef mainFunction(ArrayRef<rt::LedgerAttr> ledgers) {
  for (train::EntryPoint entry : {train::EntryPoint::TrainStep, train::EntryPoint::Forward})
    for (rt::LedgerAttr ledger : ledgers)
      if (ledger.getFunction() == train::nameOf(entry))
        return ledger.getFunction();
  return ledgers.empty() ? "" : ledgers.front().getFunction();
}

std::optional<Ledger> Ledger::of(ModuleOp module, StringRef function, Side side) {
  SmallVector<rt::LedgerAttr> all = rt::ledgersIn(module);
  if (function.empty())
    function = mainFunction(all);
  const auto *found = llvm::find_if(all, [&](rt::LedgerAttr each) {
    return each.getFunction() == function && each.getPinned() == (side == Side::Host);
  });
  if (found == all.end())
    return std::nullopt;
  Ledger ledger;
  ledger.function = function.str();
  ledger.arena = found->getBytes(), ledger.peak = found->getPeak(), ledger.ops = found->getOps();
  ledger.at = {found->getAt(), found->getNode().str(), found->getName().str(), found->getPlace(),
               found->getBackward()};
  ledger.persistent = persistentSums(module, side);
  if (ArrayAttr buffers = found->getBuffers())
    for (auto buffer : buffers.getAsRange<rt::BufferAttr>())
      ledger.buffers.push_back(bufferOf(buffer));
  return ledger;
}

//===----------------------------------------------------------------------------------------------===//
// To and from JSON
//===----------------------------------------------------------------------------------------------===//

static json::Object toJson(const Buffer &buffer, StringRef function) {
  return json::Object{{"name", utf8(buffer.name)},
                      {"kind", rt::stringifyMemoryKind(buffer.kind)},
                      {"function", function.str()}, // a json::Value does not own a StringRef's text
                      {"bytes", buffer.bytes},
                      {"offset", buffer.offset},
                      {"begin", buffer.begin},
                      {"end", buffer.end},
                      {"place", analysis::placeText(buffer.place)},
                      {"place_number", buffer.place},
                      {"direction", buffer.backward ? "backward" : "forward"}};
}

json::Object Ledger::toJson() const {
  json::Array kinds, places, largest;
  for (const KindUse &use : byKind())
    kinds.push_back(json::Object{{"kind", rt::stringifyMemoryKind(use.kind)},
                                 {"title", rowOf(use.kind).title},
                                 {"at_peak", use.atPeak},
                                 {"largest", use.largest},
                                 {"largest_at", use.largestAt}});
  for (const PlaceUse &use : byPlace())
    places.push_back(json::Object{{"place", analysis::placeText(use.place)},
                                  {"place_number", use.place},
                                  {"forward", use.forward},
                                  {"backward", use.backward},
                                  {"largest", use.largest}});
  for (const Buffer *buffer : holders(10))
    largest.push_back(::toJson(*buffer, function));
  return json::Object{{"arena", arena},
                      {"peak", peak},
                      {"fragmentation", arena - peak},
                      {"ops", ops},
                      {"at", json::Object{{"op", at.op},
                                          {"node", utf8(at.node)},
                                          {"name", at.name},
                                          {"place", analysis::placeText(at.place)},
                                          {"place_number", at.place},
                                          {"direction", at.backward ? "backward" : "forward"}}},
                      {"kinds", std::move(kinds)},
                      {"activations", std::move(places)},
                      {"holders", std::move(largest)}};
}

std::optional<Ledger> Ledger::fromJson(const json::Object &memory) {
  constexpr int64_t mostOps = 100'000'000;
  const json::Object *functions = memory.getObject("functions");
  Ledger ledger;
  ledger.function = memory.getString("ledger_of").value_or("").str();
  const json::Object *entry = functions ? functions->getObject(ledger.function) : nullptr;
  const json::Object *at = entry ? entry->getObject("at") : nullptr;
  const json::Array *buffers = memory.getArray("ledger");
  if (!at || !buffers)
    return std::nullopt;
  ledger.arena = number(*entry, "arena"), ledger.peak = number(*entry, "peak");
  ledger.ops = number(*entry, "ops");
  ledger.at = {number(*at, "op"), at->getString("node").value_or("").str(),
               at->getString("name").value_or("").str(), number(*at, "place_number"),
               at->getString("direction") == StringRef("backward")};
  if (ledger.ops < 0 || ledger.ops > mostOps || ledger.at.op < 0 ||
      (ledger.ops > 0 && ledger.at.op >= ledger.ops))
    return std::nullopt;
  for (const json::Value &value : *buffers) {
    const json::Object *each = value.getAsObject();
    std::optional<Kind> kind =
        each ? rt::symbolizeMemoryKind(each->getString("kind").value_or("")) : std::nullopt;
    if (!kind)
      return std::nullopt;
    if (rowOf(*kind).persistent) {
      ledger.persistent[static_cast<size_t>(*kind)] += alignPersistent(number(*each, "bytes"));
      continue;
    }
    Buffer buffer{each->getString("name").value_or("").str(),
                  *kind,
                  number(*each, "bytes"),
                  number(*each, "offset"),
                  number(*each, "begin"),
                  number(*each, "end"),
                  number(*each, "place_number"),
                  each->getString("direction") == StringRef("backward")};
    if (buffer.begin < 0 || buffer.end < buffer.begin || buffer.end >= ledger.ops)
      return std::nullopt;
    ledger.buffers.push_back(std::move(buffer));
  }
  return ledger;
}

static json::Object describe(ModuleOp module, Side side) {
  auto count = [&](StringRef key) {
    auto attribute = module->getAttrOfType<IntegerAttr>(key);
    return attribute ? attribute.getInt() : 0;
  };
  Sums sums = persistentSums(module, side);
  json::Array buffers;
  for (const Held &held : heldBy(module, side))
    buffers.push_back(json::Object{{"name", utf8(held.name)},
                                   {"kind", rt::stringifyMemoryKind(held.kind)},
                                   {"bytes", held.bytes},
                                   {"offset", held.offset}});
  json::Object functions;
  for (rt::LedgerAttr entry : rt::ledgersIn(module))
    if (entry.getPinned() == (side == Side::Host))
      functions[entry.getFunction()] = Ledger::of(module, entry.getFunction(), side)->toJson();
  std::optional<Ledger> step = Ledger::of(module, "", side);
  for (const Buffer &buffer : step ? step->buffers : std::vector<Buffer>())
    buffers.push_back(::toJson(buffer, step->function));
  bool host = side == Side::Host;
  return json::Object{
      {"persistent", count(host ? RtDialect::kHostBytes : RtDialect::kPersistentBytes)},
      {"padding", persistentPadding(module, side)},
      {"parameters", sums[static_cast<size_t>(Kind::Parameter)]},
      {"optimizer_states", sums[static_cast<size_t>(Kind::State)]},
      {"kinds", persistentKinds(module, side)},
      {"arena", count(host ? RtDialect::kPinnedBytes : RtDialect::kArenaBytes)},
      {"functions", std::move(functions)},
      {"ledger_of", step ? step->function : ""},
      {"ledger", std::move(buffers)}};
}

//===----------------------------------------------------------------------------------------------===//
// Parts of the device's memory
//===----------------------------------------------------------------------------------------------===//

ArrayRef<Part> memory::deviceParts() {
  static constexpr Part parts[] = {
      {"persistent", "persistent", true},
      {"arena", "arena", true},
      {"inputs", "inputs", false},
      {"scratch", "scratch", false},
      {"matmul_workspace", "workspace of matmuls", false},
  };
  return parts;
}

int64_t memory::deviceBytes(const json::Object &memory) {
  int64_t sum = 0;
  for (const Part &part : deviceParts())
    sum += number(memory, part.key);
  return sum;
}

/// Collects a program's inputs by name, with the types of one rank's micro-batch, and returns how
/// many micro-batches a step has. Inputs of several functions with the same name are one.
static int64_t collectInputs(ModuleOp module, llvm::StringMap<RankedTensorType> &types) {
  auto note = [&](StringRef name, Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.hasStaticShape())
      types[name] = tensor;
  };
  if (auto program = rt::ProgramAttr::of(module)) {
    for (rt::InputAttr input : rt::elementsOf<rt::InputAttr>(program.getInputs()))
      note(input.getName(), input.getType());
    return program.getAccumulate();
  }
  int64_t accumulate = 1;
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[i]);
      if (type && type.getRank() > 0 && train::is(function, train::EntryPoint::TrainStep)) {
        accumulate = type.getDimSize(0);
        type = train::AccumulateOp::microBatchType(type);
      }
      for (StringRef key : {train::TrainDialect::kName, train::TrainDialect::kRole})
        if (auto name = function.getArgAttrOfType<StringAttr>(i, key);
            type && name && !name.getValue().empty()) {
          note(name.getValue(), type);
          break;
        }
    }
  return accumulate;
}

/// Returns the bytes of all micro-batches of a step's inputs, as the runtime allocates them
/// (runtime/common/mesh/launch.h).
static int64_t inputBytes(ModuleOp module) {
  llvm::StringMap<RankedTensorType> types;
  int64_t accumulate = collectInputs(module, types), sum = 0;
  for (const auto &entry : types) {
    RankedTensorType type = entry.getValue();
    sum += align(accumulate * type.getNumElements() * rt::elementBytes(type.getElementType()));
  }
  return sum;
}

json::Object memory::deviceSizes(ModuleOp module) {
  auto count = [&](StringRef key) {
    auto attribute = module->getAttrOfType<IntegerAttr>(key);
    return attribute ? attribute.getInt() : 0;
  };
  json::Object result{{"persistent", count(RtDialect::kPersistentBytes)},
                      {"arena", count(RtDialect::kArenaBytes)},
                      {"inputs", inputBytes(module)}};
  if (const rt::Target &target = rt::Target::of(module); target.takesScratch()) {
    result["scratch"] = count(RtDialect::kScratchBytes);
    result["matmul_workspace"] = target.getMatmulWorkspace();
  }
  return result;
}

json::Object memory::describe(ModuleOp module) {
  json::Object result = ::describe(module, Side::Device);
  for (auto &[key, value] : deviceSizes(module))
    result[key] = std::move(value);
  if (auto forward = module->getAttrOfType<IntegerAttr>(RtDialect::kForwardArenaBytes))
    result["forward_arena"] = forward.getInt();
  if (module->hasAttr(RtDialect::kHostBytes) || module->hasAttr(RtDialect::kPinnedBytes))
    result["host"] = ::describe(module, Side::Host);
  return result;
}

ModuleOp memory::fullestOf(ArrayRef<ModuleOp> stages) {
  auto bytes = [](ModuleOp stage) { return deviceBytes(deviceSizes(stage)); };
  return *llvm::max_element(stages, [&](ModuleOp a, ModuleOp b) { return bytes(a) < bytes(b); });
}
