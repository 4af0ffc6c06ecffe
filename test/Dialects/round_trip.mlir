// What the tools print they read again, in the pretty form and in the generic one.
// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --mlir-print-op-generic | partita-opt | FileCheck %s

// CHECK: module attributes {par.mesh = #par.mesh<dp = 2>}
module attributes {par.mesh = #par.mesh<dp = 2>} {
  // CHECK: train.parameter @w : tensor<16x32xf32> initial(<"model.onnx", offset = 64, bytes = 2048, f32>)
  train.parameter @w : tensor<16x32xf32> initial(<"model.onnx", offset = 64, bytes = 2048, f32>)
  // CHECK: train.parameter @half : tensor<16x32xf16> initial(<"model.onnx", offset = 64, bytes = 1100, f16 varints>)
  train.parameter @half : tensor<16x32xf16> initial(<"model.onnx", offset = 64, bytes = 1100, f16 varints>)
  // CHECK: train.initial_value @w : tensor<16x32xf32>
  func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
    %w = train.initial_value @w : tensor<16x32xf32>
    train.write @w, %w : tensor<16x32xf32>
    return
  }
  // CHECK-LABEL: func @linear
  func.func @linear(%x: tensor<4x16xf32, #par.place<[8 @dp, 16]>>) -> tensor<4x32xf32, #par.place<[8 @dp, 32]>> {
    // CHECK: %[[W:.+]] = train.read @w : tensor<16x32xf32>
    %w = train.read @w : tensor<16x32xf32>
    // CHECK: par.f %[[W]] over "dp" : tensor<16x32xf32> -> tensor<16x32xf32, #par.place<[16, 32], replicated [dp]>>
    %f = par.f %w over "dp" : tensor<16x32xf32> -> tensor<16x32xf32, #par.place<[16, 32], replicated [dp]>>
    // CHECK: tx.matmul
    %y = tx.matmul %x, %f : (tensor<4x16xf32, #par.place<[8 @dp, 16]>>, tensor<16x32xf32, #par.place<[16, 32], replicated [dp]>>) -> tensor<4x32xf32, #par.place<[8 @dp, 32]>>
    return %y : tensor<4x32xf32, #par.place<[8 @dp, 32]>>
  }
  // CHECK-LABEL: func @sums
  func.func @sums(%x: tensor<3x8x4xf32>, %y: tensor<3x8x6xf32>) -> (tensor<8x4xf32>, tensor<4x6xf32>) {
    // CHECK: %{{.*}}:2 = train.accumulate (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) : {{.*}} -> (tensor<8x4xf32>, tensor<4x6xf32>) onto (%[[S:.*]] = 1) {
    %0:2 = train.accumulate (%a = %x, %b = %y) : (tensor<3x8x4xf32>, tensor<3x8x6xf32>) -> (tensor<8x4xf32>, tensor<4x6xf32>) onto (%so_far = 1) {
      // CHECK: tx.fused_matmul (%[[P:.*]] = %[[A]], %[[Q:.*]] = %[[B]], %[[R:.*]] = %[[S]]) : (tensor<8x4xf32>, tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32> {
      %1 = tx.fused_matmul (%p = %a, %q = %b, %r = %so_far) : (tensor<8x4xf32>, tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32> {
        %2 = tx.matmul_tn %p, %q : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
        %3 = tx.add %r, %2 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
        // CHECK: tx.fused
        tx.fused %3 : tensor<4x6xf32>
      }
      train.yield %a, %1 : tensor<8x4xf32>, tensor<4x6xf32>
    }
    return %0#0, %0#1 : tensor<8x4xf32>, tensor<4x6xf32>
  }
  // CHECK-LABEL: func @unequal
  // CHECK-SAME: tensor<4x4xf32, #par.place<[4, 4 + 2 + 2 @dp]>>
  func.func @unequal(%x: tensor<4x4xf32, #par.place<[4, 4 + 2 + 2 @dp]>>) -> tensor<4x1xf32, #par.place<[4, 2 @dp]>> {
    // CHECK: tx.slice %{{.*}} [0, 2] by [1, 1] : tensor<4x4xf32, #par.place<[4, 4 + 2 + 2 @dp]>> -> tensor<4x1xf32, #par.place<[4, 2 @dp]>>
    %y = tx.slice %x [0, 2] by [1, 1] : tensor<4x4xf32, #par.place<[4, 4 + 2 + 2 @dp]>> -> tensor<4x1xf32, #par.place<[4, 2 @dp]>>
    return %y : tensor<4x1xf32, #par.place<[4, 2 @dp]>>
  }
  // CHECK-LABEL: func @shards
  func.func @shards(%x: tensor<4x6xf32, #par.place<[4, 3 x 4 @dp]>>, %p: tensor<4xf32, #par.place<[4], partial [dp]>>, %w: tensor<4xf32>) {
    // CHECK: par.all_gather %{{.*}} over "dp" along 1 in 3 blocks again because "h.0.attn" : tensor<4x6xf32, #par.place<[4, 3 x 4 @dp]>> -> tensor<4x12xf32>
    %g = par.all_gather %x over "dp" along 1 in 3 blocks again because "h.0.attn" : tensor<4x6xf32, #par.place<[4, 3 x 4 @dp]>> -> tensor<4x12xf32>
    // CHECK: par.reduce_scatter %{{.*}} over "dp" along 0 because "gradient" : tensor<4xf32, #par.place<[4], partial [dp]>> -> tensor<2xf32, #par.place<[4 @dp]>>
    %s = par.reduce_scatter %p over "dp" along 0 because "gradient" : tensor<4xf32, #par.place<[4], partial [dp]>> -> tensor<2xf32, #par.place<[4 @dp]>>
    // CHECK: par.narrow %{{.*}} over "dp" along 0 : tensor<4xf32> -> tensor<2xf32, #par.place<[4 @dp]>>
    %n = par.narrow %w over "dp" along 0 : tensor<4xf32> -> tensor<2xf32, #par.place<[4 @dp]>>
    return
  }
}
