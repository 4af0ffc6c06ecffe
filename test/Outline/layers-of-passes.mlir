// RUN: partita-opt %s --outline-layers --mlir-print-local-scope --mlir-print-debuginfo | FileCheck %s

// What a pass does for its last micro-batch alone is a step of a layer like any other. The variables that its caller waits for are handed to the
// layer's function, although nothing in the pass waits for them, and neither the pass nor the caller declares them again.
// CHECK-LABEL: rt.layer @h_backward of ["h.2", "h.1", "h.0"]
// CHECK-SAME: pending ["started"] copies []
// CHECK: rt.all_reduce "started" {{.*}}rt.last = 3 : i64
// CHECK-LABEL: func.func @train_step_backward
// CHECK-NEXT: rt.work backward
// CHECK-NEXT: rt.call @h_backward 0 times 1 pending ["begun[0]"] copies []
// CHECK-NEXT: rt.call @h_backward 1 times 1 pending ["begun[1]"] copies []
// CHECK-NEXT: rt.call @h_backward 2 times 1 pending ["begun[2]"] copies []
// CHECK-NEXT: return
func.func @train_step_backward(%micro: i64) attributes {rt.pass_of = #train.entry_point<train_step>, rt.pendings = #rt.pendings<"begun" x 3>} {
  rt.work backward
  %y2 = rt.arena 0 [4, 4] : <f32> loc("h_2_mlp")
  rt.softmax_forward %y2, %y2 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y2, %y2 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y2, %y2 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y2, %y2 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y2, %y2 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y2, %y2 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y2, %y2 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y2, %y2 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.all_reduce "begun[0]" %y2 [16] over "dp" because "gradients" {rt.last = 3 : i64} : !rt.buffer<f32>
  %y1 = rt.arena 64 [4, 4] : <f32> loc("h_1_mlp")
  rt.softmax_forward %y1, %y1 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y1, %y1 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y1, %y1 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y1, %y1 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y1, %y1 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y1, %y1 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y1, %y1 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y1, %y1 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.all_reduce "begun[1]" %y1 [16] over "dp" because "gradients" {rt.last = 3 : i64} : !rt.buffer<f32>
  %y0 = rt.arena 128 [4, 4] : <f32> loc("h_0_mlp")
  rt.softmax_forward %y0, %y0 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y0, %y0 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y0, %y0 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y0, %y0 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y0, %y0 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y0, %y0 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y0, %y0 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %y0, %y0 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.all_reduce "begun[2]" %y0 [16] over "dp" because "gradients" {rt.last = 3 : i64} : !rt.buffer<f32>
  return
}
// CHECK-LABEL: rt.layer @h_forward of ["h.2", "h.1", "h.0"]
// CHECK-SAME: pending ["awaited"] copies []
// CHECK-LABEL: func.func @train_step()
// CHECK-NEXT: rt.pendings <"begun" x 3>
// CHECK-NEXT: rt.run_pass @train_step_backward 3 pending <"begun" x 3>
// CHECK-NEXT: rt.call @h_forward 0 times 1 pending ["begun[0]"] copies []
// CHECK-NEXT: rt.call @h_forward 1 times 1 pending ["begun[1]"] copies []
// CHECK-NEXT: rt.call @h_forward 2 times 1 pending ["begun[2]"] copies []
// CHECK-NEXT: return
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  rt.pendings <"begun" x 3>
  rt.run_pass @train_step_backward 3 pending <"begun" x 3>
  rt.wait "begun[0]"
  %z2 = rt.arena 0 [4, 4] : <f32> loc("h_2_mlp")
  rt.softmax_forward %z2, %z2 {rows = 5 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 6 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 7 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 8 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 9 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 10 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 11 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 12 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 13 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 14 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 15 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z2, %z2 {rows = 16 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.wait "begun[1]"
  %z1 = rt.arena 64 [4, 4] : <f32> loc("h_1_mlp")
  rt.softmax_forward %z1, %z1 {rows = 5 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 6 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 7 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 8 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 9 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 10 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 11 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 12 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 13 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 14 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 15 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z1, %z1 {rows = 16 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.wait "begun[2]"
  %z0 = rt.arena 128 [4, 4] : <f32> loc("h_0_mlp")
  rt.softmax_forward %z0, %z0 {rows = 5 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 6 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 7 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 8 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 9 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 10 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 11 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 12 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 13 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 14 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 15 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.softmax_forward %z0, %z0 {rows = 16 : i64, width = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  return
}
