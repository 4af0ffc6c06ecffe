//===- Parallel.cpp - tensor, sequence and pipeline parallelism -------------------------------===//
//
// The mesh is the command line's; sizes in the file are held against it.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"

using namespace llvm;
using namespace partita::config;

static constexpr StringLiteral kAuto = "tensor_parallel.autotp_size",
                               kSize = "tensor_parallel.tp.tp_size";
static constexpr StringLiteral kNoPipeline = "there are no pipeline stages";

static constexpr Key kTensorParallelRows[] = {
    {"tensor_parallel", block, "{}", Obeyed,
     "how weights are split follows from the model's structure, with --mesh tp=SIZE"},
    {kAuto, integer(0, 65536), "0", Obeyed, "held against the mesh's axis tp"},
    {"tensor_parallel.tp_overlap_comm", boolean, "false", NoEffect,
     "collectives run beside the computation wherever the program allows it"},
    {"tensor_parallel.preset_model", choice("llama|bloom|chatglm|mixtral|deepseek_v2|qwen2|phi3"),
     "null", NoEffect,
     "how weights are split follows from the model's structure, not from its name"},
    {"tensor_parallel.dtype", anything, "\"fp16\"", NoEffect, "parameters have --precision's type"},
    {"tensor_parallel.partition_config", block, "null", Refused,
     "how weights are split follows from the model's structure; --shard PATTERN=tp@DIM,... says "
     "otherwise"},
    {"tensor_parallel.partition_config.use_default_specs", boolean, "false", Part,
     "of partition_config"},
    {"tensor_parallel.partition_config.layer_specs", anything, "[]", Part, "of partition_config"},
    {"tensor_parallel.tp", block, "{}", Obeyed, "sizes"},
    {kSize, integer(1, 65536), "1", Obeyed, "held against the mesh's axis tp"},
    {"tensor_parallel.tp.tp_grain_size", integer(1), "1", NoEffect,
     "what does not divide is padded, or an error that says so"},
    {"sequence_parallel_size", integer(1), "1", Refused,
     "Ulysses' sequence parallelism is not there; --mesh tp=SIZE --sequence-parallel splits the "
     "sequence among tensor-parallel ranks"},
    {"use_data_before_expert_parallelism", boolean, "false", NoEffect,
     "there are no experts' ranks"},
    {"pipeline", block, "{}", Obeyed, "pipeline stages, which are not there"},
    {"pipeline.stages", anything, "\"auto\"", Obeyed, "any number of stages but 1 is refused"},
    {"pipeline.partition", text, "\"best\"", NoEffect, kNoPipeline},
    {"pipeline.seed_layers", boolean, "false", NoEffect, kNoPipeline},
    {"pipeline.activation_checkpoint_interval", integer(0), "0", NoEffect,
     "there are no pipeline stages; --recompute says what is recomputed"},
    {"pipeline.pipe_partitioned", boolean, "true", NoEffect, kNoPipeline},
    {"pipeline.grad_partitioned", boolean, "true", NoEffect, kNoPipeline},
};

Section partita::config::parallelKeys() {
  return {"Tensor, sequence and pipeline parallelism", kTensorParallelRows};
}

/// A size of tensor parallelism is the mesh's; 0 and 1 ask for nothing.
static bool checkTensor(Resolver &r, StringRef path) {
  int64_t size = r.whole(path), tp = r.size("tp");
  if (!r.has(path) || size <= 1 || size == tp)
    return true;
  return r.fail(path,
                r.name(path) + " is " + Twine(size) + ", but the mesh" +
                    (r.facts.mesh.empty() ? " is one rank, as no --mesh is given"
                                          : "'s axis tp has " + std::to_string(tp) + " ranks") +
                    "; give --mesh dp=N,tp=" + Twine(size));
}

bool partita::config::resolveParallel(Resolver &r) {
  for (StringRef path : {"tensor_parallel", "tensor_parallel.tp", "pipeline"})
    r.find(path);
  if (!checkTensor(r, kAuto) || !checkTensor(r, kSize))
    return false;
  constexpr StringLiteral stages = "pipeline.stages";
  const Given *given = r.find(stages);
  if (!given || given->value->isAuto())
    return true;
  if (given->value->kind != Value::Integer || given->value->integer < 1)
    return r.fail(stages, r.name(stages) + " is " + given->value->toJson() +
                              ", expected \"auto\" or a whole number of at least 1");
  if (given->value->integer == 1)
    return true;
  return r.fail(stages, r.name(stages) + " is " + Twine(given->value->integer) +
                            (r.stage >= 2 ? ", which DeepSpeed refuses with ZeRO stage " +
                                                std::to_string(r.stage) + ", and"
                                          : std::string(":")) +
                            " pipeline stages are not there; --mesh dp=N,tp=M splits batch and "
                            "weights");
}
