//===- MemoryLimit.cpp - does the plan fit?
//-------------------------------------------------------===//
//
// The arena is as large as its hungriest function. At that function's peak the ledger says how much
// are activations, which shrink with the micro-batch, and what stays: gradients and buffers of
// collectives.
//
//===------------------------------------------------------------------------------------------------===//

#include "tools/partita/MemoryLimit.h"
#include "dialects/Rt/Rt.h"
#include "tools/partita/Options.h"
#include "llvm/Support/MathExtras.h"

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

/// The smallest factor by which the micro-batch must shrink, as a change of the plan; or the
/// optimizer without moments; or nothing that this plan offers.
static std::string cheapestChange(DictionaryAttr ledger, DictionaryAttr function, const Plan &plan,
                                  int64_t persistent, int64_t limit) {
  int64_t activations = number(function, "activations") + number(function, "workspace");
  int64_t fixed = number(function, "arena") - activations;
  // Adding up micro-batches keeps the sums of all gradients beside one micro-batch's.
  if (plan.get("accumulate") == "1")
    fixed += number(ledger, "parameters");
  int64_t states = plan.get("optimizer") == "adamw" ? number(ledger, "optimizer_states") : 0;
  auto factor = [&](int64_t room) -> int64_t {
    if (room <= 0)
      return 0;
    return llvm::PowerOf2Ceil(llvm::divideCeil(activations, room));
  };
  if (int64_t by = factor(limit - persistent - fixed))
    return "the cheapest change: divide --dim batch by " + std::to_string(by) +
           " and multiply --accumulate by it";
  if (int64_t by = factor(limit - (persistent - states) - fixed); by && states)
    return by == 1
               ? "the cheapest change: --optimizer sgd, which keeps no moments"
               : "the cheapest change: --optimizer sgd, which keeps no moments, with --dim batch "
                 "divided by " +
                     std::to_string(by) + " and --accumulate multiplied by it";
  return "parameters, states and gradients alone take " + formatBytes(persistent + fixed) +
         ", which no option of this version makes smaller";
}

std::string partita::tool::checkMemory(ModuleOp module, const Plan &plan, uint64_t limit) {
  auto ledger = module->getAttrOfType<DictionaryAttr>(RtDialect::kLedger);
  auto arena = module->getAttrOfType<IntegerAttr>(RtDialect::kArenaBytes);
  auto persistent = module->getAttrOfType<IntegerAttr>(RtDialect::kPersistentBytes);
  if (!ledger || !arena || !persistent)
    return "the memory is planned in phase 'memory', which the module has not gone through; leave "
           "out "
           "--compile-to or name a later phase";
  uint64_t needed = arena.getInt() + persistent.getInt();
  if (needed <= limit)
    return {};
  DictionaryAttr function = hungriest(ledger);
  return "a rank needs " + formatBytes(needed) + " (" + std::to_string(needed) +
         " bytes: " + std::to_string(persistent.getInt()) + " persistent, " +
         std::to_string(arena.getInt()) + " arena), the limit is " + formatBytes(limit) + " (" +
         std::to_string(limit) + " bytes); the arena's largest holders are " +
         holders(function, 3) + "; " +
         cheapestChange(ledger, function, plan, persistent.getInt(), limit);
}
