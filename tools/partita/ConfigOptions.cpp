//===- ConfigOptions.cpp - a DeepSpeed configuration on the command line ----------------------===//

#include "tools/partita/ConfigOptions.h"
#include "dialects/Train/Train.h"
#include "partita/Emit/Emit.h"
#include "partita/Import/Import.h"
#include "partita/Phases/Phases.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;
using config::Facts;
using config::ModelFacts;

void ConfigOptions::declare(OptionSet &options, bool namesFile) {
  options.group("Configuration");
  if (namesFile)
    options.text(
        "config", "FILE.json", file,
        "DeepSpeed's configuration (JSON; comments and missing commas are allowed; a path, "
        "not base64 text); 'partita config' checks it and prints the resolved settings");
  auto steps = [&](StringRef name, std::optional<int64_t> &target, StringRef help) {
    options.custom(name, "N", "", help, [&target](StringRef text) {
      int64_t number;
      if (text.getAsInteger(10, number) || number < 0)
        return ("'" + text + "' is not an integer").str();
      target = number;
      return std::string();
    });
  };
  steps("warmup-steps", warmupSteps,
        "value for the scheduler's warmup_num_steps if the configuration says \"auto\"");
  steps("total-steps", totalSteps,
        "value for the scheduler's total_num_steps if the configuration says \"auto\"");
}

bool partita::tool::knowsRunOption(StringRef name) {
  static constexpr StringLiteral known[] = {"print-every", "log", "tensorboard", "job-name",
                                            "breakdown"};
  return llvm::is_contained(known, name);
}

//===------------------------------------------------------------------------------------------===//
// Facts
//===------------------------------------------------------------------------------------------===//

/// Finds the batch: the first dimension of the first input, and of all inputs that share its name.
static ModelFacts factsOf(StringRef path, const OnnxSummary &summary) {
  ModelFacts facts;
  facts.path = path.str();
  facts.hidden = summary.hidden;
  if (summary.inputs.empty() || summary.inputs[0].dims.empty())
    return facts;
  StringRef first = summary.inputs[0].dims[0];
  facts.batchAxis = summary.inputs[0].name + ".0";
  int64_t size;
  if (!first.getAsInteger(10, size)) {
    facts.batch = size;
    return facts;
  }
  if (!first.empty())
    facts.batchNames.push_back(first.str());
  for (const OnnxSummary::Input &input : summary.inputs)
    if (first.empty() && !input.dims.empty() && input.dims[0].empty())
      facts.batchNames.push_back(input.name + ".0");
  return facts;
}

static ModelFacts factsOf(StringRef path, ModuleOp module) {
  ModelFacts facts;
  facts.path = path.str();
  std::map<int64_t, int64_t> vectors;
  for (auto parameter : module.getOps<train::ParameterOp>())
    if (auto type = dyn_cast<RankedTensorType>(parameter.getType());
        type && type.getRank() == 1 && type.getDimSize(0) > 1)
      ++vectors[type.getDimSize(0)];
  for (auto [length, count] : vectors)
    if (!facts.hidden || count > vectors[*facts.hidden])
      facts.hidden = length;
  auto forward = train::lookup<func::FuncOp>(module, train::EntryPoint::Forward);
  if (!forward || nextPhase(module) > phaseIndex("partition"))
    return facts; // shapes are those of shards from there on
  for (Type type : forward.getArgumentTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.getRank() > 0) {
      facts.batch = tensor.getDimSize(0);
      break;
    }
  return facts;
}

std::optional<Facts> partita::tool::findFacts(Session &session, const ConfigOptions &o,
                                              StringRef model, ModuleOp module,
                                              ArrayRef<std::string> dims, const Plan &plan) {
  Facts facts;
  Plan settled; // the plan of the phases that a module went through
  if (module)
    if (Attribute attribute = module->getAttr(train::TrainDialect::kPlan))
      (void)settled.fromAttribute(attribute); // settlePlan reports errors in it
  facts.mesh = (plan.isSet("mesh") ? plan : settled).mesh();
  for (const PlanOption &option : planOptions())
    if (plan.isSet(option.name))
      facts.commandLine[option.name.str()] = plan.get(option.name).str();
  for (const std::string &text : dims)
    if (std::string problem = parseDim(text, facts.dims.emplace_back()); !problem.empty()) {
      session.fail("--dim: " + problem);
      return std::nullopt;
    }
  facts.warmupSteps = o.warmupSteps;
  facts.totalSteps = o.totalSteps;
  facts.knowsPlan = [](StringRef name) { return findPlanOption(name) != nullptr; };
  facts.knowsRun = knowsRunOption;
  if (module) {
    facts.model = factsOf(model, module);
  } else if (!model.empty()) {
    FailureOr<OnnxSummary> summary = summarizeOnnx(model, &session.context());
    if (failed(summary))
      return std::nullopt;
    facts.model = factsOf(model, *summary);
  }
  return facts;
}

//===------------------------------------------------------------------------------------------===//
// The plan
//===------------------------------------------------------------------------------------------===//

/// "'zero_optimization.stage' becomes --zero-stage 2".
static std::string becomesText(const config::Setting &setting) {
  return (setting.key ? "'" + setting.key->path.str() + "'" : "this") + " becomes --" +
         setting.option + (setting.value == "true" ? "" : " " + setting.value);
}

/// What is wrong with a key, by the plan option that it becomes.
static std::string problemOf(const config::Setting &setting, const Twine &problem) {
  return (becomesText(setting) + ": " + problem).str();
}

void partita::tool::noteWhatRanksRefuse(const config::Document &document, const Facts &facts,
                                        const Plan &plan) {
  if (!facts.mesh.empty())
    return;
  Facts ofTwo = facts;
  ofTwo.mesh = {{"dp", 2}};
  // What else two ranks would be refused (a batch of one sample) says nothing about the optimizer.
  std::unique_ptr<config::Document> again = config::Document::read(document.path(), llvm::nulls());
  config::Resolution resolution;
  if (!again || !config::resolve(*again, ofTwo, resolution))
    return;
  Plan partitioned = plan;
  partitioned.set("mesh", "dp=2");
  for (const config::Setting &setting : resolution.plan)
    partitioned.set(setting.option, setting.value);
  std::optional<PlanProblem> found = partitioned.findProblem();
  if (!found || !found->isRefused)
    return;
  for (const config::Setting &setting : resolution.plan)
    if (setting.option == found->option) {
      auto offset = setting.at.getPointer() - again->root().at.getPointer();
      document.note(llvm::SMLoc::getFromPointer(document.root().at.getPointer() + offset),
                    "refused over several ranks, as with --mesh dp=2: " +
                        problemOf(setting, found->reason));
      return;
    }
}

bool partita::tool::applyToPlan(const config::Document &document,
                                const config::Resolution &resolution, Plan &plan) {
  auto tell = [&](const config::Setting &setting, const Twine &problem) {
    document.error(setting.at, problemOf(setting, problem));
    return false;
  };
  for (const config::Setting &setting : resolution.plan) {
    const PlanOption *option = findPlanOption(setting.option);
    if (std::string problem = checkPlanValue(*option, setting.value); !problem.empty())
      return tell(setting, problem);
    plan.set(option->name, setting.value);
  }
  while (std::optional<PlanProblem> found = plan.findProblem()) {
    auto setting = llvm::find_if(
        resolution.plan, [&](const config::Setting &each) { return each.option == found->option; });
    if (setting == resolution.plan.end())
      return true; // the command line's own; settlePlan reports it
    if (found->isRefused || (setting->key && resolution.isGiven(*setting->key)))
      return tell(*setting, found->reason);
    plan.set(found->option, findPlanOption(found->option)->initial); // not set by the user
  }
  return true;
}

/// Attaches defaults for options that a run's own command line leaves out.
static void attachDefaults(ModuleOp module, const config::Resolution &resolution) {
  if (resolution.run.empty())
    return;
  Builder builder(module.getContext());
  SmallVector<Attribute> defaults;
  for (const config::Setting &setting : resolution.run)
    defaults.push_back(builder.getStrArrayAttr(
        {"--" + setting.option, setting.value == "true" ? "" : setting.value}));
  module->setAttr(kRunDefaultsAttr, builder.getArrayAttr(defaults));
}

OwningOpRef<ModuleOp> partita::tool::loadWithConfig(Session &session, const ConfigOptions &o,
                                                    StringRef model, std::vector<std::string> &dims,
                                                    Plan &plan) {
  if (o.file.empty()) {
    if (!o.warmupSteps && !o.totalSteps)
      return session.load(model, dims, plan);
    session.fail(StringRef(o.warmupSteps ? "--warmup-steps" : "--total-steps") +
                 ": has no effect without --config, for whose scheduler it is");
    return {};
  }
  std::unique_ptr<config::Document> document = config::Document::read(o.file);
  if (!document || !config::checkKeys(*document))
    return {};
  if (plan.get("objective") == "none") {
    session.fail("--config: has no effect with --objective none, a program for inference");
    return {};
  }
  OwningOpRef<ModuleOp> module;
  if (isMlirFile(model) && !(module = session.load(model, dims, plan)))
    return {};
  std::optional<Facts> facts =
      findFacts(session, o, model, module ? *module : ModuleOp(), dims, plan);
  config::Resolution resolution;
  if (!facts || !config::resolve(*document, *facts, resolution) ||
      !applyToPlan(*document, resolution, plan))
    return {};
  for (const config::Setting &setting : resolution.plan)
    if (setting.key && resolution.isGiven(*setting.key))
      session.noteOrigin(setting.option,
                         document->lineOf(setting.at) + ": " + becomesText(setting));
  for (const auto &[name, size] : resolution.dims)
    dims.push_back(name + "=" + std::to_string(size));
  if (!module && !(module = session.load(model, dims, plan)))
    return {};
  attachDefaults(*module, resolution);
  return module;
}
