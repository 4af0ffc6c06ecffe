//===- Passes.td - pipeline stages: what runs where ------------------------------------------------===//

#ifndef PARTITA_STAGES_PASSES
#define PARTITA_STAGES_PASSES

include "mlir/Pass/PassBase.td"

def ChooseSchedulePass : Pass<"choose-schedule", "::mlir::ModuleOp"> {
  let summary = "decides how many stages and chunks a program has, and in which order each stage will run its passes";
  let description = [{
    Phase: stages.

    The schedule is a table of all stages (`partita/Stages/Schedule.h`), by name or from a user's file. It says how chunks of layers map to
    stages (`dialects/Pipe/Positions.h`), which `pipe-place` needs, and whether weights have slots of their own, which `split-backward`
    needs; `schedule-stages` gives each stage its order. The table is checked here: it must finish even if a send completes only once its
    receive has begun, and messages must arrive in the order in which they are sent.

    `schedule` is gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v, or a JSON file; `chunks` is per stage. A program without a training step
    (inference) gets the layout alone, a program of one stage nothing.

    ```mlir
    func.func @train_step(%xs: tensor<4x2x4xf32>) ... {
      %loss = train.accumulate (%x = %xs) : (tensor<4x2x4xf32>) -> tensor<f32> {
      ...
    // becomes, with stages=2 schedule=gpipe
    module attributes {pipe.stages = 2 : i64, train.schedule = #train.schedule<name = "gpipe", orders = [#train.order<4 x (forward 0), 4 x (backward 0)>, #train.order<4 x (forward 0), 4 x (backward 0)>]>} {
      func.func @train_step(%xs: tensor<4x2x4xf32>) ... {
        %loss = train.accumulate (%x = %xs) : (tensor<4x2x4xf32>) -> tensor<f32> {
        ...
    ```
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "1", "number of stages; 1: the program stays as it is">,
    Option<"chunks", "chunks", "int64_t", "0", "chunks per stage; 0: the schedule's default">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v or FILE.json">,
  ];
  let dependentDialects = ["::partita::pipe::PipeDialect", "::partita::train::TrainDialect"];
  let statistics = [Statistic<"slots", "slots", "passes of micro-batches, of all stages">];
}

def PipePlacePass : Pass<"pipe-place", "::mlir::ModuleOp"> {
  let summary = "assigns layers to pipeline stages, and moves the values that later stages need";
  let description = [{
    Phase: stages.

    The program stays one program of all stages until `pipe-cut`, so that the passes before it see all of it. The first stage
    also computes the ops before the first layer, the last one those after the last layer. An activation moves from stage to
    stage once, as far as it is needed. Values that depend on parameters alone are computed on each stage that needs them: the
    parameter is then shared, and its gradient is a sum over its stages. Values that depend on neither (masks, tables of angles)
    are computed wherever they are needed.

    `assign` is the policy: `uniform` gives each stage the same number of layers, or one more where they do not
    divide; `parameters` and `auto` make the largest stage as small as possible, in elements of parameters and in
    the costs that `note-costs` has recorded, or with several chunks per stage the step as short, by these costs; `cuts:4,8` names the first layer of each stage but the first.

    A stage has one or several chunks of layers, and all of this applies to chunks: each has a position in the model, and the layout
    from `choose-schedule` maps positions to stages (`dialects/Pipe/Positions.h`). A value that an earlier chunk of the same stage has is
    taken from there.

    ```mlir
    %1 = tx.add %s, %0                       // of layer 0
    %2 = tx.matmul %1, %w1                   // of layer 1
    // becomes, in a program of two stages
    %1 = tx.add %s, %0
    %2 = pipe.move %1 over <0 to 1> ... : tensor<2x4xf32>
    %3 = tx.matmul %2, %w1
    ```
  }];
  let options = [
    Option<"axis", "axis", "int64_t", "0", "number of mesh axes before that of the stages">,
    Option<"assign", "assign", "std::string", "\"auto\"", "auto, uniform, parameters, or cuts:LAYER,...">,
  ];
  let dependentDialects = ["::partita::pipe::PipeDialect", "::partita::train::TrainDialect"];
  let statistics = [Statistic<"moves", "moves", "values moved to the next stage">,
                    Statistic<"shared", "shared", "parameters on several stages">];
}

def PipePassBackPass : Pass<"pipe-pass-back", "::mlir::ModuleOp"> {
  let summary = "sends the loss back with the cotangents, for schedules whose stages need not wait for each other";
  let description = [{
    Phase: cut.

    The last stage has the loss, and every rank reports it. A sum over stages after the loop (`pipe-report`) would make all stages wait for
    the last one, which zb-h2 and zb-v are made to avoid: there each stage begins its next step as soon as it has ended this one. So the
    loss of each micro-batch goes back from stage to stage beside the cotangent, and each stage adds it up for itself, in the same order.
    That costs a message of a scalar per micro-batch and boundary.

    Other schedules are left alone, since waiting costs them nothing, and so is a step that awaits another sum over stages anyway (of
    clipping, loss scaling, a shared parameter). A parameter that two chunks of one stage share, as a tied table in zb-v, is summed there.

    ```mlir
    module attributes {pipe.stages = 2, train.schedule = ...} {
      func.func @train_step(%xs: tensor<4xf32>, %scale: tensor<f32>) ... {
        %sum, %da = train.accumulate (%x = %xs) : (tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
          %1 = pipe.move %0 over <0 to 1>
          %2 = tx.mul %1, %b
          train.yield %2 : tensor<f32> saves %1 : tensor<f32>
        } backward (%y, %saved) {
          ...
    // becomes
    module attributes {pipe.stages = 2 : i64, train.schedule = ...} {
      func.func @train_step(%xs: tensor<4xf32>, %scale: tensor<f32>) ... {
        %sums:3 = train.accumulate (%x = %xs) : (tensor<4xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
          %1 = pipe.move %0 over <0 to 1>
          %2 = tx.mul %1, %b
          train.yield %2 : tensor<f32> saves %1, %2 : tensor<f32>, tensor<f32>
        } backward (%y, %saved, %part) {
          %3 = pipe.move %part over <1 to 0, number 1>
          ...
        }
        %4 = pipe.copies %sums#0, %sums#2 on [1, 0]
        ...
    ```
  }];
  let dependentDialects = ["::partita::pipe::PipeDialect", "::partita::train::TrainDialect"];
  let statistics = [Statistic<"passed", "passed", "values that stages pass back">];
}

def PipeReportPass : Pass<"pipe-report", "::mlir::ModuleOp"> {
  let summary = "gives every stage the values that a step reports";
  let description = [{
    Phase: cut.

    The last stage has the loss, and each rank reports it. A result of @train_step or @eval_step that not all stages have is
    summed over them: one has the value, the others zero. The results of @forward stay where they are.

    ```mlir
    return %loss, %count
    // becomes, where the loss is on stage 1 of two
    %0 = pipe.sum %loss on [0, 1] because "values that a step reports" ... : tensor<f32>
    return %0, %count
    ```
  }];
  let dependentDialects = ["::partita::pipe::PipeDialect"];
  let statistics = [Statistic<"sums", "sums", "results summed over the stages">];
}

def PipeAgreePass : Pass<"pipe-agree", "::mlir::ModuleOp"> {
  let summary = "records the entries that must be the same in the tables of all stages";
  let description = [{
    Phase: cut.

    Stages are compiled side by side, and the program has one table of parameters. This pass decides the number of each
    parameter and state in it, the hyperparameters that a run may change, and the place in memory of a parameter or state that
    several stages hold. `plan-memory` puts those of a single stage after them.

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
    becomes a send and a receive. An op's stage follows from its operands: a parameter is on the stages of `pipe.on`, a moved
    value where it was moved to, and a value that depends on neither is everywhere. It is an error if a stage needs a value that
    it does not have, or if nothing completes a sum over stages.

    A loop with a backward pass has a forward and a backward region for each chunk of a stage; a value that goes from one chunk to
    another of the same stage is saved by the pass that computes it. The rest of a stage is one sequence, whatever its chunks.

    ```mlir
    module attributes {pipe.stages = 2} {
      train.parameter @a : tensor<4x4xf32> {pipe.on = array<i64: 0>}
      train.parameter @b : tensor<4x4xf32> {pipe.on = array<i64: 1>}
      func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
        %w0 = train.read @a : tensor<4x4xf32>
        %w1 = train.read @b : tensor<4x4xf32>
        %0 = tx.matmul %x, %w0
        %1 = pipe.move %0 over <0 to 1> : tensor<2x4xf32>
        %2 = tx.matmul %1, %w1
        return %2 : tensor<2x4xf32>
    // becomes
      module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
        train.parameter @a : tensor<4x4xf32>
        func.func @forward(%x: tensor<2x4xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
          %w0 = train.read @a : tensor<4x4xf32>
          %0 = tx.matmul %x, %w0
          pipe.send %0 over <0 to 1> : tensor<2x4xf32>
          return
      module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
        train.parameter @b : tensor<4x4xf32>
        func.func @forward(%y: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
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
  let summary = "moves the ops that no other stage waits for out of each backward pass, if the schedule has slots for them";
  let description = [{
    Phase: cut.

    Zero-bubble schedules compute the gradients of weights when a stage would otherwise wait. Ops move to a `weights` region,
    with their sums, unless a cotangent that the backward region sends, or a value that it saves for an earlier chunk, needs
    them. The backward region saves the values that the `weights` region needs; views, constants and values that are the same
    for all micro-batches (gathered parameters) are recomputed. A backward region that sends no cotangent, that of the
    model's first layers, gives up all its ops and only receives.

    A schedule (`choose-schedule`) without slots for weights leaves the loops alone.

    ```mlir
    module attributes {train.schedule = ...} {
      module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
        func.func @train_step(%x: tensor<4x2x3xf32>, %w: tensor<3x3xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
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
    // becomes
    module attributes {train.schedule = ...} {
      module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
        func.func @train_step(%x: tensor<4x2x3xf32>, %w: tensor<3x3xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
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
  let dependentDialects = ["::partita::pipe::PipeDialect", "::partita::train::TrainDialect"];
  let statistics = [Statistic<"split", "split", "loops whose backward passes were split">,
                    Statistic<"moved", "moved", "ops that no other stage waits for">];
}

def ScheduleStagesPass : Pass<"schedule-stages", "::mlir::ModuleOp"> {
  let summary = "gives each stage its order of the passes of micro-batches";
  let description = [{
    Phase: cut.

    Each stage's `train.accumulate` gets its own column of the table that `choose-schedule` has recorded. So the regions of both passes stay
    apart, and from here on stages need not know each other. A stage awaits the sends of a pass before it runs that pass again. The
    last stage's loop gets `pipe.may_join` if its two passes may become one, which awaits the sends of both.

    A loop without a backward pass (inference) and a program of one stage are left alone. If a schedule leaves no bubble only when each
    stage starts its next step at once, a warning names the sums (`pipe.sum`) that make stages wait for each other in between.

    ```mlir
    module attributes {train.schedule = #train.schedule<name = "1f1b", orders = ...} {
      module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
        func.func @train_step(%x: tensor<4x4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
          %0:2 = train.accumulate (%i = %x) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
            %y = tx.exp %i
            pipe.send %y over <0 to 1> : tensor<4xf32>
            train.yield %y ... saves %y
          } backward (%j, %y_saved) {
            %dy = pipe.recv over <1 to 0> : tensor<4xf32>
            %d = tx.mul %dy, %y_saved
            train.yield %d
          }
    // becomes
    module {
      module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
        func.func @train_step(%x: tensor<4x4xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
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
  let dependentDialects = ["::partita::pipe::PipeDialect", "::partita::train::TrainDialect"];
  let statistics = [Statistic<"scheduled", "scheduled", "loops that got an order">];
}

def NoteSchedulePass : Pass<"note-schedule", "::mlir::ModuleOp"> {
  let summary = "records the order of a stage's passes, and the cost of each";
  let description = [{
    Phase: overlap.

    `partita explain` draws the schedule from this record: a lowered stage has neither the loop nor the ops whose costs add up to that of a
    pass. A cost is the ops' `analysis::workOf`: their FLOPs, or as many as fit into the time that memory takes; collectives and messages
    cost nothing. The record also has the bytes of the reductions that a pass starts in its last slot (`train.last`), and the pass's work
    after their start. A program without stages is left alone.

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
