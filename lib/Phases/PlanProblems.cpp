//===- PlanProblems.cpp - options that a plan leaves without effect or refuses ----------------===//
//
// An option that is given and does nothing is an error: one row says which option, and what leaves
// it without effect. So is one that sums with a bit per element do not go with.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "partita/Optimizer/CompressMomenta.h"
#include "partita/Phases/Plan.h"
#include "partita/Stages/Schedule.h"
#include "runtime/include/partita_rt/lr_schedule_text.h"

using namespace mlir;
using namespace partita;

/// What leaves an option without effect, and how a message goes on that says so.
struct Idle {
  bool (*holds)(const Plan &plan);
  StringLiteral reason;
};

static bool offloads(const Plan &plan, StringRef what) {
  SmallVector<StringRef> words;
  plan.get("offload").split(words, ',');
  return llvm::is_contained(words, what);
}
static bool gathersParameters(const Plan &plan) { return plan.get("zero-stage") == "3"; }

static bool hasDynamicScale(const Plan &plan) {
  double scale = 0;
  StringRef text = plan.get("loss-scale");
  return !text.empty() && (text.getAsDouble(scale) || !(scale > 0));
}

static constexpr Idle kInfers = {[](const Plan &plan) { return plan.get("objective") == "none"; },
                                 "with --objective none, a program for inference"};
static const train::OptimizerRow *optimizerNamed(StringRef name) {
  ArrayRef<train::OptimizerRow> all = train::optimizers();
  std::string mnemonic = name.str();
  llvm::replace(mnemonic, '-', '_');
  const auto *found = llvm::find_if(all, [&](auto &each) { return each.name == mnemonic; });
  return found == all.end() ? nullptr : found;
}

/// Has the optimizer no hyperparameter or scalar of this name, with a momentum either?
static bool lacks(const Plan &plan, StringRef name) {
  const train::OptimizerRow *found = optimizerNamed(plan.get("optimizer"));
  if (found && !found->withMomentum.empty())
    found = optimizerNamed(found->withMomentum);
  return found && !llvm::is_contained(found->scalars, name) &&
         llvm::none_of(found->hyperparameters, [&](auto &each) { return each.name == name; });
}
/// Is it an optimizer whose ratio, if it has one, is never frozen?
static bool freezesNoRatio(const Plan &plan) {
  const train::OptimizerRow *row = optimizerNamed(plan.get("optimizer"));
  return row && !row->freezesRatio;
}
static constexpr Idle kNoMoments = {
    [](const Plan &plan) { return lacks(plan, train::OptimizerInterface::kBeta1); },
    "with this --optimizer, which has no moments that decay"};
static constexpr Idle kNoRoot = {[](const Plan &plan) { return lacks(plan, "epsilon"); },
                                 "with this --optimizer, which divides by no root"};
static constexpr Idle kNotAdam = {[](const Plan &plan) { return lacks(plan, "bias_correction"); },
                                  "with this --optimizer, which is not an Adam"};
/// Does the optimizer correct the bias of its moments without an option that asks for it?
static bool correctsBias(const Plan &plan) {
  const train::OptimizerRow *found = optimizerNamed(plan.get("optimizer"));
  return found && llvm::any_of(found->hyperparameters, [](auto &each) {
           return each.name == "bias_correction" && each.usual != 0;
         });
}
static constexpr Idle kCorrects = {correctsBias,
                                   "with this --optimizer, which corrects the bias anyway"};
static constexpr Idle kCorrectsNone = {
    [](const Plan &plan) { return !correctsBias(plan) && plan.get("bias-correction") != "true"; },
    "with this --optimizer, which corrects no bias without --bias-correction"};
static constexpr Idle kFixedScale = {[](const Plan &plan) { return !hasDynamicScale(plan); },
                                     "without a dynamic loss scale (--loss-scale 0)"};
static constexpr Idle kSingle = {
    [](const Plan &plan) { return plan.get("precision") == "float32"; },
    "without a --precision of 16 bits: all is float32"};
/// The type in which parameters and gradients are stored.
static StringRef storedType(const Plan &plan) {
  return plan.get("precision") == "fp8" ? "bfloat16" : plan.get("precision");
}
static constexpr Idle kNotBrain = {[](const Plan &plan) { return storedType(plan) != "bfloat16"; },
                                   "without --precision bfloat16: no master is rounded to it"};
static constexpr Idle kOneMicroBatch = {
    [](const Plan &plan) { return plan.get("accumulate") == "1"; },
    "without --accumulate: one micro-batch adds nothing up"};
static constexpr Idle kNotLamb = {[](const Plan &plan) { return lacks(plan, "ratio"); },
                                  "with this --optimizer, which is neither lamb nor onebit-lamb"};
static constexpr Idle kNotOneBit = {
    [](const Plan &plan) { return lacks(plan, "freeze"); },
    "with this --optimizer, which is neither onebit-adam nor onebit-lamb"};
static constexpr Idle kNotOneBitLamb = {freezesNoRatio,
                                        "with this --optimizer, which is not onebit-lamb"};
static constexpr Idle kNotZeroOne = {[](const Plan &plan) { return lacks(plan, "var_freeze"); },
                                     "with this --optimizer, which is not zero-one-adam"};
static constexpr Idle kNotSgd = {[](const Plan &plan) { return lacks(plan, "momentum"); },
                                 "with this --optimizer, which is not sgd"};
static constexpr Idle kNoMomentum = {[](const Plan &plan) { return plan.get("momentum") == "0"; },
                                     "without a --momentum"};
static constexpr Idle kParametersStay = {
    [](const Plan &plan) { return !gathersParameters(plan) && !offloads(plan, "parameters"); },
    "on parameters that are neither gathered (--zero-stage 3) nor fetched (--offload parameters)"};
static constexpr Idle kGathersNothing = {
    [](const Plan &plan) { return !gathersParameters(plan); },
    "on parameters that are not gathered, with a stage before --zero-stage 3"};
/// On one rank it is the program that others are compared with.
static constexpr Idle kSendsNoWeights = {
    [](const Plan &plan) { return !gathersParameters(plan) && !plan.get("mesh").empty(); },
    "on what ranks send, with a stage before --zero-stage 3: parameters are not gathered"};
/// Is it an optimizer that sums momenta with a bit per element where several ranks have samples of their own?
static bool sumsMomenta(const Plan &plan) {
  const train::OptimizerRow *row = optimizerNamed(plan.get("optimizer"));
  return row && !row->summed.empty() && plan.get("objective") != "none";
}
/// The axes that split the batch, of a mesh that outlives the result.
static optimizer::SumsPlan sumsOver(ArrayRef<std::pair<std::string, int64_t>> mesh) {
  optimizer::SumsPlan sums;
  for (const auto &[axis, size] : mesh)
    if (par::splits(axis, par::Splits::Batch))
      sums.batchAxes.push_back({axis, size});
  return sums;
}
/// Also where the mesh has no rank but one with samples of its own: the program that others are compared with, or go on from.
static bool mayCompressMomenta(const Plan &plan) {
  std::vector<std::pair<std::string, int64_t>> mesh = plan.mesh();
  return sumsMomenta(plan) && (mesh.empty() || !sumsOver(mesh).batchAxes.empty());
}
static constexpr Idle kAllExact = {
    [](const Plan &plan) {
      return plan.get("zero-quantized-weights") != "true" &&
             plan.get("zero-quantized-gradients") != "true" && !mayCompressMomenta(plan);
    },
    "without --zero-quantized-weights, --zero-quantized-gradients or a 1-bit optimizer over ranks of "
    "dp: all is exact"};
static constexpr Idle kExactWeights = {
    [](const Plan &plan) { return plan.get("zero-quantized-weights") != "true"; },
    "without --zero-quantized-weights: weights are exact"};
static constexpr Idle kExactGradients = {
    [](const Plan &plan) { return plan.get("zero-quantized-gradients") != "true"; },
    "without --zero-quantized-gradients: gradients are exact"};
static constexpr Idle kScattersNothing = {
    [](const Plan &plan) { return plan.get("zero-stage") == "0" && !plan.get("mesh").empty(); },
    "with --zero-stage 0, where every rank keeps the sums of all gradients: give --zero-stage 1, 2 "
    "or 3"};
static constexpr Idle kKeepsAll = {
    [](const Plan &plan) { return plan.get("fsdp-strategy") == "shard-grad-op"; },
    "with --fsdp-strategy shard-grad-op, which keeps all that is gathered"};
static constexpr Idle kKeepsForStep = {
    [](const Plan &plan) { return plan.get("sync-each") == "step"; },
    "with --sync-each step, which keeps all that is gathered until the step ends"};
static constexpr Idle kSyncsPerStep = {
    [](const Plan &plan) { return plan.get("zero-stage") == "0" || plan.get("zero-stage") == "1"; },
    "with a stage before --zero-stage 2, which communicates once per step"};
static constexpr Idle kActivationsStay = {
    [](const Plan &plan) { return !offloads(plan, "activations"); },
    "without --offload activations"};
static constexpr Idle kOneRank = {[](const Plan &plan) { return plan.get("mesh").empty(); },
                                  "without a --mesh: one rank reduces nothing"};
static constexpr Idle kStageOfOneRank = {
    [](const Plan &plan) {
      return !plan.get("mesh").empty() && plan.textFor("mesh.ranks").empty();
    },
    "on a --mesh of pp alone: it is for sums over the ranks of a stage, and each has one"};
static constexpr Idle kFullSequences = {[](const Plan &plan) {
                                          return llvm::none_of(plan.mesh(), [](const auto &row) {
                                            return par::splits(row.first, par::Splits::Context) &&
                                                   row.second > 1;
                                          });
                                        },
                                        "without ranks that share sequences (--mesh cp=2)"};
static constexpr Idle kOneStage = {[](const Plan &plan) { return plan.stages() == 1; },
                                   "without pipeline stages (--mesh pp=2)"};
static constexpr Idle kOrdersNothing = {
    [](const Plan &plan) {
      std::string problem; // pipe-place reports it
      std::optional<pipe::Positions> layout =
          stages::layoutOf(plan.get("schedule").str(), plan.stages(), 0, problem);
      bool givesChunks = !layout || layout->chunks > 1;
      return plan.get("objective") == "none" && !givesChunks;
    },
    "with --objective none: there are no backward passes to order"};

static constexpr std::pair<StringLiteral, Idle> kIneffective[] = {
    {"initial-scale-power", kFixedScale},
    {"loss-scale-window", kFixedScale},
    {"hysteresis", kFixedScale},
    {"consecutive-hysteresis", kFixedScale},
    {"min-loss-scale", kFixedScale},
    {"lamb-bounds", kNotLamb},
    {"freeze-step", kNotOneBit},
    {"coeff-beta", kNotOneBitLamb},
    {"factor-bounds", kNotOneBitLamb},
    {"factor-threshold", kNotOneBitLamb},
    {"var-freeze-step", kNotZeroOne},
    {"var-update-scaler", kNotZeroOne},
    {"betas", kNoMoments},
    {"eps", kNoRoot},
    {"momentum", kNotSgd},
    {"nesterov", kNotSgd},
    {"nesterov", kNoMomentum},
    {"bias-correction", kNotAdam},
    {"bias-correction", kCorrects},
    {"no-bias-correction", kNotAdam},
    {"no-bias-correction", kCorrectsNone},
    {"prefetch-bytes", kParametersStay},
    {"persistence-threshold", kParametersStay},
    {"gather-always", kGathersNothing},
    {kHpz, kGathersNothing},
    {kHpz, kKeepsAll},
    {kHpz, kKeepsForStep},
    {"zero-quantized-weights", kSendsNoWeights},
    {"zero-quantized-gradients", kScattersNothing},
    {"quantization-block", kExactWeights},
    {"gradient-quantization-block", kExactGradients},
    {"keep-exact", kAllExact},
    {"gather-always", kKeepsAll},
    {"keep-gathered", kKeepsAll},
    {"sync-each", kSyncsPerStep},
    {"sync-each", kOneMicroBatch},
    {"gather-always", kKeepsForStep},
    {"keep-gathered", kKeepsForStep},
    {"offload-threshold", kActivationsStay},
    {"bucket-bytes", kOneRank},
    {"overlap-chunks", kOneRank},
    {"stochastic-rounding", kNotBrain},
    {"reduce-type", kOneRank},
    {"bucket-bytes", kStageOfOneRank},
    {"overlap-chunks", kStageOfOneRank},
    {"reduce-type", kStageOfOneRank},
    {"zero-quantized-gradients", kStageOfOneRank},
    {"context-parallel", kFullSequences},
    {"stages", kOneStage},
    {"virtual-stages", kOneStage},
    {"schedule", kOneStage},
    {"schedule", kOrdersNothing},
    {"accumulate-type", kSingle},
    {"accumulate-type", kOneMicroBatch},
};

/// What an optimizer that sums momenta with a bit per element does not go with.
static std::optional<PlanProblem> refusedBySums(const Plan &plan) {
  if (!sumsMomenta(plan))
    return std::nullopt;
  std::vector<std::pair<std::string, int64_t>> mesh = plan.mesh();
  optimizer::SumsPlan sums = sumsOver(mesh);
  (void)plan.get("zero-stage").getAsInteger(10, sums.stage); // checked with the option
  sums.scalesLoss = !plan.get("loss-scale").empty();
  sums.keepsStatesOnHost = offloads(plan, "optimizer");
  sums.quantizesGradients = plan.get("zero-quantized-gradients") == "true";
  std::optional<optimizer::SumsRefusal> refusal = optimizer::refusalOfSums(sums);
  if (!refusal)
    return std::nullopt;
  bool isByStrategy = refusal->option == "zero-stage" && !plan.isSet(refusal->option);
  return PlanProblem{isByStrategy ? StringRef("fsdp-strategy") : StringRef(refusal->option),
                     optimizer::overSeveralRanks(plan.get("optimizer")) + refusal->reason, true};
}

/// Does the schedule cycle betas?
static bool cyclesBetas(const Plan &plan) {
  partita_rt::LrSchedule schedule;
  std::string problem = partita_rt::parseLrSchedule(plan.get("lr-schedule").str(), schedule);
  return problem.empty() && partita_rt::scheduledRates(schedule, 0, 1).setsBetas;
}

std::optional<PlanProblem> Plan::findProblem() const {
  if (cyclesBetas(*this) && kNoMoments.holds(*this))
    return PlanProblem{"lr-schedule",
                       (get("lr-schedule").split(',').first + " cycles beta1, and --optimizer " +
                        get("optimizer") + " has no betas; give cycle_momentum=false")
                           .str()};
  if (get("accumulate-type") != "float32" && get("accumulate-type") != storedType(*this) &&
      get("precision") != "float32")
    return PlanProblem{"accumulate-type", ("gradients are " + storedType(*this) +
                                           ", by --precision; they are summed in that or in "
                                           "float32, not in " +
                                           get("accumulate-type"))
                                              .str()};
  if (std::optional<PlanProblem> refused = refusedBySums(*this))
    return refused;
  auto idles = [&](StringRef option, const Idle &idle) {
    return isSet(option) && get(option) != findPlanOption(option)->initial && idle.holds(*this);
  };
  auto ineffective = [](StringRef option, const Idle &idle) {
    return PlanProblem{option, ("has no effect " + idle.reason).str()};
  };
  for (const PlanOption &option : planOptions())
    if (option.ofTraining && idles(option.name, kInfers))
      return ineffective(option.name, kInfers);
  for (const auto &[option, idle] : kIneffective)
    if (idles(option, idle))
      return ineffective(option, idle);
  if (get(kHpz) != "1" && !get("mesh").empty())
    if (std::optional<std::string> problem = groupProblem())
      return PlanProblem{kHpz, *problem};
  return {};
}
