//===- PlanOptions.cpp - the plan on the command line -----------------------------------------===//

#include "tools/partita/PlanOptions.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;

void partita::tool::declarePlanOption(OptionSet &options, const PlanOption &option, Plan &plan) {
  auto set = [&option, &plan](StringRef given) {
    StringRef text = option.kind == PlanOption::Flag ? "true" : given;
    std::string problem = text.empty() ? "the value is empty" : checkPlanValue(option, text);
    if (problem.empty() && addsUp(option) && plan.isSet(option.name))
      plan.set(option.name, (plan.get(option.name) + "," + text).str());
    else if (problem.empty())
      plan.set(option.name, text);
    return problem;
  };
  if (addsUp(option))
    options.repeated(option.name, option.value, option.help, set);
  else
    options.custom(option.name, option.value, option.value.empty() ? "" : option.initial,
                   option.help, set);
}

void partita::tool::declarePlanOptions(OptionSet &options, Plan &plan) {
  options.group("Plan");
  for (const PlanOption &option : planOptions())
    declarePlanOption(options, option, plan);
}

bool partita::tool::settlePlan(Session &session, ModuleOp module, int nextPhase, Plan &plan) {
  Plan earlier;
  if (failed(readModulePlan(module, earlier)))
    return false;
  if (std::string problem = joinPlans(plan, earlier, nextPhase); !problem.empty()) {
    session.fail("--" + problem);
    return false;
  }
  if (std::optional<PlanProblem> found = plan.findProblem()) {
    session.fail(found->text());
    return false;
  }
  module->setAttr(train::TrainDialect::kPlan, plan.toAttribute(module.getContext()));
  return true;
}
