// RUN: partita-opt %s --optimize="kind=onebit-adam freeze-step=10" --compress-momenta | FileCheck %s

// Sums over other axes come first, wherever the one over dp is among them.
!p = tensor<4x5xf32, #par.place<[4, 5], partial [dp, cp, tp]>>
module attributes {par.mesh = #par.mesh<dp = 2, cp = 2, tp = 2>} {
train.parameter @a : tensor<4x5xf32>
train.parameter @b : tensor<4x5xf32>

// CHECK-LABEL: func.func @train_step
// CHECK: %[[A:.*]] = par.all_reduce %arg0 over "cp" because "gradient" {{.*}} -> tensor<4x5xf32, #par.place<[4, 5], partial [dp, tp]>>
// CHECK: %[[B:.*]] = par.all_reduce %[[A]] over "tp" because "gradient" {{.*}} -> tensor<4x5xf32, #par.place<[4, 5], partial [dp]>>
// CHECK: %[[C:.*]] = par.all_reduce %arg1 over "tp" because "gradient" {{.*}} -> tensor<4x5xf32, #par.place<[4, 5], partial [dp, cp]>>
// CHECK: %[[D:.*]] = par.all_reduce %[[C]] over "cp" because "gradient" {{.*}} -> tensor<4x5xf32, #par.place<[4, 5], partial [dp]>>
// CHECK: par.one_bit_term %[[B]],
// CHECK: par.one_bit_term %[[D]],
// CHECK-NOT: par.all_reduce
// CHECK: par.one_bit_all_reduce
// CHECK-NOT: par.all_reduce
func.func @train_step(%ga: !p, %gb: !p) attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>} {
  %a = train.read @a : tensor<4x5xf32>
  %b = train.read @b : tensor<4x5xf32>
  %0 = par.all_reduce %ga over "dp" because "gradient" : !p -> tensor<4x5xf32, #par.place<[4, 5], partial [cp, tp]>>
  %1 = par.all_reduce %0 over "cp" because "gradient" : tensor<4x5xf32, #par.place<[4, 5], partial [cp, tp]>> -> tensor<4x5xf32, #par.place<[4, 5], partial [tp]>>
  %2 = par.all_reduce %1 over "tp" because "gradient" : tensor<4x5xf32, #par.place<[4, 5], partial [tp]>> -> tensor<4x5xf32>
  %3 = par.all_reduce %gb over "tp" because "gradient" : !p -> tensor<4x5xf32, #par.place<[4, 5], partial [dp, cp]>>
  %4 = par.all_reduce %3 over "dp" because "gradient" : tensor<4x5xf32, #par.place<[4, 5], partial [dp, cp]>> -> tensor<4x5xf32, #par.place<[4, 5], partial [cp]>>
  %5 = par.all_reduce %4 over "cp" because "gradient" : tensor<4x5xf32, #par.place<[4, 5], partial [cp]>> -> tensor<4x5xf32>
  train.update @a, %a by %2 : tensor<4x5xf32>, tensor<4x5xf32>
  train.update @b, %b by %5 : tensor<4x5xf32>, tensor<4x5xf32>
  return
}
}
