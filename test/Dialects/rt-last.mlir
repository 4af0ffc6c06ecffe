// RUN: partita-opt %s | partita-opt | FileCheck %s

// A pass begins a collective in its last run, for whose variable its caller waits.
// CHECK-LABEL: func.func @pass(%arg0: i64) attributes {rt.pendings = ["pending"]}
// CHECK-NEXT: rt.last %arg0 is 3 {
// CHECK-NEXT: %[[B:.*]] = rt.arena 0 [4] : <f32>
// CHECK-NEXT: rt.all_reduce "pending" %[[B]]
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @pass(%micro: i64) attributes {rt.pendings = ["pending"]} {
  rt.last %micro is 3 {
    %b = rt.arena 0 [4] : <f32>
    rt.all_reduce "pending" %b [4] over "dp" 0 because "gradients" : !rt.buffer<f32>
  }
  return
}
// CHECK-LABEL: func.func @step()
// CHECK-NEXT: rt.pending "pending"
// CHECK-NEXT: rt.run_pass @pass 3 pending ["pending"]
// CHECK-NEXT: rt.wait "pending"
func.func @step() {
  rt.pending "pending"
  rt.run_pass @pass 3 pending ["pending"]
  rt.wait "pending"
  return
}
