// RUN: partita-opt %s --split-input-file --verify-diagnostics

// A layer's table and those who use it agree.
// expected-error@+1 {{'rt.layer' op column 'x' has 1 values for 2 rows}}
rt.layer @f of ["h.0", "h.1"] columns ["x"] [array<i64: 0>] pending [] copies [] {
}

// -----

// expected-error@+1 {{'rt.layer' op has two columns 'x'}}
rt.layer @f of ["h.0"] columns ["x", "x"] [array<i64: 0>, array<i64: 1>] pending [] copies [] {
}

// -----

// expected-error@+1 {{'rt.layer' op has 1 columns, values of 0}}
rt.layer @f of ["h.0"] columns ["x"] [] pending [] copies [] {
}

// -----

// expected-error@+1 {{'rt.layer' op column 'x' has neither numbers nor strings}}
rt.layer @f of ["h.0"] columns ["x"] [2 : i64] pending [] copies [] {
}

// -----

// expected-error@+1 {{'rt.layer' op takes buffers, not 'i64'}}
rt.layer @f of ["h.0"] columns [] [] pending [] copies [] {
^bb0(%n: i64):
}

// -----

rt.layer @f of ["h.0"] columns ["x"] [array<i64: 0>] pending [] copies [] {
  // expected-error@+1 {{'rt.arena' op reads column 'y', which the table of @f does not have}}
  %0 = rt.arena 0 [2] {rt.columns = {offset = #rt.column<"y">}} : !rt.buffer<f32>
}

// -----

rt.layer @f of ["h.0"] columns ["x"] [array<i64: 0>] pending [] copies [] {
  // expected-error@+1 {{'rt.arena' op 'shape' cannot be a column}}
  %0 = rt.arena 0 [2] {rt.columns = {shape = #rt.column<"x">}} : !rt.buffer<f32>
}

// -----

rt.layer @f of ["h.0"] columns ["x"] [["a"]] pending [] copies [] {
  // expected-error@+1 {{'rt.arena' op 'offset' and column 'x' are of different types}}
  %0 = rt.arena 0 [2] {rt.columns = {offset = #rt.column<"x">}} : !rt.buffer<f32>
}

// -----

rt.layer @f of ["h.0"] columns ["x"] [["a"]] pending [] copies [] {
  // expected-error@+1 {{'rt.wait' op has no attribute that could be a column}}
  rt.wait "p" {rt.columns = {pending = #rt.column<"x">}}
}

// -----

func.func @g() {
  // expected-error@+1 {{'rt.call' op calls @g, which is no layer's function}}
  rt.call @g 0 times 1 pending [] copies []
  return
}

// -----

rt.layer @f of ["h.0", "h.1"] columns [] [] pending ["p"] copies [] {
}
func.func @g() {
  // expected-error@+1 {{'rt.call' op takes 2 rows from 1 on of the 2 of @f}}
  rt.call @f 1 times 2 pending ["p"] copies []
  return
}

// -----

rt.layer @f of ["h.0", "h.1"] columns [] [] pending ["p"] copies [] {
}
func.func @g() {
  // expected-error@+1 {{'rt.call' op names 0 collectives and 0 copies, @f has 1 and 0}}
  rt.call @f 0 times 1 pending [] copies []
  return
}

// -----

rt.layer @f of ["h.0", "h.1"] columns [] [] pending [] copies [] {
^bb0(%x: !rt.buffer<f32>):
}
func.func @g() {
  // expected-error@+1 {{'rt.call' op gives other buffers than @f takes}}
  rt.call @f 0 times 1 pending [] copies []
  return
}
