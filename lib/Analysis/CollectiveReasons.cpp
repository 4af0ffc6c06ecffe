//===- CollectiveReasons.cpp - why ranks exchange, in words -----------------------------------===//
//
// One row per role of a cause; what a seed is called and how it is taken back, one per kind of
// seed.
//
//===----------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Collectives.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace partita::analysis;

std::string Collective::why() const {
  if (role.empty())
    return "no reason is noted: the module was written without locations";
  std::string letterText =
      formatv("{0} splits letter {1} of {2} ('{3}')", axis, letter, op, rule).str();
  if (role == "sum" && kind == "all_gather")
    return letterText + ", which it sums away: the backward half of the reduce-scatter behind it";
  if (role == "sum")
    return letterText + ", which it sums away: each rank has a part of the sum" +
           (kind == "reduce_scatter" ? ", and keeps its piece of the whole one" : "");
  if (role == "greatest")
    return letterText + ", of which it takes the greatest: each rank has its own";
  if (role == "parameter")
    return letterText + " and parameters lack it: each rank has a share of their gradients";
  if (role == "share")
    return letterText + " and an operand lacks it: each rank has a share of that one's gradient";
  if (role == "whole" && kind == "reduce_scatter")
    return letterText + " and gathers its input: each rank has a share of the input's gradient, "
                        "and keeps its piece of the whole one";
  if (role == "whole")
    return letterText + ", so its input, split along the sequence, is gathered" +
           (backward ? " again for the backward pass instead of kept" : "");
  return letterText +
         ", of which each rank takes its piece: the pieces of the gradient are gathered";
}

/// "a@1, b@0 and 3 more": those that are split together.
static std::string family(ArrayRef<std::string> parameters) {
  constexpr size_t most = 4;
  std::string list = join(parameters.take_front(most), ", ");
  if (parameters.size() > most)
    list += " and " + std::to_string(parameters.size() - most) + " more";
  return list;
}

std::string Collective::seedText() const {
  std::string together = family(parameters);
  for (const std::vector<std::string> &other : merged)
    together += "; and, of what is summed with it, " + family(other);
  if (seed == "batch")
    return words.empty() ? "the batch" : "the batch, of input '" + words + "'";
  if (seed == "sequence")
    return "--sequence-parallel";
  if (seed == "analysis")
    return parameters.size() == 1 ? "the model's structure: " + together
                                  : "the model's structure, which pairs " + together;
  if (seed == "user")
    return "--shard '" + words + "': " + together;
  if (seed == "annotation")
    return "the sharding annotations of the model's file (" + words + "): " + together;
  return seed.empty() ? "not noted" : seed + " '" + words + "': " + together;
}

std::string Collective::removal() const {
  if (role.empty())
    return "";
  if (seed == "batch")
    return role == "parameter"
               ? "required by the mathematics of data parallelism: one reduction per step of "
                 "each gradient"
               : "required by the mathematics of data parallelism: the mean is over all samples";
  bool isMove = kind == "all_gather" || kind == "reduce_scatter";
  std::string text;
  if (seed == "sequence" || isMove)
    text = "without --sequence-parallel" +
           std::string(isMove ? ", an all_reduce takes the place of a pair of these; " : "; ");
  std::string whole;
  auto keepWhole = [&](ArrayRef<std::string> split) {
    if (!split.empty())
      whole += (whole.empty() ? "" : ",") + StringRef(split.front()).rsplit('@').first.str() +
               "=replicated";
  };
  keepWhole(parameters);
  for (const std::vector<std::string> &other : merged)
    keepWhole(other);
  text += "without " + axis;
  if (!whole.empty())
    text += ", or whole weights: --shard '" + whole + "'";
  if (seed == "user")
    text += " in place of --shard '" + words + "'";
  if (seed == "annotation")
    text += " with --configuration none";
  if (!isMove && role == "sum" && place >= 0)
    text += "; --sequence-parallel puts a reduce_scatter and an all_gather in its place";
  return text;
}

std::string Collective::shape() const {
  return join(ArrayRef<std::string>{function, kind, axis, backward ? "b" : "f",
                                    std::to_string(bytes), std::to_string(tensors), role, letter,
                                    rule, op, seed},
              "\n");
}
