//===- SparseAttention.cpp - block-sparse attention -------------------------------------------===//
//
// The block becomes one plan option, with the keys that DeepSpeed passes on to its class of the mode. What it reads and
// does not pass on has no effect.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace partita::config;

#define SPARSE "sparse_attention."

static constexpr StringLiteral kMode = SPARSE "mode", kAttention = SPARSE "attention";
static constexpr StringLiteral kOf = "--sparse-attention, in the modes that have it";
static constexpr double kMostNumber = 1 << 20;
static constexpr Key kSparseAttentionRows[] = {
    {"sparse_attention", block, "null", Obeyed,
     "--sparse-attention: which blocks of self-attention are computed; DeepSpeed's own kernels need a version "
     "of Triton that is gone"},
    {kMode, choice("fixed|dense|variable|bigbird|bslongformer"), "\"fixed\"", Obeyed,
     "--sparse-attention mode=...; random blocks are the same on all ranks, drawn by its seed=0"},
    {SPARSE "block", integer(1, kMostNumber), "16", Obeyed,
     "--sparse-attention: positions of a block; must divide the sequence"},
    {SPARSE "different_layout_per_head", boolean, "false", Obeyed, kOf},
    {SPARSE "num_local_blocks", integer(1, kMostNumber), "4", Obeyed, kOf},
    {SPARSE "num_global_blocks", integer(1, kMostNumber), "1", Obeyed, kOf},
    {kAttention, choice("bidirectional|unidirectional"), "\"bidirectional\"", Obeyed,
     "--sparse-attention, in modes fixed and variable; DeepSpeed does not pass it on to bigbird and bslongformer, with "
     "which unidirectional is refused. A causal model stays causal in either case"},
    {SPARSE "horizontal_global_attention", boolean, "false", Obeyed, kOf},
    {SPARSE "num_different_global_patterns", integer(1, kMostNumber), "1", Obeyed,
     "--sparse-attention, in mode fixed (the documentation's default is 4, the code's 1)"},
    {SPARSE "num_random_blocks", integer(0, kMostNumber), "0", Obeyed, kOf},
    {SPARSE "local_window_blocks", anything, "[4]", Obeyed,
     "--sparse-attention, in mode variable: a list of integers"},
    {SPARSE "global_block_indices", anything, "[0]", Obeyed,
     "--sparse-attention, in modes variable and bslongformer: a list of integers"},
    {SPARSE "global_block_end_indices", anything, "null", Obeyed,
     "--sparse-attention, in modes variable and bslongformer: a list of integers"},
    {SPARSE "num_sliding_window_blocks", integer(1, kMostNumber), "3", Obeyed, kOf},
};

Section partita::config::sparseAttentionKeys() {
  return {"Sparse attention", kSparseAttentionRows};
}

/// The keys that DeepSpeed passes on from its configuration, beside the mode.
static SmallVector<StringRef> passedOn(StringRef mode) {
  StringRef names =
      StringSwitch<StringRef>(mode)
          .Case("fixed",
                "block,different_layout_per_head,num_local_blocks,num_global_blocks,attention,"
                "horizontal_global_attention,num_different_global_patterns")
          .Case("variable", "block,different_layout_per_head,num_random_blocks,local_window_blocks,"
                            "global_block_indices,global_block_end_indices,attention,"
                            "horizontal_global_attention")
          .Case("bigbird", "block,different_layout_per_head,num_random_blocks,"
                           "num_sliding_window_blocks,num_global_blocks")
          .Case("bslongformer", "block,different_layout_per_head,num_sliding_window_blocks,"
                                "global_block_indices,global_block_end_indices")
          .Default("block");
  SmallVector<StringRef> keys;
  names.split(keys, ',');
  return keys;
}

/// Adds ",key=value" to the option's text; a list's numbers are separated by ':'.
static bool append(Resolver &r, const Key &key, std::string &text) {
  const Given *given = r.find(key.path);
  text += "," + key.name().str() + "=";
  if (key.shape.kind == Shape::Choice) {
    text += r.word(key.path);
    return true;
  }
  if (key.shape.kind != Shape::Anything) {
    text += given ? given->value->toJson() : key.initial.str();
    return true;
  }
  auto isNumber = [](const Value &item) { return item.kind == Value::Integer; };
  if (given->value->kind != Value::List || given->value->items.empty() ||
      !all_of(given->value->items, isNumber))
    return r.fail(key.path, r.name(key.path) + " is " + given->value->toJson() +
                                ", expected a list of one integer or more");
  text += join(map_range(given->value->items,
                         [](const Value &item) { return std::to_string(item.integer); }),
               ":");
  return true;
}

bool partita::config::resolveSparseAttention(Resolver &r) {
  if (!r.find("sparse_attention"))
    return true;
  std::string mode = r.word(kMode), text = "mode=" + mode;
  SmallVector<StringRef> keys = passedOn(mode);
  if (!is_contained(keys, "attention") && r.word(kAttention) == "unidirectional" && mode != "dense")
    return r.fail(kAttention,
                  r.name(kAttention) +
                      " is unidirectional, which DeepSpeed does not pass on to mode " + mode +
                      "; leave it out, or the block, and give --sparse-attention mode=" + mode +
                      ",attention=unidirectional");
  for (const Key &key : kSparseAttentionRows) {
    if (key.isBlock() || key.path == kMode)
      continue;
    if (!is_contained(keys, key.name()))
      r.idle(key.path, "mode " + mode + " does not have it");
    // An absent list has its default, DeepSpeed's class of bigbird another number of random blocks.
    else if ((r.has(key.path) || key.path == SPARSE "num_random_blocks") && !append(r, key, text))
      return false;
  }
  return r.set("sparse_attention", "sparse-attention", text);
}
