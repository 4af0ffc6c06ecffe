//===- Precision.cpp - 16-bit types, loss scaling, types of reductions ------------------------===//

#include "lib/DeepSpeed/Resolver.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace llvm;
using namespace partita::config;

static constexpr double kSmall = 1e-30;
static constexpr Key kPrecisionRows[] = {
    {"bf16", checkedBlock, "{}", Obeyed,
     "also spelled bfloat16, as DeepSpeed's older versions have it"},
    {"bf16.enabled", boolean, "false", Obeyed, "--precision bfloat16",
     "--precision, without it false"},
    {"bf16.immediate_grad_update", boolean, "false", NoEffect,
     "gradients are added up where the backward pass makes them"},
    {"bf16.check_grad_overflow", boolean, "true", Obeyed,
     "--loss-scale 1: an update with infinities or NaNs is skipped (the "
     "documentation's name for it, check_overflow, is read too); false if absent beside OneBitAdam, "
     "OneBitLamb and ZeroOneAdam, which skip no update"},
    {"bf16.bf16_master_weights_and_grads", boolean, "false", Refused,
     "master weights are float32; --zero-stage 1 to 3 divide them by the ranks"},
    {"bf16.bf16_optimizer_states", boolean, "false", Refused,
     "optimizer states are float32; --zero-stage 1 to 3 divide them by the ranks"},
    {"fp16", checkedBlock, "{}", Obeyed, "float16 with loss scaling"},
    {"fp16.enabled", boolean, "false", Obeyed, "--precision float16",
     "--precision, without it false"},
    {"fp16.auto_cast", boolean, "false", NoEffect,
     "what the model computes with is cast where it is used"},
    {"fp16.loss_scale", number(0, 1e38), "0", Obeyed,
     "--loss-scale: a fixed one, or 0 for a dynamic one"},
    {"fp16.initial_scale_power", integer(0, 120), "16", Obeyed,
     "--initial-scale-power: the first dynamic scale is 2 to this power"},
    {"fp16.loss_scale_window", integer(1), "1000", Obeyed,
     "--loss-scale-window: steps without overflow before the scale doubles"},
    {"fp16.hysteresis", integer(1), "2", Obeyed,
     "--hysteresis: overflows before the scale is halved"},
    {"fp16.consecutive_hysteresis", boolean, "false", Obeyed,
     "--consecutive-hysteresis: a step without overflow restores it"},
    {"fp16.min_loss_scale", number(kSmall, 1e38), "1", Obeyed,
     "--min-loss-scale: the run ends with an error where it would fall below"},
    {"fp16.fp16_master_weights_and_grads", boolean, "false", Refused,
     "master weights are float32; --zero-stage 1 to 3 divide them by the ranks"},
    {"amp", foreign, "{}", Refused,
     "Apex's mixed precision is not supported (nor does DeepSpeed allow it with ZeRO); \"bf16\": "
     "{\"enabled\": true} or \"fp16\" computes in 16 bits"},
    {"torch_autocast", foreign, "{}", Refused,
     "PyTorch's autocast does not apply; \"bf16\": {\"enabled\": true} computes "
     "matmuls in 16 bits with float32 master weights"},
    {"amp.enabled", boolean, "false", Part, "of amp"},
    {"amp.opt_level", text, "\"O1\"", Part, "of amp"},
    {"torch_autocast.enabled", boolean, "false", Part, "of torch_autocast"},
    {"torch_autocast.dtype", text, "\"bfloat16\"", Part, "of torch_autocast"},
    {"torch_autocast.lower_precision_safe_modules", anything, "null", Part, "of torch_autocast"},
    {"communication_data_type", choice("fp32|float32|float|fp16|float16|half|bf16|bfp16|bfloat16"),
     "null", Obeyed, "--reduce-type: what gradients are on the wire; their own type where absent"},
    {"fp32_allreduce", boolean, "false", Obeyed,
     "--reduce-type float32 (an older key; now communication_data_type)"},
    {"seq_parallel_communication_data_type",
     choice("fp32|float32|float|fp16|float16|half|bf16|bfp16|bfloat16"), "\"fp32\"", NoEffect,
     "gradients of sequence-parallel ranks are reduced with all others"},
    {"data_types", checkedBlock, "{}", Obeyed, "types of what is kept"},
    {"data_types.grad_accum_dtype", choice("fp32|fp16|bf16"), "null", Obeyed,
     "--accumulate-type: the type in which gradients are summed over micro-batches"},
    {"data_types.param_dtype", choice("fp32|fp16|bf16"), "null", Refused,
     "parameters have the type of --precision, with float32 master weights"},
    {"data_types.buffer_dtype", choice("fp32|fp16|bf16"), "null", Refused,
     "buffers have the type that the model's file gives them"},
};

Section partita::config::precisionKeys() { return {"Precision", kPrecisionRows}; }

namespace {
enum class Want { Absent, No, Auto, Yes };
}

static Want wanted(Resolver &r, StringRef path) {
  if (!r.has(path))
    return Want::Absent;
  return r.isAuto(path) ? Want::Auto : r.flag(path) ? Want::Yes : Want::No;
}

/// Returns the type that tensors are stored in.
static std::string storedType(const std::string &precision) {
  return precision == "fp8" ? "bfloat16" : precision;
}

/// Checks that the command line's type agrees with what the file says about that type.
static bool agrees(Resolver &r, StringRef path, StringRef type, Want want,
                   const std::string &precision) {
  bool isOn = storedType(precision) == type;
  if ((want != Want::Yes || isOn) && (want != Want::No || !isOn))
    return true;
  return r.fail(path, r.name(path) + " is " + (want == Want::Yes ? "true" : "false") +
                          ", but the command line says --precision " + precision +
                          "; leave one of them out");
}

/// Chooses the type, with the reason. "auto" means what Hugging Face's Trainer makes of it: the
/// command line's value (there --bf16 and --fp16), or else false.
static bool choosePrecision(Resolver &r) {
  constexpr StringLiteral half = "fp16.enabled", brain = "bf16.enabled";
  Want fp16 = wanted(r, half), bf16 = wanted(r, brain);
  std::string from = "no --precision on the command line";
  if (fp16 == Want::Yes && bf16 == Want::Yes) {
    r.fail(brain, "bf16 and fp16 are both enabled; a program computes in one 16-bit type");
    r.document.note(r.placeOf(half), "fp16 is enabled here");
    return false;
  }
  if (const std::string *said = r.commandLine("precision")) {
    if (!agrees(r, half, "float16", fp16, *said) || !agrees(r, brain, "bfloat16", bf16, *said))
      return false;
    r.precision = storedType(*said);
    from = "command line, --precision";
  } else if (fp16 == Want::Yes) {
    r.precision = "float16";
    from = "fp16 is enabled";
  } else if (bf16 == Want::Yes) {
    r.precision = "bfloat16";
    from = "bf16 is enabled";
  }
  if (fp16 == Want::Auto)
    r.value(half, r.precision == "float16" ? "true" : "false", from);
  if (bf16 == Want::Auto)
    r.value(brain, r.precision == "bfloat16" ? "true" : "false", from);
  if (r.precision == "float32" || r.commandLine("precision"))
    return true;
  return r.set(r.precision == "float16" ? half : brain, "precision", r.precision);
}

static bool resolveScaling(Resolver &r) {
  static constexpr std::pair<StringLiteral, StringLiteral> dynamic[] = {
      {"fp16.initial_scale_power", "initial-scale-power"},
      {"fp16.loss_scale_window", "loss-scale-window"},
      {"fp16.hysteresis", "hysteresis"},
      {"fp16.min_loss_scale", "min-loss-scale"}};
  constexpr StringLiteral scale = "fp16.loss_scale", consecutive = "fp16.consecutive_hysteresis";
  bool isHalf = r.precision == "float16", isFixed = r.real(scale) != 0;
  std::string reason = isHalf ? "the loss scale is fixed" : "no loss is scaled in " + r.precision;
  constexpr StringLiteral check = "bf16.check_grad_overflow";
  std::string optimizer = r.word("optimizer.type");
  std::optional<OptimizerFacts> facts = factsOfOptimizer(optimizer);
  if (bool checks = r.flag(check); r.precision != "bfloat16")
    r.idle(check, "bf16 is not enabled");
  else if (!r.has(check) && facts && facts->sumsMomenta && !r.commandLine("loss-scale"))
    r.value(check, "false", optimizer + ", which skips no update");
  else if (checks && !r.commandLine("loss-scale") && !r.set(check, "loss-scale", "1"))
    return false;
  if (!isHalf)
    r.idle(scale, reason);
  else if (r.has(scale) && !r.set(scale, "loss-scale", numberText(r.real(scale))))
    return false;
  for (auto [path, option] : dynamic) {
    if (!r.has(path))
      continue;
    if (!isHalf || isFixed)
      r.idle(path, reason);
    else if (!r.set(path, option, numberText(r.real(path))))
      return false;
  }
  if (!isHalf || isFixed)
    r.idle(consecutive, reason);
  else if (r.flag(consecutive) && !r.set(consecutive, "consecutive-hysteresis", "true"))
    return false;
  double least = r.real("fp16.min_loss_scale"),
         first = std::exp2(r.real("fp16.initial_scale_power"));
  if (isHalf && !isFixed && least > first)
    return r.fail("fp16.min_loss_scale",
                  r.name("fp16.min_loss_scale") + " " + numberText(least) +
                      " is above the first scale, 2 to the power of initial_scale_power " +
                      Twine(r.integer("fp16.initial_scale_power")) + " = " + numberText(first));
  return true;
}

static std::string typeOf(StringRef word) {
  return StringSwitch<std::string>(word)
      .Cases({"fp16", "float16", "half"}, "float16")
      .Cases({"bf16", "bfp16", "bfloat16"}, "bfloat16")
      .Default("float32");
}

bool partita::config::resolveGradientTypes(Resolver &r) {
  constexpr StringLiteral wire = "communication_data_type", older = "fp32_allreduce",
                          sum = "data_types.grad_accum_dtype";
  constexpr StringLiteral alone = "one rank reduces nothing";
  if (r.has(wire) && r.flag(older) && typeOf(r.word(wire)) != "float32")
    return r.fail(wire, r.name(wire) + " is \"" + r.word(wire) +
                            "\", but fp32_allreduce is true, which is float32; leave one out");
  StringRef path = r.has(wire) ? wire : older;
  if (r.has(wire) || r.flag(older)) {
    if (r.world() == 1)
      r.idle(path, alone);
    else if (!r.reducesGradients())
      r.idle(path, "ranks of tp reduce no gradients without --sequence-parallel");
    else if (std::string type = r.has(wire) ? typeOf(r.word(wire)) : "float32"; type == r.precision)
      r.idle(path, "gradients are " + type + " anyway");
    else if (!r.set(path, "reduce-type", r.has(wire) ? typeOf(r.word(wire)) : "float32"))
      return false;
  }
  if (!r.has(sum))
    return true;
  std::string type = typeOf(r.word(sum));
  std::string count = r.planned("accumulate");
  if (r.precision == "float32" && type == r.precision)
    r.idle(sum, "gradients are float32 anyway");
  else if (count.empty() || count == "1")
    r.idle(sum, "one micro-batch adds nothing up");
  else
    return r.set(sum, "accumulate-type", type);
  return true;
}

bool partita::config::resolvePrecision(Resolver &r) {
  return choosePrecision(r) && resolveScaling(r);
}
