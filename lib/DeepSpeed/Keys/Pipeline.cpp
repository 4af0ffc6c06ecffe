//===- Pipeline.cpp - pipeline parallelism ----------------------------------------------------===//
//
// The mesh determines the number of stages; a number in the file must equal it. Micro-batches are
// the batch triple's gradient_accumulation_steps. The default order of their passes is DeepSpeed's
// (--schedule 1f1b).
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"

using namespace llvm;
using namespace partita::config;

#define BLOCK "pipeline."

static constexpr StringLiteral kStages = BLOCK "stages", kPartition = BLOCK "partition",
                               kInterval = BLOCK "activation_checkpoint_interval";
static constexpr StringLiteral kSendsShards =
    "a tensor-parallel rank sends what it holds of a value: its shard where the value is sharded, "
    "else all of it";

static constexpr Key kPipelineRows[] = {
    {"pipeline", block, "{}", Obeyed,
     "how layers are assigned to pipeline stages; micro-batches are gradient_accumulation_steps, in "
     "1F1B order; ZeRO stages 2 and 3 work too, which DeepSpeed refuses"},
    {kStages, anything, "\"auto\"", Obeyed,
     "must equal the mesh's axis pp; DeepSpeed's code takes PipelineModule's num_stages instead",
     "the mesh's axis pp"},
    {kPartition, text, "\"best\"", Obeyed,
     "--stages: best (auto), parameters or uniform, which counts the layers that repeat, not the "
     "embedding and the head; type:REGEX is refused, as an ONNX file has no Python classes. "
     "DeepSpeed's code takes PipelineModule's partition_method instead"},
    {BLOCK "seed_layers", boolean, "false", NoEffect,
     "initial values and dropout depend on the seed and on the parameter or op, not on the stage"},
    {kInterval, integer(0), "0", Obeyed,
     "0: --recompute decides; 1: --recompute block, which keeps each layer's input; more is refused"},
    {BLOCK "pipe_partitioned", boolean, "true", NoEffect, kSendsShards},
    {BLOCK "grad_partitioned", boolean, "true", NoEffect, kSendsShards},
    {BLOCK "use_reentrant", boolean, "true", NoEffect,
     "it chooses between two implementations of PyTorch's checkpointing"},
};

Section partita::config::pipelineKeys() { return {"Pipeline parallelism", kPipelineRows}; }

/// Checks that the number of stages is the mesh's. "auto" and an absent key request nothing.
static bool checkStages(Resolver &r) {
  const Given *given = r.find(kStages);
  int64_t pp = r.size("pp");
  if (!given)
    return true;
  if (given->value->isAuto()) {
    r.value(kStages, std::to_string(pp),
            pp > 1 ? "command line, --mesh pp" : "default, as --mesh has no axis pp");
    return true;
  }
  if (given->value->kind != Value::Integer || given->value->integer < 1)
    return r.fail(kStages, r.name(kStages) + " is " + given->value->toJson() +
                               ", expected \"auto\" or an integer of at least 1");
  int64_t stages = given->value->integer;
  if (stages == pp)
    return true;
  return r.fail(kStages, r.name(kStages) + " is " + Twine(stages) + ", but the mesh" +
                             (r.facts.mesh.empty() ? " is one rank, as no --mesh is given"
                              : pp == 1 ? " has no axis pp"
                                        : "'s axis pp has " + std::to_string(pp) + " stages") +
                             (stages == 1 ? "; leave pp out of --mesh"
                                          : "; give --mesh pp=" + std::to_string(stages) + ",..."));
}

static bool setPartition(Resolver &r) {
  if (!r.has(kPartition))
    return true;
  std::string method = r.word(kPartition), lower = StringRef(method).lower();
  StringRef option = StringSwitch<StringRef>(lower)
                         .Case("best", "auto")
                         .Case("uniform", "uniform")
                         .Case("parameters", "parameters")
                         .Default("");
  bool isOfTypes = StringRef(lower).starts_with("type:");
  if (option.empty() && !isOfTypes)
    return r.fail(kPartition, r.name(kPartition) + " is " + quoted(method) +
                                  ", expected best, uniform, parameters or type:REGEX");
  if (r.size("pp") == 1) {
    r.idle(kPartition, "there is one stage");
    return true;
  }
  if (isOfTypes)
    return r.fail(
        kPartition,
        r.name(kPartition) + " is " + quoted(method) +
            ", which counts the layers of Python classes, and an ONNX file has none; "
            "\"uniform\" gives each stage as many of the layers that repeat, which is what "
            "type:transformer is for; --stages cuts:LAYER,... names each stage's first layer");
  return r.set(kPartition, "stages", option);
}

/// Sets recomputation: --recompute block keeps every layer's input; larger intervals are not
/// supported.
static bool setInterval(Resolver &r) {
  int64_t interval = r.integer(kInterval);
  if (interval == 0)
    return true;
  if (interval == 1)
    return r.set(kInterval, "recompute", "block");
  return r.fail(kInterval,
                r.name(kInterval) + " is " + Twine(interval) +
                    ", but recomputation keeps the input of each layer, not of every " +
                    Twine(interval) +
                    "; 1 does that (--recompute block), and --recompute-budget keeps more "
                    "where memory allows");
}

bool partita::config::resolvePipeline(Resolver &r) {
  r.find("pipeline");
  return checkStages(r) && setPartition(r) && setInterval(r);
}
