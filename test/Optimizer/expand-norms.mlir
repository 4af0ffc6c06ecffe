// RUN: partita-opt %s --expand-norms | FileCheck %s
// RUN: partita-opt %s --zero-shard-states --canonicalize --expand-norms --cse | FileCheck %s --check-prefix=ZERO

// One sum of squares per value. What tp splits is added up over tp, what all ranks have is counted once.
// CHECK: %[[FULL:.*]] = train.square_sum %arg0 : (tensor<3x5xf32>) -> tensor<1xf64>
// CHECK: %[[SPLIT:.*]] = train.square_sum %arg1, %arg2 : (tensor<3x4xf32, #par.place<[3, 8 @tp]>>, tensor<4xf32, #par.place<[8 @tp]>>) -> tensor<2xf64, #par.place<[2], partial [tp]>>
// CHECK: %[[SUM:.*]] = par.all_reduce %[[SPLIT]] over "tp" because "norm of the gradients"
// CHECK: train.norm %[[FULL]], %[[SUM]] of [@w, @u, @c] :
// CHECK-NOT: global_norm

// A rank that updates a shard looks at that shard alone; what it does not update is its own.
// ZERO: train.square_sum %{{.*}} : (tensor<8xf32, #par.place<[3, 5], flat [dp]>>) -> tensor<1xf64, #par.place<[1], partial [dp]>>
// ZERO: par.all_reduce {{.*}} over "dp"
// ZERO: train.square_sum %{{.*}} : {{.*}} -> tensor<2xf64, #par.place<[2], partial [tp]>>
// ZERO: par.all_reduce {{.*}} over "tp"
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
  train.parameter @w : tensor<3x5xf32>
  train.parameter @u : tensor<3x8xf32>
  train.parameter @c : tensor<8xf32>
  train.state @w.m : tensor<3x5xf32> = 0.0 of @w "m"
  func.func @train_step(%a: tensor<3x5xf32>, %b: tensor<3x4xf32, #par.place<[3, 8 @tp]>>, %c: tensor<4xf32, #par.place<[8 @tp]>>) attributes {train.entry_point = #train.entry_point<train_step>, par.no_cotangents} {
    %rate = train.learning_rate : tensor<f32>
    %norm = train.global_norm %a, %b, %c of [@w, @u, @c] : (tensor<3x5xf32>, tensor<3x4xf32, #par.place<[3, 8 @tp]>>, tensor<4xf32, #par.place<[8 @tp]>>) -> tensor<f32>
    %scale = train.clip %norm {max_norm = 1.0} : (tensor<f32>) -> tensor<f32>
    %w = train.read @w : tensor<3x5xf32>
    %m = train.read @w.m : tensor<3x5xf32>
    %new, %newM = train.lion %w, %a, %m, %rate, %scale {beta1 = 0.9, beta2 = 0.99, decay = 0.0} : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x5xf32>, tensor<3x5xf32>)
    train.write @w, %new : tensor<3x5xf32>
    train.write @w.m, %newM : tensor<3x5xf32>
    return
  }
}
