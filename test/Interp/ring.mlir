// A ring on two ranks as one op and in its steps: in mirrored order, where rank 0 has positions 0 and 3; and what queries get whose keys are all hidden.
// RUN: echo 1 2 3 4 > %t.txt
// RUN: partita-interp %s --entry mirrored --inputs %t.txt | FileCheck %s --check-prefix=MIRRORED
// RUN: partita-opt %s --expand-ring -o %t.steps.mlir && partita-interp %t.steps.mlir --entry mirrored --inputs %t.txt | FileCheck %s --check-prefix=MIRRORED
// RUN: partita-interp %s --entry hidden | FileCheck %s --check-prefix=HIDDEN
// RUN: partita-interp %s --entry zero | FileCheck %s --check-prefix=ZERO

!x = tensor<1x2x1x1xf32, #par.place<[1, 2 x 2 @cp mirrored, 1, 1]>>
!l = tensor<1x1x2xf32, #par.place<[1, 1, 2 x 2 @cp mirrored]>>
!s = tensor<1x1x1x1xf32, #par.place<[1, 2 @cp, 1, 1]>>
!t = tensor<1x1x1xf32, #par.place<[1, 1, 2 @cp]>>
!i = tensor<1xi64, #par.place<[2 @cp]>>
module attributes {par.mesh = #par.mesh<cp = 2>} {

// Queries of zeros see all keys up to their own alike. Gradients of a sum: a key is one of i + 1 of query i.
// MIRRORED: result 0: 1x4x1x1 = {{\[+}}1]], {{\[+}}1.5]], {{\[+}}2]], {{\[+}}2.5]]
// MIRRORED-NEXT: result 1: 1x4x1x1 = {{\[+}}2.08333]], {{\[+}}1.08333]], {{\[+}}0.583333]], {{\[+}}0.25]]
func.func @mirrored(%v: !x) -> (!x, !x) attributes {par.no_cotangents} {
  %q = tx.constant dense<0.0> : tensor<1x2x1x1xf32> : !x
  %ones = tx.constant dense<1.0> : tensor<1x2x1x1xf32> : !x
  %out, %lse = tx.attention %q, %q, %v scale 1.0 causal ring "cp" : (!x, !x, !x) -> (!x, !l)
  %dq, %dk, %dv = tx.attention_grad %q, %q, %v, %out, %lse, %ones scale 1.0 causal ring "cp" : (!x, !x, !x, !x, !l, !x) -> (!x, !x, !x)
  return %out, %dv : !x, !x
}

// A bias of -inf hides every key of a step: the softmax of no score, unless a later step may have one.
// HIDDEN: result 0: 1x2x1x1 = {{\[+}}nan]], {{\[+}}nan]]
// HIDDEN-NEXT: result 1: 1x1x2 = {{\[+}}nan, nan]]
func.func @hidden() -> (!s, !t) attributes {par.no_cotangents} {
  %q = tx.constant dense<1.0> : tensor<1x1x1x1xf32> : !s
  %bias = tx.constant dense<0xFF800000> : tensor<1x1x1x2xf32> : tensor<1x1x1x2xf32>
  %f = par.first_index of 2 : !i
  %out, %lse = tx.attention_step %q, %q, %q bias %bias at %f, %f scale 1.0 ring "cp" : (!s, !s, !s, tensor<1x1x1x2xf32>, !i, !i) -> (!s, !t)
  return %out, %lse : !s, !t
}
// ZERO: result 0: 1x2x1x1 = {{\[+}}0]], {{\[+}}0]]
// ZERO-NEXT: result 1: 1x1x2 = {{\[+}}-inf, -inf]]
func.func @zero() -> (!s, !t) attributes {par.no_cotangents} {
  %q = tx.constant dense<1.0> : tensor<1x1x1x1xf32> : !s
  %bias = tx.constant dense<0xFF800000> : tensor<1x1x1x2xf32> : tensor<1x1x1x2xf32>
  %f = par.first_index of 2 : !i
  %out, %lse = tx.attention_step %q, %q, %q bias %bias at %f, %f scale 1.0 zero_hidden ring "cp" : (!s, !s, !s, tensor<1x1x1x2xf32>, !i, !i) -> (!s, !t)
  return %out, %lse : !s, !t
}
}
