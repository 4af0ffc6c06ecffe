// RUN: partita-opt %s --pass-pipeline='builtin.module(pack-documents{after=7})' --split-input-file --verify-diagnostics

// expected-error@+1 {{pack: token 7 is not one of the 6 that 'input_ids' looks up, which are 0 to 5}}
func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<6x8xf32>
  %x = tx.embedding %wte, %ids : (tensor<6x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  return %x : tensor<2x4x8xf32>
}
train.parameter @wte : tensor<6x8xf32>

// -----

// expected-error@+1 {{pack: the model has no attention, so nothing keeps documents apart; leave --pack out}}
func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %x = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  return %x : tensor<2x4x8xf32>
}
train.parameter @wte : tensor<32x8xf32>

// -----

// expected-error@+1 {{pack: no input is an integer tensor [batch, sequence] that carries the tokens; bind one with --input NAME=ids}}
func.func @forward(%x: tensor<2x4x8xf32> {train.name = "x"}) -> tensor<2x4x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  return %x : tensor<2x4x8xf32>
}

// -----

func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> tensor<2x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %x = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  // expected-error@+1 {{pack: 'tx.reduce_mean' computes along the tokens of a sequence, which would mix documents; only attention keeps them apart, and a loss that --objective adds}}
  %m = tx.reduce_mean %x [1] : tensor<2x4x8xf32> -> tensor<2x8xf32>
  return %m : tensor<2x8xf32>
}
train.parameter @wte : tensor<32x8xf32>

// -----

func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> tensor<2x1x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %x = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  // expected-error@+1 {{pack: 'tx.slice' computes along the tokens of a sequence, which would mix documents}}
  %m = tx.slice %x [0, 3, 0] by [1, 1, 1] : tensor<2x4x8xf32> -> tensor<2x1x8xf32>
  return %m : tensor<2x1x8xf32>
}
train.parameter @wte : tensor<32x8xf32>

// -----

func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> tensor<2x4x2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %x = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  // expected-error@+1 {{pack: this attention cannot be packed: it is not causal, so that it would see the documents behind}}
  %o, %l = tx.attention %h, %h, %h scale 0.5 : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x4x2x4xf32>
}
train.parameter @wte : tensor<32x8xf32>

// -----

// A learned bias of absolute positions.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> tensor<2x4x2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %b = train.read @b : tensor<1x2x4x4xf32>
  %x = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  // expected-error@+1 {{pack: this attention cannot be packed: its bias depends on more than the distance of query and key: on that of query 3 and key 1 otherwise than on that of 2 and 0}}
  %o, %l = tx.attention %h, %h, %h bias %b scale 0.5 causal : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x4x2x4xf32>
}
train.parameter @wte : tensor<32x8xf32>
train.parameter @b : tensor<1x2x4x4xf32>

// -----

// Keys of another sequence.
func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}, %f: tensor<2x6x2x4xf32> {train.name = "cached", train.role = "data"}) -> tensor<2x4x2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %x = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  // expected-error@+1 {{pack: this attention is not one of a row's tokens to each other (cross-attention, cached keys); only such can be packed}}
  %o, %l = tx.attention %h, %f, %f scale 0.5 causal : (tensor<2x4x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x4x2x4xf32>
}
train.parameter @wte : tensor<32x8xf32>

// -----

func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> tensor<2x4x2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %x = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %d = tx.constant dense<[[0, 0, 1, 1], [0, 0, 1, 1]]> : tensor<2x4xi64> : tensor<2x4xi64>
  %s = tx.document_starts %d : (tensor<2x4xi64>) -> tensor<2x4xi32>
  // expected-error@+1 {{pack: the model has documents of its own, which may contradict --pack; leave --pack out}}
  %o, %l = tx.attention %h, %h, %h from %s scale 0.5 causal : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4xi32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x4x2x4xf32>
}
train.parameter @wte : tensor<32x8xf32>

// -----

func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}, %d: tensor<2x4xi64> {train.name = "document_ids", train.role = "data"}) -> tensor<2x4x2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %x = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %s = tx.document_starts %d : (tensor<2x4xi64>) -> tensor<2x4xi32>
  // expected-error@+1 {{pack: the model has documents of its own, from an input, which may contradict --pack; leave --pack out}}
  %o, %l = tx.attention %h, %h, %h from %s scale 0.5 causal : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4xi32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x4x2x4xf32>
}
train.parameter @wte : tensor<32x8xf32>
