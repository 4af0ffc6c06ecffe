//===- Passes.td - from runtime calls to EmitC ------------------------------------------------------===//

#ifndef PARTITA_EMIT_PASSES
#define PARTITA_EMIT_PASSES

include "mlir/Pass/PassBase.td"

def RtToEmitC : Pass<"rt-to-emitc", "::mlir::ModuleOp"> {
  let summary = "turns each op of the exit dialect into one EmitC op";
  let description = [{
    Phase: lower.

    A call becomes `emitc.call_opaque`, or `emitc.verbatim` where an argument is an aggregate; a kernel becomes
    an `emitc.func`. Names stay in locations. Parameters and states stay; the program's tables need them.

    ```mlir
    func.func @f() {
      %x = rt.arena 64 [2, 4] : !rt.buffer<f32>
      rt.softmax_forward %x, %x {rows = 2, width = 4}
      rt.count_labels %x, %ids {n = 2, ignore = -100}
    // becomes
    emitc.func @f(%rank: !emitc.opaque<"Rank &">) ... {
      %x = call_opaque "rank.at"() {args = [64], rt.comment = "[2, 4]"} : () -> !emitc.ptr<!emitc.opaque<"float">>
      call_opaque "softmaxForward"(%x, %x) {args = [0, 1, #emitc.opaque<"2">, #emitc.opaque<"4">]}
      verbatim "*{} = float(countLabels({}, 2, -100));" args %x, %ids
    ```
  }];
  let statistics = [Statistic<"functions", "functions", "functions and layers in C++">];
  let dependentDialects = ["::mlir::emitc::EmitCDialect"];
}

#endif // PARTITA_EMIT_PASSES
