//===- MemoryLimit.cpp - does the plan fit? ---------------------------------------------------===//
//
// Alternatives that would fit are not estimated but compiled: ZeRO stages, recomputation,
// offloading, smaller micro-batches (with accumulated gradients), an optimizer without moments.
//
//===------------------------------------------------------------------------------------------===//

#include "tools/partita/MemoryLimit.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Rt/Target.h"
#include "dialects/Train/Train.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Transfers.h"
#include "partita/Analysis/Work.h"
#include "partita/Memory/Ledger.h"
#include "partita/Support/StableSort.h"
#include "tools/partita/Options.h"
#include "tools/partita/Program.h"
#include "tools/partita/Session.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;
using memory::Buffer;
using memory::Ledger;
using rt::RtDialect;

/// Returns the function that needs all of the arena.
static StringRef hungriest(ModuleOp module, int64_t arena) {
  for (rt::LedgerAttr ledger : rt::ledgersIn(module))
    if (!ledger.getPinned() && ledger.getBytes() == arena)
      return ledger.getFunction();
  return "";
}

/// Lists the kinds of buffers that use the most memory at the arena's peak, persistent memory
/// included, and the largest tensors of the arena's kinds.
static std::string holders(const Ledger &ledger, size_t most) {
  std::vector<std::pair<int64_t, memory::Kind>> sums;
  for (const Ledger::KindUse &use : ledger.byKind())
    sums.push_back({use.atPeak, use.kind});
  for (auto [kind, bytes] : llvm::enumerate(ledger.persistent))
    sums.push_back({bytes, static_cast<memory::Kind>(kind)});
  stableSort(sums, [](auto a, auto b) { return a.first > b.first; });
  std::vector<const Buffer *> buffers = ledger.holders(ledger.buffers.size());
  std::string text;
  for (auto [bytes, kind] : ArrayRef(sums).take_front(most)) {
    if (bytes == 0)
      break;
    llvm::MapVector<StringRef, int64_t> tensors; // an op may have made several
    for (const Buffer *buffer : buffers)
      if (buffer->kind == kind && !memory::rowOf(kind).persistent)
        tensors[buffer->name] += memory::align(buffer->bytes);
    std::string names;
    for (auto [name, bytesOf] : ArrayRef(tensors.getArrayRef()).take_front(3))
      names += (names.empty() ? ": " : ", ") + name.str() + " " + formatBytes(bytesOf);
    text += (text.empty() ? "" : ", ") + memory::rowOf(kind).title.str() + " (" +
            formatBytes(bytes) + names + ")";
  }
  return text;
}

/// Returns the micro-batch's number of samples over all ranks, and its position in --dim.
static std::optional<std::pair<size_t, int64_t>> findBatch(const Request &request) {
  for (auto [i, text] : llvm::enumerate(request.dims)) {
    auto [name, size] = StringRef(text).rsplit('=');
    int64_t batch;
    if (name == "batch" && !size.getAsInteger(10, batch))
      return std::pair(i, batch);
  }
  return {};
}

/// A change of the request as command-line options, and its effect.
struct Change {
  std::string text;
  Request request;
  Footprint footprint;
};

/// Returns the request with these options set; nothing if one of them already has that value, or
/// would have no effect.
static std::optional<Change> with(const Request &request,
                                  ArrayRef<std::pair<StringRef, StringRef>> options) {
  Change change{"", request, {}};
  for (auto [name, value] : options) {
    if (request.plan.get(name) == value)
      return {};
    change.request.plan.set(name, value);
    change.text += (change.text.empty() ? "--" : " --") + (name + " " + value).str();
  }
  if (change.request.plan.findProblem())
    return {};
  return change;
}

/// Adds requests with micro-batches of half the samples, a quarter, ..., one sample, and
/// correspondingly more of them.
static void smallerBatches(const Request &request, std::vector<Change> &changes) {
  auto batch = findBatch(request);
  int64_t accumulate;
  if (!batch || StringRef(request.plan.get("accumulate")).getAsInteger(10, accumulate))
    return;
  for (int64_t by = 2; by <= batch->second; ++by) {
    if (batch->second % by != 0 || (!llvm::isPowerOf2_64(by) && by != batch->second))
      continue;
    Change change{"", request, {}};
    std::string size = std::to_string(batch->second / by);
    change.request.dims[batch->first] = "batch=" + size;
    change.request.plan.set("accumulate", std::to_string(accumulate * by));
    change.text = "--dim batch=" + size + " --accumulate " + std::to_string(accumulate * by);
    changes.push_back(std::move(change));
  }
}

/// Appends a word to a list, unless it is there already.
static std::string withWord(StringRef words, StringRef word) {
  SmallVector<StringRef> list;
  words.split(list, ',', -1, /*KeepEmpty=*/false);
  if (!llvm::is_contained(list, word))
    list.push_back(word);
  return llvm::join(list, ",");
}

/// Returns possible changes of a plan: one at a time, and the last of each together.
static std::vector<Change> candidates(const Request &request) {
  std::vector<Change> changes;
  auto add = [&](ArrayRef<std::pair<StringRef, StringRef>> options) {
    if (std::optional<Change> change = with(request, options))
      changes.push_back(std::move(*change));
  };
  int64_t stage = 0;
  (void)StringRef(request.plan.get("zero-stage")).getAsInteger(10, stage);
  for (auto [number, name] : {std::pair(1, "1"), {2, "2"}, {3, "3"}})
    if (number > stage)
      add({{"zero-stage", name}});
  add({{"sync-each", "micro-batch"}});
  add({{"recompute", "selective"}});
  add({{"recompute", "block"}});
  if (stage < 3)
    add({{"zero-stage", "3"}, {"recompute", "block"}});
  constexpr StringLiteral all = "optimizer,parameters,activations";
  for (StringRef word : {"optimizer", "activations"})
    add({{"offload", withWord(request.plan.get("offload"), word)}});
  add({{"offload", all}});
  add({{"recompute", "block"}, {"offload", all}});
  if (stage < 3)
    add({{"zero-stage", "3"}, {"recompute", "block"}, {"offload", all}});
  smallerBatches(request, changes);
  add({{"optimizer", "sgd"}});
  add({{"classifier-rows", "0"}});
  return changes;
}

/// Returns " of stage 2"; "" without stages.
static std::string ofStage(std::optional<int64_t> stage) {
  return stage ? " of stage " + std::to_string(*stage) : "";
}

/// Returns "cuts:4,8" for the first layers of all positions.
static std::string cutsText(ArrayRef<int64_t> firsts) {
  std::string text = "cuts:";
  for (int64_t first : firsts.drop_front())
    text += (StringRef(text).ends_with(":") ? "" : ",") + std::to_string(first);
  return text;
}

/// Returns "2.0 GiB, fits: 1.5 GiB less; sends 2.0 KiB per step in place of 1.0 KiB". Names the
/// fullest stage if the change makes it another one, and the cuts if --stages makes other ones of it.
static std::string effect(const Footprint &before, const Change &change, uint64_t limit) {
  const Footprint &after = change.footprint;
  std::string text =
      formatBytes(after.bytes) +
      (after.stage == before.stage ? "" : ofStage(after.stage) + ", now the fullest") +
      (after.bytes <= limit ? ", fits" : ", too much");
  text += ": " + formatBytes(before.bytes - after.bytes) + " less";
  if (after.sent != before.sent)
    text +=
        "; sends " + formatBytes(after.sent) + " per step in place of " + formatBytes(before.sent);
  if (after.host != before.host)
    text += "; uses " + formatBytes(after.host) + " of host memory";
  if (after.moved != before.moved)
    text += "; moves " + formatBytes(after.moved) + " per step between them";
  if (before.flops > 0)
    if (double percent = 100.0 * after.flops / before.flops - 100; percent >= 0.5)
      text += llvm::formatv("; computes {0:F0} % more", percent).str();
  if (after.cuts != before.cuts)
    text += "; --stages " + change.request.plan.get("stages").str() + " cuts it as " +
            cutsText(after.cuts);
  if (after.classifierTokens != 0)
    text += "; computes the logits of " + grouped(after.classifierTokens) +
            " tokens at a time in place of " + grouped(after.usualClassifierTokens);
  if (change.text == "--optimizer sgd")
    text += "; keeps no moments";
  return text;
}

/// Lists the changes that save memory, one per line: first those that fit, then by remaining
/// memory.
static std::string listChanges(const Request &request, Footprint before, uint64_t limit,
                               const Planner &planner) {
  // A lowered module no longer has operations to count.
  if (std::optional<Footprint> again = planner(request))
    before = *again;
  std::vector<Change> saving,
      others; // those that fit in the order tried, the others by memory
  for (Change &change : candidates(request)) {
    showProgress("trying " + change.text);
    std::optional<Footprint> footprint = planner(change.request);
    if (!footprint || footprint->bytes >= before.bytes)
      continue;
    change.footprint = *footprint;
    (footprint->bytes <= limit ? saving : others).push_back(std::move(change));
  }
  showProgress("");
  llvm::sort(others, [](const Change &a, const Change &b) {
    return std::tie(a.footprint.bytes, a.text) < std::tie(b.footprint.bytes, b.text);
  });
  llvm::move(others, std::back_inserter(saving));
  if (saving.empty())
    return "; nothing that was tried saves memory";
  std::string text = "; changes, each compiled:";
  for (const Change &change : saving)
    text += "\n  " + change.text + ": " + effect(before, change, limit);
  return text;
}

ModuleOp partita::tool::fullestStage(ModuleOp program) {
  return memory::fullestOf(pipe::stagesOf(program));
}

void partita::tool::measureAgain(ModuleOp program, Footprint &footprint) {
  auto bytesOf = [](ModuleOp stage) -> uint64_t {
    return memory::deviceBytes(memory::deviceSizes(stage));
  };
  ModuleOp fullest = fullestStage(program);
  footprint.bytes = bytesOf(fullest);
  footprint.stage = pipe::stageOf(fullest);
  footprint.ofStages.clear();
  if (auto cuts = program->getAttrOfType<DenseI64ArrayAttr>(pipe::PipeDialect::kCuts)) {
    footprint.cuts.assign(cuts.asArrayRef().begin(), cuts.asArrayRef().end());
    for (ModuleOp stage : pipe::stagesOf(program))
      footprint.ofStages.push_back(bytesOf(stage));
  }
}

/// Notes the tokens of a gradient of the classifier that takes fewer at once than the target would
/// choose.
static void noteClassifier(tx::ClassifierLossGradOp op, Footprint &footprint) {
  auto sizes = rt::ClassifierSizes::of(op);
  int64_t tokens = sizes.rows;
  sizes.rows = 0;
  int64_t usual = rt::Target::of(op).getClassifierGradient(sizes).tokens();
  if (tokens != 0 && tokens < usual) {
    footprint.classifierTokens = tokens;
    footprint.usualClassifierTokens = usual;
  }
}

/// Raises a footprint's costs to those of a rank of this stage.
static void addCosts(ModuleOp module, Footprint &footprint) {
  uint64_t host = 0;
  int64_t sent = 0, flops = 0, moved = 0;
  for (StringRef name : {RtDialect::kHostBytes, RtDialect::kPinnedBytes})
    if (auto bytes = module->getAttrOfType<IntegerAttr>(name))
      host += bytes.getInt();
  std::vector<analysis::Collective> collectives = analysis::collectivesOf(module);
  analysis::Steps first = analysis::phasesOf(collectives).front();
  for (const analysis::Collective &collective : collectives)
    if (collective.function == train::nameOf(train::EntryPoint::TrainStep) &&
        collective.steps.contains(first))
      sent += collective.calls * collective.bytes;
  if (auto step = train::lookup<mlir::func::FuncOp>(module, train::EntryPoint::TrainStep)) {
    step.walk<WalkOrder::PreOrder>([&](Operation *op) {
      flops += analysis::timesOf(op) * analysis::workOf(op).flops;
      bool isFused = isa<tx::TxDialect>(op->getDialect()) && op->getNumRegions() > 0;
      return isFused ? WalkResult::skip() : WalkResult::advance(); // workOf has the ops inside
    });
    step.walk([&](tx::ClassifierLossGradOp op) { noteClassifier(op, footprint); });
    analysis::Transfers transfers = analysis::Transfers::of(step);
    moved = transfers.toHost + transfers.toDevice;
  }
  footprint.host = std::max(footprint.host, host);
  footprint.sent = std::max(footprint.sent, sent);
  footprint.moved = std::max(footprint.moved, moved);
  footprint.flops = std::max(footprint.flops, flops);
}

std::optional<Footprint> partita::tool::footprintOf(ModuleOp program) {
  ModuleOp module = fullestStage(program);
  if (!module->hasAttr(RtDialect::kArenaBytes) || !module->hasAttr(RtDialect::kPersistentBytes))
    return {};
  Footprint footprint;
  measureAgain(program, footprint);
  for (ModuleOp stage : pipe::stagesOf(program))
    addCosts(stage, footprint);
  return footprint;
}

std::string partita::tool::checkMemory(ModuleOp program, const Request &request, uint64_t limit,
                                       const Planner &planner, StringRef cuts) {
  ModuleOp module = fullestStage(program);
  std::optional<Footprint> needed = footprintOf(program);
  if (!module->hasAttr(RtDialect::kLedger) || !needed)
    return "the memory is planned in phase 'memory', which the module has not gone through; leave "
           "out --compile-to or name a later phase";
  if (needed->bytes <= limit)
    return {};
  int64_t arena = module->getAttrOfType<IntegerAttr>(RtDialect::kArenaBytes).getInt();
  std::optional<Ledger> held = Ledger::of(module, hungriest(module, arena));
  llvm::json::Object sizes = memory::deviceSizes(module);
  // No change of the plan shrinks these.
  int64_t floor = sizes.getInteger("matmul_workspace").value_or(0);
  return "a rank" + ofStage(needed->stage) + " needs " + formatBytes(needed->bytes) + " (" +
         grouped(needed->bytes) + " bytes: " + partsText(sizes, ", ") + "), the limit is " +
         formatBytes(limit) + " (" + grouped(limit) + " bytes)" +
         (floor > static_cast<int64_t>(limit) ? ", less than the workspace of matmuls alone, "
                                                "which every program for GPUs has"
                                              : "") +
         "; " + (held ? "the largest holders are " + holders(*held, 4) : "") + cuts.str() +
         listChanges(request, *needed, limit, planner);
}
