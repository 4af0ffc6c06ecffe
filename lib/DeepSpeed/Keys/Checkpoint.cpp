//===- Checkpoint.cpp - checkpoints -----------------------------------------------------------===//

#include "lib/DeepSpeed/Rows.h"

using namespace partita::config;

static constexpr llvm::StringLiteral kOne =
    "each rank writes its own shards; a checkpoint that is not complete does not appear";
static constexpr Key kCheckpointRows[] = {
    {"checkpoint", block, "{}", NoEffect, "checkpoints: run --checkpoint DIR"},
    {"checkpoint.tag_validation", choice("Warn|Ignore|Fail"), "\"Warn\"", NoEffect,
     "a checkpoint has its step for a tag, the same on every rank"},
    {"checkpoint.load_universal", boolean, "false", NoEffect,
     "every checkpoint is universal: any plan and number of ranks reads it"},
    {"checkpoint.use_node_local_storage", boolean, "false", Refused,
     "a checkpoint is one folder, which all ranks see"},
    {"checkpoint.parallel_write", block, "{}", NoEffect, kOne},
    {"checkpoint.parallel_write.pipeline_stage", boolean, "false", NoEffect, kOne},
    {"checkpoint.checkpoint_serialization", boolean, "true", NoEffect, kOne},
    {"checkpoint.writer", block, "{}", NoEffect, kOne},
    {"checkpoint.writer.type", choice("MOCK|PYTHON|FAST"), "\"PYTHON\"", NoEffect, kOne},
    {"checkpoint.writer.io_buffer_size", integer(1), "67108864", NoEffect, kOne},
    {"checkpoint.writer.io_buffer_double", boolean, "true", NoEffect, kOne},
    {"checkpoint.writer.show_statistics", boolean, "false", NoEffect, kOne},
    {"checkpoint.writer.data_parallel", choice("replica|socket|machine"), "\"replica\"", NoEffect,
     kOne},
    {"checkpoint.writer.decoupled", boolean, "false", NoEffect, kOne},
    {"checkpoint.writer.io_multiplier", integer(1), "1", NoEffect, kOne},
};

Section partita::config::checkpointKeys() { return {"Checkpoints", kCheckpointRows}; }
