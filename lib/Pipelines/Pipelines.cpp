//===- Pipelines.cpp - phase name -> textual pipeline -> the reason it stands there -----------===//

#include "partita/Pipelines/Pipelines.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace partita;

static constexpr Phase kPhases[] = {
    {"import", "single-precision,canonicalize,cse",
     "training computes in 32 bits, whatever a file stores; exporters write the same shape and "
     "mask arithmetic once per layer; what is equal becomes one "
     "before anything matches patterns"},
    {"raise",
     "func.func(raise-layer-norm,raise-rms-norm,"
     "raise-activation,raise-rotate-half,raise-attention),canonicalize,cse",
     "composites are recognized while the program is as the exporter wrote it; rules, gradients "
     "and kernels belong to the whole op"},
    {"objective",
     "assign-fill{residual-scale=${scale-residual-init}},make-init,"
     "objective{kind=${objective} accumulate=${accumulate} ignore-index=${ignore-index} "
     "inputs=${input} freeze=${freeze}},key-dropout,canonicalize,cse,mark-layers,note-flops",
     "the loss belongs to the program before it is split: its sum and count are split like all "
     "else; layers, and what they compute, are seen best in the forward program alone"},
    {"precision", "lower-precision{type=${precision}},elide-casts,canonicalize,cse",
     "of the whole forward program, so that partitioning sees what ranks will exchange, and the "
     "backward pass is of the types of what it differentiates"},
    {"partition",
     "partition-unshare,partition-seed{mesh=${mesh}},partition-seed-user{shard=${shard}},"
     "partition-seed-annotated{configuration=${configuration}},partition-seed-tensor,"
     "partition-seed-sequence{on=${sequence-parallel}},partition-split-forms,"
     "partition-propagate,partition-materialize,simplify-collectives,partition-verify",
     "the forward program alone, all axes alike; the backward halves follow from it"},
    {"parameters",
     "zero-shard-parameters{stage=${zero-stage} strategy=${fsdp-strategy} "
     "keep=${persistence-threshold}}",
     "the gathers of parameters take the place of their conjugates, before differentiation"},
    {"differentiate",
     "scale-loss{scale=${loss-scale} power=${initial-scale-power} window=${loss-scale-window} "
     "hysteresis=${hysteresis} consecutive=${consecutive-hysteresis} minimum=${min-loss-scale}},"
     "differentiate{accumulate-type=${accumulate-type}},recompute{policy=${recompute} "
     "budget=${recompute-budget} "
     "partition=${recompute-partition}},gather-again{strategy=${fsdp-strategy} "
     "keep=${keep-gathered} always=${gather-always}},expand-conjugates,join-"
     "slice-gradients,canonicalize,"
     "cse",
     "after partitioning, so that the conjugates of what it inserted come out of the table"},
    {"optimize",
     "optimize{kind=${optimizer} betas=${betas} epsilon=${eps} momentum=${momentum} "
     "nesterov=${nesterov} no-bias-correction=${no-bias-correction} weight-decay=${weight-decay} "
     "lamb-bounds=${lamb-bounds} stochastic-rounding=${stochastic-rounding} groups=${group} "
     "clip=${clip}},canonicalize,cse",
     "gradients are complete here, whatever reduced them"},
    {"states",
     "zero-shard-states{stage=${zero-stage}},canonicalize,zero-shard-gradients{stage=${zero-stage}}"
     ","
     "canonicalize,type-gradients{reduce-type=${reduce-type}},expand-norms,cse",
     "who keeps which states and gradients follows from the updates by algebra, and from that over "
     "which ranks a norm is summed"},
    {"offload",
     "offload-states{what=${offload}},offload-parameters{what=${offload} "
     "keep=${persistence-threshold}},offload-activations{what=${offload} "
     "least-bytes=${offload-threshold}},offload-verify",
     "what lives on the host follows from who uses it, which is settled here; where the copies "
     "stand in the step is the overlap's to say"},
    {"schedule", "peel-last-micro-batch,canonicalize,cse",
     "the order of the micro-batches is settled before kernels are made and collectives placed"},
    {"fuse",
     "split-reductions,fuse-classifier,fuse-rotary,canonicalize,sink-reshapes,fuse-residual-"
     "gradients,fuse-epilogues,fuse-addends,fuse-accumulation,fuse-elementwise,fuse-bias,"
     "canonicalize,cse",
     "every kernel boundary is a value written and read again; before the overlap, which counts "
     "what there is to hide behind"},
    {"overlap",
     "zero-prefetch-parameters{ahead-bytes=${prefetch-bytes} always=${gather-always}},"
     "bucket-all-reduces{bytes=${bucket-bytes}},order-updates,bucket-gathers{bytes=${bucket-bytes}}"
     ","
     "offload-fetch-ahead{ahead-bytes=${prefetch-bytes}},start-collectives,start-transfers,poll-"
     "collectives",
     "after the last pass that moves computation, before buffers: an operand lives until its wait"},
    {"memory", "plan-memory",
     "the order of all ops is final: lives are known, and with them every offset"},
    {"sync", "check-streams",
     "two streams that touch the same bytes are a race on a GPU, whichever pass placed them; "
     "checked "
     "on final offsets, trusting none of the passes before"},
    {"lower", "lower-to-rt{learning-rate=${lr} schedule=${lr-schedule}},outline-layers,rt-to-emitc",
     "every decision is made; what follows is spelling, of layers that differ in data alone once"},
};

ArrayRef<Phase> partita::phases() { return kPhases; }

int partita::phaseIndex(StringRef name) {
  for (auto [index, phase] : llvm::enumerate(phases()))
    if (phase.name == name)
      return index;
  return -1;
}

std::string partita::pipelineText(const Phase &phase, const Plan &plan) {
  std::string text;
  StringRef rest = phase.pipeline;
  while (true) {
    auto [before, after] = rest.split("${");
    text += before;
    if (after.empty())
      return text;
    auto [option, behind] = after.split('}');
    text += plan.get(option);
    rest = behind;
  }
}

int partita::firstReader(StringRef option) {
  std::string wanted = ("${" + option + "}").str();
  for (auto [index, phase] : llvm::enumerate(phases()))
    if (phase.pipeline.contains(wanted))
      return index;
  return -1;
}

/// Reads "mesh=dp=2 accumulate=4" into a plan; returns what is wrong, or nothing.
static std::string parsePlanText(StringRef text, Plan &plan) {
  SmallVector<StringRef> items;
  text.split(items, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef item : items) {
    auto [name, value] = item.split('=');
    const PlanOption *option = findPlanOption(name);
    if (!option)
      return ("there is no plan option '" + name + "'").str();
    if (std::string problem = checkPlanValue(*option, value); !problem.empty())
      return (name + ": " + problem).str();
    plan.set(name, value);
  }
  return {};
}

void partita::registerPipelines() {
  for (const Phase &phase : phases())
    registerPassPipeline(
        ("partita-" + phase.name).str(), phase.reason,
        [&phase](OpPassManager &manager, StringRef options,
                 function_ref<LogicalResult(const Twine &)> error) -> LogicalResult {
          Plan plan;
          if (std::string problem = parsePlanText(options, plan); !problem.empty())
            return error(problem);
          std::string problem;
          llvm::raw_string_ostream os(problem);
          if (failed(parsePassPipeline(pipelineText(phase, plan), manager, os)))
            return error(problem);
          return success();
        },
        [](function_ref<void(const mlir::detail::PassOptions &)>) {});
}

LogicalResult partita::runPhases(ModuleOp module, int first, int last, const Plan &plan,
                                 llvm::function_ref<void(const Phase &)> begins) {
  for (int index = first; index <= last; ++index) {
    const Phase &phase = phases()[index];
    if (begins)
      begins(phase);
    PassManager manager(module.getContext(), ModuleOp::getOperationName());
    std::string problem;
    llvm::raw_string_ostream os(problem);
    if (failed(parsePassPipeline(pipelineText(phase, plan), manager, os)))
      return module.emitError() << "phase '" << phase.name << "': " << problem;
    if (failed(manager.run(module)))
      return failure();
    module->setAttr(kPhaseAttr, StringAttr::get(module.getContext(), phase.name));
  }
  return success();
}

int partita::nextPhase(ModuleOp module) {
  Attribute attribute = module->getAttr(kPhaseAttr);
  if (!attribute)
    return 0;
  auto name = dyn_cast<StringAttr>(attribute);
  int index = name ? phaseIndex(name) : -1;
  if (index >= 0)
    return index + 1;
  SmallVector<StringRef> names;
  for (const Phase &phase : phases())
    names.push_back(phase.name);
  module.emitError() << kPhaseAttr << " is " << attribute << ", which is no phase; the phases are "
                     << llvm::join(names, ", ");
  return -1;
}
