// Gradients reach their updates in 32 bits as far as they are added up in them; with reduce-type, ranks exchange 32 bits too.
// RUN: partita-opt %s --type-gradients=reduce-type=float32 | FileCheck %s --check-prefix=WIDE
// RUN: partita-opt %s --type-gradients | FileCheck %s
// RUN: not partita-opt %s --type-gradients=reduce-type=int8 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: reduce-type 'int8' is unknown; known: auto, float32, bfloat16, float16
module attributes {par.mesh = #par.mesh<dp = 2>} {
  train.parameter @w : tensor<4xbf16>
  train.state @w.master : tensor<4xf32> = 0.0 of @w "master"
  train.parameter @u : tensor<4xbf16>
  train.state @u.master : tensor<4xf32> = 0.0 of @u "master"

  // CHECK-LABEL: @step
  // WIDE-LABEL: @step
  func.func @step(%part: tensor<4xbf16, #par.place<[4], partial [dp]>>, %batches: tensor<2x4xf32>) {
    %rate = train.learning_rate : tensor<f32>
    // CHECK: %[[G:.*]] = par.all_reduce {{.*}} -> tensor<4xbf16>
    // CHECK: train.sgd {{%.*}}, %[[G]],
    // WIDE: %[[WIDE:.*]] = tx.cast %{{.*}} {train.backward} : tensor<4xbf16, {{.*}}> -> tensor<4xf32, {{.*}}>
    // WIDE: %[[G:.*]] = par.all_reduce %[[WIDE]] {{.*}} -> tensor<4xf32>
    // WIDE-NOT: par.all_reduce
    // WIDE: train.sgd {{%.*}}, %[[G]],
    %g = par.all_reduce %part over "dp" because "gradient" : tensor<4xbf16, #par.place<[4], partial [dp]>> -> tensor<4xbf16>
    %w = train.read @w.master : tensor<4xf32>
    %w1, %r = train.sgd %w, %g, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xbf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xbf16>)
    train.write @w.master, %w1 : tensor<4xf32>
    train.write @w, %r : tensor<4xbf16>
    // The sum of micro-batches is not rounded.
    // CHECK: %[[SUM:.*]] = train.accumulate
    // CHECK: train.sgd {{%.*}}, %[[SUM]],
    // WIDE: %[[SUM:.*]] = train.accumulate
    // WIDE: train.sgd {{%.*}}, %[[SUM]],
    %sum = train.accumulate (%b = %batches) : (tensor<2x4xf32>) -> tensor<4xf32> {
      %n = tx.cast %b : tensor<4xf32> -> tensor<4xbf16>
      train.yield %n : tensor<4xbf16>
    }
    %s16 = tx.cast %sum : tensor<4xf32> -> tensor<4xbf16>
    %u = train.read @u.master : tensor<4xf32>
    %u1, %r2 = train.sgd %u, %s16, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xbf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xbf16>)
    train.write @u.master, %u1 : tensor<4xf32>
    train.write @u, %r2 : tensor<4xbf16>
    return
  }
}
