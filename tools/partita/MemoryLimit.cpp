//===- MemoryLimit.cpp - does the plan fit? ---------------------------------------------------===//
//
// What would fit is not estimated but compiled: a smaller micro-batch, whose activations shrink and
// whose gradients are added up beside it, and an optimizer without moments.
//
//===------------------------------------------------------------------------------------------===//

#include "tools/partita/MemoryLimit.h"
#include "dialects/Rt/Rt.h"
#include "tools/partita/Options.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;
using rt::RtDialect;

static int64_t number(DictionaryAttr dictionary, StringRef key) {
  auto attribute = dictionary ? dictionary.getAs<IntegerAttr>(key) : IntegerAttr();
  return attribute ? attribute.getInt() : 0;
}

/// The ledger entry of the function that needs the largest arena.
static DictionaryAttr hungriest(DictionaryAttr ledger) {
  DictionaryAttr most;
  for (NamedAttribute entry : ledger)
    if (auto function = dyn_cast<DictionaryAttr>(entry.getValue()))
      if (!most || number(function, "arena") > number(most, "arena"))
        most = function;
  return most;
}

static std::string holders(DictionaryAttr function, size_t most) {
  std::string text;
  auto list = function ? function.getAs<ArrayAttr>("holders") : ArrayAttr();
  for (Attribute entry : list ? list.getValue().take_front(most) : ArrayRef<Attribute>()) {
    auto pair = dyn_cast<ArrayAttr>(entry);
    if (!pair || pair.size() != 2 || !isa<StringAttr>(pair[0]) || !isa<IntegerAttr>(pair[1]))
      continue;
    text += (text.empty() ? "" : ", ") + cast<StringAttr>(pair[0]).getValue().str() + " (" +
            formatBytes(cast<IntegerAttr>(pair[1]).getInt()) + ")";
  }
  return text;
}

/// The micro-batch: samples of the whole program, and where --dim says so.
static std::optional<std::pair<size_t, int64_t>> findBatch(const Request &request) {
  for (auto [i, text] : llvm::enumerate(request.dims)) {
    auto [name, size] = StringRef(text).rsplit('=');
    int64_t batch;
    if (name == "batch" && !size.getAsInteger(10, batch))
      return std::pair(i, batch);
  }
  return {};
}

/// A change that fits: micro-batches of a part of the samples, as many as make up for it.
static std::string smallerBatch(const Request &request, uint64_t limit, const Planner &planner) {
  auto batch = findBatch(request);
  int64_t accumulate;
  if (!batch || StringRef(request.plan.get("accumulate")).getAsInteger(10, accumulate))
    return {};
  for (int64_t by = 2; by <= batch->second; ++by) {
    if (batch->second % by != 0)
      continue;
    Request smaller = request;
    std::string size = std::to_string(batch->second / by);
    smaller.dims[batch->first] = "batch=" + size;
    smaller.plan.set("accumulate", std::to_string(accumulate * by));
    std::optional<uint64_t> bytes = planner(smaller);
    if (bytes && *bytes <= limit)
      return "--dim batch=" + size + " --accumulate " + std::to_string(accumulate * by) +
             ", which needs " + formatBytes(*bytes);
  }
  return {};
}

static std::string cheapestChange(const Request &request, uint64_t limit, const Planner &planner,
                                  int64_t persistent) {
  if (std::string change = smallerBatch(request, limit, planner); !change.empty())
    return "the cheapest change: " + change;
  std::string without = "nothing that was tried (a smaller --dim batch with more --accumulate";
  if (request.plan.get("optimizer") == "adamw") {
    Request sgd = request;
    sgd.plan.set("optimizer", "sgd");
    std::optional<uint64_t> bytes = planner(sgd);
    if (bytes && *bytes <= limit)
      return "the cheapest change: --optimizer sgd, which keeps no moments and needs " +
             formatBytes(*bytes);
    if (std::string change = smallerBatch(sgd, limit, planner); !change.empty())
      return "the cheapest change: --optimizer sgd, which keeps no moments, with " + change;
    without += ", --optimizer sgd";
  }
  return without + ") fits; parameters and states alone take " + formatBytes(persistent);
}

std::optional<uint64_t> partita::tool::plannedBytes(ModuleOp module) {
  auto arena = module->getAttrOfType<IntegerAttr>(RtDialect::kArenaBytes);
  auto persistent = module->getAttrOfType<IntegerAttr>(RtDialect::kPersistentBytes);
  if (!arena || !persistent)
    return {};
  return arena.getInt() + persistent.getInt();
}

std::string partita::tool::checkMemory(ModuleOp module, const Request &request, uint64_t limit,
                                       const Planner &planner) {
  auto ledger = module->getAttrOfType<DictionaryAttr>(RtDialect::kLedger);
  std::optional<uint64_t> needed = plannedBytes(module);
  if (!ledger || !needed)
    return "the memory is planned in phase 'memory', which the module has not gone through; leave "
           "out --compile-to or name a later phase";
  if (*needed <= limit)
    return {};
  int64_t arena = module->getAttrOfType<IntegerAttr>(RtDialect::kArenaBytes).getInt();
  int64_t persistent = static_cast<int64_t>(*needed) - arena;
  return "a rank needs " + formatBytes(*needed) + " (" + std::to_string(*needed) +
         " bytes: " + std::to_string(persistent) + " persistent, " + std::to_string(arena) +
         " arena), the limit is " + formatBytes(limit) + " (" + std::to_string(limit) +
         " bytes); the arena's largest holders are " + holders(hungriest(ledger), 3) + "; " +
         cheapestChange(request, limit, planner, persistent);
}
