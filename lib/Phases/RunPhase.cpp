//===- RunPhase.cpp - --partita-PHASE -------------------------------------------------------------===//
//
// A phase as one pass, whose passes are known when it runs: they have the values of the module's plan,
// except for options that the pipeline's text gives, and of a module of stages they run on each.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "partita/Phases/Phases.h"

using namespace mlir;
using namespace partita;

LogicalResult partita::readModulePlan(ModuleOp module, Plan &plan) {
  StringRef key = train::TrainDialect::kPlan;
  if (Attribute attribute = module->getAttr(key)) {
    if (std::string problem = plan.fromAttribute(attribute); !problem.empty())
      return module.emitError() << key << ": " << problem;
    return success();
  }
  Attribute phase = module->getAttr(kPhaseAttr);
  if (!phase || module->hasAttr(pipe::PipeDialect::kStage)) // the plan is that of all stages
    return success();
  return module.emitError() << "has " << kPhaseAttr << " and no " << key
                            << ", so nothing says by which plan " << phase
                            << " and the phases before it ran; take the " << key
                            << " of the file that phase wrote, or start again from the model";
}

std::string partita::joinPlans(Plan &plan, const Plan &earlier, int nextPhase) {
  for (const PlanOption &option : planOptions()) {
    int reader = firstReader(option.name);
    bool decided = reader >= 0 && reader < nextPhase && earlier.isSet(option.name);
    if (plan.isSet(option.name) && decided && plan.get(option.name) != earlier.get(option.name))
      return (option.name + ": phase '" + phases()[reader].name + "' has already used '" +
              earlier.get(option.name) + "' in this module, so it cannot become '" +
              plan.get(option.name) + "'; start again from a phase before it")
          .str();
    if (!plan.isSet(option.name) && earlier.isSet(option.name))
      plan.set(option.name, earlier.get(option.name));
  }
  return {};
}

/// Reads "mesh=dp=2 accumulate=4" into a plan; returns what is wrong, or nothing.
static std::string parsePlanText(StringRef text, const Phase &phase, Plan &plan) {
  SmallVector<StringRef> items;
  text.split(items, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef item : items) {
    auto [name, value] = item.split('=');
    const PlanOption *option = findPlanOption(name);
    if (!option)
      return ("there is no plan option '" + name + "'").str();
    if (std::string problem = checkPlanValue(*option, value); !problem.empty())
      return (name + ": " + problem).str();
    if (!reads(phase, name))
      return (name + ": has no effect on phase '" + phase.name + "'; phase '" +
              phases()[firstReader(name)].name + "' reads it")
          .str();
    plan.set(name, value);
  }
  return {};
}

namespace {

struct RunPhase : PassWrapper<RunPhase, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RunPhase)

  RunPhase(const Phase &phase, Plan given, StringRef options)
      : phase(phase), given(std::move(given)),
        text(("partita-" + phase.name + (options.empty() ? "" : "{" + options + "}")).str()) {}

  StringRef getName() const override { return text; }
  StringRef getArgument() const override { return text; } // as a pipeline's text has it

  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager manager(ModuleOp::getOperationName());
    if (succeeded(parsePassPipeline(pipelineText(phase, given), manager)))
      manager.getDependentDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    int index = phaseIndex(phase.name);
    Plan plan = given, earlier;
    if (failed(expectPhaseBefore(module, index)) || failed(readModulePlan(module, earlier)))
      return signalPassFailure();
    std::string problem = joinPlans(plan, earlier, index);
    StringRef key = train::TrainDialect::kPlan;
    if (problem.empty() && (index == 0 || module->hasAttr(key))) {
      if (std::optional<PlanProblem> found = plan.findProblem())
        problem = found->option.str() + ": " + found->reason;
      else
        module->setAttr(key, plan.toAttribute(&getContext()));
    }
    OpPassManager manager(ModuleOp::getOperationName());
    llvm::raw_string_ostream os(problem);
    std::string text = pipelineText(phase, plan, isOfStages(module));
    if (index > 0 && module->hasAttr(kPhaseAttr))
      text = contractOf(phases()[index - 1]).str() + "," + text;
    if (problem.empty() && succeeded(parsePassPipeline(text, manager, os))) {
      if (failed(runPipeline(manager, module)))
        signalPassFailure();
      return;
    }
    module.emitError() << "phase '" << phase.name << "': " << problem;
    signalPassFailure();
  }

private:
  const Phase &phase;
  Plan given;
  std::string text;
};

} // namespace

void partita::registerPhases() {
  for (const Phase &phase : phases())
    registerPassPipeline(
        ("partita-" + phase.name).str(), phase.reason,
        [&phase](OpPassManager &manager, StringRef options,
                 function_ref<LogicalResult(const Twine &)> error) -> LogicalResult {
          Plan plan;
          if (std::string problem = parsePlanText(options, phase, plan); !problem.empty())
            return error(problem);
          manager.addPass(std::make_unique<RunPhase>(phase, std::move(plan), options));
          return success();
        },
        [](function_ref<void(const mlir::detail::PassOptions &)>) {});
}
