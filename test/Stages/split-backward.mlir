// RUN: partita-opt %s --split-backward --mlir-print-unique-ssa-ids | FileCheck %s
// RUN: sed 's/schedule = #split/schedule = #full/' %s | partita-opt --split-backward | FileCheck %s --check-prefix=FULL
// RUN: partita-opt %s --split-backward --split-backward | FileCheck %s

#full = #train.schedule<name = "1f1b", orders = [#train.order<1 x (forward 0), 3 x (forward 1, backward 0), 1 x (backward 3)>, #train.order<4 x (forward 0, backward 0)>]>
#split = #train.schedule<name = "zb-h1", orders = [#train.order<1 x (forward 0), 3 x (forward 1, backward 0, weights 0), 1 x (backward 3, weights 3)>, #train.order<1 x (forward 0, backward 0), 3 x (forward 1, backward 1, weights 0), 1 x (weights 3)>]>

// FULL-NOT: weights

// What the input's cotangent does not need is weights'; what both need is saved.
module attributes {train.schedule = #split} {
module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
  // CHECK-LABEL: func.func @train_step
  // CHECK: } backward (%{{.*}}, %[[Y:.*]]) {
  // CHECK-NEXT: %[[D:.*]] = tx.exp %[[Y]]
  // CHECK-NEXT: %[[DY:.*]] = tx.matmul_nt %[[D]]
  // CHECK-NEXT: pipe.send %[[DY]]
  // CHECK-NEXT: train.yield saves %[[D]] :
  // CHECK-NEXT: } weights (%{{.*}}, %[[Y2:.*]], %[[D2:.*]]) {
  // CHECK-NEXT: %[[DW:.*]] = tx.matmul_tn %[[Y2]], %[[D2]]
  // CHECK-NEXT: train.yield %[[DW]] :
  func.func @train_step(%x: tensor<4x2x3xf32>, %w: tensor<3x3xf32>) attributes {train.entry_point = #train.entry_point<train_step>} {
    %0 = train.accumulate (%i = %x) : (tensor<4x2x3xf32>) -> tensor<3x3xf32> {
      %y = pipe.recv over <0 to 1> : tensor<2x3xf32>
      train.yield saves %y : tensor<2x3xf32>
    } backward (%j, %y_saved) {
      %d = tx.exp %y_saved : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %dw = tx.matmul_tn %y_saved, %d : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
      %dy = tx.matmul_nt %d, %w : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
      pipe.send %dy over <1 to 0> : tensor<2x3xf32>
      train.yield %dw : tensor<3x3xf32>
    }
    return
  }
}

// The first stage sends no cotangent: its weights wait only for what it receives.
module attributes {pipe.count = 2 : i64, pipe.stage = 0 : i64} {
  // CHECK-LABEL: func.func @first
  // CHECK: } backward (%{{.*}}, %{{.*}}) {
  // CHECK-NEXT: %[[DY:.*]] = pipe.recv
  // CHECK-NEXT: train.yield saves %[[DY]] :
  // CHECK-NEXT: } weights (%{{.*}}, %[[Y:.*]], %[[DY2:.*]]) {
  // CHECK-NEXT: tx.mul %[[DY2]], %[[Y]]
  func.func @first(%x: tensor<4x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
    %0:2 = train.accumulate (%i = %x) : (tensor<4x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
      %y = tx.exp %i : (tensor<4xf32>) -> tensor<4xf32>
      %loss = tx.reduce_sum %y [0] : tensor<4xf32> -> tensor<f32>
      pipe.send %y over <0 to 1> : tensor<4xf32>
      train.yield %loss : tensor<f32> saves %y : tensor<4xf32>
    } backward (%j, %y_saved) {
      %dy = pipe.recv over <1 to 0> : tensor<4xf32>
      %d = tx.mul %dy, %y_saved : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      train.yield %d : tensor<4xf32>
    }
    return %0#0, %0#1 : tensor<f32>, tensor<4xf32>
  }
}
module attributes {pipe.count = 2 : i64, pipe.stage = 1 : i64} {
  // A sum stays where an op makes it that the input's cotangent needs; others follow it. Views and constants are made again, and so
  // is what is the same for all micro-batches; of a view what it is a view of is saved.
  // CHECK-LABEL: func.func @sums
  // CHECK: %[[ALL:.*]]:3 = train.accumulate
  // CHECK: } backward
  // CHECK: %[[DX:.*]], %[[DG:.*]] = tx.rms_norm_grad_add
  // CHECK-NEXT: pipe.send %[[DX]]
  // CHECK-NEXT: train.yield %[[DG]] : tensor<8xf32> saves %[[DX]] :
  // CHECK-NEXT: } weights
  // CHECK: tx.exp
  // CHECK: tx.reshape
  // CHECK: train.yield %{{.*}}, %{{.*}} : tensor<8xf32>, tensor<32xf32>
  // CHECK: return %[[ALL]]#1, %[[ALL]]#0, %[[ALL]]#2 :
  func.func @sums(%xs: tensor<4x4x8xf32>, %g: tensor<8xf32>, %rstd: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<32xf32>) {
    %0:3 = train.accumulate (%i = %xs) : (tensor<4x4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<32xf32>) {
      train.yield
    } backward (%j) {
      %dy = tx.relu %j : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %scale = tx.exp %g : (tensor<8xf32>) -> tensor<8xf32>
      %dx, %dg = tx.rms_norm_grad_add %j, %scale, %rstd, %dy, %dy : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
      pipe.send %dx over <1 to 0> : tensor<4x8xf32>
      %db = tx.reduce_sum %dx [0] : tensor<4x8xf32> -> tensor<8xf32>
      %scaled = tx.mul %db, %scale : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %flat = tx.reshape %dx : tensor<4x8xf32> -> tensor<32xf32>
      %e = tx.exp %flat : (tensor<32xf32>) -> tensor<32xf32>
      train.yield %scaled, %dg, %e : tensor<8xf32>, tensor<8xf32>, tensor<32xf32>
    }
    return %0#0, %0#1, %0#2 : tensor<8xf32>, tensor<8xf32>, tensor<32xf32>
  }
}
}
