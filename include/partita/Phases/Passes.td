//===- Passes.td - the last pass of every phase ---------------------------------------------------===//

#ifndef PARTITA_PHASES_PASSES
#define PARTITA_PHASES_PASSES

include "mlir/Pass/PassBase.td"

def NotePhasePass : Pass<"note-phase", "::mlir::ModuleOp"> {
  let summary = "records on the module that a phase has ended";
  let description = [{
    Phase: import.

    Every phase ends with it, so that `partita compile` continues with the next one, whichever tool ran the passes. A module whose
    `train.phase` is not the phase before is refused. One without the attribute, such as a program written by hand that begins at a later
    phase, stays without it, except after `import`.

    ```mlir
    module attributes {train.phase = "import", train.plan = #train.plan<{}>} {
    func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    // becomes
    module attributes {train.phase = "raise", train.plan = #train.plan<{}>} {
    func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    ```
  }];
  let options = [Option<"phase", "phase", "std::string", "", "the phase that has just ended">];
  let statistics = [Statistic<"modules", "modules", "modules whose phase was recorded">];
}

def NoteCostsPass : Pass<"note-costs", "::mlir::ModuleOp"> {
  let summary = "records what each layer costs in the forward and in the backward pass of a micro-batch";
  let description = [{
    Phase: stages.

    `pipe-place` minimizes the slowest stage's time by the clock that `explain` simulates the schedule with: the costs of the ops that are
    left after fusion (`note-schedule`). They are not estimated from the forward program. A copy of the training step, or of @forward, without stages, goes
    through the passes that decide which ops there are: those of the phases `partition` and `differentiate` (`to-gradients`), `schedule` and
    `fuse` (`to-kernels`), with the plan's options. What its ops cost is added up by layer; what several stages compute, each for itself, is
    apart. If the schedule lets the last stage join its passes, they are joined, otherwise apart, too.
    A program without stages is left alone.

    ```mlir
    func.func @train_step(%xs: tensor<4x2x4xf32>) ... {
      ...
    // becomes
    module attributes {pipe.stages = 2 : i64, train.schedule = ..., train.shared_work = [#train.shared_work<first = 0, last = 2, ... parameters = 16, forward_cost = 1920, backward_cost = 4160>, ...
      func.func @train_step(%xs: tensor<4x2x4xf32>) ... {
        ...
    ```
  }];
  let options = [Option<"toGradients", "to-gradients", "std::string", "", "passes that make the backward pass">,
                 Option<"toKernels", "to-kernels", "std::string", "", "passes that make the kernels of both passes">];
  let dependentDialects = ["::partita::amp::AmpDialect", "::partita::offload::OffloadDialect", "::partita::par::ParDialect",
                           "::partita::pipe::PipeDialect", "::partita::rt::RtDialect", "::partita::train::TrainDialect",
                           "::partita::tx::TxDialect", "::partita::zero::ZeroDialect"];
  let statistics = [Statistic<"noted", "noted", "rows of work that got costs">];
}

#endif // PARTITA_PHASES_PASSES
