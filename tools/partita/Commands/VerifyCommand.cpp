//===- VerifyCommand.cpp - partita verify -----------------------------------------------------===//
//
// Compiles the model for one rank and partitioned, and runs both in the interpreter, on virtual
// ranks in double precision; where the plan rounds what it sends, also what rounds nothing or alike. With --against, the partitioned program is one that a phase
// wrote, so that changes made to it by hand or by other tools are compared with the model.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/OneBit.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Zero/Zero.h"
#include "partita/Interp/Verify.h"
#include "partita/Phases/Phases.h"
#include "tools/partita/ConfigOptions.h"
#include "tools/partita/PlanOptions.h"
#include "tools/partita/Session.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;
using interp::InitialValues;

namespace {
struct VerifyCommandOptions {
  std::string model, against,
      lastPhase = phases()[phaseIndex("lower") - 1].name.str(); // the last one with tensors
  std::vector<std::string> dims;
  int64_t seed = 1, steps = 1, most = 10;
  double tolerance = 1e-10;
  bool warningsAsErrors = false;
  InitialValues::From from = InitialValues::From::Perturbed;
  Plan plan;
  ConfigOptions config;
};
} // namespace

static std::string setPhase(VerifyCommandOptions &o, StringRef text) {
  int phase = phaseIndex(text), last = phaseIndex("lower") - 1;
  if (phase < phaseIndex("optimize") || phase > last)
    return ("'" + text + "' is not a phase from 'optimize' to '" + phases()[last].name + "'").str();
  o.lastPhase = text.str();
  return {};
}

static std::string setInit(VerifyCommandOptions &o, StringRef text) {
  StringRef seed = text;
  if (text == "random")
    o.from = InitialValues::From::Perturbed;
  else if (text == "file")
    o.from = InitialValues::From::File;
  else if (!seed.consume_front("seed:") || seed.getAsInteger(10, o.seed))
    return ("'" + text + "' is not one of random, file, seed:N").str();
  else
    o.from = InitialValues::From::Seed;
  return {};
}

static std::string setTolerance(VerifyCommandOptions &o, StringRef text) {
  if (text.getAsDouble(o.tolerance) || !(o.tolerance >= 0 && o.tolerance < 1))
    return ("'" + text + "' is not a number from 0 to below 1").str();
  return {};
}

static std::optional<int> parseOptions(Arguments arguments, VerifyCommandOptions &o) {
  OptionSet options(
      "verify", "MODEL.onnx|MODEL.mlir [OPTIONS] --mesh AXIS=SIZE,...",
      "Runs the partitioned program against the unpartitioned one, on virtual ranks in double "
      "precision: logits, loss, every gradient, every parameter and optimizer state after the step; "
      "of a program for inference (--objective none) its outputs. A tensor's error is max|a-b| / "
      "max(max|b|, 1e-3 x the largest of its kind). Some updates magnify rounding: Lion steps by a "
      "gradient's sign, and a key bias's gradient is zero but for rounding. Such an element passes if "
      "a gradient within 1e-13 of the scale gives its value. Exit code: 0 equal, 2 different, 1 any "
      "other error.");
  options.positional("MODEL", o.model, "an ONNX file, or a module from before phase 'partition'");
  options.text("against", "PROGRAM.mlir", o.against,
               "the partitioned program, as a phase from 'partition' on wrote it and perhaps "
               "changed since; compiled from MODEL when not given");
  options.group("Model");
  options.list("dim", "NAME=SIZE", o.dims, "binds a symbolic dimension");
  o.config.declare(options);
  declarePlanOptions(options, o.plan);
  options.group("Comparison");
  options.custom(
      "init", "random|file|seed:N", "random",
      "parameters: all random, biases and norms too; the file's; those of run --init seed:N",
      [&o](StringRef text) { return setInit(o, text); });
  options.integer("seed", "N", o.seed, 0, int64_t(1) << 62,
                  "of tokens, labels and random parameters");
  options.integer("steps", "N", o.steps, 1, 1000, "optimizer steps, each on new tokens");
  options.custom("tolerance", "ERROR", "1e-10", "the largest relative error that passes",
                 [&o](StringRef text) { return setTolerance(o, text); });
  options.integer("most", "N", o.most, 0, 1 << 20, "how many of the worst errors are listed");
  options.custom("compile-to", "PHASE", o.lastPhase, "the phase whose program is compared",
                 [&o](StringRef text) { return setPhase(o, text); });
  declareWarningsAsErrors(options, o.warningsAsErrors);
  return options.parse(arguments);
}

/// Returns the program to compare MODEL with: the one that `--against` names, or a clone of the
/// model.
static OwningOpRef<ModuleOp> loadPartitioned(Session &session, const VerifyCommandOptions &o,
                                             ModuleOp model) {
  if (o.against.empty())
    return model.clone();
  OwningOpRef<ModuleOp> module = session.load(o.against, {});
  int next = module ? nextPhase(*module) : -1;
  if (next < 0)
    return {};
  if (next > phaseIndex("partition") && next <= phaseIndex("lower"))
    return module;
  session.fail("--against " + o.against + ": is " +
               (next > phaseIndex("lower") ? "past phase 'lower', and has no tensors any more"
                                           : "not partitioned yet; give it as MODEL"));
  return {};
}

/// Runs the phases from the module's own to `last`, with the plan as settled with the module's.
static bool compileTo(Session &session, ModuleOp module, Plan &plan, StringRef last) {
  int first = nextPhase(module);
  if (first < 0 || !settlePlan(session, module, first, plan))
    return false;
  return succeeded(runPhases(module, first, phaseIndex(last), plan));
}

/// Does `compile` lower it too? What has no kernel (a tensor of nine dimensions) shows only there.
static bool canBeLowered(ModuleOp module, const Plan &plan, StringRef last) {
  int lower = phaseIndex("lower");
  if (phaseIndex(last) != lower - 1)
    return true;
  OwningOpRef<ModuleOp> copy = module.clone();
  return succeeded(runPhases(*copy, lower, lower, plan));
}

static std::string meshText(ModuleOp module) {
  std::string text;
  for (auto [axis, size] : pipe::meshOf(module))
    text += (text.empty() ? "" : ",") + axis.getValue().str() + "=" + std::to_string(size);
  return text.empty() ? "of one rank" : text;
}

/// Returns what the program loses first, if anything: what follows is not to equal the model's program, and the oracle is the algorithm's own arithmetic.
static std::optional<Loss> lossOf(ModuleOp program) {
  std::optional<Loss> first;
  program.walk([&](LossyInterface op) {
    std::optional<Loss> loss = op.getLoss();
    if (loss && (!first || loss->exactSteps < first->exactSteps))
      first = loss;
  });
  return first;
}

/// Says how far a program that loses something on the way is from the exact one, which is no error. `what` is lost in, `oracle` loses the same.
static bool tellDistance(StringRef what, StringRef oracle, ModuleOp exact, ModuleOp partitioned,
                         interp::VerifyOptions options) {
  options.measuresDistance = true;
  FailureOr<interp::VerifyReport> report = interp::comparePrograms(exact, partitioned, options);
  if (failed(report))
    return false;
  llvm::outs() << llvm::formatv(
      "{0}: after {1}, parameters differ from the exact program's by {2:f1} % of how far those have "
      "moved ({3:e1} of {4:e1}, Euclidean norms); what follows compares with {5}:\n",
      what, options.steps == 1 ? "1 step" : llvm::formatv("{0} steps", options.steps).str(),
      report->way > 0 ? 100 * report->apart / report->way : 0, report->apart, report->way, oracle);
  return true;
}

namespace {
/// What is compared. The plan rounds nothing where a program is null.
struct Programs {
  OwningOpRef<ModuleOp> full, partitioned;
  std::optional<Loss> loss; ///< of the partitioned program
  /// What rounds gradients in 4 bits is compared with a program that rounds alike; where a rank's terms are rounded is known once gradients are
  /// scattered. That program is partitioned too, so the partitioning itself is compared without the rounding.
  OwningOpRef<ModuleOp> rounding, summedExactly;
  OwningOpRef<ModuleOp> exactWeights; ///< for one rank, with weights that are not rounded to 8 bits
};
} // namespace

/// Compiles the model with weights that are not rounded to 8 bits, for one rank. Null if the plan rounds none, or if the model given is rounded already.
static OwningOpRef<ModuleOp> withExactWeights(Session &session, ModuleOp model, Plan plan) {
  if (plan.get("zero-quantized-weights") != "true" || nextPhase(model) > phaseIndex("precision"))
    return {};
  for (StringRef name : {"zero-quantized-weights", "quantization-block", "keep-exact"})
    plan.set(name, Plan().get(name));
  OwningOpRef<ModuleOp> exact = model.clone();
  return compileTo(session, *exact, plan, "optimize") ? std::move(exact) : OwningOpRef<ModuleOp>();
}

/// Compiles what a plan with 4-bit gradients is compared with.
static bool compileRounding(Session &session, const VerifyCommandOptions &o, Programs &programs) {
  programs.rounding = programs.full->clone();
  programs.summedExactly = programs.full->clone();
  Plan rounding = o.plan, plan = o.plan;
  plan.set("zero-quantized-gradients", "false");
  auto reset = [&](StringRef option) { plan.set(option, findPlanOption(option)->initial); };
  reset("gradient-quantization-block"); // without effect now
  if (plan.get("zero-quantized-weights") != "true")
    reset("keep-exact");
  return compileTo(session, *programs.rounding, rounding, "states") &&
         compileTo(session, *programs.summedExactly, plan, "states");
}

/// Compiles MODEL for one rank and partitioned. None after an error.
static std::optional<Programs> compileAll(Session &session, VerifyCommandOptions &o) {
  Programs programs;
  programs.full = loadWithConfig(session, o.config, o.model, o.dims, o.plan);
  int first = programs.full ? nextPhase(*programs.full) : -1;
  if (first < 0)
    return std::nullopt;
  if (first > phaseIndex("partition")) {
    session.fail(o.model +
                 ": is past phase 'partition'; verify needs the program as it was before");
    return std::nullopt;
  }
  programs.partitioned = loadPartitioned(session, o, *programs.full);
  if (!programs.partitioned || !compileTo(session, *programs.partitioned, o.plan, o.lastPhase) ||
      !canBeLowered(*programs.partitioned, o.plan, o.lastPhase))
    return std::nullopt;
  session.tellGuesses(*programs.partitioned, o.plan);
  if (o.plan.get("mesh").empty() && o.plan.get("precision") == "float32") {
    session.fail("--mesh AXIS=SIZE,... is missing: one rank would be compared with itself");
    return std::nullopt;
  }
  programs.loss = lossOf(*programs.partitioned);
  if (programs.loss && !programs.loss->hasReference && !compileRounding(session, o, programs))
    return std::nullopt;
  Plan unpartitioned = o.plan; // settled with what the partitioned program was compiled with
  unpartitioned.setUnpartitioned();
  programs.exactWeights = withExactWeights(session, *programs.full, unpartitioned);
  if (!compileTo(session, *programs.full, unpartitioned, "optimize") || session.hasFailed())
    return std::nullopt;
  return programs;
}

/// The exit code if the programs differ; 1 is for all other errors.
static constexpr int kDiffers = 2;

/// Compares two programs and prints what differs most. `other`: what messages call the oracle. Returns the exit code.
static int compare(Session &session, const VerifyCommandOptions &o, ModuleOp oracle,
                   ModuleOp partitioned, const interp::VerifyOptions &options,
                   StringRef other = "the unpartitioned one") {
  FailureOr<interp::VerifyReport> report = interp::comparePrograms(oracle, partitioned, options);
  if (failed(report))
    return 1;
  llvm::outs() << "mesh " << meshText(partitioned);
  if (report->loss)
    llvm::outs() << ", " << o.plan.get("accumulate")
                 << (o.plan.get("accumulate") == "1" ? " micro-batch" : " micro-batches")
                 << ", loss " << llvm::formatv("{0:f6}", *report->loss);
  llvm::outs() << "\n";
  report->print(llvm::outs(), o.most);
  if (report->worst() <= o.tolerance) {
    llvm::outs() << "equal: " << report->entries.size() << " tensors within "
                 << llvm::formatv("{0:e1}", o.tolerance) << "\n";
    return 0;
  }
  const auto &worst = report->entries.front();
  session.fail(llvm::formatv("the partitioned program differs from {0}: {1} of "
                             "'{2}' by {3:e2}, more than {4:e1}",
                             other, worst.kind, worst.name, worst.error, o.tolerance)
                   .str());
  return kDiffers;
}

/// Returns the exit code.
static int compareAll(Session &session, const VerifyCommandOptions &o, Programs &programs,
                      const interp::VerifyOptions &options) {
  ModuleOp full = *programs.full, partitioned = *programs.partitioned;
  std::optional<Loss> loss = programs.loss;
  if (programs.exactWeights &&
      !tellDistance("weights in 8 bits", "the program that rounds them", *programs.exactWeights,
                    programs.rounding ? full : partitioned, options))
    return 1;
  if (programs.rounding) {
    llvm::outs() << "with exact gradients, up to phase 'states':\n";
    if (int code = compare(session, o, full, *programs.summedExactly, options))
      return code;
  }
  bool loses = loss && loss->exactSteps < o.steps;
  StringRef algorithm = "the algorithm's own arithmetic";
  if (loses && !tellDistance(loss->what, algorithm, full, partitioned, options))
    return 1;
  int code = compare(session, o, programs.rounding ? *programs.rounding : full, partitioned,
                     options, loses ? algorithm : "the unpartitioned one");
  if (code == 0 && loss && !loses)
    llvm::outs() << "only exact steps were compared; compressed ones follow step "
                 << loss->exactSteps << ": give more --steps, or a shorter warm-up\n";
  return code;
}

int partita::tool::verifyMain(Arguments arguments) {
  VerifyCommandOptions o;
  if (std::optional<int> done = parseOptions(arguments, o))
    return *done;
  Session session("verify");
  if (o.warningsAsErrors)
    session.refuseWarnings();
  std::optional<Programs> programs = compileAll(session, o);
  if (!programs)
    return 1;
  interp::VerifyOptions options;
  StringRef folder = llvm::sys::path::parent_path(o.model);
  options.values = {o.from, static_cast<uint64_t>(o.seed), folder.empty() ? "." : folder.str()};
  options.seed = o.seed;
  options.steps = o.steps;
  options.tolerance = o.tolerance;
  options.interpreter.learningRate = std::stod(o.plan.get("lr").str());
  return compareAll(session, o, *programs, options);
}
