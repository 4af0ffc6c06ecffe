//===- Passes.td - lower phase, in running order ----------------------------------------------===//

#ifndef PARTITA_LOWER_PASSES
#define PARTITA_LOWER_PASSES

include "mlir/Pass/PassBase.td"

def LowerToRt : Pass<"lower-to-rt", "::mlir::ModuleOp"> {
  let summary = "tensors to buffers, ops to calls of the runtime";
  let description = [{
    Every tensor op becomes the call that its model (KernelInterface) says, on pointers to the places
    that `plan-memory` gave. Collects what the program's tables need (inputs, outputs, census,
    hyperparameters) as the module's `rt.program`.

    Before:

        %0 = tx.matmul %x, %w {rt.buffers = [#rt.at<arena 64>]} : ...

    After:

        %h = rt.arena 64 [4, 8] : !rt.buffer<f32>
        rt.gemm %h, %x, %w {m = 4, ...} : ...
  }];
  let options = [
    Option<"learningRate", "learning-rate", "double", "0.001", "the program's rate unless a run sets another">,
  ];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::rt::RtDialect"];
}

def RtToEmitC : Pass<"rt-to-emitc", "::mlir::ModuleOp"> {
  let summary = "the exit dialect to EmitC, one op to one";
  let description = [{
    A call becomes `emitc.call_opaque`, or `emitc.verbatim` where an argument is an aggregate; a kernel
    becomes an `emitc.func`. Names stay in locations. Parameters and states stay for the tables.

    Before:

        rt.softmax_forward %y, %x {rows = 4, width = 8} : ...

    After:

        emitc.call_opaque "softmaxForward"(%y, %x) {args = [0 : index, 1 : index, 4, 8]} : ...
  }];
  let dependentDialects = ["::mlir::emitc::EmitCDialect"];
}

#endif // PARTITA_LOWER_PASSES
