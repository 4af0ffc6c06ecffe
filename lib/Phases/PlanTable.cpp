//===- PlanTable.cpp - the plan options, a row each ---------------------------------------------===//

#include "partita/Phases/Plan.h"
#include "runtime/include/partita_rt/int4_chunks.h"
#include "runtime/include/partita_rt/int8_blocks.h"
#include "runtime/include/partita_rt/lr_schedule_text.h"

using namespace partita;
using llvm::StringRef;

static constexpr double kMost = 1e18;
static constexpr PlanOption kOptions[] = {
    {"mesh", PlanOption::Mesh, "AXIS=SIZE,...", "", 0, 0,
     "ranks per mesh axis, outermost first; pp splits the layers into pipeline stages, dp the "
     "batch, cp and ulysses the sequence, tp the weights; their product is the number of ranks",
     /*unpartitioned=*/""},
    {"stages", PlanOption::Cuts, "auto|uniform|parameters|cuts:LAYER,...", "auto", 0, 0,
     "which layers each pipeline stage has: auto balances time, parameters balances parameter "
     "counts, uniform gives each stage the same number of layers; cuts:4,8 names the first layer "
     "of every stage but the first",
     /*unpartitioned=*/"auto"},
    {"virtual-stages", PlanOption::Integer, "V", "0", 0, 256,
     "chunks of layers per pipeline stage, not in all; they go to the stages in turn, or with zb-v and "
     "a file's \"wave\" every other row backward; 0: the schedule's default, 2 for interleaved and "
     "zb-v, otherwise 1",
     /*unpartitioned=*/"0"},
    {"schedule", PlanOption::Text, "1f1b|gpipe|interleaved|zb-h1|zb-h2|zb-v|FILE.json", "1f1b", 0,
     0,
     "order in which pipeline stages run the passes of their micro-batches: 1f1b keeps at most p "
     "micro-batches in flight on the first of p stages, gpipe all of them; interleaved runs "
     "several chunks of layers per stage and idles less; zb-h1, zb-h2 and zb-v fill idle time with "
     "the gradients of weights; a file lists each stage's passes",
     /*unpartitioned=*/"1f1b"},
    {"shard", PlanOption::Bindings, "PATTERN=AXIS@DIM,...", "", 0, 0,
     "shards parameters along a dimension, or keeps them full (PATTERN=replicated): glob patterns "
     "over their names; the compiler decides the rest",
     /*unpartitioned=*/""},
    {"configuration", PlanOption::Text, "NAME", "", 0, 0,
     "the device configuration of the model's file that says how tensors are split (its sharding "
     "annotations); none ignores them all [default: the one that fits the mesh]",
     /*unpartitioned=*/"none"},
    {"accumulate", PlanOption::Integer, "N", "1", 1, 1 << 20,
     "micro-batches per step; their gradients are summed before the update",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"context-parallel", PlanOption::Choice, "auto|ring|all-to-all", "auto", 0, 0,
     "how the ranks of cp, which share every sequence, get the keys of others: ring passes keys and values "
     "from rank to rank beside the computation; all-to-all exchanges positions for heads; auto takes what "
     "moves fewer bytes; within a ring, ranks of ulysses exchange heads",
     /*unpartitioned=*/"auto"},
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
    {"persistence-threshold", PlanOption::Elements, "ELEMENTS", "0", 0, kMost,
     "parameters of at most this many elements (2K is 2048) per rank are not sharded at stage 3, and stay on the "
     "device with --offload parameters",
     /*unpartitioned=*/"0"},
    {"zero-quantized-weights", PlanOption::Flag, "", "false", 0, 0,
     "at stage 3, compute with matrices rounded to 8 bits and a scale per block, which is what ranks then gather "
     "(ZeRO++); updates are made to the exact ones",
     /*unpartitioned=*/nullptr},
    {"zero-quantized-gradients", PlanOption::Flag, "", "false", 0, 0,
     "from stage 1 on, send gradients of matrices in 4 bits with a scale per block, by an all-to-all to the ranks that "
     "sum them, within groups first (ZeRO++'s qgZ)",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"quantization-block", PlanOption::Integer, "N", "256", partita_rt::int8_blocks::kLeastBlock,
     1 << 20,
     "elements of a block of --zero-quantized-weights, at most: the largest power of two that divides a matrix's last dimension, if that is 8 or more",
     /*unpartitioned=*/nullptr},
    {"gradient-quantization-block", PlanOption::Integer, "N", "32", partita_rt::int4_chunks::kWord,
     1 << 20,
     "elements of a block of --zero-quantized-gradients, down to a multiple of 8: with a scale for more elements fewer bytes are "
     "sent, and more elements are rounded to zero",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"keep-exact", PlanOption::List, "PATTERN,...", "", 0, 0,
     "parameters that --zero-quantized-weights, gradients that --zero-quantized-gradients and momenta that 1-bit optimizers "
     "leave exact: glob patterns over the parameters' names",
     /*unpartitioned=*/nullptr},
    {kHpz, PlanOption::Integer, "H", "1", 1, 65536,
     "at stage 3, keep from the forward to the backward pass what groups of H consecutive ranks of dp need (a node's, say), "
     "1/H of the parameters per rank, so that the backward pass gathers within groups alone (ZeRO++'s hpZ); 1: off",
     /*unpartitioned=*/"1", /*ofTraining=*/true},
    {"keep-gathered", PlanOption::List, "PATTERN,...", "", 0, 0,
     "parameters that stay gathered from the forward to the backward pass at stage 3: glob "
     "patterns over their names",
     /*unpartitioned=*/""},
    {"gather-always", PlanOption::Flag, "", "false", 0, 0,
     "gather parameters again for the backward pass, even where they are still gathered from the "
     "forward pass",
     /*unpartitioned=*/"false"},
    {"recompute", PlanOption::Choice, "none|selective|block", "none", 0, 0,
     "activations to recompute in the backward pass: selective, the cheap ones; block, all but "
     "each layer's input",
     /*unpartitioned=*/"none", /*ofTraining=*/true},
    {"recompute-budget", PlanOption::Bytes, "SIZE", "0", 0, kMost,
     "activation memory per micro-batch in bytes (20000, 2M); above it, activations are "
     "recomputed, cheapest first",
     /*unpartitioned=*/"0", /*ofTraining=*/true},
    {"offload", PlanOption::Words, "optimizer,parameters,activations", "", 0, 0,
     "what to keep in host memory: optimizer states (the host then runs the updates), parameters "
     "(fetched where they are used; at stage 3 a rank's shards), activations that the backward "
     "pass needs",
     /*unpartitioned=*/""},
    {"offload-threshold", PlanOption::Bytes, "SIZE", "65536", 0, kMost,
     "activations of fewer bytes stay on the device",
     /*unpartitioned=*/"65536"},
    {"recompute-partition", PlanOption::Flag, "", "false", 0, 0,
     "shard over tp the activations that recomputation saves, and gather them before it",
     /*unpartitioned=*/"false", /*ofTraining=*/true},
    {"prefetch-bytes", PlanOption::Bytes, "SIZE", "0", 0, kMost,
     "how many bytes of parameters may be gathered (stage 3) or fetched from the host before their "
     "use; 0: one bucket ahead",
     /*unpartitioned=*/"0"},
    {"bucket-bytes", PlanOption::Bytes, "SIZE", "0", 0, kMost,
     "bytes of gradients per reduction; 0: an eighth of all of them, but at least 256 KiB and at "
     "most 25 MB",
     /*unpartitioned=*/"0"},
    {"overlap-chunks", PlanOption::Integer, "N", "1", 1, 64,
     "computes a matmul whose result is summed over ranks in N chunks of rows, so that the sum of a "
     "chunk overlaps with the matmul of the next; 1: all rows at once",
     /*unpartitioned=*/"1"},
    {"classifier-rows", PlanOption::Integer, "N", "0", 0, kMost,
     "tokens whose logits a classifier's loss computes at once; 0: more than usual where that makes a step faster and is within "
     "--memory-limit or, without one, takes at most a twentieth more memory, fewer where the limit needs it",
     /*unpartitioned=*/"0"},
    {"objective", PlanOption::Named, "auto|causal|masked|classification|binary|mse|output|none",
     "auto", 0, 0,
     "what to minimize, and which output it is computed from (mse:OUTPUT): next-token, per-token "
     "or per-sample cross-entropy, binary cross-entropy, squared error, an output that is the "
     "loss; auto: the model's own loss, or the cross-entropy that fits the shapes; none: inference "
     "only"},
    {"input", PlanOption::Bindings, "NAME=ROLE,...", "", 0, 0,
     "what inputs mean: ids, labels, targets, positions, ones, zeros, shifted:TOKEN or data"},
    {"recurring-documents", PlanOption::Flag, "", "false", 0, 0,
     "the id of a document of a packed sequence may come back after another document: attention then "
     "reads a mask, instead of a document's own positions"},
    {"pack", PlanOption::Integer, "TOKEN", "-1", -1, kMost,
     "rows of whole documents, each of which ends with this token: attention stays within a document, and "
     "positions begin again at each; -1: rows are pieces of one stream of tokens"},
    {"sparse-attention", PlanOption::Sparsity, "mode=MODE,KEY=VALUE,...", "", 0, 0,
     "which blocks of self-attention are computed, by DeepSpeed's modes and keys "
     "(mode=fixed,block=16,num_local_blocks=4): fixed, variable, bigbird, bslongformer, "
     "sliding-window, dense; numbers of a list are separated by ':'"},
    {"freeze", PlanOption::List, "PATTERN,...", "", 0, 0,
     "parameters that are not trained: glob patterns over their names",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"trainable", PlanOption::List, "PATTERN,...", "", 0, 0,
     "trains these tensors even if import would treat them as constants or buffers: glob patterns "
     "over their names",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"tie", PlanOption::Bindings, "A=B,...", "", 0, 0,
     "makes two tensors of the model's file one parameter: their values are equal, or one is the "
     "other's transpose",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"scale-residual-init", PlanOption::Flag, "", "false", 0, 0,
     "with --init seed:N, scales the initial weights of projections into the residual stream by "
     "1/sqrt(their number), as in GPT-2"},
    {"ignore-index", PlanOption::Integer, "TOKEN", "-100", -kMost, kMost,
     "labels with this value are ignored, in the loss and in its mean",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"optimizer", PlanOption::Choice,
     "adamw|adam|sgd|lion|adagrad|lamb|onebit-adam|onebit-lamb|zero-one-adam", "adamw", 0, 0,
     "how to update parameters",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"lr", PlanOption::Rate, "RATE", "0.001", 0, partita_rt::kMostRate,
     "learning rate; a run may override it",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"lr-schedule", PlanOption::Schedule, "NAME[,key=value]...", "constant", 0, 0,
     "learning-rate schedule; a run may override it: constant or cosine, or one of DeepSpeed's "
     "with its parameters (WarmupLR,warmup_num_steps=100): WarmupLR, WarmupDecayLR, "
     "WarmupCosineLR, OneCycle, LRRangeTest",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"weight-decay", PlanOption::Rate, "DECAY", "0", 0, partita_rt::kMostRate,
     "weight decay of parameters with two or more dimensions (not norms, not biases); adam, "
     "sgd and adagrad add it to the gradient, the others decouple it and multiply it by the learning rate",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"betas", PlanOption::Betas, "B1,B2", "", 0, 0,
     "decay rates of the two moments (0.9,0.999; lion: 0.9,0.99)",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"eps", PlanOption::Real, "EPSILON", "", 0, 1,
     "added to the denominator (1e-08; adagrad: 1e-10)",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"momentum", PlanOption::Real, "M", "0", 0, 0.999999, "sgd with momentum",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"nesterov", PlanOption::Flag, "", "false", 0, 0, "sgd with Nesterov's momentum",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"bias-correction", PlanOption::Flag, "", "false", 0, 0,
     "corrects the bias of the moments of onebit-adam and zero-one-adam, as Adam does and DeepSpeed does not: "
     "without it, a variance that is frozen after S steps with beta2 is 1 - beta2^S of what it estimates",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"no-bias-correction", PlanOption::Flag, "", "false", 0, 0,
     "omits Adam's bias correction of the moments",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"lamb-bounds", PlanOption::Bounds, "MIN,MAX", "", 0, 0,
     "bounds of the trust ratio of lamb and onebit-lamb, the norm of a parameter over that of its "
     "update (0.01,10)",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"freeze-step", PlanOption::Integer, "STEP", "0", 0, int64_t(1) << 24,
     "onebit-adam, onebit-lamb: the last step of the warm-up, in which sums are exact; after it the "
     "variance stays, and momenta are summed with one bit per element; 0: 100000",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"coeff-beta", PlanOption::Real, "BETA", "", 0, 0.999999,
     "onebit-lamb: what the running mean of the warm-up's trust ratios keeps of itself in a step; "
     "the mean scales all later updates (0.9)",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"factor-bounds", PlanOption::Bounds, "MIN,MAX", "", 0, 0,
     "onebit-lamb: bounds of the factor by which later ratios differ from that mean (0.5,4)",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"factor-threshold", PlanOption::Real, "SHARE", "", 0, 1,
     "onebit-lamb: by what share of itself that factor may change in a step (0.1)",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"var-freeze-step", PlanOption::Integer, "STEP", "0", 0, int64_t(1) << 24,
     "zero-one-adam: the last step that may update the variance and have exact sums; 0: 100000",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"var-update-scaler", PlanOption::Integer, "N", "0", 0, int64_t(1) << 24,
     "zero-one-adam: updates of the variance, and exact sums, at each interval of 1, 2, 4, ... "
     "steps; in all others momenta are summed with one bit per element; 0: 16",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"group", PlanOption::Groups, "PATTERN:KEY=NUMBER,...", "", 0, 0,
     "hyperparameters for parameters whose names match a glob pattern: weight-decay=W, lr-scale=S "
     "(multiplies the learning rate) or both, PATTERN:weight-decay=0:lr-scale=2; the first "
     "matching pattern applies",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"precision", PlanOption::Choice, "float32|bfloat16|float16|fp8", "float32", 0, 0,
     "type in which parameters, activations and gradients are stored (also fp32 or float, bf16, "
     "fp16 or half); arithmetic, statistics of norms, losses and optimizer states, which include a "
     "master copy of each parameter, are float32; fp8: bfloat16, and matmuls of linear layers read "
     "their operands in 8 bits",
     /*unpartitioned=*/"float32"},
    {"reduce-type", PlanOption::Choice, "auto|float32|bfloat16|float16", "auto", 0, 0,
     "the type in which gradients are reduced; auto: --precision's",
     /*unpartitioned=*/"auto", /*ofTraining=*/true},
    {"accumulate-type", PlanOption::Choice, "float32|bfloat16|float16", "float32", 0, 0,
     "the type in which gradients are summed over micro-batches: float32 or --precision's",
     /*unpartitioned=*/"float32", /*ofTraining=*/true},
    {"stochastic-rounding", PlanOption::Flag, "", "false", 0, 0,
     "round master parameters to bfloat16 stochastically, so that small updates add up; "
     "reproducible with the run's seed",
     /*unpartitioned=*/"false", /*ofTraining=*/true},
    {"loss-scale", PlanOption::Real, "SCALE", "", 0, 0x1p127,
     "multiplies the loss for the backward pass; a step with an infinite or NaN gradient is "
     "skipped; 0: dynamic, adjusted after such steps as in DeepSpeed",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
    {"initial-scale-power", PlanOption::Integer, "N", "16", 0, 127,
     "a dynamic loss scale starts at 2 to this power"},
    {"loss-scale-window", PlanOption::Integer, "STEPS", "1000", 1, kMost,
     "steps without overflow before a dynamic loss scale is doubled"},
    {"hysteresis", PlanOption::Integer, "N", "2", 1, kMost,
     "overflows before a dynamic loss scale is halved"},
    {"consecutive-hysteresis", PlanOption::Flag, "", "false", 0, 0,
     "a step without overflow resets the overflow count"},
    {"min-loss-scale", PlanOption::Real, "SCALE", "1", 1e-30, 0x1p127,
     "the run ends if gradients overflow at this dynamic loss scale"},
    {"clip", PlanOption::Real, "NORM", "0", 0, kMost,
     "clips gradients to this global norm; 0: no clipping; a run may override it",
     /*unpartitioned=*/nullptr, /*ofTraining=*/true},
};

llvm::ArrayRef<PlanOption> partita::planOptions() { return kOptions; }

const PlanOption *partita::findPlanOption(StringRef name) {
  for (const PlanOption &option : kOptions)
    if (option.name == name)
      return &option;
  return nullptr;
}
