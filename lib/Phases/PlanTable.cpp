//===- PlanTable.cpp - the plan options, a row each ---------------------------------------------===//

#include "partita/Phases/Plan.h"
#include "runtime/include/partita_rt/schedule_text.h"

using namespace partita;
using llvm::StringRef;

static constexpr double kMost = 1e18;
static constexpr PlanOption kOptions[] = {
    {"mesh", PlanOption::Mesh, "AXIS=SIZE,...", "", 0, 0,
     "ranks per mesh axis, outermost first; pp splits the layers into pipeline stages, dp the batch, tp "
     "the weights (ranks = the product)",
     /*unpartitioned=*/""},
    {"stages", PlanOption::Cuts, "auto|uniform|parameters|cuts:LAYER,...", "auto", 0, 0,
     "which layers each pipeline stage has: auto and parameters make the largest stage as small as it "
     "can be, in FLOPs and in parameters; uniform: equally many layers; or each stage's first layer "
     "but for the first stage's, cuts:4,8",
     /*unpartitioned=*/"auto"},
    {"virtual-stages", PlanOption::Integer, "V", "0", 0, 256,
     "ranges of layers (chunks) of each pipeline stage: V times as many as stages, dealt out in turn; 0: as "
     "many as the schedule has by itself, 2 of interleaved and zb-v",
     /*unpartitioned=*/"0"},
    {"schedule", PlanOption::Text, "1f1b|gpipe|interleaved|zb-h1|zb-h2|zb-v|FILE.json", "1f1b", 0, 0,
     "the order in which pipeline stages run the forward and backward passes of their micro-batches: 1f1b "
     "keeps at most one more in flight than there are stages behind, gpipe all of them; interleaved has several "
     "ranges of layers a stage and waits less; zb-h1, zb-h2 and zb-v fill waiting times with the gradients of "
     "weights; a file has a list of passes for each stage",
     /*unpartitioned=*/"1f1b"},
    {"shard", PlanOption::Bindings, "PATTERN=AXIS@DIM,...", "", 0, 0,
     "shards parameters along a dimension, or keeps them full (PATTERN=replicated): glob patterns "
     "over their names; the compiler decides the rest",
     /*unpartitioned=*/""},
    {"configuration", PlanOption::Text, "NAME", "", 0, 0,
     "which of the device configurations of the model's file says how tensors are split; none: "
     "none (the one that fits the mesh)",
     /*unpartitioned=*/"none"},
    {"accumulate", PlanOption::Integer, "N", "1", 1, 1 << 20,
     "micro-batches per step, whose gradients are added before the update"},
    {"sequence-parallel", PlanOption::Flag, "", "false", 0, 0,
     "also split the sequence where tp splits nothing (norms, dropout, residual sums)",
     /*unpartitioned=*/"false"},
    {"zero-stage", PlanOption::Integer, "STAGE", "0", 0, 3,
     "what data-parallel ranks shard (ZeRO): 0 nothing, 1 optimizer states, 2 also gradient sums, 3 "
     "also parameters",
     /*unpartitioned=*/"0"},
    {"fsdp-strategy", PlanOption::Choice, "none|no-shard|shard-grad-op|full-shard", "none", 0, 0,
     "stages by FSDP's names: full-shard is stage 3; shard-grad-op keeps gathered parameters from "
     "the forward to the backward pass",
     /*unpartitioned=*/"none"},
    {"sync-each", PlanOption::Choice, "micro-batch|step", "micro-batch", 0, 0,
     "how often stages 2 and 3 reduce gradients, and stage 3 gathers parameters: micro-batch needs less memory; "
     "step communicates once for all micro-batches, and keeps full gradient sums and gathered parameters between",
     /*unpartitioned=*/"micro-batch"},
    {"persistence-threshold", PlanOption::Integer, "ELEMENTS", "0", 0, kMost,
     "parameters of at most this many elements per rank are not sharded at stage 3, and stay on the "
     "device with --offload parameters",
     /*unpartitioned=*/"0"},
    {"keep-gathered", PlanOption::List, "PATTERN,...", "", 0, 0,
     "parameters that stay gathered from the forward to the backward pass at stage 3: glob "
     "patterns over their names",
     /*unpartitioned=*/""},
    {"gather-always", PlanOption::Flag, "", "false", 0, 0,
     "gather parameters for the backward pass even where they are still there from the forward "
     "pass",
     /*unpartitioned=*/"false"},
    {"recompute", PlanOption::Choice, "none|selective|block", "none", 0, 0,
     "activations to recompute in the backward pass: selective, the cheap ones; block, all but each "
     "layer's input",
     /*unpartitioned=*/"none"},
    {"recompute-budget", PlanOption::Bytes, "SIZE", "0", 0, kMost,
     "bytes of activations of a micro-batch that may be kept (20000, 2M); what is over it is "
     "recomputed, the cheapest first",
     /*unpartitioned=*/"0"},
    {"offload", PlanOption::Words, "optimizer,parameters,activations", "", 0, 0,
     "what the host's memory keeps: the optimizer's states (the host makes the updates), "
     "parameters (fetched where they are used; at stage 3 a rank's shards), activations that the "
     "backward pass needs",
     /*unpartitioned=*/""},
    {"offload-threshold", PlanOption::Bytes, "SIZE", "65536", 0, kMost,
     "activations of fewer bytes stay on the device",
     /*unpartitioned=*/"65536"},
    {"recompute-partition", PlanOption::Flag, "", "false", 0, 0,
     "shard over tp what recomputation keeps, and gather it before recomputing",
     /*unpartitioned=*/"false"},
    {"prefetch-bytes", PlanOption::Bytes, "SIZE", "0", 0, kMost,
     "bytes of parameters gathered (at stage 3), or fetched from the host, while they wait for "
     "their use, as far as more than one bucket ahead goes; 0: one bucket ahead",
     /*unpartitioned=*/"0"},
    {"bucket-bytes", PlanOption::Bytes, "SIZE", "0", 0, kMost,
     "bytes of gradients reduced as one; 0: an eighth of all of them, 256 KiB to 25 MB",
     /*unpartitioned=*/"0"},
    {"objective", PlanOption::Named, "auto|causal|masked|classification|binary|mse|output|none",
     "auto", 0, 0,
     "what is minimized, and of which output (mse:OUTPUT): next-token, per-token or per-sample "
     "cross-entropy, binary cross-entropy, squared error, an output that is the loss; auto: "
     "the loss that the model computes, or cross-entropy by the shapes; none: inference only"},
    {"input", PlanOption::Bindings, "NAME=ROLE,...", "", 0, 0,
     "what inputs mean: ids, labels, targets, positions, ones, zeros, shifted:TOKEN or data"},
    {"freeze", PlanOption::List, "PATTERN,...", "", 0, 0,
     "parameters that are not trained: glob patterns over their names"},
    {"trainable", PlanOption::List, "PATTERN,...", "", 0, 0,
     "tensors of the model's file that are parameters, whatever they look like or the file says: glob "
     "patterns over their names"},
    {"tie", PlanOption::Bindings, "A=B,...", "", 0, 0,
     "two tensors of the model's file that are one parameter: their values are equal, or transposed"},
    {"scale-residual-init", PlanOption::Flag, "", "false", 0, 0,
     "--init seed:N of a run draws the matrices of matmuls that are added to a residual stream with "
     "a deviation divided by the square root of the number of such matmuls, as GPT-2 starts"},
    {"ignore-index", PlanOption::Integer, "TOKEN", "-100", -kMost, kMost,
     "labels with this value count neither for the loss nor for its mean"},
    {"optimizer", PlanOption::Choice, "adamw|adam|sgd|lion|adagrad|lamb", "adamw", 0, 0,
     "how parameters are updated"},
    {"lr", PlanOption::Rate, "RATE", "0.001", 0, partita_rt::kMostRate,
     "learning rate; the run may set another or a schedule"},
    {"lr-schedule", PlanOption::Schedule, "NAME[,key=value]...", "constant", 0, 0,
     "the program's schedule of learning rates, unless the run sets another: constant or cosine, "
     "or one of DeepSpeed's with its parameters (WarmupLR,warmup_num_steps=100): WarmupLR, "
     "WarmupDecayLR, WarmupCosineLR, OneCycle, LRRangeTest"},
    {"weight-decay", PlanOption::Rate, "DECAY", "0", 0, partita_rt::kMostRate,
     "weight decay of parameters with two dimensions or more (no norms, no biases); of adamw and "
     "lion decoupled, times the learning rate per step, else part of the gradient"},
    {"betas", PlanOption::Betas, "B1,B2", "", 0, 0,
     "decay of the two moments (0.9,0.999; of lion 0.9,0.99)"},
    {"eps", PlanOption::Real, "EPSILON", "", 0, 1,
     "addition to the denominator (1e-08; of adagrad 1e-10)"},
    {"momentum", PlanOption::Real, "M", "0", 0, 0.999999, "sgd with momentum"},
    {"nesterov", PlanOption::Flag, "", "false", 0, 0, "sgd with Nesterov's momentum"},
    {"no-bias-correction", PlanOption::Flag, "", "false", 0, 0,
     "leaves Adam's moments uncorrected for their first value"},
    {"lamb-bounds", PlanOption::Bounds, "MIN,MAX", "", 0, 0,
     "bounds of LAMB's ratio of a parameter's length to its direction's (0.01,10)"},
    {"group", PlanOption::Groups, "PATTERN:KEY=NUMBER,...", "", 0, 0,
     "other updates of parameters whose names match a glob pattern: weight-decay=W, lr-scale=S (a "
     "factor of the learning rate) or both, PATTERN:weight-decay=0:lr-scale=2; the first pattern "
     "that matches counts"},
    {"precision", PlanOption::Choice, "float32|bfloat16|float16", "float32", 0, 0,
     "what parameters, activations and gradients are stored in (also fp32 or float, "
     "bf16, fp16 or half); arithmetic, norms inside, losses and the optimizer's states, among them a master of each "
     "parameter, are of 32 bits",
     /*unpartitioned=*/"float32"},
    {"reduce-type", PlanOption::Choice, "auto|float32|bfloat16|float16", "auto", 0, 0,
     "the type in which gradients are reduced; auto: --precision's",
     /*unpartitioned=*/"auto"},
    {"accumulate-type", PlanOption::Choice, "float32|bfloat16|float16", "float32", 0, 0,
     "the type in which gradients are summed over micro-batches: float32 or --precision's",
     /*unpartitioned=*/"float32"},
    {"stochastic-rounding", PlanOption::Flag, "", "false", 0, 0,
     "round masters to bfloat16 stochastically, so that updates too small to show still add up; "
     "reproducible by the run's seed",
     /*unpartitioned=*/"false"},
    {"loss-scale", PlanOption::Real, "SCALE", "", 0, 0x1p127,
     "multiplies the loss for the backward pass; a step with an infinite gradient is skipped; 0: "
     "dynamic, adjusted after such steps as DeepSpeed's is"},
    {"initial-scale-power", PlanOption::Integer, "N", "16", 0, 127,
     "a dynamic loss scale begins as 2 to this power"},
    {"loss-scale-window", PlanOption::Integer, "STEPS", "1000", 1, kMost,
     "steps without overflow between two doublings of a dynamic loss scale"},
    {"hysteresis", PlanOption::Integer, "N", "2", 1, kMost,
     "overflows until a dynamic loss scale is halved"},
    {"consecutive-hysteresis", PlanOption::Flag, "", "false", 0, 0,
     "a step without overflow forgives those before it"},
    {"min-loss-scale", PlanOption::Real, "SCALE", "1", 1e-30, 0x1p127,
     "an overflow at this dynamic loss scale ends the run"},
    {"clip", PlanOption::Real, "NORM", "0", 0, kMost,
     "the largest norm of all gradients together, 0 for any; the run may set another"},
};

llvm::ArrayRef<PlanOption> partita::planOptions() { return kOptions; }

const PlanOption *partita::findPlanOption(StringRef name) {
  for (const PlanOption &option : kOptions)
    if (option.name == name)
      return &option;
  return nullptr;
}
