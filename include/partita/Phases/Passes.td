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
  let summary = "records what one micro-batch costs on stages of one and of two layers";
  let description = [{
    Phase: stages.

    With `assign=auto`, `pipe-place` makes the slowest stage as fast as possible by the clock that `explain` simulates the schedule with: the
    costs of the ops that are left after all passes (`note-schedule`). These are not estimated from the forward program. Copies of the
    training step, or of @forward, are cut into stages of one layer and of two, and go
    through the passes that decide which ops there are: those of the phases `partition` to `cut` (`to-cut`) and, on each stage, `schedule`
    to `overlap` (`of-stages`), with the plan's options. What longer ranges of layers cost follows (`partita/Stages/Spans.h`).

    Layers that are alike (`partita/Analysis/AlikeLayers.h`) are measured once: of each kind of layer, and of each pair of kinds, one place
    is a stage of a copy, so that models of a hundred equal layers need two copies with a handful of stages. If the plan names parameters
    (`shard`, `keep`) or limits memory (`budget`), passes may treat such layers differently, and every layer is measured.

    If the schedule lets the last stage join its passes, that of the copies does. If it splits the backward pass, the copies are made both
    ways: the first stage sends no cotangent and does not split its own. A program without stages is left alone.

    ```mlir
    func.func @train_step(%xs: tensor<4x2x4xf32>) ... {
      ...
    // becomes
    module attributes {pipe.stages = 2 : i64, train.schedule = ..., train.spans = [#train.span<first = 0, last = 0, costs = [2560, 3840, 0]>, ...
      func.func @train_step(%xs: tensor<4x2x4xf32>) ... {
        ...
    ```
  }];
  let options = [Option<"assign", "assign", "std::string", "\"auto\"", "pipe-place's; others than auto need no costs">,
                 Option<"axis", "axis", "int64_t", "0", "pipe-place's">,
                 ListOption<"shard", "shard", "std::string", "`partition-seed-user`'s: parameters that are sharded otherwise than their layer says">,
                 ListOption<"keep", "keep", "std::string", "`gather-again`'s: parameters that are kept in full">,
                 Option<"budget", "budget", "int64_t", "0", "`recompute`'s: bytes of activations that are saved">,
                 Option<"toCut", "to-cut", "std::string", "", "passes that make the stages' programs">,
                 Option<"ofStages", "of-stages", "std::string", "", "passes that make the kernels of a stage">];
  let dependentDialects = ["::partita::amp::AmpDialect", "::partita::offload::OffloadDialect", "::partita::par::ParDialect",
                           "::partita::pipe::PipeDialect", "::partita::rt::RtDialect", "::partita::train::TrainDialect",
                           "::partita::tx::TxDialect", "::partita::zero::ZeroDialect"];
  let statistics = [Statistic<"noted", "noted", "spans of layers that got costs">,
                    Statistic<"measured", "measured", "stages of copies whose costs were counted">];
}

#endif // PARTITA_PHASES_PASSES
