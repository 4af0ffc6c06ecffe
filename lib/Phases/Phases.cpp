//===- Phases.cpp - phase name -> its passes -> the reason it stands there -----------------===//

#include "partita/Phases/Phases.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "partita/Phases/Provenance.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace partita;

// A phase's passes in running order, one a line, so that grep finds a flag where it runs. After them each phase has
// note-phase{phase=PHASE}, which looks at the program as a whole, like verify-phase, once the passes run on its stages
// (pipelineText).
// clang-format off

static constexpr StringLiteral kImport[] = {
    "single-precision",
    "canonicalize",
    "cse",
    "verify-phase{after=import}",
};

static constexpr StringLiteral kRaise[] = {
    "func.func(raise-layer-norm)",
    "func.func(raise-rms-norm)",
    "func.func(raise-activation)",
    "func.func(raise-rotate-half)",
    "func.func(raise-attention)",
    "cse", // layers share a mask, which is evaluated once
    "func.func(raise-documents{recurring=${recurring-documents}})",
    "sparsify-attention{layout=${sparse-attention}}", // what the passes before have recognized
    "func.func(check-visible-keys)", // before blocks take the masks' place
    "func.func(raise-blocks{packs=${pack} ranks=${ring-ranks}})", // the other attentions' masks
    "canonicalize",
    "cse",
    "verify-phase{after=raise}",
};

static constexpr StringLiteral kObjective[] = {
    "assign-fill{residual-scale=${scale-residual-init}}",
    "make-init",
    "pack-documents{after=${pack} inputs=${input}}", // which loss follows does not matter
    "objective{kind=${objective} accumulate=${accumulate} ignore-index=${ignore-index} inputs=${input} freeze=${freeze} trainable=${trainable} tie=${tie}}",
    "key-dropout",
    "canonicalize",
    "cse",
    "mark-layers",
    "note-flops",
    "verify-phase{after=objective}",
};

static constexpr StringLiteral kPrecision[] = {
    "lower-precision{type=${precision}}",
    "elide-casts",
    "quantize-linears{type=${precision}}",
    "canonicalize",
    "cse",
    "zero-quantize-weights{on=${zero-quantized-weights} block=${quantization-block} exact=${keep-exact} gradients=${zero-quantized-gradients}}",
    "verify-phase{after=precision}",
};

static constexpr StringLiteral kStages[] = {
    "choose-schedule{stages=${mesh.stages} chunks=${virtual-stages} schedule=${schedule}}",
    "note-costs{assign=${stages} axis=${mesh.axis} shard=${shard} keep=${keep-gathered} budget=${recompute-budget} to-cut={${phases.partition},${phases.parameters},${phases.differentiate},${phases.optimize},${phases.states},${phases.offload},${phases.cut}} of-stages={${phases.schedule},${phases.fuse},${phases.overlap}}}",
    "pipe-place{axis=${mesh.axis} assign=${stages}}",
    "verify-phase{after=stages}",
};

static constexpr StringLiteral kPartition[] = {
    "partition-unshare",
    "partition-seed{mesh=${mesh.ranks}}",
    "partition-seed-user{shard=${shard}}",
    "partition-seed-annotated{configuration=${configuration}}",
    "partition-seed-tensor",
    "partition-seed-context{how=${context-parallel} sequence-parallel=${sequence-parallel}}", // deals out the heads that tp leaves a rank
    "partition-seed-sequence{on=${sequence-parallel}}",
    "partition-seed-moves",
    "partition-split-forms",
    "partition-propagate",
    "partition-materialize",
    "simplify-collectives",
    "partition-verify",
    "verify-phase{after=partition}",
};

static constexpr StringLiteral kParameters[] = {
    "zero-shard-parameters{stage=${zero-stage} strategy=${fsdp-strategy} keep=${persistence-threshold} sync-each=${sync-each} hpz=${zero-hpz-partition-size}}",
    "verify-phase{after=parameters}",
};

static constexpr StringLiteral kDifferentiate[] = {
    "scale-loss{scale=${loss-scale} power=${initial-scale-power} window=${loss-scale-window} hysteresis=${hysteresis} consecutive=${consecutive-hysteresis} minimum=${min-loss-scale}}",
    "differentiate{accumulate-type=${accumulate-type}}",
    "recompute{policy=${recompute} budget=${recompute-budget} partition=${recompute-partition}}",
    "gather-again{strategy=${fsdp-strategy} keep=${keep-gathered} always=${gather-always} hpz=${zero-hpz-partition-size}}",
    "expand-conjugates",
    "expand-ring",
    "join-slice-gradients",
    "canonicalize",
    "cse",
    "verify-phase{after=differentiate}",
};

static constexpr StringLiteral kOptimize[] = {
    "optimize{kind=${optimizer} betas=${betas} epsilon=${eps} momentum=${momentum} nesterov=${nesterov} bias-correction=${bias-correction} no-bias-correction=${no-bias-correction} weight-decay=${weight-decay} lamb-bounds=${lamb-bounds} freeze-step=${freeze-step} coeff-beta=${coeff-beta} factor-bounds=${factor-bounds} factor-threshold=${factor-threshold} var-freeze-step=${var-freeze-step} var-update-scaler=${var-update-scaler} stochastic-rounding=${stochastic-rounding} groups=${group} clip=${clip}}",
    "canonicalize",
    "cse",
    "compress-momenta{stage=${zero-stage} offload=${offload} exact=${keep-exact}}",
    "verify-phase{after=optimize}",
};

static constexpr StringLiteral kStates[] = {
    "zero-shard-states{stage=${zero-stage} hpz=${zero-hpz-partition-size}}",
    "canonicalize",
    "zero-shard-gradients{stage=${zero-stage} sync-each=${sync-each}}",
    "canonicalize",
    "type-gradients{reduce-type=${reduce-type}}",
    "zero-nest-reductions",
    "expand-norms",
    "cse",
    "zero-quantize-gradients{on=${zero-quantized-gradients} block=${gradient-quantization-block} stage=${zero-stage} weights=${zero-quantized-weights} exact=${keep-exact}}",
    "verify-phase{after=states}",
};

static constexpr StringLiteral kOffload[] = {
    "offload-states{what=${offload}}",
    "offload-parameters{what=${offload} keep=${persistence-threshold}}",
    "offload-activations{what=${offload} least-bytes=${offload-threshold}}",
    "offload-verify",
    "verify-phase{after=offload}",
};

static constexpr StringLiteral kCut[] = {
    "pipe-pass-back",
    "pipe-report",
    "pipe-agree",
    "pipe-cut",
    "builtin.module(canonicalize)",
    "builtin.module(cse)",
    "split-backward",
    "schedule-stages",
    "verify-phase{after=cut}",
};

static constexpr StringLiteral kSchedule[] = {
    "schedule-backward",
    "peel-last-micro-batch",
    "canonicalize",
    "cse",
    "scale-fp8",
    "verify-phase{after=schedule}",
};

static constexpr StringLiteral kFuse[] = {
    "transpose-fp8",
    "split-reductions",
    "fuse-classifier",
    "fuse-rotary",
    "slice-positions",
    "canonicalize",
    "sink-reshapes",
    "fuse-residual-gradients",
    "fuse-norm-sums",
    "fuse-attention-sums",
    "fuse-quantize-sums",
    "fuse-epilogues",
    "fuse-addends",
    "fuse-accumulation",
    "fuse-lookups",
    "fuse-elementwise",
    "fuse-bias",
    "canonicalize",
    "cse",
    "verify-phase{after=fuse}",
};

static constexpr StringLiteral kOverlap[] = {
    "zero-prefetch-parameters{ahead-bytes=${prefetch-bytes} always=${gather-always}}",
    "zero-quantize-gathers",
    "decompose-matmuls{chunks=${overlap-chunks}}",
    "reduce-in-last-slot",
    "defer-uses",
    "bucket-all-reduces{bytes=${bucket-bytes}}",
    "order-updates",
    "bucket-gathers{bytes=${bucket-bytes}}",
    "offload-fetch-ahead{ahead-bytes=${prefetch-bytes}}",
    "zero-quantize-scatters",
    "start-collectives",
    "start-transfers",
    "poll-collectives",
    "note-schedule",
    "verify-phase{after=overlap}",
};

static constexpr StringLiteral kMemory[] = {
    "pad-classifier", // on what a kernel reads, after the last pass that puts something between it and a parameter
    "size-classifier{rows=${classifier-rows} lower={lower-to-rt}}", // what it decides by is the plan of memory
    "plan-memory",
    "verify-phase{after=memory}",
};

static constexpr StringLiteral kSync[] = {
    "check-streams",
    "verify-phase{after=sync}",
};

static constexpr StringLiteral kLower[] = {
    "check-memory",
    "lower-to-rt{learning-rate=${lr} lr-schedule=${lr-schedule}}",
    "gather-updates",
    "outline-layers",
    "rt-to-emitc",
    "verify-phase{after=lower}",
};

// clang-format on

static constexpr Phase kPhases[] = {
    {"import", kImport,
     "training computes in float32 whatever a file stores; exporters repeat the same shape and mask "
     "arithmetic in every layer, and equal ops become one before anything matches patterns"},
    {"raise", kRaise,
     "composites are recognized while the program is as the exporter wrote it; rules, gradients "
     "and kernels belong to the composite op"},
    {"objective", kObjective,
     "the loss belongs to the program before it is split: its sum and count are split like all "
     "else; layers, and what they compute, are seen best in the forward program alone"},
    {"precision", kPrecision,
     "on the full forward program, so that partitioning sees the types that ranks communicate, and "
     "backward ops get the types of what they differentiate"},
    {"stages", kStages,
     "on the forward program, whose layers are known: the backward half of what crosses stages follows "
     "as that of what is split does; after precision, which decides how many bytes cross"},
    {"partition", kPartition,
     "the forward program alone, all axes alike; the backward halves follow from it"},
    {"parameters", kParameters,
     "gathers of parameters replace their conjugates before differentiation"},
    {"differentiate", kDifferentiate,
     "after partitioning, so that the conjugates of what it inserted come out of the table"},
    {"optimize", kOptimize, "gradients are complete here, whatever reduced them"},
    {"states", kStates,
     "which rank owns which states and gradients follows from the updates by algebra, and from that "
     "over which ranks a norm is summed"},
    {"offload", kOffload,
     "what lives in host memory follows from its uses, which are settled here; overlap decides where "
     "the copies stand in the step"},
    {"cut", kCut,
     "every phase that needs the whole model has run; from here on each stage is its own program, and phases run "
     "on each; one table schedules all of them"},
    {"schedule", kSchedule,
     "the order of the micro-batches is settled before kernels are made and collectives placed"},
    {"fuse", kFuse,
     "every kernel boundary is a value written and read again; before overlap, which counts the "
     "work that a collective can hide behind"},
    {"overlap", kOverlap,
     "after the last pass that moves computation, before buffers: an operand lives until its wait"},
    {"memory", kMemory,
     "the order of all ops is final: lifetimes are known, and with them every offset"},
    {"sync", kSync,
     "two streams that touch the same bytes race on a GPU, whichever pass placed them; checked on "
     "final offsets, trusting none of the passes before"},
    {"lower", kLower,
     "every decision is made; what follows is spelling, once for layers that differ in data alone"},
};

ArrayRef<Phase> partita::phases() { return kPhases; }

int partita::phaseIndex(StringRef name) {
  for (auto [index, phase] : llvm::enumerate(phases()))
    if (phase.name == name)
      return index;
  return -1;
}

std::string partita::passesText(const Phase &phase, const Plan &plan) {
  std::string pipeline = llvm::join(phase.passes.drop_back(), ","), text;
  StringRef rest = pipeline;
  while (true) {
    auto [before, after] = rest.split("${");
    text += before;
    if (after.empty())
      return text;
    auto [option, behind] = after.split('}');
    bool isPhase = option.consume_front("phases.");
    text += isPhase ? passesText(phases()[phaseIndex(option)], plan) : plan.textFor(option);
    rest = behind;
  }
}

bool partita::isOfStages(ModuleOp module) {
  return pipe::stagesOf(module).front() != module; // which a stage alone is not
}

std::string partita::pipelineText(const Phase &phase, const Plan &plan, bool ofStages) {
  std::string own = passesText(phase, plan);
  std::string note = "note-phase{phase=" + phase.name.str() + "}";
  return (ofStages ? "builtin.module(" + own + ")" : own) + "," + contractOf(phase).str() + "," +
         note;
}

StringRef partita::contractOf(const Phase &phase) { return phase.passes.back(); }

bool partita::reads(const Phase &phase, StringRef option) {
  if (option == kHpz && reads(phase, "mesh")) // in which it makes two axes of one
    return true;
  return llvm::any_of(phase.passes, [&](StringRef pass) {
    return pass.contains(("${" + option + "}").str()) || pass.contains(("${" + option + ".").str());
  });
}

int partita::firstReader(StringRef option) {
  for (auto [index, phase] : llvm::enumerate(phases()))
    if (reads(phase, option))
      return index;
  return -1;
}

LogicalResult partita::runPhases(ModuleOp module, int first, int last, const Plan &plan,
                                 llvm::function_ref<void(const Phase &)> begins) {
  if (first > 0 && module->hasAttr(kPhaseAttr)) { // somebody may have changed it since that phase
    PassManager manager(module.getContext(), ModuleOp::getOperationName());
    if (failed(parsePassPipeline(contractOf(phases()[first - 1]), manager)) ||
        failed(manager.run(module)))
      return failure();
  }
  for (int index = first; index <= last; ++index) {
    const Phase &phase = phases()[index];
    if (begins)
      begins(phase);
    PassManager manager(module.getContext(), ModuleOp::getOperationName());
    manager.enableVerifier(
        false); // verify-phase verifies: after every pass it took two thirds of the time
    carryProvenance(manager);
    std::string problem;
    llvm::raw_string_ostream os(problem);
    if (failed(parsePassPipeline(pipelineText(phase, plan, isOfStages(module)), manager, os)))
      return module.emitError() << "phase '" << phase.name << "': " << problem;
    if (failed(manager.run(module)))
      return failure();
  }
  provenance::simplifyLocations(module);
  return success();
}

/// The place of the phase that the module says it has been through; -1 if it says nothing, none after an error.
static std::optional<int> lastPhase(ModuleOp module) {
  Attribute attribute = module->getAttr(kPhaseAttr);
  if (!attribute)
    return -1;
  auto name = dyn_cast<StringAttr>(attribute);
  int index = name ? phaseIndex(name) : -1;
  if (index >= 0)
    return index;
  auto names = llvm::map_range(phases(), [](const Phase &phase) { return StringRef(phase.name); });
  module.emitError() << kPhaseAttr << " is " << attribute
                     << ", which is not a phase; the phases are " << llvm::join(names, ", ");
  return {};
}

/// What only programs have that went through a phase, on an op of whatever kind; the last phases first.
static constexpr struct Trace {
  StringLiteral attribute, phase;
} kTraces[] = {
    {rt::RtDialect::kProgram, "lower"}, {rt::RtDialect::kBuffers, "memory"},
    {pipe::PipeDialect::kStage, "cut"}, {provenance::kBackward, "differentiate"},
    {provenance::kCauses, "partition"}, {pipe::PipeDialect::kStages, "stages"},
    {provenance::kLayer, "objective"},
};

/// Is it a program for phase 'import', as one is where nothing says what it is? An error if it is a later one's.
static LogicalResult expectNew(ModuleOp module) {
  for (const Trace &trace : kTraces) {
    WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
      if (!op->hasAttr(trace.attribute))
        return WalkResult::advance();
      return op->emitError() << "'" << op->getName() << "' has " << trace.attribute
                             << ", which phase '" << trace.phase << "' makes, and the module no "
                             << kPhaseAttr << "; set " << kPhaseAttr
                             << " to the name of the phase that wrote it";
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

int partita::nextPhase(ModuleOp module) {
  std::optional<int> last = lastPhase(module);
  bool isLost = last == -1 && module->hasAttr(train::TrainDialect::kPlan);
  if (isLost)
    module.emitError() << "has " << train::TrainDialect::kPlan << " and no " << kPhaseAttr
                       << ", so nothing says which phase wrote it; set " << kPhaseAttr
                       << " to its name, or remove " << train::TrainDialect::kPlan
                       << " from a program for phase 'import'";
  isLost |= last == -1 && !isLost && failed(expectNew(module));
  return last && !isLost ? *last + 1 : -1;
}

LogicalResult partita::expectPhaseBefore(ModuleOp module, int index) {
  std::optional<int> last = lastPhase(module);
  if (!last)
    return failure();
  StringRef wanted = phases()[index].name;
  if (*last == -1 || *last == index - 1)
    return success();
  InFlightDiagnostic error = module.emitError() << "phase '" << wanted << "' ";
  if (index == 0)
    error << "is the first";
  else
    error << "follows '" << phases()[index - 1].name << "'";
  error << ", and this module's " << kPhaseAttr << " is \"" << phases()[*last].name << "\"; ";
  if (*last + 1 == int(phases().size()))
    return error << "it has been through all phases";
  return error << "next is --partita-" << phases()[*last + 1].name;
}
