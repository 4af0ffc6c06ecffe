// RUN: partita-opt %s --zero-shard-states | FileCheck %s --check-prefixes=CHECK,RAW
// RUN: partita-opt %s --zero-shard-states --canonicalize | FileCheck %s --check-prefixes=CHECK,DONE
// RUN: partita-opt %s --zero-shard-states=stage=0 | FileCheck %s --check-prefix=ZERO

// Sizes that do not divide are padded; what tp splits is cut again.
// CHECK-LABEL: func @train_step
// CHECK: train.read @w.m : tensor<8xf32, #par.place<[3, 5], flat [dp]>>
// RAW: par.all_reduce
// RAW: %[[SHARD:.*]] = zero.shard %{{.*}} over "dp" : tensor<3x5xf32> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>
// RAW: %[[GRAD:.*]] = zero.shard
// DONE-NOT: all_reduce
// DONE-DAG: %[[SHARD:.*]] = zero.shard %{{.*}} over "dp" : tensor<3x5xf32> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>
// DONE-DAG: %[[GRAD:.*]] = zero.reduce_scatter %{{.*}} over "dp" because "gradient" : tensor<3x5xf32, #par.place<[3, 5], partial [dp]>> -> tensor<8xf32, #par.place<[3, 5], flat [dp]>>
// CHECK: %[[NEW:.*]], %{{.*}} = train.adamw %[[SHARD]], %[[GRAD]], {{.*}} -> (tensor<8xf32, #par.place<[3, 5], flat [dp]>>,
// CHECK: %[[FULL:.*]] = zero.gather %[[NEW]] over "dp" because "updated parameter" : tensor<8xf32, #par.place<[3, 5], flat [dp]>> -> tensor<3x5xf32>
// CHECK: train.write @w, %[[FULL]] : tensor<3x5xf32>
// The sum over tp is of shards then.
// DONE: %[[PARTIAL:.*]] = zero.reduce_scatter %{{.*}} over "dp" {{.*}} -> tensor<6xf32, #par.place<[3, 8 @tp], flat [dp]>>
// CHECK: zero.gather {{.*}} -> tensor<3x4xf32, #par.place<[3, 8 @tp]>>
// CHECK-LABEL: func @init
// CHECK: train.initial_value @w.m : tensor<8xf32, #par.place<[3, 5], flat [dp]>>
// CHECK: train.initial_value @half.m : tensor<6xf32, #par.place<[3, 8 @tp], flat [dp]>>
// ZERO-NOT: flat
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
  train.parameter @w : tensor<3x5xf32>
  train.state @w.m : tensor<3x5xf32> = 0.0 of @w "m"
  train.state @w.v : tensor<3x5xf32> = 0.0 of @w "v"
  train.parameter @half : tensor<3x8xf32>
  train.state @half.m : tensor<3x8xf32> = 0.0 of @half "m"
  train.state @half.v : tensor<3x8xf32> = 0.0 of @half "v"
  func.func @train_step(%dw: tensor<3x5xf32, #par.place<[3, 5], partial [dp]>>, %dh: tensor<3x4xf32, #par.place<[3, 8 @tp], partial [dp]>>) attributes {train.entry_point = #train.entry_point<train_step>, par.no_cotangents} {
    %rate = train.learning_rate : tensor<f32>
    %step = train.step_number : tensor<f32>
    %w = train.read @w : tensor<3x5xf32>
    %m = train.read @w.m : tensor<3x5xf32>
    %v = train.read @w.v : tensor<3x5xf32>
    %half = train.read @half : tensor<3x4xf32, #par.place<[3, 8 @tp]>>
    %om = train.read @half.m : tensor<3x4xf32, #par.place<[3, 8 @tp]>>
    %ov = train.read @half.v : tensor<3x4xf32, #par.place<[3, 8 @tp]>>
    %g = par.all_reduce %dw over "dp" because "gradient" : tensor<3x5xf32, #par.place<[3, 5], partial [dp]>> -> tensor<3x5xf32>
    %new, %newM, %newV = train.adamw %w, %g, %m, %v, %rate, %step {beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, decay = 0.0} : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
    train.write @w, %new : tensor<3x5xf32>
    train.write @w.m, %newM : tensor<3x5xf32>
    train.write @w.v, %newV : tensor<3x5xf32>
    %og = par.all_reduce %dh over "dp" because "gradient" : tensor<3x4xf32, #par.place<[3, 8 @tp], partial [dp]>> -> tensor<3x4xf32, #par.place<[3, 8 @tp]>>
    %onew, %onewM, %onewV = train.adamw %half, %og, %om, %ov, %rate, %step {beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, decay = 0.0} : (tensor<3x4xf32, #par.place<[3, 8 @tp]>>, tensor<3x4xf32, #par.place<[3, 8 @tp]>>, tensor<3x4xf32, #par.place<[3, 8 @tp]>>, tensor<3x4xf32, #par.place<[3, 8 @tp]>>, tensor<f32>, tensor<f32>) -> (tensor<3x4xf32, #par.place<[3, 8 @tp]>>, tensor<3x4xf32, #par.place<[3, 8 @tp]>>, tensor<3x4xf32, #par.place<[3, 8 @tp]>>)
    train.write @half, %onew : tensor<3x4xf32, #par.place<[3, 8 @tp]>>
    train.write @half.m, %onewM : tensor<3x4xf32, #par.place<[3, 8 @tp]>>
    train.write @half.v, %onewV : tensor<3x4xf32, #par.place<[3, 8 @tp]>>
    return
  }
  func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
    %m = train.initial_value @w.m : tensor<3x5xf32>
    train.write @w.m, %m : tensor<3x5xf32>
    %o = train.initial_value @half.m : tensor<3x4xf32, #par.place<[3, 8 @tp]>>
    train.write @half.m, %o : tensor<3x4xf32, #par.place<[3, 8 @tp]>>
    return
  }
}
