//===- Passes.td - pipeline stages: what runs where ------------------------------------------------===//

#ifndef PARTITA_STAGES_PASSES
#define PARTITA_STAGES_PASSES

include "mlir/Pass/PassBase.td"

def PipePlacePass : Pass<"pipe-place", "::mlir::ModuleOp"> {
  let summary = "assigns layers to pipeline stages, and moves what a later stage needs";
  let description = [{
    Phase: stages.

    The program stays one program of all stages, so that what follows sees all of it; `pipe-cut` takes it apart. The first stage
    also computes what precedes the first layer, the last one what follows the last layer. An activation moves from stage to
    stage as far as it is needed, once. What depends on parameters alone is computed on each stage that needs it: the
    parameter is then shared, and its gradient is a sum over its stages. What depends on neither (masks, tables of angles) is
    computed wherever it is needed.

    `assign` says how: `uniform` gives each stage the same number of layers, or one more where they do not divide;
    `parameters` and `auto` make the largest stage as small as it can be, in elements of parameters and in FLOPs;
    `cuts:4,8` names the first layer of each stage but the first.

    A stage has one or several `chunks` of layers, and all of this applies to chunks: each has a position in the model, and the layout
    that `schedule` needs maps positions to stages (`dialects/Pipe/Positions.h`). A value that an earlier chunk of the same stage has is
    taken from there.

    ```mlir
    %1 = tx.add %s, %0                       // of layer 0
    %2 = tx.matmul %1, %w1                   // of layer 1
    // becomes, with stages=2
    %1 = tx.add %s, %0
    %2 = pipe.move %1 over <0 to 1> ... : tensor<2x4xf32>
    %3 = tx.matmul %2, %w1
    ```
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "1", "number of stages; 1: the program stays as it is">,
    Option<"axis", "axis", "int64_t", "0", "number of mesh axes in front of that of the stages">,
    Option<"assign", "assign", "std::string", "\"auto\"", "auto, uniform, parameters, or cuts:LAYER,...">,
    Option<"chunks", "chunks", "int64_t", "0", "chunks per stage; 0: the schedule's default">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "that of schedule-stages, which determines the layout of chunks">,
  ];
  let dependentDialects = ["::partita::pipe::PipeDialect", "::partita::train::TrainDialect"];
  let statistics = [Statistic<"moves", "moves", "values moved to the next stage">,
                    Statistic<"shared", "shared", "parameters on several stages">];
}

def PipeReportPass : Pass<"pipe-report", "::mlir::ModuleOp"> {
  let summary = "gives every stage what a step reports";
  let description = [{
    Phase: cut.

    The last stage has the loss, and each rank reports it. A result of @train_step or @eval_step that not all stages have is
    summed over them: one has the value, the others zero. What @forward returns stays where it is.

    ```mlir
    return %loss, %count
    // becomes, where the loss is on stage 1 of two
    %0 = pipe.sum %loss on [0, 1] because "what a step reports" ... : tensor<f32>
    return %0, %count
    ```
  }];
  let dependentDialects = ["::partita::pipe::PipeDialect"];
  let statistics = [Statistic<"sums", "sums", "results summed over the stages">];
}

def PipeAgreePass : Pass<"pipe-agree", "::mlir::ModuleOp"> {
  let summary = "records what must be the same in the tables of all stages";
  let description = [{
    Phase: cut.

    Stages are compiled side by side, and the program has one table of parameters. The number of each parameter and state in it,
    the hyperparameters that a run may change, and where in memory several stages hold the same parameter or state are decided
    here. `plan-memory` puts what only one stage has behind them.

    ```mlir
    module attributes {pipe.stages = 2} {
      train.parameter @table : tensor<64x32xf32> {pipe.on = array<i64: 0, 1>}
      train.parameter @w : tensor<32x32xf32> {pipe.on = array<i64: 1>}
    // becomes
    module attributes {pipe.hyper = {}, pipe.parameters = [@table, @w], pipe.stages = 2, pipe.states = []} {
      train.parameter @table : tensor<64x32xf32> {pipe.offset = 0, pipe.on = array<i64: 0, 1>}
      train.parameter @w : tensor<32x32xf32> {pipe.on = array<i64: 1>}
    ```
  }];
  let dependentDialects = ["::partita::pipe::PipeDialect"];
  let statistics = [Statistic<"placed", "placed", "parameters and states on several stages">];
}

def PipeCutPass : Pass<"pipe-cut", "::mlir::ModuleOp"> {
  let summary = "makes each stage a program";
  let description = [{
    Phase: cut.

    Each stage becomes a module within the module, with its part of every function, its parameters and their states; `pipe.move`
    becomes a send and a receive. Where an op stands follows from its operands: a parameter is where `pipe.on` says, a moved
    value where it was moved to, and what depends on neither is everywhere. A value that is needed where it is not, and a sum
    over stages that nothing completes, are errors.

    A loop with a backward pass has a forward and a backward region for each chunk of a stage; what goes from one chunk to another of the
    same stage is a saved value of the pass that makes it. All else of a stage is one sequence, whatever its chunks.

    ```mlir
    module attributes {pipe.stages = 2} {
      train.parameter @a : tensor<4x4xf32> {pipe.on = array<i64: 0>}
      train.parameter @b : tensor<4x4xf32> {pipe.on = array<i64: 1>}
      func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
        %w0 = train.read @a : tensor<4x4xf32>
        %w1 = train.read @b : tensor<4x4xf32>
        %0 = tx.matmul %x, %w0
        %1 = pipe.move %0 over <0 to 1> : tensor<2x4xf32>
        %2 = tx.matmul %1, %w1
        return %2 : tensor<2x4xf32>
    // becomes
      module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
        train.parameter @a : tensor<4x4xf32>
        func.func @forward(%x: tensor<2x4xf32>) {
          %w0 = train.read @a : tensor<4x4xf32>
          %0 = tx.matmul %x, %w0
          pipe.send %0 over <0 to 1> : tensor<2x4xf32>
          return
      module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
        train.parameter @b : tensor<4x4xf32>
        func.func @forward(%y: tensor<2x4xf32>) -> tensor<2x4xf32> {
          %w1 = train.read @b : tensor<4x4xf32>
          %1 = pipe.recv over <0 to 1> : tensor<2x4xf32>
          %2 = tx.matmul %1, %w1
          return %2 : tensor<2x4xf32>
    ```
  }];
  let dependentDialects = ["::partita::pipe::PipeDialect", "::partita::train::TrainDialect", "::partita::tx::TxDialect"];
  let statistics = [Statistic<"cut", "cut", "stages made">];
}

def SplitBackwardPass : Pass<"split-backward", "::mlir::ModuleOp"> {
  let summary = "takes out of each backward pass what no other stage waits for, where the schedule has slots for it";
  let description = [{
    Phase: cut.

    Zero-bubble schedules compute the gradients of weights when a stage would wait. Ops move to a `weights` region, with their
    sums, unless a cotangent that the backward region sends, or a value that it saves for an earlier chunk, needs them. The
    backward region saves what the weights need of it; views, constants and what is the same for all micro-batches (gathered
    parameters) are recomputed. A stage that sends no cotangent, the first one, has only weights: its backward region only
    receives.

    `schedule` is that of `schedule-stages`, which reports what is wrong with it. A schedule without slots for weights leaves the loops alone.

    ```mlir
    module {
      module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
        func.func @train_step(%x: tensor<4x2x3xf32>, %w: tensor<3x3xf32>) {
          %0 = train.accumulate (%i = %x) : (tensor<4x2x3xf32>) -> tensor<3x3xf32> {
            %y = pipe.recv over <0 to 1> : tensor<2x3xf32>
            train.yield saves %y : tensor<2x3xf32>
          } backward (%j, %y_saved) {
            %d = tx.exp %y_saved
            %dw = tx.matmul_tn %y_saved, %d
            %dy = tx.matmul_nt %d, %w
            pipe.send %dy over <1 to 0> : tensor<2x3xf32>
            train.yield %dw : tensor<3x3xf32>
          }
    // becomes, with schedule=zb-h1
    module {
      module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
        func.func @train_step(%x: tensor<4x2x3xf32>, %w: tensor<3x3xf32>) {
          %0 = train.accumulate (%i = %x) : (tensor<4x2x3xf32>) -> tensor<3x3xf32> {
            %y = pipe.recv over <0 to 1> : tensor<2x3xf32>
            train.yield saves %y : tensor<2x3xf32>
          } backward (%j, %y_saved) {
            %d = tx.exp %y_saved
            %dy = tx.matmul_nt %d, %w
            pipe.send %dy over <1 to 0> : tensor<2x3xf32>
            train.yield saves %d : tensor<2x3xf32>
          } weights (%k, %y_again, %d_saved) {
            %dw = tx.matmul_tn %y_again, %d_saved
            train.yield %dw : tensor<3x3xf32>
          }
    ```
  }];
  let options = [Option<"schedule", "schedule", "std::string", "\"1f1b\"", "as that of schedule-stages">];
  let dependentDialects = ["::partita::pipe::PipeDialect", "::partita::train::TrainDialect"];
  let statistics = [Statistic<"split", "split", "loops whose backward passes were split">,
                    Statistic<"moved", "moved", "ops that no other stage waits for">];
}

def ScheduleStagesPass : Pass<"schedule-stages", "::mlir::ModuleOp"> {
  let summary = "decides in which order each stage runs its micro-batches' passes";
  let description = [{
    Phase: cut.

    The schedule is a table of all stages (`partita/Stages/Schedule.h`), by name or from a user's file, and is checked before use:
    it must finish even if a send completes only once its receive has begun. Each stage's `train.accumulate` gets its own column of the table, so
    the regions of both passes stay apart, and from here on stages need not know of each other. A stage awaits the sends of a pass before it runs
    that pass again. The last stage's loop gets `pipe.may_join` if its two passes may become one, which awaits the sends of both.

    `schedule` is gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v, or a JSON file; chunks must be those of `pipe-place`, and messages
    of a file's schedule must arrive in the order in which they are sent. A loop without a backward pass (inference) and a
    program of one stage are left alone. If a schedule leaves no bubble only when each stage starts its next step at once, a
    warning names the sums (`pipe.sum`) for which stages wait for each other in between.

    ```mlir
    module {
      module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
        func.func @train_step(%x: tensor<4x4xf32>) {
          %0:2 = train.accumulate (%i = %x) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
            %y = tx.exp %i
            pipe.send %y over <0 to 1> : tensor<4xf32>
            train.yield %y ... saves %y
          } backward (%j, %y_saved) {
            %dy = pipe.recv over <1 to 0> : tensor<4xf32>
            %d = tx.mul %dy, %y_saved
            train.yield %d
          }
    // becomes, with schedule=1f1b
    module {
      module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
        func.func @train_step(%x: tensor<4x4xf32>) {
          %0:2 = train.accumulate (%i = %x) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
            %y = tx.exp %i
            pipe.send %y over <0 to 1> : tensor<4xf32>
            train.yield %y ... saves %y
          } backward (%j, %y_saved) {
            %dy = pipe.recv over <1 to 0> : tensor<4xf32>
            %d = tx.mul %dy, %y_saved {train.backward}
            train.yield %d
          } {order = #train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>}
    ```
  }];
  let options = [Option<"schedule", "schedule", "std::string", "\"1f1b\"", "gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v or FILE.json">];
  let dependentDialects = ["::partita::pipe::PipeDialect", "::partita::train::TrainDialect"];
  let statistics = [Statistic<"scheduled", "scheduled", "loops that got an order">];
}

def NoteSchedulePass : Pass<"note-schedule", "::mlir::ModuleOp"> {
  let summary = "records the order of a stage's passes, and what each costs";
  let description = [{
    Phase: overlap.

    `partita explain` draws the schedule from this record: a lowered stage has neither the loop nor the ops whose costs add up to that of a
    pass. A cost is the ops' `analysis::workOf`: their FLOPs, or as many as fit into the time that memory takes; collectives and messages
    cost nothing. For the reductions that a pass starts in its last slot (`train.last`), their bytes are recorded, and the pass's work after
    their start. A program without stages is left alone.

    ```mlir
    module {
    module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
      func.func @train_step(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32>) ... {
        %0:2 = train.accumulate (%i = %x) : ... {
          %y = tx.matmul %i, %w : ...
          pipe.send %y over <0 to 1> : tensor<4x8xf32>
          ...
        } {order = #train.order<2 x (forward 0), 2 x (backward 0)>}
    // becomes
    module {
    module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64, train.costs = #train.costs<order = <2 x (forward 0), 2 x (backward 0)>, passes = [#train.pass_cost<pass = <forward>, cost = 6440>, #train.pass_cost<pass = <backward>, cost = 3840>]>} {
    ...
    ```
  }];
  let dependentDialects = ["::partita::pipe::PipeDialect"];
  let statistics = [Statistic<"noted", "noted", "loops whose order was noted">];
}

#endif // PARTITA_STAGES_PASSES
