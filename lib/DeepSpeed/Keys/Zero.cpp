//===- Zero.cpp - ZeRO stages and buckets -----------------------------------------------------===//
//
// DeepSpeed counts buckets and thresholds in elements; the plan counts buckets in bytes.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"
#include <cmath>

using namespace llvm;
using namespace partita::config;

#define ZERO "zero_optimization."

static constexpr StringLiteral kStage = ZERO "stage", kReduce = ZERO "reduce_bucket_size",
                               kPrefetch = ZERO "stage3_prefetch_bucket_size",
                               kPersistence = ZERO "stage3_param_persistence_threshold",
                               kShard = ZERO "mics_shard_size",
                               kGroup = ZERO "zero_hpz_partition_size";

static constexpr Key kZeroRows[] = {
    {"zero_optimization", checkedBlock, "{}", Obeyed,
     "what data-parallel ranks shard; true is stage 1, as in DeepSpeed's first versions"},
    {kStage, integer(0, 3), "0", Obeyed, "--zero-stage", "--zero-stage, else 0"},
    {kReduce, number(1), "5e8", Obeyed,
     "--bucket-bytes, times the size of a gradient's element; absent, an eighth of the "
     "gradients, but at least 256 KiB and at most 25 MB",
     "--bucket-bytes, else the square of the model's hidden size"},
    {kPrefetch, number(0), "5e7", Obeyed,
     "--prefetch-bytes at stage 3, times the size of a parameter's element (the documentation's "
     "default is 5e8, the code's 5e7); absent, one bucket ahead",
     "--prefetch-bytes, else 0.9 x the square of the hidden size"},
    {kPersistence, number(0), "1e5", Obeyed,
     "--persistence-threshold at stage 3 (the documentation says 1e6 and 1e5, the code 1e5); "
     "absent, every parameter is split",
     "--persistence-threshold, else 10 x the hidden size"},
    {kShard, integer(-1), "-1", Obeyed,
     "MiCS: ranks that share the model's state; must equal the mesh's axis fsdp "
     "(--mesh dp=REPLICAS,fsdp=SIZE)"},
    {ZERO "allgather_partitions", boolean, "true", NoEffect,
     "parameters are gathered, never broadcast one by one"},
    {ZERO "allgather_bucket_size", number(1), "5e8", NoEffect,
     "updated parameters (stages 1 and 2) are gathered in buckets of the size that gradients are "
     "reduced in, those of stage 3 in buckets of up to 25 MB"},
    {ZERO "overlap_comm", boolean, "null", NoEffect,
     "collectives run beside the computation wherever the program allows it; the sums are the "
     "same"},
    {ZERO "reduce_scatter", boolean, "true", NoEffect,
     "gradients are reduced to their owners wherever these need no more; the sums are the same"},
    {ZERO "contiguous_gradients", boolean, "true", NoEffect,
     "every buffer has its place in one arena, planned at compile time; nothing fragments"},
    {ZERO "use_multi_rank_bucket_allreduce", boolean, "true", NoEffect,
     "one collective reduces a bucket, whichever ranks own its shards"},
    {ZERO "load_from_fp32_weights", boolean, "true", NoEffect,
     "a checkpoint's float32 masters are what is read, whatever type its parameters have"},
    {ZERO "elastic_checkpoint", boolean, "false", NoEffect,
     "checkpoints hold full tensors by name, which any plan reads"},
    {ZERO "sub_group_size", number(1), "1e9", NoEffect,
     "updates are made parameter by parameter; there is no larger group to cut (the "
     "documentation's "
     "default is 1e12, the code's 1e9)"},
    {ZERO "stage3_max_live_parameters", number(0), "1e9", NoEffect,
     "when a parameter is gathered and dropped is planned at compile time; --prefetch-bytes bounds "
     "what is gathered ahead"},
    {ZERO "stage3_max_reuse_distance", number(0), "1e9", NoEffect,
     "when a parameter is gathered and dropped is planned at compile time; --keep-gathered names "
     "those that stay"},
    {ZERO "stage3_model_persistence_threshold", number(0), "9223372036854775807", NoEffect,
     "there is no cap on what the threshold keeps in full; --memory-limit holds the sum against the "
     "memory"},
    {ZERO "stage3_gather_16bit_weights_on_model_save", boolean, "false", NoEffect,
     "checkpoints and exports hold full tensors at every stage"},
    {ZERO "stage3_module_granularity_threshold", number(0), "0", NoEffect,
     "gathers are planned by use, not by module"},
    {ZERO "stage3_use_all_reduce_for_fetch_params", boolean, "false", NoEffect,
     "parameters are gathered by all-gathers, with the same result"},
    {ZERO "stage3_allgather_sequential", boolean, "false", NoEffect,
     "the order of all collectives is settled at compile time, the same on every rank"},
    {ZERO "leaf_module", anything, "{}", NoEffect,
     "all ranks issue all collectives in one order; no module can make them wait for each other"},
    {ZERO "ignore_unused_parameters", boolean, "true", NoEffect,
     "a parameter without a gradient is known at compile time"},
    {ZERO "legacy_stage1", boolean, "false", Refused,
     "DeepSpeed has removed it too; use \"stage\": 1"},
    {ZERO "round_robin_gradients", boolean, "false", NoEffect,
     "every rank copies its own shards, which are equally large"},
    {kGroup, integer(1), "1", Obeyed,
     "at stage 3: the backward pass gathers within groups of so many consecutive ranks of dp, from a "
     "secondary copy (of 8 bits with zero_quantized_weights)"},
    {ZERO "zero_quantized_weights", boolean, "false", Obeyed,
     "matrices are gathered in 8 bits with a scale per block, frozen ones too"},
    {ZERO "zero_quantized_nontrainable_weights", boolean, "false", Refused,
     "frozen matrices alone would be gathered in 1 + 4/256 bytes per element, and trained ones in 2 or 4; "
     "zero_quantized_weights gathers both in 1 + 4/256 bytes, and --keep-exact leaves out what is trained"},
    {ZERO "zero_quantized_gradients", boolean, "false", Obeyed,
     "at stage 3: gradients of matrices are sent in 4 bits with a scale per block, within groups first"},
    {ZERO "zeropp_loco_param", block, "null", Refused,
     "to feed back what 4 bits leave out, each rank would keep a number for every element of all gradients, "
     "of which stage 3 leaves it 1/N; without, an element is off by at most 1/14 of its block's max"},
    {ZERO "zeropp_loco_param.err_beta", number(0, 1), "0.8", Part, "of zeropp_loco_param"},
    {ZERO "zeropp_loco_param.reset_T", integer(1), "1024", Part, "of zeropp_loco_param"},
    {ZERO "mics_hierarchical_params_gather", boolean, "false", NoEffect,
     "how a gather runs within a group is the communication library's to say"},
    {ZERO "memory_efficient_linear", boolean, "true", NoEffect,
     "what the backward pass keeps is planned at compile time"},
    {ZERO "pipeline_loading_checkpoint", boolean, "false", NoEffect,
     "every rank reads its own shards of a checkpoint"},
    {ZERO "override_module_apply", boolean, "true", NoEffect,
     "there are no Python modules to override"},
    {ZERO "log_trace_cache_warnings", boolean, "false", NoEffect,
     "gathers are planned, not traced; nothing can miss"},
    {ZERO "enable_sanity_checks", boolean, "false", NoEffect,
     "partita verify compares the partitioned program with the unpartitioned model"},
    {ZERO "save_muon_momentum_buffer_in_memory", boolean, "false", Refused,
     "of Muon, which is not supported"},
    {ZERO "zenflow", block, "null", Refused,
     "ZenFlow updates parameters late, by importance; \"offload_optimizer\" updates all on the "
     "host"},
    {ZERO "cpu_offload", boolean, "false", Obeyed,
     "an older key for offload_optimizer's \"device\": \"cpu\""},
    {ZERO "cpu_offload_params", boolean, "false", Obeyed,
     "an older key for offload_param's \"device\": \"cpu\""},
    {ZERO "cpu_offload_param", boolean, "false", Obeyed,
     "an older key for offload_param's \"device\": \"cpu\""},
    {ZERO "cpu_offload_use_pin_memory", boolean, "false", NoEffect,
     "what is copied to and from the host is pinned"},
};

Section partita::config::zeroKeys() { return {"ZeRO", kZeroRows}; }

/// Sets the stage as a plan option. On one data-parallel rank DeepSpeed accepts any stage, and
/// nothing is sharded.
static bool setStage(Resolver &r, StringRef path) {
  if (r.stage > 0 && r.sharing() == 1 && !r.commandLine("zero-stage")) {
    r.idle(path, "one data-parallel rank keeps all");
    return true;
  }
  return r.set(path, "zero-stage", std::to_string(r.stage));
}

static bool resolveStage(Resolver &r) {
  const Given *block = r.find("zero_optimization");
  if (block && block->value->kind == Value::Boolean) {
    r.stage = block->value->boolean;
    return !r.stage || setStage(r, "zero_optimization");
  }
  const std::string *said = r.commandLine("zero-stage");
  const std::string *strategy = r.commandLine("fsdp-strategy");
  if (r.has(kStage) && !r.isAuto(kStage)) {
    r.stage = r.integer(kStage);
    bool isFull = strategy && (*strategy == "full-shard" || *strategy == "shard-grad-op");
    if (isFull && !said && r.stage != 3)
      return r.fail(kStage, r.name(kStage) + " is " + Twine(r.stage) +
                                ", but the command line says --fsdp-strategy " + *strategy +
                                ", which is stage 3; leave one of them out");
    return setStage(r, kStage);
  }
  if (said)
    StringRef(*said).getAsInteger(10, r.stage);
  if (r.isAuto(kStage))
    r.value(kStage, std::to_string(r.stage), said ? "command line, --zero-stage" : "default");
  return true;
}

/// Returns the value of "auto", which depends on the model's hidden size: factor x hidden^power
/// elements.
static std::optional<double> byHidden(const Resolver &r, double factor, int power) {
  if (!r.facts.model || !r.facts.model->hidden)
    return std::nullopt;
  double hidden = *r.facts.model->hidden;
  return std::floor(factor * (power == 2 ? hidden * hidden : hidden));
}

/// Sets a number of elements as a plan option in units of `unit` bytes (1: elements).
static bool resolveElements(Resolver &r, StringRef path, StringRef option, int64_t unit,
                            double factor, int power) {
  if (!r.isAuto(path)) {
    double elements = std::min(r.real(path), 1e15);
    return r.set(path, option, std::to_string(int64_t(elements) * unit));
  }
  if (const std::string *other = r.commandLine(option)) {
    int64_t amount = 0;
    StringRef(*other).getAsInteger(10, amount);
    r.value(path, std::to_string(amount / unit), ("command line, --" + option).str());
    return true;
  }
  std::optional<double> elements = byHidden(r, factor, power);
  if (!elements) {
    r.lacks(path, ("the model, whose hidden size gives it, or --" + option + " N").str());
    return true;
  }
  r.value(path, numberText(*elements),
          "model, hidden size " + std::to_string(*r.facts.model->hidden));
  return r.set(path, option, std::to_string(int64_t(*elements) * unit));
}

static bool resolveBuckets(Resolver &r) {
  if (r.has(kReduce) && r.world() == 1)
    r.idle(kReduce, "one rank reduces nothing");
  else if (r.has(kReduce) && !r.reducesGradients())
    r.idle(kReduce, "ranks of tp reduce no gradients without --sequence-parallel");
  else if (std::optional<OptimizerFacts> facts = factsOfOptimizer(r.word("optimizer.type"));
           r.has(kReduce) && facts && facts->sumsMomenta && r.sharing() == r.dataParallel())
    r.idle(kReduce, "the optimizer sums all momenta at once, so that no buckets are left");
  else if (r.has(kReduce) && !resolveElements(r, kReduce, "bucket-bytes", r.elementBytes(), 1, 2))
    return false;
  for (StringRef path : {StringRef(kPrefetch), StringRef(kPersistence)}) {
    if (!r.has(path))
      continue;
    bool isPrefetch = path == kPrefetch;
    bool isSplit = r.stage == 3 && r.sharing() > 1;
    if (!isSplit && !r.offloadsParameters)
      r.idle(path, r.stage == 3 ? "one data-parallel rank keeps all"
                                : "parameters are split at stage 3 alone");
    else if (!resolveElements(r, path, isPrefetch ? "prefetch-bytes" : "persistence-threshold",
                              isPrefetch ? r.elementBytes() : 1, isPrefetch ? 0.9 : 10,
                              isPrefetch ? 2 : 1))
      return false;
  }
  return true;
}

static bool resolveQuantization(Resolver &r) {
  struct {
    StringLiteral path, option, idle;
  } keys[] = {{ZERO "zero_quantized_weights", "zero-quantized-weights",
               "parameters are gathered at stage 3 alone"},
              {ZERO "zero_quantized_gradients", "zero-quantized-gradients",
               "DeepSpeed quantizes gradients at stage 3 alone"}};
  for (auto [path, option, idle] : keys) {
    if (!r.has(path) || !r.flag(path))
      continue;
    if (r.stage != 3 || r.sharing() <= 1)
      r.idle(path, r.stage == 3 ? "one data-parallel rank keeps all" : idle);
    else if (!r.set(path, option, "true"))
      return false;
  }
  return true;
}

/// Whether the size divides the ranks is the plan's to say.
static bool resolveGroups(Resolver &r) {
  if (!r.has(kGroup) || r.integer(kGroup) == 1)
    return true;
  int64_t size = r.integer(kGroup), ranks = r.dataParallel();
  if (r.stage == 3 && ranks > 1 && ranks != size)
    return r.set(kGroup, "zero-hpz-partition-size", std::to_string(size));
  r.idle(kGroup, r.stage != 3 ? "parameters are gathered at stage 3 alone"
                 : ranks == 1 ? "one data-parallel rank keeps all"
                              : "all data-parallel ranks are one group, which no gather leaves");
  return true;
}

static bool checkShardSize(Resolver &r) {
  int64_t size = r.integer(kShard), fsdp = r.size("fsdp");
  if (!r.has(kShard) || size == -1 || size == fsdp)
    return true;
  int64_t ranks = r.dataParallel();
  std::string mesh = size > 0 && ranks % size == 0
                         ? "--mesh dp=" + std::to_string(ranks / size) +
                               ",fsdp=" + std::to_string(size) + " is that"
                         : "it must divide the data-parallel ranks, " + std::to_string(ranks);
  return r.fail(kShard, r.name(kShard) + " is " + Twine(size) + ", but the mesh's axis fsdp has " +
                            Twine(fsdp) + (fsdp == 1 ? " rank; " : " ranks; ") + mesh);
}

bool partita::config::resolveZero(Resolver &r) {
  if (!resolveStage(r))
    return false;
  if (r.flag("sparse_gradients") && r.stage > 0)
    return r.fail("sparse_gradients", "sparse gradients do not go with ZeRO (stage " +
                                          Twine(r.stage) +
                                          "): gradients are sharded; leave sparse_gradients out");
  if (r.word("gradient_allreduce_op") != "mean") // refused by its row
    return false;
  return checkShardSize(r) && resolveOffload(r) && resolveBuckets(r) && resolveQuantization(r) &&
         resolveGroups(r);
}
