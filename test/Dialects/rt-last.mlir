// RUN: partita-opt %s -split-input-file -verify-diagnostics | partita-opt -split-input-file | FileCheck %s

// A pass begins a collective for its last micro-batch alone; its caller waits for its variable.
// CHECK-LABEL: func.func @pass(%arg0: i64) attributes {rt.pass_of, rt.pendings = #rt.pendings<"begun" x 1>}
// CHECK-NEXT: %[[B:.*]] = rt.arena 0 [4] : <f32>
// CHECK-NEXT: rt.all_reduce "begun[0]" %[[B]] {{.*}} {rt.last = 3 : i64}
// CHECK-NEXT: return
func.func @pass(%micro: i64) attributes {rt.pass_of, rt.pendings = #rt.pendings<"begun" x 1>} {
  %b = rt.arena 0 [4] : <f32>
  rt.all_reduce "begun[0]" %b [4] over "dp" because "gradients" {rt.last = 3 : i64} : !rt.buffer<f32>
  return
}
// CHECK-LABEL: func.func @step()
// CHECK-NEXT: rt.pendings <"begun" x 1>
// CHECK-NEXT: rt.run_pass @pass 3 pending <"begun" x 1>
// CHECK-NEXT: rt.wait "begun[0]"
func.func @step() {
  rt.pendings <"begun" x 1>
  rt.run_pass @pass 3 pending <"begun" x 1>
  rt.wait "begun[0]"
  return
}

// -----

func.func @pass(%micro: i64) attributes {rt.pass_of} {
  // expected-error @+1 {{rt.last is "3", and not a micro-batch's number}}
  rt.wait "a" {rt.last = "3"}
  return
}

// -----

func.func @pass(%micro: i64) attributes {rt.pass_of} {
  // expected-error @+1 {{rt.last is -1 : i64, and not a micro-batch's number}}
  rt.wait "a" {rt.last = -1 : i64}
  return
}

// -----

func.func @pass(%micro: i64) attributes {rt.pass_of} {
  // expected-error @+1 {{rt.last is for calls of the runtime without results}}
  %b = rt.arena 0 [4] {rt.last = 3 : i64} : <f32>
  return
}

// -----

func.func @step(%not_of_a_micro_batch: i64) {
  // expected-error @+1 {{rt.last is for passes of a micro-batch and for layers}}
  rt.wait "a" {rt.last = 3 : i64}
  return
}

// -----

// expected-error @+1 {{'a b' x 1 is no array of variables}}
func.func @pass(%micro: i64) attributes {rt.pendings = #rt.pendings<"a b" x 1>} {
  return
}

// -----

// expected-error @+1 {{rt.pass_of is "train_step", expected a #train.entry_point or a unit}}
func.func @pass(%micro: i64) attributes {rt.pass_of = "train_step"} {
  return
}

// -----

// expected-error @+1 {{rt.pass_of is for functions of a micro-batch's number, an i64}}
func.func @pass() attributes {rt.pass_of} {
  return
}

// -----

// expected-error @+1 {{rt.pass_of is for functions of a micro-batch's number, an i64}}
func.func @pass(%micro: i64, %more: i64) attributes {rt.pass_of = #train.entry_point<train_step>} {
  return
}
