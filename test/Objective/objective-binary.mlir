// RUN: partita-opt %s --split-input-file --verify-diagnostics --objective | FileCheck %s
// RUN: partita-opt %s --split-input-file --objective=kind=binary 2>/dev/null | FileCheck %s --check-prefix=ASKED

// One score per token, against a second class of score zero.
// CHECK: train.objective = "binary of 'scores' (auto: it has one score for each of 'ids')"
// CHECK-LABEL: func.func @train_step
// CHECK-SAME: tensor<1x4x3xi64> {train.batch = 1{{.*}} : i64, train.filler = -100 : i64, train.name = "labels", train.role = "targets"}
// CHECK: train.token_count %{{.*}} ignore -100
// CHECK: %[[X:.*]] = tx.reshape %{{.*}} : tensor<4x3x1xf32> -> tensor<4x3xf32>
// CHECK: %[[NO:.*]] = tx.constant dense<0.000000e+00>{{.*}} : tensor<4x3x1xf32>
// CHECK: %[[YES:.*]] = tx.reshape %[[X]]{{.*}} : tensor<4x3xf32> -> tensor<4x3x1xf32>
// CHECK: %[[BOTH:.*]] = tx.concat %[[NO]], %[[YES]] along 2
// CHECK: %[[LOSS:.*]], %{{.*}} = tx.cross_entropy %[[BOTH]], %{{.*}} ignore -100
// CHECK: tx.reduce_sum %[[LOSS]] [0, 1]
// ASKED: train.objective = "binary of 'scores'"
func.func @forward(%ids: tensor<4x3xi64> {train.name = "ids", train.role = "ids"}) -> (tensor<4x3xf32> {train.name = "scores"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x2xf32>
  %v = train.read @v : tensor<2x1xf32>
  %x = tx.embedding %w, %ids : (tensor<8x2xf32>, tensor<4x3xi64>) -> tensor<4x3x2xf32>
  %y = tx.matmul %x, %v : (tensor<4x3x2xf32>, tensor<2x1xf32>) -> tensor<4x3x1xf32>
  // expected-warning @+1 {{output 'scores' has one score per token, taken as a yes-or-no question about each token (objective 'binary'); if it selects one token per sample, pass --objective classification}}
  %s = tx.reshape %y : tensor<4x3x1xf32> -> tensor<4x3xf32>
  return %s : tensor<4x3xf32>
}
train.parameter @w : tensor<8x2xf32>
train.parameter @v : tensor<2x1xf32>

// -----

// Two such outputs, where a span begins and where it ends: one token of each sample.
// CHECK: train.objective = "classification of 'start' (auto: it is one of several outputs with one score for each of 'ids')"
// ASKED: train.objective = "binary of 'start'"
func.func @forward(%ids: tensor<4x3xi64> {train.name = "ids", train.role = "ids"}) -> (tensor<4x3xf32> {train.name = "start"}, tensor<4x3xf32> {train.name = "end"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x2xf32>
  %x = tx.embedding %w, %ids : (tensor<8x2xf32>, tensor<4x3xi64>) -> tensor<4x3x2xf32>
  %a = tx.slice %x [0, 0, 0] by [1, 1, 1] : tensor<4x3x2xf32> -> tensor<4x3x1xf32>
  %b = tx.slice %x [0, 0, 1] by [1, 1, 1] : tensor<4x3x2xf32> -> tensor<4x3x1xf32>
  // expected-warning @+1 {{output 'start' has one score per token, as another output has, and is trained alone, to select one token per sample (objective 'classification'); if it asks yes or no about each token, pass --objective binary:start}}
  %s = tx.reshape %a : tensor<4x3x1xf32> -> tensor<4x3xf32>
  %e = tx.reshape %b : tensor<4x3x1xf32> -> tensor<4x3xf32>
  return %s, %e : tensor<4x3xf32>, tensor<4x3xf32>
}
train.parameter @w : tensor<8x2xf32>

// -----

// As many classes as tokens: sizes say nothing.
// CHECK: train.objective = "classification of 'scores' (auto: it has one vector of scores a sample)"
// ASKED: train.objective = "binary of 'scores'"
func.func @forward(%ids: tensor<4x3xi64> {train.name = "ids", train.role = "ids"}) -> (tensor<4x3xf32> {train.name = "scores"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x2xf32>
  %v = train.read @v : tensor<2x3xf32>
  %x = tx.embedding %w, %ids : (tensor<8x2xf32>, tensor<4x3xi64>) -> tensor<4x3x2xf32>
  %first = tx.slice %x [0, 0, 0] by [1, 1, 1] : tensor<4x3x2xf32> -> tensor<4x1x2xf32>
  %p = tx.reshape %first : tensor<4x1x2xf32> -> tensor<4x2xf32>
  %s = tx.matmul %p, %v : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %s : tensor<4x3xf32>
}
train.parameter @w : tensor<8x2xf32>
train.parameter @v : tensor<2x3xf32>
