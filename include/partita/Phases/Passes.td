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

#endif // PARTITA_PHASES_PASSES
