// RUN: partita-opt %s --offload-parameters=what=parameters | FileCheck %s
// RUN: partita-opt %s --offload-parameters="what=parameters keep=24" | FileCheck %s --check-prefix=KEPT
// RUN: partita-opt %s --offload-parameters=what=optimizer | FileCheck %s --check-prefix=NOTHING
// NOTHING-NOT: offload.

module attributes {par.mesh = #par.mesh<dp = 2>} {
  // CHECK: train.parameter @w : tensor<4x6xf32> {offload.host}
  // KEPT-NOT: @w {{.*}}offload.host
  train.parameter @w : tensor<4x6xf32>
  // CHECK: train.parameter @table : tensor<5x6xf32> {offload.host}
  // KEPT: train.parameter @table : tensor<5x6xf32> {offload.host}
  train.parameter @table : tensor<5x6xf32>
  train.state @table.m : tensor<15xf32> = 0.0 of @table "m"

  // CHECK: train.parameter @v : tensor<6x6xf32> {offload.host}
  train.parameter @v : tensor<6x6xf32>

  // One copy for the forward pass, one for the backward pass; but one for both of what the backward pass begins with. The update,
  // which has no states, is the host's.
  // CHECK-LABEL: func @example
  // CHECK: %[[H:.*]] = train.read @w
  // CHECK-NEXT: %[[HV:.*]] = train.read @v
  // CHECK: %[[F:.*]] = offload.to_device %[[H]] :
  // CHECK-NEXT: tx.matmul %{{.*}}, %[[F]]
  // CHECK-NEXT: %[[V:.*]] = offload.to_device %[[HV]] :
  // CHECK-NEXT: tx.matmul %{{.*}}, %[[V]]
  // CHECK-NEXT: train.yield {{.*}} saves %[[V]] :
  // CHECK-NEXT: } backward (%{{.*}}, %[[V1:.*]]) {
  // CHECK-NEXT: tx.matmul_nt %arg1, %[[V1]]
  // CHECK-NEXT: %[[B:.*]] = offload.to_device %[[H]] for "backward"
  // CHECK-NEXT: tx.matmul_nt %{{.*}}, %[[B]]
  // CHECK: train.sgd %[[H]], {{.*}}offload.on_host
  func.func @example(%xs: tensor<1x8x4xf32>, %dz: tensor<8x6xf32>, %g: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<8x4xf32>) {
    %w = train.read @w : tensor<4x6xf32>
    %v = train.read @v : tensor<6x6xf32>
    %s:2 = train.accumulate (%x = %xs) : (tensor<1x8x4xf32>) -> (tensor<8x6xf32>, tensor<8x4xf32>) {
      %y = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
      %z = tx.matmul %y, %v : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
      train.yield %z : tensor<8x6xf32>
    } backward (%x1) {
      %dy = tx.matmul_nt %dz, %v {train.backward} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
      %dx = tx.matmul_nt %dy, %w {train.backward} : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
      train.yield %dx : tensor<8x4xf32>
    }
    %rate = train.learning_rate : tensor<f32>
    %new = train.sgd %w, %g, %rate {decay = 0.0} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    train.write @w, %new : tensor<4x6xf32>
    return %s#0, %s#1 : tensor<8x6xf32>, tensor<8x4xf32>
  }

  // A shard is updated on the device: the value goes there for it, and what is gathered goes back.
  // CHECK-LABEL: func @shards
  // CHECK: %[[H:.*]] = train.read @table
  // CHECK: %[[U:.*]] = offload.to_device %[[H]] for "update"
  // CHECK-NEXT: zero.shard %[[U]] over "dp"
  // CHECK: %[[NEW:.*]] = zero.gather
  // CHECK-NEXT: %[[BACK:.*]] = offload.to_host %[[NEW]]
  // CHECK-NEXT: train.write @table, %[[BACK]]
  func.func @shards(%g: tensor<15xf32, #par.place<[5, 6], flat [dp]>>) attributes {par.no_cotangents} {
    %w = train.read @table : tensor<5x6xf32>
    %rate = train.learning_rate : tensor<f32>
    %shard = zero.shard %w over "dp" : tensor<5x6xf32> -> tensor<15xf32, #par.place<[5, 6], flat [dp]>>
    %new = train.sgd %shard, %g, %rate {decay = 0.0} : (tensor<15xf32, #par.place<[5, 6], flat [dp]>>, tensor<15xf32, #par.place<[5, 6], flat [dp]>>, tensor<f32>) -> tensor<15xf32, #par.place<[5, 6], flat [dp]>>
    %full = zero.gather %new over "dp" : tensor<15xf32, #par.place<[5, 6], flat [dp]>> -> tensor<5x6xf32>
    train.write @table, %full : tensor<5x6xf32>
    return
  }
}
