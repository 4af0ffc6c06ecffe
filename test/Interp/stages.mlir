// Two stages of two ranks, two micro-batches: x -> 2x on the first, +1 and back on the second; 1F1B, which finishes with blocking sends, too.
// RUN: partita-interp %s --entry f | FileCheck %s
// RUN: partita-interp %s --entry f --blocking-sends | FileCheck %s
// RUN: partita-interp %s --entry f --times 3 | FileCheck %s

// CHECK: stage 0, result 0: 4 = [3, 3, 3, 3]
// CHECK-NEXT: stage 0, result 1: 4 = [5, 5, 5, 5]
// CHECK-NEXT: stage 1, result 0: = 20

!t = tensor<2xf32, #par.place<[4 @dp]>>

module attributes {pipe.stage = 0, par.mesh = #par.mesh<dp = 2>} {
  func.func @f() -> (!t, !t) {
    %one = tx.constant dense<1.0> : tensor<2xf32> : !t
    %two = tx.add %one, %one : (!t, !t) -> !t
    %four = tx.add %two, %two : (!t, !t) -> !t
    pipe.send %two over <0 to 1> : !t
    pipe.send %four over <0 to 1> : !t
    %a = pipe.recv over <1 to 0> : !t
    %b = pipe.recv over <1 to 0> : !t
    return %a, %b : !t, !t
  }
}

module attributes {pipe.stage = 1, par.mesh = #par.mesh<dp = 2>} {
  func.func @f() -> tensor<f32> attributes {par.no_cotangents} {
    %one = tx.constant dense<1.0> : tensor<2xf32> : !t
    %x = pipe.recv over <0 to 1> : !t
    %x1 = tx.add %x, %one : (!t, !t) -> !t
    %y = pipe.recv over <0 to 1> : !t
    %y1 = tx.add %y, %one : (!t, !t) -> !t
    pipe.send %x1 over <1 to 0> : !t
    pipe.send %y1 over <1 to 0> : !t
    %s = tx.reduce_sum %y1 [0] : !t -> tensor<f32, #par.place<[], partial [dp]>>
    %sum = par.g %s over "dp" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
    return %sum : tensor<f32>
  }
}
