// What each kind of objective makes of one model with several inputs.
// RUN: partita-opt %s --objective | FileCheck %s --check-prefixes=ROLES,AUTO
// RUN: partita-opt %s --objective="kind=mse:hidden accumulate=2" | FileCheck %s --check-prefix=MSE
// RUN: partita-opt %s --objective="kind=output:loss accumulate=2" | FileCheck %s --check-prefix=LOSS
// RUN: partita-opt %s --objective="kind=masked:scores inputs=attention_mask=data,input_ids=ids ignore-index=0" | FileCheck %s --check-prefix=MASKED

// What the inputs are called says what they usually mean; the position's row is no sample's. Positions are numbers.
// ROLES-LABEL: func.func @forward(
// ROLES-SAME: tensor<8x4xi64> {train.batch = 0 : i64, train.name = "input_ids", train.role = "ids"}
// ROLES-SAME: tensor<8x4xi64> {train.batch = 0 : i64, train.name = "attention_mask", train.role = "ones"}
// ROLES-SAME: tensor<1x4xi64> {train.name = "position_ids", train.role = "positions"}
// ROLES-SAME: tensor<8x4xi1> {train.batch = 0 : i64, train.name = "known_positions", train.role = "data"}

// AUTO-LABEL: func.func @train_step
// AUTO-SAME: tensor<1x1x4xi64> {train.name = "position_ids", train.role = "positions"}
// AUTO-SAME: tensor<1x8x4xi64> {train.batch = 1 : i64, train.filler = -100 : i64, train.name = "labels", train.role = "labels"}
// AUTO: tx.cross_entropy %{{.*}}, %{{.*}} ignore -100

// MSE-LABEL: func.func @train_step
// MSE-SAME: tensor<2x8x4x2xf32> {train.batch = 1 : i64, train.name = "labels", train.role = "targets"}
// MSE: %[[COUNT:.*]] = tx.constant dense<1.280000e+02>
// MSE: %[[SHARE:.*]] = tx.constant dense<7.812500e-03>
// MSE: %[[D:.*]] = tx.sub %[[HIDDEN:.*]], %{{.*}} : (tensor<8x4x2xf32>
// MSE: %[[S:.*]] = tx.mul %[[D]], %[[D]]
// MSE: %[[SUM:.*]] = tx.reduce_sum %[[S]] [0, 1, 2]
// MSE: tx.mul %[[SUM]], %[[SHARE]]

// LOSS-LABEL: func.func @train_step
// LOSS-NOT: labels
// LOSS: %[[SHARE:.*]] = tx.constant dense<5.000000e-01>
// LOSS: %[[S:.*]] = tx.reduce_sum %{{.*}} [0, 1, 2]
// LOSS: %[[N:.*]] = tx.constant dense<1.562500e-02>
// LOSS: tx.mul %[[S]], %[[N]]
// LOSS: %[[R:.*]] = tx.reshape %{{.*}} : tensor<1xf32> -> tensor<f32>
// LOSS: tx.mul %[[R]], %[[SHARE]]

// MASKED-LABEL: func.func @train_step
// MASKED-SAME: train.name = "attention_mask", train.role = "data"
// MASKED-SAME: train.filler = 0 : i64, train.name = "labels", train.role = "targets"
// MASKED: tx.cross_entropy %{{.*}}, %{{.*}} ignore 0
func.func @forward(%ids: tensor<8x4xi64> {train.name = "input_ids"}, %mask: tensor<8x4xi64> {train.name = "attention_mask"},
                   %position: tensor<1x4xi64> {train.name = "position_ids"}, %known: tensor<8x4xi1> {train.name = "known_positions"})
    -> (tensor<8x4x16xf32> {train.name = "scores"}, tensor<8x4x2xf32> {train.name = "hidden"}, tensor<1xf32> {train.name = "loss"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<16x2xf32>
  %x = tx.embedding %w, %ids : (tensor<16x2xf32>, tensor<8x4xi64>) -> tensor<8x4x2xf32>
  %p = tx.embedding %w, %position : (tensor<16x2xf32>, tensor<1x4xi64>) -> tensor<1x4x2xf32>
  %q = tx.broadcast %p : tensor<1x4x2xf32> -> tensor<8x4x2xf32>
  %v = tx.cast %mask : tensor<8x4xi64> -> tensor<8x4xf32>
  %k = tx.cast %known : tensor<8x4xi1> -> tensor<8x4xf32>
  %m = tx.mul %v, %k : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %r = tx.reshape %m : tensor<8x4xf32> -> tensor<8x4x1xf32>
  %b = tx.broadcast %r : tensor<8x4x1xf32> -> tensor<8x4x2xf32>
  %y = tx.add %x, %q : (tensor<8x4x2xf32>, tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
  %h = tx.mul %y, %b : (tensor<8x4x2xf32>, tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
  %s = tx.matmul_nt %h, %w : (tensor<8x4x2xf32>, tensor<16x2xf32>) -> tensor<8x4x16xf32>
  %l = tx.reduce_mean %h [0, 1, 2] : tensor<8x4x2xf32> -> tensor<f32>
  %one = tx.reshape %l : tensor<f32> -> tensor<1xf32>
  return %s, %h, %one : tensor<8x4x16xf32>, tensor<8x4x2xf32>, tensor<1xf32>
}
train.parameter @w : tensor<16x2xf32>
