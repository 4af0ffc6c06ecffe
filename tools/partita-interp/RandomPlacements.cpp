//===- RandomPlacements.cpp - partition a model in random ways --------------------------------===//
//
// Meshes, parameters split along random dimensions or kept whole, results annotated as an ONNX file
// would, with and without sequence parallelism: what comes out must equal the whole program, or be
// refused with a located reason. Every trial follows from its number, so one can be repeated.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Interp/Verify.h"
#include "partita/Phases/Phases.h"
#include "tools/partita-interp/Modes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Regex.h"
#include <random>

using namespace mlir;
using namespace partita;
using namespace partita::interp;
using train::ShardingAttr;
using train::TrainDialect;

namespace {

constexpr const char *kMeshes[] = {"tp=2",      "tp=3",      "tp=4",      "dp=2",     "dp=2,tp=2",
                                   "tp=2,dp=2", "dp=2,tp=3", "tp=3,dp=2", "dp=4,tp=2"};

/// One way to partition a module that is past phase `objective`.
class Trial {
public:
  Trial(ModuleOp full, uint64_t number) : random(number), module(full.clone()) {
    plan.fromAttribute(full->getAttr(TrainDialect::kPlan));
    StringRef mesh = kMeshes[below(std::size(kMeshes))];
    plan.set("mesh", mesh);
    plan.set("sequence-parallel", below(3) == 0 ? "true" : "false");
    SmallVector<StringRef> parts;
    mesh.split(parts, ',');
    for (StringRef part : parts) {
      auto [axis, size] = part.split('=');
      int64_t count;
      size.getAsInteger(10, count);
      axes.push_back({axis, count});
    }
    chooseParameters();
    if (below(2) == 0)
      annotateResults();
    module->getOperation()->setAttr(TrainDialect::kPlan, plan.toAttribute(module->getContext()));
  }

  /// As options of `partita verify`, and what of it an option cannot say.
  std::string text() const {
    std::string text = ("--mesh " + plan.get("mesh")).str();
    if (plan.get("sequence-parallel") == "true")
      text += " --sequence-parallel";
    if (!plan.get("shard").empty())
      text += (" --shard '" + plan.get("shard") + "'").str();
    if (annotated)
      text += llvm::formatv(", {0} results annotated", annotated);
    return text;
  }

  LogicalResult compile() {
    return runPhases(*module, phaseIndex("precision"), phaseIndex("lower") - 1, plan);
  }
  ModuleOp get() { return *module; }

private:
  uint64_t below(uint64_t bound) { return random() % bound; }

  /// Mostly tp: dp splits no parameter that meets the batch.
  StringRef anAxis() {
    StringRef axis = axes[below(axes.size())].first;
    return axis == "dp" && axes.size() > 1 && below(8) ? StringRef("tp") : axis;
  }

  void chooseParameters() {
    SmallVector<train::ParameterOp> parameters(module->getOps<train::ParameterOp>());
    std::string text;
    for (uint64_t i = 0, count = below(4); i < count && !parameters.empty(); ++i) {
      train::ParameterOp parameter = parameters[below(parameters.size())];
      int64_t rank = cast<RankedTensorType>(parameter.getType()).getRank();
      text += (text.empty() ? "" : ",") + parameter.getSymName().str();
      if (below(4) == 0)
        text += "=replicated";
      else
        text += ("=" + anAxis() + "@" + llvm::Twine(below(rank))).str();
    }
    plan.set("shard", text);
  }

  /// As if the model's file said how results are spread.
  void annotateResults() {
    SmallVector<Operation *> ops;
    module->walk([&](Operation *op) {
      auto type = op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                                           : RankedTensorType();
      if (type && type.getRank() > 0 && !isa<train::ReadOp>(op))
        ops.push_back(op);
    });
    int64_t devices = 1;
    for (auto [axis, size] : axes)
      devices *= size;
    for (uint64_t i = 0, count = 1 + below(3); i < count && !ops.empty(); ++i)
      annotate(ops[below(ops.size())], devices);
    Builder builder(module->getContext());
    auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
    auto entry = builder.getDictionaryAttr({builder.getNamedAttr("devices", number(devices)),
                                            builder.getNamedAttr("tensors", number(annotated))});
    module->getOperation()->setAttr(
        TrainDialect::kConfigurations,
        builder.getDictionaryAttr({builder.getNamedAttr("random", entry)}));
  }

  void annotate(Operation *op, int64_t devices) {
    if (op->hasAttr(TrainDialect::kShardings))
      return;
    Builder builder(module->getContext());
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    size_t which = below(axes.size());
    int64_t inner = 1, dim = below(type.getRank());
    for (auto [axis, size] : ArrayRef(axes).drop_front(which + 1))
      inner *= size;
    std::vector<std::vector<int64_t>> groups(axes[which].second);
    for (int64_t device = 0; device < devices; ++device)
      groups[device / inner % axes[which].second].push_back(device);
    SmallVector<Attribute> holders;
    for (const std::vector<int64_t> &group : groups)
      holders.push_back(builder.getDenseI64ArrayAttr(group));
    Attribute sharding = ShardingAttr::get(
        builder.getContext(), builder.getStringAttr("random"), builder.getStringAttr("n"),
        builder.getI64ArrayAttr({dim}), builder.getI64ArrayAttr({1}),
        builder.getI64ArrayAttr({axes[which].second}), builder.getArrayAttr(holders));
    op->setAttr(TrainDialect::kShardings, builder.getArrayAttr({sharding}));
    ++annotated;
  }

  std::mt19937_64 random;
  OwningOpRef<ModuleOp> module;
  Plan plan;
  SmallVector<std::pair<StringRef, int64_t>> axes;
  int64_t annotated = 0;
};

/// A reason without the names and numbers of its case.
std::string kindOf(StringRef reason) {
  std::string kind;
  bool quoted = false;
  for (char c : reason) {
    if (c == '\'') {
      quoted = !quoted;
      kind += quoted ? "'_'" : "";
    } else if (!quoted && !(llvm::isDigit(c) && !kind.empty() && kind.back() == 'N')) {
      kind += llvm::isDigit(c) ? 'N' : c;
    }
  }
  return kind;
}

struct Outcomes {
  unsigned equal = 0, refused = 0;
  double worst = 0;
  struct Reason {
    unsigned times = 0;
    std::string first; ///< the first placement that was refused for it
  };
  std::map<std::string, Reason> reasons;
};

} // namespace

/// Failure, after a message, when a trial is neither equal nor refused as it should be.
static LogicalResult tryOne(ModuleOp full, ModuleOp source, const VerifyOptions &options,
                            uint64_t number, Outcomes &outcomes) {
  Trial trial(source, number);
  std::string text = llvm::formatv("placement {0}: {1}", number, trial.text());
  llvm::PrettyStackTraceString onCrash(text.c_str());
  std::string reason;
  bool located = false;
  {
    ScopedDiagnosticHandler collect(full.getContext(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && reason.empty()) {
        reason = diagnostic.str();
        located = !isa<UnknownLoc>(diagnostic.getLocation());
      }
      return success();
    });
    if (failed(trial.compile())) {
      if (reason.empty() || !located)
        return llvm::errs() << text << ": refused without a located reason: " << reason << "\n",
               failure();
      ++outcomes.refused;
      auto &[times, first] = outcomes.reasons[kindOf(reason)];
      if (times++ == 0)
        first = text + "\n            " + reason;
      return success();
    }
  }
  FailureOr<VerifyReport> report = comparePrograms(full, trial.get(), options);
  if (failed(report))
    return llvm::errs() << text << ": cannot be run\n", failure();
  if (!(report->worst() <= options.tolerance)) {
    llvm::errs() << text << ": differs from the unpartitioned program\n";
    report->print(llvm::errs(), 5);
    return failure();
  }
  ++outcomes.equal;
  outcomes.worst = std::max(outcomes.worst, report->worst());
  return success();
}

LogicalResult partita::interp::tryPlacements(ModuleOp module, const Run &run, unsigned count) {
  if (nextPhase(module) != phaseIndex("precision"))
    return module.emitError() << "must be just past phase 'objective'";
  OwningOpRef<ModuleOp> full = module.clone();
  Plan plan;
  if (std::string problem = plan.fromAttribute(module->getAttr(TrainDialect::kPlan));
      !problem.empty())
    return module.emitError() << problem;
  if (failed(runPhases(*full, phaseIndex("precision"), phaseIndex("optimize"), plan)))
    return failure();
  VerifyOptions options;
  options.values = run.values;
  options.values.from = InitialValues::From::Perturbed;
  options.tolerance = run.tolerance;
  Outcomes outcomes;
  for (uint64_t number = run.seed; number < run.seed + count; ++number)
    if (failed(tryOne(*full, module, options, number, outcomes)))
      return failure();
  llvm::outs() << llvm::formatv(
      "{0} placements: {1} equal the unpartitioned program, within {2:e1}; {3} "
      "refused\n",
      count, outcomes.equal, outcomes.worst, outcomes.refused);
  SmallVector<const Outcomes::Reason *> reasons;
  for (auto &[kind, reason] : outcomes.reasons)
    reasons.push_back(&reason);
  llvm::sort(reasons, [](auto *a, auto *b) { return a->times > b->times; });
  for (const Outcomes::Reason *reason : reasons)
    llvm::outs() << llvm::formatv("{0,6} like {1}\n", reason->times, reason->first);
  return success();
}
