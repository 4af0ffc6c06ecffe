//===- Passes.td - from gradients to updates ------------------------------------------------------------===//

#ifndef PARTITA_OPTIMIZER_PASSES
#define PARTITA_OPTIMIZER_PASSES

include "mlir/Pass/PassBase.td"

def OptimizePass : Pass<"optimize", "::mlir::ModuleOp"> {
  let summary = "replaces train.update with an optimizer's arithmetic and states";
  let description = [{
    Phase: optimize.

    `kind` names one of dialects/Train/Optimizers.td. Weight decay acts on parameters with at least two dimensions: not on
    biases and scales of norms, unless `groups` says so (lib/Optimizer/Groups.h). @init, where there is one, also writes the
    states' initial values. With `clip`, all updates follow the last gradient, and gradients are scaled so that their global
    norm is at most `clip`. If the loss is scaled (`scale-loss`), gradients are also divided by the scale, all updates have the
    predicate that every gradient is finite, and the scale is updated last. If an exporter has shifted a parameter by a
    constant or split it (`folded` in `train.tensors`), a warning says where decay or trust ratios differ.

    ```mlir
    train.update @w, %w by %dw
    // becomes
    train.state @w.v : tensor<4x6xf32> = 0.0 of @w "v"
    train.state @w.m : tensor<4x6xf32> = 0.0 of @w "m"
    ...
    %m = train.read @w.m
    %v = train.read @w.v
    %p, %m1, %v1 = train.adamw %w, %dw, %m, %v, %rate, %step {beta1 = 0.9, ...}
    train.write @w, %p
    train.write @w.m, %m1
    train.write @w.v, %v1
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"adamw\"", "an optimizer: adamw, adam, sgd, lion, adagrad, lamb, onebit_adam, onebit_lamb, zero_one_adam">,
    ListOption<"betas", "betas", "double", "decays of the two moments, in [0, 1); default: the optimizer's own">,
    Option<"epsilon", "epsilon", "std::string", "", "added to the root of the second moment; default: the optimizer's own">,
    Option<"momentum", "momentum", "double", "0.0", "momentum of sgd, in [0, 1)">,
    Option<"nesterov", "nesterov", "bool", "false", "Nesterov's momentum">,
    Option<"biasCorrection", "bias-correction", "bool", "false", "the moments of onebit_adam and zero_one_adam are corrected for their first value, as Adam's are">,
    Option<"noBiasCorrection", "no-bias-correction", "bool", "false", "Adam's moments are not corrected for their first value">,
    Option<"weightDecay", "weight-decay", "double", "0.0", "weight decay (decoupled: per unit of learning rate)">,
    Option<"stochasticRounding", "stochastic-rounding", "bool", "false", "masters are rounded to bfloat16 stochastically, which keeps their mean">,
    ListOption<"lambBounds", "lamb-bounds", "double", "min and max trust ratio of lamb and onebit_lamb; default: 0.01,10">,
    Option<"freezeStep", "freeze-step", "int64_t", "0", "last step of the warm-up of onebit_adam and onebit_lamb; 0: the optimizer's own">,
    Option<"coeffBeta", "coeff-beta", "std::string", "", "what onebit_lamb's running mean of ratios keeps of itself in a step, in [0, 1); default: 0.9">,
    ListOption<"factorBounds", "factor-bounds", "double", "min and max of onebit_lamb's factor of that mean after the warm-up; default: 0.5,4">,
    Option<"factorThreshold", "factor-threshold", "std::string", "", "by what share of itself that factor may change in a step, in [0, 1]; default: 0.1">,
    Option<"varFreezeStep", "var-freeze-step", "int64_t", "0", "last step in which zero_one_adam may update the variance; 0: the optimizer's own">,
    Option<"varUpdateScaler", "var-update-scaler", "int64_t", "0", "its updates of the variance at each interval of 1, 2, 4, ... steps; 0: the optimizer's own">,
    ListOption<"groups", "groups", "std::string", "PATTERN:weight-decay=W:lr-scale=S">,
    Option<"clip", "clip", "double", "0.0", "max global norm of the gradients; 0: no clipping">,
  ];
  let statistics = [Statistic<"updates", "updates", "updates of parameters">];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::amp::AmpDialect"];
}

def CompressMomentaPass : Pass<"compress-momenta", "::mlir::ModuleOp"> {
  let summary = "sums momenta with a bit per element where the optimizer is 1-bit Adam, 1-bit LAMB or 0/1 Adam";
  let description = [{
    Phase: optimize.

    After the warm-up, a rank of 1-bit Adam (Tang et al., arXiv 2102.02888) updates the momentum by its own gradient, and the ranks average
    the results with a bit per element. One `par.one_bit_all_reduce` for all parameters, or for those of each pipeline stage, takes the place of the sums of their gradients; `compressed`
    notes on the updates that the sum is the new momentum. Sums of a few elements stay exact, for which a scale for each rank would be more bytes, and so do those that
    `exact` names and those whose shards have padding anywhere but at their end (a bit has no zero for it).
    What compression leaves out is kept in states, the worker's and the server's. What other axes sum is summed over them first, exactly; a rank
    compresses its shard. Gradients are clipped in exact steps; in the others the norm of their sum is not known, and they are multiplied by the typical factor of
    the exact ones (`par.one_bit_clip`), the state `clip_factor`. Gradients in
    16 bits are widened to float32 before. With 0/1 Adam (Lu et al., arXiv 2202.06009) exact steps, which update the variance, come back ever more
    rarely (`doubling`) up to the last one. 1-bit LAMB (Li et al., arXiv 2104.06069) sums as 1-bit Adam does; its ratios have `compressed` as well. With ZeRO-1 (`stage`) `par.one_bit_mean` computes the momentum in full, of which the update takes a shard.

    ```mlir
    %g = par.all_reduce %0 over "dp" because "gradient"
    train.update @w, %w by %g
    // becomes
    %x = par.one_bit_term %0, %m at %t ... over "dp" beta 9.000000e-01 exact until 10
    %worker = train.read @w.worker
    %server = train.read @w.server
    ... = par.one_bit_all_reduce %x, ... over "dp" exact until 10 because "momentum"
    ... = train.onebit_adam ...compressed = 1.0, ... freeze = 10.0...
    train.write @w.worker, ...
    train.write @w.server, ...
    ...
    ```
  }];
  let options = [Option<"stage", "stage", "int64_t", "0", "the stage of ZeRO that follows: 0 or 1">,
                 ListOption<"offload", "offload", "std::string", "what is kept on the host: not optimizer">,
                 ListOption<"exact", "exact", "std::string", "parameters whose sums stay exact: glob patterns over their names">];
  let statistics = [Statistic<"compressed", "compressed", "gradients whose sums are compressed">];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::tx::TxDialect"];
}

def ExpandNormsPass : Pass<"expand-norms", "::mlir::ModuleOp"> {
  let summary = "turns norms of placed values into local sums of squares and sums over ranks";
  let description = [{
    Phase: states.

    Each element is counted once: values that the same axes split share one `train.square_sum`, which is summed over
    those axes; values that no axis splits are the same on all ranks and need no sum over ranks. Runs after the last
    pass that changes splits.

    ```mlir
    %norm = train.global_norm %a, %b, %c of [@w, @u, @c]    // tp splits %b and %c
    // becomes
    %0 = train.square_sum %a : (tensor<3x5xf32>) -> tensor<1xf64>
    %1 = train.square_sum %b, %c : ... -> tensor<2xf64, #par.place<[2], partial [tp]>>
    %2 = par.all_reduce %1 over "tp" because "norm of the gradients"
    %norm = train.norm %0, %2 of [@w, @u, @c]
    ```

    Of LAMB's and 1-bit LAMB's ratios the same: `train.direction_squares` with sums of squares, and for 1-bit LAMB a max, over the axes that split
    the value, and `train.ratio` or `train.frozen_ratio` of their results.
  }];
  let statistics = [Statistic<"norms", "norms", "norms and trust ratios that became local sums">];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::pipe::PipeDialect"];
}

#endif // PARTITA_OPTIMIZER_PASSES
