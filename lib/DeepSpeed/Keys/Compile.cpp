//===- Compile.cpp - DeepCompile --------------------------------------------------------------===//

#include "lib/DeepSpeed/Rows.h"

using namespace partita::config;

static constexpr llvm::StringLiteral kOrder =
    "collectives are ordered and waited for at compile time; partita verify checks the result";
static constexpr Key kCompileRows[] = {
    {"compile", checkedBlock, "{}", NoEffect,
     "DeepCompile; the full program is compiled in any case"},
    {"compile.deepcompile", boolean, "false", NoEffect, "the full program is compiled in any case"},
    {"compile.free_activation", boolean, "false", NoEffect,
     "activations live as long as they are used"},
    {"compile.free_activation_threshold", integer(0), "10485760", NoEffect,
     "activations live as long as they are used"},
    {"compile.offload_activation", boolean, "false", Refused,
     "use activation_checkpointing's \"cpu_checkpointing\": true, or --offload activations"},
    {"compile.offload_activation_pin_memory", boolean, "true", NoEffect,
     "what is copied to and from the host is pinned"},
    {"compile.offload_opt_states", boolean, "false", Refused,
     "use zero_optimization's \"offload_optimizer\": {\"device\": \"cpu\"}"},
    {"compile.offload_parameters", boolean, "false", Refused,
     "use zero_optimization's \"offload_param\": {\"device\": \"cpu\"}"},
    {"compile.double_buffer", boolean, "true", NoEffect, kOrder},
    {"compile.symmetric_memory", boolean, "false", NoEffect, kOrder},
    {"compile.debug_log", boolean, "false", NoEffect,
     "--print-pipeline and --compile-to show every phase"},
    {"compile.sync_before_reduce", boolean, "false", NoEffect, kOrder},
    {"compile.sync_after_reduce", boolean, "false", NoEffect, kOrder},
    {"compile.sync_before_allgather", boolean, "false", NoEffect, kOrder},
    {"compile.sync_after_allgather", boolean, "false", NoEffect, kOrder},
    {"compile.passes", anything, "null", NoEffect, "--print-pipeline prints the passes that run"},
};

Section partita::config::compileKeys() { return {"DeepCompile", kCompileRows}; }
