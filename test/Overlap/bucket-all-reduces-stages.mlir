// That no two sums of a stage can join is recorded: those of another stage may. Nothing is recorded where some can, or without the option.
// RUN: partita-opt %s --pass-pipeline='builtin.module(builtin.module(bucket-all-reduces{bytes=32}))' | FileCheck %s
// RUN: partita-opt %s --pass-pipeline='builtin.module(builtin.module(bucket-all-reduces))' | FileCheck %s --check-prefix=NONE --implicit-check-not=pipe.idle
// NONE: pipe.stage = 1

!p = tensor<4xf32, #par.place<[4], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0} {
// CHECK: module attributes {{.*}}pipe.idle = {"bucket-bytes" = "no two gradients could be reduced together"}{{.*}}pipe.stage = 0
module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0, pipe.stage = 0, pipe.count = 2} {
func.func @one(%a: !p) -> tensor<4xf32> attributes {par.no_cotangents} {
  %0 = par.all_reduce %a over "dp" : !p -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}
// CHECK-NOT: pipe.idle
// CHECK: pipe.stage = 1
module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0, pipe.stage = 1, pipe.count = 2} {
func.func @two(%a: !p, %b: !p) -> (tensor<4xf32>, tensor<4xf32>) attributes {par.no_cotangents} {
  %0 = par.all_reduce %a over "dp" : !p -> tensor<4xf32>
  %1 = par.all_reduce %b over "dp" : !p -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
}
}
