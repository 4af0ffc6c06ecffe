//===- SparseAttention.cpp - block-sparse attention -------------------------------------------===//

#include "lib/DeepSpeed/Rows.h"

using namespace partita::config;

#define SPARSE "sparse_attention."

static constexpr llvm::StringLiteral kOf = "of sparse_attention";
static constexpr Key kSparseAttentionRows[] = {
    {"sparse_attention", block, "null", Refused,
     "attention is computed as the model's file has it; there is no block-sparse attention (and "
     "DeepSpeed's needs a version of Triton that is gone)"},
    {SPARSE "mode", choice("fixed|dense|variable|bigbird|bslongformer"), "\"fixed\"", Part, kOf},
    {SPARSE "block", integer(1), "16", Part, kOf},
    {SPARSE "different_layout_per_head", boolean, "false", Part, kOf},
    {SPARSE "num_local_blocks", integer(1), "4", Part, kOf},
    {SPARSE "num_global_blocks", integer(1), "1", Part, kOf},
    {SPARSE "attention", choice("bidirectional|unidirectional"), "\"bidirectional\"", Part, kOf},
    {SPARSE "horizontal_global_attention", boolean, "false", Part, kOf},
    {SPARSE "num_different_global_patterns", integer(1), "1", Part,
     "of sparse_attention (the documentation's default is 4, the code's 1)"},
    {SPARSE "num_random_blocks", integer(0), "0", Part, kOf},
    {SPARSE "local_window_blocks", anything, "[4]", Part, kOf},
    {SPARSE "global_block_indices", anything, "[0]", Part, kOf},
    {SPARSE "global_block_end_indices", anything, "null", Part, kOf},
    {SPARSE "num_sliding_window_blocks", integer(1), "3", Part, kOf},
};

Section partita::config::sparseAttentionKeys() {
  return {"Sparse attention", kSparseAttentionRows};
}
