//===- Step.cpp - gradients and their treatment in a step -------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"

using namespace llvm;
using namespace partita::config;

static constexpr Key kStepRows[] = {
    {"gradient_clipping", number(0), "1.0", Obeyed,
     "--clip: the max global norm of the gradients, 0 for none; 1.0 if the key is absent, "
     "as in DeepSpeed's code of 2026 (older versions and the documentation: 0)",
     "--clip, else 1.0"},
    {"prescale_gradients", boolean, "false", NoEffect,
     "the loss is divided by the number of tokens of all ranks before the backward pass, so "
     "gradients are scaled before they are reduced in any case"},
    {"gradient_predivide_factor", number(1e-30), "1.0", NoEffect,
     "the loss is divided by the number of tokens of all ranks before the backward pass; a part of "
     "the division at another place would change rounding alone"},
    {"gradient_allreduce_op", choice("mean|sum"), "\"mean\"", Refused,
     "gradients are those of the mean loss over all tokens; scale --lr instead"},
    {"sparse_gradients", boolean, "false", NoEffect,
     "an embedding's gradient is reduced dense, which gives the same sums; with ZeRO an error, as "
     "in DeepSpeed"},
    {"disable_allgather", boolean, "false", NoEffect,
     "parameters are gathered where the ZeRO stage needs it"},
    {"zero_allow_untested_optimizer", boolean, "false", NoEffect,
     "every optimizer works at every stage, but OneBitAdam, OneBitLamb and ZeroOneAdam at 0 and 1 alone"},
    {"zero_force_ds_cpu_optimizer", boolean, "true", NoEffect,
     "states that the host keeps are updated by the host, with whatever optimizer"},
    {"graph_harvesting", boolean, "false", NoEffect,
     "the full program is compiled; there is no loop of kernels to record"},
    {"dataloader_drop_last", boolean, "false", NoEffect,
     "the program's own data loader fills a batch at the end of an epoch from the next one; "
     "nothing is dropped or left over"},
    {"vocabulary_size", integer(1), "null", NoEffect,
     "the vocabulary is that of the model's file; a size that does not divide is padded"},
};

Section partita::config::stepKeys() { return {"Gradients and steps", kStepRows}; }

bool partita::config::resolveStep(Resolver &r) {
  constexpr StringLiteral clip = "gradient_clipping", older = "optimizer.params.max_grad_norm";
  std::string norm;
  if (double other = r.real(older); other == 0 || !r.has(older))
    return r.settle(clip, "clip", "1", norm);
  else if (r.has(clip) && !r.isAuto(clip) && r.real(clip) != other)
    return r.fail(older, r.name(older) + " is " + numberText(other) +
                             ", but gradient_clipping is " + numberText(r.real(clip)) +
                             "; leave one of them out");
  return r.settle(r.has(clip) && !r.isAuto(clip) ? clip : older, "clip", "1", norm);
}
