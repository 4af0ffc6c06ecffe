//===- TensorParallel.cpp - tensor, sequence and pipeline parallelism -------------------------===//
//
// The command line gives the mesh; sizes in the file must equal its.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"

using namespace llvm;
using namespace partita::config;

static constexpr StringLiteral kAuto = "tensor_parallel.autotp_size",
                               kSize = "tensor_parallel.tp.tp_size", kStages = "pipeline.stages";
static constexpr StringLiteral kMessages =
    "what moves between stages is planned at compile time: 'partita explain' lists every message";

static constexpr Key kTensorParallelRows[] = {
    {"tensor_parallel", block, "{}", Obeyed,
     "how weights are split follows from the model's structure, with --mesh tp=SIZE"},
    {kAuto, integer(0, 65536), "0", Obeyed, "must equal the mesh's axis tp"},
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
    {kSize, integer(1, 65536), "1", Obeyed, "must equal the mesh's axis tp"},
    {"tensor_parallel.tp.tp_grain_size", integer(1), "1", NoEffect,
     "what does not divide is padded, or an error that says so"},
    {"sequence_parallel_size", integer(1), "1", Refused,
     "Ulysses' sequence parallelism is not supported; --mesh tp=SIZE --sequence-parallel splits the "
     "sequence among tensor-parallel ranks"},
    {"use_data_before_expert_parallelism", boolean, "false", NoEffect,
     "expert parallelism is not supported"},
    {"pipeline", block, "{}", Obeyed,
     "pipeline stages: --mesh pp=SIZE, and --stages says which layers each has"},
    {kStages, anything, "\"auto\"", Obeyed, "must equal the mesh's axis pp"},
    {"pipeline.partition", text, "\"best\"", NoEffect, "--stages says how layers are split"},
    {"pipeline.seed_layers", boolean, "false", NoEffect,
     "initial values are drawn by a parameter's name, whichever stage has it"},
    {"pipeline.activation_checkpoint_interval", integer(0), "0", NoEffect,
     "--recompute says what is recomputed"},
    {"pipeline.pipe_partitioned", boolean, "true", NoEffect, kMessages},
    {"pipeline.grad_partitioned", boolean, "true", NoEffect, kMessages},
};

Section partita::config::tensorParallelKeys() {
  return {"Tensor, sequence and pipeline parallelism", kTensorParallelRows};
}

/// Fails unless the mesh's axis has this size.
static bool checkAxis(Resolver &r, StringRef path, int64_t size, StringRef axis,
                      const std::string &mesh) {
  int64_t ranks = r.size(axis);
  if (size == ranks)
    return true;
  return r.fail(path, r.name(path) + " is " + Twine(size) + ", but the mesh" +
                          (r.facts.mesh.empty()
                               ? std::string(" is one rank, as no --mesh is given")
                               : "'s axis " + axis.str() + " has " + std::to_string(ranks) +
                                     (ranks == 1 ? " rank" : " ranks")) +
                          "; give --mesh " + mesh);
}

/// 0 and 1 ask for nothing.
static bool checkTensor(Resolver &r, StringRef path) {
  int64_t size = r.whole(path);
  return !r.has(path) || size <= 1 ||
         checkAxis(r, path, size, "tp", "dp=N,tp=" + std::to_string(size));
}

bool partita::config::resolveTensorParallel(Resolver &r) {
  for (StringRef path : {"tensor_parallel", "tensor_parallel.tp", "pipeline"})
    r.find(path);
  if (!checkTensor(r, kAuto) || !checkTensor(r, kSize))
    return false;
  const Given *given = r.find(kStages);
  if (!given || given->value->isAuto())
    return true;
  if (given->value->kind != Value::Integer || given->value->integer < 1)
    return r.fail(kStages, r.name(kStages) + " is " + given->value->toJson() +
                               ", expected \"auto\" or a whole number of at least 1");
  int64_t stages = given->value->integer;
  return checkAxis(r, kStages, stages, "pp", "pp=" + std::to_string(stages) + ",dp=N");
}
