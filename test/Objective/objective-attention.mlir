// A model that predicts the next token, though every attention shows it, is warned of; one attention that hides it is enough,
// by its attribute or by a mask of any spelling, and one that only the data knows may.
// RUN: partita-opt %s --objective --split-input-file --verify-diagnostics -o /dev/null
// RUN: partita-opt %s --objective=kind=masked --split-input-file 2>&1 | FileCheck %s --implicit-check-not="warning: objective"
// CHECK: train.objective

// Open, twice.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "ids"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x8xf32>
  %x = tx.embedding %w, %ids : (tensor<8x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  // expected-warning@+1 {{objective 'causal' predicts the token after each, but no attention of the model is causal (of 2, this is the first), so that it sees what it predicts; a model of masked tokens wants --objective masked, with labels in the data}}
  %p, %lp = tx.attention %h, %h, %h scale 5.000000e-01 : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  %o, %lo = tx.attention %p, %p, %p scale 5.000000e-01 : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  %y = tx.reshape %o : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
train.parameter @w : tensor<8x8xf32>

// -----

// One of two is causal.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "ids"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x8xf32>
  %x = tx.embedding %w, %ids : (tensor<8x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %p, %lp = tx.attention %h, %h, %h scale 5.000000e-01 : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  %o, %lo = tx.attention %p, %p, %p scale 5.000000e-01 causal : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  %y = tx.reshape %o : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
train.parameter @w : tensor<8x8xf32>

// -----

// Causal and a mask of padding, as a bias.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "ids"}, %mask: tensor<2x4xi64> {train.name = "mask"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x8xf32>
  %x = tx.embedding %w, %ids : (tensor<8x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %i = tx.iota 0.000000e+00, 1.000000e+00 : tensor<4xi64>
  %r1 = tx.reshape %i : tensor<4xi64> -> tensor<4x1xi64>
  %r = tx.broadcast %r1 : tensor<4x1xi64> -> tensor<4x4xi64>
  %c = tx.broadcast %i : tensor<4xi64> -> tensor<4x4xi64>
  %lower = tx.less_equal %c, %r : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
  %m1 = tx.reshape %mask : tensor<2x4xi64> -> tensor<2x1x1x4xi64>
  %m2 = tx.cast %m1 : tensor<2x1x1x4xi64> -> tensor<2x1x1x4xi1>
  %m = tx.broadcast %m2 : tensor<2x1x1x4xi1> -> tensor<2x1x4x4xi1>
  %zero = tx.constant dense<0.0> : tensor<2x1x4x4xf32> : tensor<2x1x4x4xf32>
  %low = tx.constant dense<-1.0e9> : tensor<2x1x4x4xf32> : tensor<2x1x4x4xf32>
  %b1 = tx.broadcast %lower : tensor<4x4xi1> -> tensor<2x1x4x4xi1>
  %both = tx.and %b1, %m : (tensor<2x1x4x4xi1>, tensor<2x1x4x4xi1>) -> tensor<2x1x4x4xi1>
  %bias = tx.select %both, %zero, %low : (tensor<2x1x4x4xi1>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>) -> tensor<2x1x4x4xf32>
  %o, %lo = tx.attention %h, %h, %h bias %bias scale 5.000000e-01 : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x1x4x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  %y = tx.reshape %o : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
train.parameter @w : tensor<8x8xf32>

// -----

// The mask of padding alone.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "ids"}, %mask: tensor<2x4xi64> {train.name = "mask"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x8xf32>
  %x = tx.embedding %w, %ids : (tensor<8x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %m1 = tx.reshape %mask : tensor<2x4xi64> -> tensor<2x1x1x4xi64>
  %m2 = tx.cast %m1 : tensor<2x1x1x4xi64> -> tensor<2x1x1x4xi1>
  %m = tx.broadcast %m2 : tensor<2x1x1x4xi1> -> tensor<2x1x4x4xi1>
  %zero = tx.constant dense<0.0> : tensor<2x1x4x4xf32> : tensor<2x1x4x4xf32>
  %low = tx.constant dense<-1.0e9> : tensor<2x1x4x4xf32> : tensor<2x1x4x4xf32>
  %bias = tx.select %m, %zero, %low : (tensor<2x1x4x4xi1>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>) -> tensor<2x1x4x4xf32>
  // expected-warning@+1 {{objective 'causal' predicts the token after each, but no attention of the model is causal (of 1, this is the first), so that it sees what it predicts; a model of masked tokens wants --objective masked, with labels in the data}}
  %o, %lo = tx.attention %h, %h, %h bias %bias scale 5.000000e-01 : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x1x4x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  %y = tx.reshape %o : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
train.parameter @w : tensor<8x8xf32>

// -----

// A window to both sides hides later keys, but not the next.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "ids"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x8xf32>
  %x = tx.embedding %w, %ids : (tensor<8x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %bias = tx.constant dense<[[[[0.0, 0.0, -1.0e9, -1.0e9], [0.0, 0.0, 0.0, -1.0e9], [-1.0e9, 0.0, 0.0, 0.0], [-1.0e9, -1.0e9, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  // expected-warning@+1 {{objective 'causal' predicts the token after each, but no attention of the model is causal (of 1, this is the first), so that it sees what it predicts; a model of masked tokens wants --objective masked, with labels in the data}}
  %o, %lo = tx.attention %h, %h, %h bias %bias scale 5.000000e-01 : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  %y = tx.reshape %o : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
train.parameter @w : tensor<8x8xf32>

// -----

// A mask of queries and keys that is an input.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "ids"}, %mask: tensor<1x1x4x4xf32> {train.name = "mask"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x8xf32>
  %x = tx.embedding %w, %ids : (tensor<8x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %o, %lo = tx.attention %h, %h, %h bias %mask scale 5.000000e-01 : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  %y = tx.reshape %o : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
train.parameter @w : tensor<8x8xf32>

// -----

// Written out.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "ids"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x8xf32>
  %x = tx.embedding %w, %ids : (tensor<8x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %q = tx.transpose %h [0, 2, 1, 3] : tensor<2x4x2x4xf32> -> tensor<2x2x4x4xf32>
  %k = tx.transpose %h [0, 2, 3, 1] : tensor<2x4x2x4xf32> -> tensor<2x2x4x4xf32>
  %s = tx.batch_matmul %q, %k : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  // expected-warning@+1 {{objective 'causal' predicts the token after each, but no attention of the model is causal (of 1, this is the first), so that it sees what it predicts; a model of masked tokens wants --objective masked, with labels in the data}}
  %p = tx.softmax %s : (tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %a = tx.batch_matmul %p, %q : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %o = tx.transpose %a [0, 2, 1, 3] : tensor<2x2x4x4xf32> -> tensor<2x4x2x4xf32>
  %y = tx.reshape %o : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
train.parameter @w : tensor<8x8xf32>

// -----

// Written out, with a factor of zero and a large number for what is hidden.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "ids"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<8x8xf32>
  %x = tx.embedding %w, %ids : (tensor<8x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %q = tx.transpose %h [0, 2, 1, 3] : tensor<2x4x2x4xf32> -> tensor<2x2x4x4xf32>
  %k = tx.transpose %h [0, 2, 3, 1] : tensor<2x4x2x4xf32> -> tensor<2x2x4x4xf32>
  %s = tx.batch_matmul %q, %k : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %i = tx.iota 0.000000e+00, 1.000000e+00 : tensor<4xi64>
  %r1 = tx.reshape %i : tensor<4xi64> -> tensor<4x1xi64>
  %r = tx.broadcast %r1 : tensor<4x1xi64> -> tensor<4x4xi64>
  %c = tx.broadcast %i : tensor<4xi64> -> tensor<4x4xi64>
  %lower = tx.less_equal %c, %r : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
  %f1 = tx.cast %lower : tensor<4x4xi1> -> tensor<4x4xf32>
  %f = tx.broadcast %f1 : tensor<4x4xf32> -> tensor<2x2x4x4xf32>
  %kept = tx.mul %s, %f : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %one = tx.constant dense<1.0> : tensor<2x2x4x4xf32> : tensor<2x2x4x4xf32>
  %large = tx.constant dense<-1.0e4> : tensor<2x2x4x4xf32> : tensor<2x2x4x4xf32>
  %g = tx.sub %one, %f : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %hidden = tx.mul %g, %large : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %masked = tx.add %kept, %hidden : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %p = tx.softmax %masked : (tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %a = tx.batch_matmul %p, %q : (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  %o = tx.transpose %a [0, 2, 1, 3] : tensor<2x2x4x4xf32> -> tensor<2x4x2x4xf32>
  %y = tx.reshape %o : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
train.parameter @w : tensor<8x8xf32>
