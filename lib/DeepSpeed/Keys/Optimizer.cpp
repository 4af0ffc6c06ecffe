//===- Optimizer.cpp - the optimizer and its parameters ---------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"
#include "partita/Support/NearestNames.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace partita::config;

static constexpr StringLiteral kType = "optimizer.type",
                               kClipper = "optimizer.params.local_step_clipper",
                               kFactorMax = "optimizer.params.factor_max",
                               kFactorMin = "optimizer.params.factor_min";
static constexpr Key kOptimizerRows[] = {
    {"optimizer", block, "null", Obeyed, "how to update parameters"},
    {kType, text, "null", Obeyed,
     "--optimizer: Adam and AdamW (both AdamW unless adam_w_mode is false, as in DeepSpeed's code), "
     "SGD, Lion, Adagrad, Lamb, OneBitAdam, OneBitLamb, ZeroOneAdam, in any case of letters; the "
     "mu-parametrized ones and Muon are refused"},
    {"optimizer.legacy_fusion", boolean, "false", NoEffect,
     "updates are compiled with the program"},
    {"optimizer.params", block, "{}", Obeyed, "a parameter that the optimizer lacks is an error"},
    {"optimizer.params.lr", number(0), "0.001", Obeyed, "--lr", "--lr, else 0.001"},
    {"optimizer.params.betas", betas, "[0.9, 0.999]", Obeyed,
     "--betas; if absent, Lion uses 0.9 and 0.99", "--betas, else 0.9 and 0.999"},
    {"optimizer.params.eps", number(0, 1), "1e-8", Obeyed, "--eps; if absent, Adagrad uses 1e-10",
     "--eps, else 1e-8"},
    {"optimizer.params.weight_decay", number(0), "0", Obeyed,
     "--weight-decay: applies to parameters with two or more dimensions (not norms, not biases), "
     "as in the groups of Hugging Face's Trainer",
     "--weight-decay, else 0"},
    {"optimizer.params.bias_correction", boolean, "true", Obeyed,
     "false: --no-bias-correction. Without effect for OneBitAdam, OneBitLamb and "
     "ZeroOneAdam, as in DeepSpeed; --bias-correction corrects the biases of the two Adams"},
    {"optimizer.params.adam_w_mode", boolean, "true", Obeyed,
     "for Adam: false adds the decay to the gradient (--optimizer adam)"},
    {"optimizer.params.torch_adam", boolean, "false", NoEffect,
     "one implementation, whose results are PyTorch's"},
    {"optimizer.params.fused", boolean, "false", NoEffect, "updates are one kernel each"},
    {"optimizer.params.set_grad_none", boolean, "true", NoEffect,
     "gradients live as long as they are used"},
    {"optimizer.params.amsgrad", boolean, "false", Refused, "there is no AMSGrad; use Adam"},
    {"optimizer.params.momentum", number(0, 1), "0", Obeyed, "--momentum, for SGD"},
    {"optimizer.params.dampening", number(0, 1), "0", Refused, "SGD's momentum is not dampened"},
    {"optimizer.params.nesterov", boolean, "false", Obeyed, "--nesterov, for SGD with momentum"},
    {"optimizer.params.max_coeff", number(0), "10.0", Obeyed,
     "upper bound in --lamb-bounds, for Lamb and OneBitLamb"},
    {"optimizer.params.min_coeff", number(0), "0.01", Obeyed,
     "lower bound in --lamb-bounds, for Lamb and OneBitLamb"},
    {"optimizer.params.eps_inside_sqrt", boolean, "false", Refused,
     "epsilon is added to the root of the second moment"},
    {"optimizer.params.max_grad_norm", number(0), "0", Obeyed,
     "--clip: gradient_clipping by another name (DeepSpeed's code refuses it, its tutorials print "
     "it); 0: no clipping"},
    {"optimizer.params.lr_decay", number(0), "0", Refused,
     "Adagrad's rate does not decay by itself; give a \"scheduler\""},
    {"optimizer.params.freeze_step", integer(1), "100000", Obeyed,
     "--freeze-step, for OneBitAdam and OneBitLamb: the last step of the warm-up (DeepSpeed's first call only "
     "initializes states, so that its step is one behind)",
     "--freeze-step, else 100000"},
    {"optimizer.params.cuda_aware", boolean, "false", NoEffect,
     "of OneBitAdam, OneBitLamb and ZeroOneAdam: bits are sent as all other data"},
    {"optimizer.params.comm_backend_name", choice("nccl|mpi|hccl|compressed"), "\"nccl\"", NoEffect,
     "of OneBitAdam, OneBitLamb and ZeroOneAdam: the run chooses how ranks communicate (threads, "
     "MPI or sockets, GPUs over NCCL)"},
    {"optimizer.params.var_freeze_step", integer(1), "100000", Obeyed,
     "--var-freeze-step, for ZeroOneAdam: the last step that may update the variance (DeepSpeed's "
     "first call only initializes states, so that its step is one behind)",
     "--var-freeze-step, else 100000"},
    {"optimizer.params.var_update_scaler", integer(1), "16", Obeyed,
     "--var-update-scaler, for ZeroOneAdam: updates of the variance at each interval",
     "--var-update-scaler, else 16"},
    {"optimizer.params.local_step_scaler", integer(1), "32678", NoEffect,
     "of ZeroOneAdam: after how many steps local steps double; there are none"},
    {kClipper, integer(1), "16", Obeyed,
     "of ZeroOneAdam, the most local steps between two sums: 1, also if absent, since more is "
     "refused (DeepSpeed's 16 counts from step var_freeze_step + local_step_scaler on)",
     "1"},
    {"optimizer.params.coeff_beta", number(0, 1), "0.9", Obeyed,
     "--coeff-beta, for OneBitLamb: what the running mean of the warm-up's ratios keeps of itself",
     "--coeff-beta, else 0.9"},
    {kFactorMax, number(0), "4.0", Obeyed, "upper bound in --factor-bounds, for OneBitLamb"},
    {kFactorMin, number(0), "0.5", Obeyed, "lower bound in --factor-bounds, for OneBitLamb"},
    {"optimizer.params.factor_threshold", number(0, 1), "0.1", Obeyed,
     "--factor-threshold, for OneBitLamb: by what share of itself the factor may change in a step",
     "--factor-threshold, else 0.1"},
    {"optimizer.params.muon_lr", number(0), "0.001", Part, "of Muon"},
    {"optimizer.params.adam_lr", number(0), "0.001", Part, "of Muon"},
    {"optimizer.params.ns_method", text, "\"gram\"", Part, "of Muon"},
};

Section partita::config::optimizerKeys() { return {"Optimizer", kOptimizerRows}; }

namespace {
/// One of DeepSpeed's optimizers, whose name a file has in any case of letters.
struct Type {
  StringLiteral name, option; ///< an empty option: refused
  StringLiteral params;       ///< separated by '|'; for a refused one, the reason
  OptimizerFacts facts = {};
  bool (*resolveOwn)(Resolver &r) = nullptr; ///< sets what only its kind has
  StringLiteral rate = "0.001", betas = "", eps = "";
};
} // namespace

static bool resolveLamb(Resolver &r);
static bool resolveFreezeStep(Resolver &r);
static bool resolveOneBitLamb(Resolver &r);
static bool resolveZeroOne(Resolver &r);

static constexpr StringLiteral kAdamParams =
    "lr|betas|eps|weight_decay|bias_correction|adam_w_mode|torch_adam|fused|set_grad_none|amsgrad|"
    "max_grad_norm";
static constexpr StringLiteral kMu =
    "mu-parametrization scales rates by the shape of each parameter";
static constexpr OptimizerFacts kMoments = {/*hasBetas=*/true, /*hasRatio=*/false,
                                            /*sumsMomenta=*/false},
                                kRatio = {true, true, false}, kSums = {true, false, true},
                                kRatioAndSums = {true, true, true};
static constexpr Type kTypes[] = {
    {"Adam", "adamw", kAdamParams, kMoments},
    {"AdamW", "adamw", kAdamParams, kMoments},
    {"SGD", "sgd", "lr|momentum|dampening|nesterov|weight_decay"},
    {"Lion", "lion", "lr|betas|weight_decay", kMoments, nullptr, "0.001", "0.9,0.99"},
    {"Adagrad", "adagrad", "lr|eps|weight_decay|lr_decay", {}, nullptr, "0.01", "", "1e-10"},
    {"Lamb", "lamb",
     "lr|betas|eps|weight_decay|bias_correction|max_coeff|min_coeff|eps_inside_sqrt|amsgrad|"
     "max_grad_norm",
     kRatio, resolveLamb},
    {"OneBitAdam", "onebit-adam",
     "lr|betas|eps|weight_decay|bias_correction|freeze_step|cuda_aware|comm_backend_name|"
     "eps_inside_sqrt|max_grad_norm|amsgrad",
     kSums, resolveFreezeStep},
    {"OneBitLamb", "onebit-lamb",
     "lr|betas|eps|weight_decay|bias_correction|max_coeff|min_coeff|freeze_step|coeff_beta|"
     "factor_max|factor_min|factor_threshold|cuda_aware|comm_backend_name|eps_inside_sqrt|"
     "max_grad_norm|amsgrad",
     kRatioAndSums, resolveOneBitLamb},
    {"ZeroOneAdam", "zero-one-adam",
     "lr|betas|eps|weight_decay|bias_correction|var_freeze_step|var_update_scaler|"
     "local_step_scaler|local_step_clipper|cuda_aware|comm_backend_name|eps_inside_sqrt|"
     "max_grad_norm|amsgrad",
     kSums, resolveZeroOne},
    {"Muon", "", "its updates need full matrices on every rank"},
    {"MuAdam", "", kMu},
    {"MuAdamW", "", kMu},
    {"MuSGD", "", kMu},
};

/// Finds an optimizer by name, in upper or lower case; null if it is unknown or refused.
static const Type *findType(StringRef name) {
  const Type *type =
      find_if(kTypes, [&](const Type &each) { return each.name.equals_insensitive(name); });
  return type == std::end(kTypes) || type->option.empty() ? nullptr : type;
}

std::optional<OptimizerFacts> partita::config::factsOfOptimizer(StringRef name) {
  const Type *type = findType(name);
  if (!type) // by the plan option's name: onebit-adam
    type = find_if(kTypes,
                   [&](const Type &each) { return !each.option.empty() && each.option == name; });
  return type == std::end(kTypes) ? std::nullopt : std::optional(type->facts);
}

std::string partita::config::optimizerProblem(StringRef said) {
  if (findType(said))
    return {};
  SmallVector<StringRef> supported;
  for (const Type &type : kTypes) {
    if (type.name.equals_insensitive(said))
      return "the optimizer " + quoted(said) + " is not supported: " + type.params.str() +
             "; use AdamW or Lamb";
    if (!type.option.empty())
      supported.push_back(type.name);
  }
  StringRef best = nearestName(said, supported);
  return "there is no optimizer " + quoted(said) +
         (best.empty() ? "; there are " + join(ArrayRef(supported).drop_back(), ", ") + " and " +
                             supported.back().str()
                       : "; did you mean '" + best.str() + "'?");
}

static std::string paramPath(StringRef name) { return ("optimizer.params." + name).str(); }

/// Checks that every given parameter is one of the optimizer's.
static bool checkParams(Resolver &r, ArrayRef<StringRef> known) {
  for (const Key &key : kOptimizerRows) {
    if (key.block() != "optimizer.params" || !r.isGiven(key.path) ||
        is_contained(known, key.name()))
      continue;
    return r.document.error(r.given[key.path].at,
                            quoted(key.name()) + " is not a parameter of the optimizer " +
                                quoted(r.word(kType)) + ", which has " + join(known, ", ")),
           false;
  }
  return true;
}

static bool resolveBetas(Resolver &r, StringRef initial) {
  constexpr StringLiteral path = "optimizer.params.betas";
  const Given *given = r.find(path);
  if (given && !r.isAuto(path))
    return r.set(path, "betas",
                 numberText(given->value->items[0].real) + "," +
                     numberText(given->value->items[1].real));
  if (const std::string *other = r.commandLine("betas")) {
    r.value(path, jsonOf(path, *other), "command line, --betas");
    return true;
  }
  if (!given && initial.empty())
    return true;
  std::string text = initial.empty() ? "0.9,0.999" : initial.str();
  r.value(path, jsonOf(path, text), "default");
  return r.set(path, "betas", text);
}

/// Sets a number that the file gives, or whose default differs from the plan option's.
static bool resolveNumber(Resolver &r, StringRef name, StringRef option, StringRef initial,
                          StringRef usual) {
  std::string path = paramPath(name), text;
  if (!r.has(path) && (initial.empty() || initial == usual) && !r.commandLine(option))
    return true;
  return r.settle(path, option, initial.empty() ? usual : initial, text);
}

/// Sets an option of two bounds, of which the file gives one or both.
static bool resolveBounds(Resolver &r, StringRef least, StringRef most, StringRef option) {
  if (!r.has(most) && !r.has(least))
    return true;
  StringRef path = r.has(most) ? most : least;
  if (r.real(least) > r.real(most))
    return r.fail(path, least.rsplit('.').second + " " + numberText(r.real(least)) + " is above " +
                            most.rsplit('.').second + " " + numberText(r.real(most)));
  return r.set(path, option, numberText(r.real(least)) + "," + numberText(r.real(most)));
}

static bool resolveLamb(Resolver &r) {
  return resolveBounds(r, "optimizer.params.min_coeff", "optimizer.params.max_coeff",
                       "lamb-bounds");
}

static bool resolveRate(Resolver &r, StringRef initial) {
  std::string text;
  if (!r.settle("optimizer.params.lr", "lr", initial, text))
    return false;
  StringRef(text).getAsDouble(r.rate);
  return true;
}

/// Sets a plan option if the switch has the value `sets`.
static bool resolveSwitch(Resolver &r, StringRef path, StringRef option, bool sets) {
  if (r.flag(path) == sets)
    return r.set(path, option, "true");
  if (!r.commandLine(option))
    return true;
  if (r.isGiven(path))
    return r.fail(path, r.name(path) + " is " + (sets ? "false" : "true") +
                            ", but the command line says --" + option + "; leave one of them out");
  r.value(path, sets ? "true" : "false", ("command line, --" + option).str());
  return true;
}

static bool resolveFreezeStep(Resolver &r) {
  return resolveNumber(r, "freeze_step", "freeze-step", "", "100000");
}

static bool resolveOneBitLamb(Resolver &r) {
  return resolveLamb(r) && resolveNumber(r, "coeff_beta", "coeff-beta", "", "0.9") &&
         resolveBounds(r, kFactorMin, kFactorMax, "factor-bounds") &&
         resolveNumber(r, "factor_threshold", "factor-threshold", "", "0.1") &&
         resolveFreezeStep(r);
}

static bool resolveZeroOne(Resolver &r) {
  if (r.isGiven(kClipper) && r.real(kClipper) > 1)
    return r.fail(kClipper, r.name(kClipper) + " is " + numberText(r.real(kClipper)) +
                                ": between two sums each rank would have other parameters, so "
                                "that losses, sums of gradients and checkpoints would be those of "
                                "no model; use 1");
  if (!r.isGiven(kClipper))
    r.value(kClipper, "1", "default");
  return resolveNumber(r, "var_freeze_step", "var-freeze-step", "", "100000") &&
         resolveNumber(r, "var_update_scaler", "var-update-scaler", "", "16");
}

bool partita::config::resolveOptimizer(Resolver &r) {
  if (const std::string *rate = r.commandLine("lr"))
    StringRef(*rate).getAsDouble(r.rate);
  if (!r.has("optimizer"))
    return true;
  if (!r.has(kType))
    return r.document.error(r.given["optimizer"].at,
                            r.name("optimizer") + " has no \"type\", such as \"AdamW\""),
           false;
  const Type *type = findType(r.word(kType)); // the keys are checked already
  if (!type)
    return r.fail(kType, optimizerProblem(r.word(kType)));
  SmallVector<StringRef> known;
  type->params.split(known, '|');
  if (!checkParams(r, known))
    return false;
  bool isPlainAdam = type->name == "Adam" && !r.flag("optimizer.params.adam_w_mode");
  if (!r.set(kType, "optimizer", isPlainAdam ? "adam" : type->option) ||
      !resolveRate(r, type->rate))
    return false;
  if (type->name == "AdamW" && !r.flag("optimizer.params.adam_w_mode"))
    r.idle("optimizer.params.adam_w_mode", "of Adam alone: AdamW is AdamW");
  if (is_contained(known, "betas") && !resolveBetas(r, type->betas))
    return false;
  if (is_contained(known, "eps") && !resolveNumber(r, "eps", "eps", type->eps, "1e-08"))
    return false;
  if (!resolveNumber(r, "weight_decay", "weight-decay", "", "0") ||
      (is_contained(known, "momentum") && !resolveNumber(r, "momentum", "momentum", "", "0")))
    return false;
  constexpr StringLiteral corrects = "optimizer.params.bias_correction",
                          nesterov = "optimizer.params.nesterov";
  if (type->facts.sumsMomenta)
    r.idle(corrects, r.word(kType) + " corrects no bias in DeepSpeed either");
  else if (is_contained(known, corrects.rsplit('.').second) &&
           !resolveSwitch(r, corrects, "no-bias-correction", false))
    return false;
  if (is_contained(known, nesterov.rsplit('.').second) &&
      !resolveSwitch(r, nesterov, "nesterov", true))
    return false;
  return !type->resolveOwn || type->resolveOwn(r);
}
