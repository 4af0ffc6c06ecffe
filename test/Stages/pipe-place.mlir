// RUN: partita-opt %s --mark-layers --note-flops --choose-schedule=stages=2 --note-costs --pipe-place | FileCheck %s
// RUN: partita-opt %s --mark-layers --note-flops --choose-schedule=stages=2 --note-costs --pipe-place=axis=1 | FileCheck %s --check-prefix=AXIS
// AXIS: module attributes {pipe.axis = 1 : i64

// CHECK: module attributes {{.*}}pipe.stages = 2
// CHECK: train.parameter @a0 : tensor<4x4xf32> {pipe.on = array<i64: 0>
// CHECK: train.parameter @b0 : tensor<4x4xf32> {pipe.on = array<i64: 1>
// CHECK: train.parameter @table : tensor<8x4xf32> {pipe.on = array<i64: 0, 1>
// CHECK: train.parameter @bias : tensor<4xf32> {pipe.on = array<i64: 0, 1>
// CHECK: train.parameter @unread : tensor<4xf32> {pipe.on = array<i64: 0>}
train.parameter @a0 : tensor<4x4xf32>
train.parameter @b0 : tensor<4x4xf32>
train.parameter @table : tensor<8x4xf32>
train.parameter @bias : tensor<4xf32>
train.parameter @unread : tensor<4xf32>

// Two layers: what the second one needs of the first moves to it, and is what the end needs as well.
// CHECK-LABEL: func.func @forward
// CHECK: %[[A:.*]] = tx.matmul %{{.*}}, %{{.*}} {train.layer = #train.layer<0 of 2>
// CHECK: %[[S:.*]] = tx.add %{{.*}}, %[[A]]
// CHECK-NEXT: %[[M:.*]] = pipe.move %[[S]] over <0 to 1>
// CHECK-NEXT: %[[B:.*]] = tx.matmul %[[M]], %{{.*}} {train.layer = #train.layer<1 of 2>
// CHECK-NEXT: %[[T:.*]] = tx.add %[[M]], %[[B]]
// CHECK-NEXT: tx.exp %[[T]]
// CHECK-NOT: pipe.move
func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %s = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("start")
  %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.0/MatMul")
  %1 = tx.add %s, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/Add")
  %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.1/MatMul")
  %3 = tx.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/Add")
  %4 = tx.exp %3 : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("end")
  return %4 : tensor<2x4xf32>
}

// A table that both ends read is on both stages, and values computed from it alone are computed there: nothing of its size
// moves. The mask depends on no parameter and belongs to no stage.
// CHECK-LABEL: func.func @tied
// CHECK: %[[R:.*]] = train.read @table
// CHECK-NEXT: %[[W:.*]] = pipe.share %[[R]] on [0, 1]
// CHECK: %[[MASK:.*]] = tx.less
// CHECK: %[[W0:.*]] = pipe.pin %[[W]] to 0
// CHECK: tx.embedding %[[W0]], %arg0
// CHECK: pipe.move %{{.*}} over <0 to 1>
// CHECK: %[[MASKED:.*]] = tx.select %[[MASK]]
// CHECK: %[[T:.*]] = tx.transpose %[[W]] [1, 0]
// CHECK: %[[T1:.*]] = pipe.pin %[[T]] to 1
// CHECK: tx.matmul %[[MASKED]], %[[T1]]
// CHECK-NOT: pipe.
func.func @tied(%ids: tensor<2xi64>) -> tensor<2x8xf32> {
  %table = train.read @table : tensor<8x4xf32>
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %zero = tx.constant dense<0.0> : tensor<2x4xf32> : tensor<2x4xf32>
  %one = tx.constant dense<1> : tensor<2x4xi64> : tensor<2x4xi64>
  %column = tx.reshape %ids : tensor<2xi64> -> tensor<2x1xi64>
  %wide = tx.broadcast %column : tensor<2x1xi64> -> tensor<2x4xi64>
  %mask = tx.less %wide, %one : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi1>
  %x = tx.embedding %table, %ids : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32> loc("embed")
  %0 = tx.matmul %x, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.0/MatMul")
  %1 = tx.add %x, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/Add")
  %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.1/MatMul")
  %3 = tx.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/Add")
  %4 = tx.select %mask, %3, %zero : (tensor<2x4xi1>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("masked")
  %t = tx.transpose %table [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32> loc("turned")
  %5 = tx.matmul %4, %t : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32> loc("head")
  return %5 : tensor<2x8xf32>
}

// The sum of a bias and a mask is computed where it is used: the bias is shared, and neither the mask nor the sum moves.
// CHECK-LABEL: func.func @biased
// CHECK: %[[R:.*]] = train.read @bias
// CHECK-NEXT: %[[S:.*]] = pipe.share %[[R]] on [0, 1]
// CHECK: %[[ROW:.*]] = tx.reshape %[[S]]
// CHECK: %[[ROWS:.*]] = tx.broadcast %[[ROW]]
// CHECK: %[[SUM:.*]] = tx.add %[[ROWS]], %arg1
// CHECK: %[[B0:.*]] = pipe.pin %[[SUM]] to 0
// CHECK: tx.add %{{.*}}, %[[B0]]
// CHECK: %[[MOVED:.*]] = pipe.move %{{.*}} over <0 to 1>
// CHECK-NEXT: tx.matmul %[[MOVED]]
// CHECK: %[[B1:.*]] = pipe.pin %[[SUM]] to 1
// CHECK-NEXT: tx.add %{{.*}}, %[[B1]]
// CHECK-NOT: pipe.
func.func @biased(%ids: tensor<2xi64>, %mask: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %table = train.read @table : tensor<8x4xf32>
  %bias = train.read @bias : tensor<4xf32>
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %row = tx.reshape %bias : tensor<4xf32> -> tensor<1x4xf32>
  %rows = tx.broadcast %row : tensor<1x4xf32> -> tensor<2x4xf32>
  %sum = tx.add %rows, %mask : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("masked")
  %x = tx.embedding %table, %ids : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32> loc("embed")
  %0 = tx.matmul %x, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.0/MatMul")
  %b0 = tx.add %0, %sum : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/Bias")
  %1 = tx.add %x, %b0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/Add")
  %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.1/MatMul")
  %b1 = tx.add %2, %sum : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/Bias")
  %3 = tx.add %1, %b1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/Add")
  return %3 : tensor<2x4xf32>
}
