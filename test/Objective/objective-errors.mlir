// RUN: partita-opt %s --objective --split-input-file --verify-diagnostics
// RUN: not partita-opt %s --objective=accumulate=0 --split-input-file 2>&1 | FileCheck %s --check-prefix=ACC
// RUN: not partita-opt %s --objective="freeze=h.0.*.wieght" --split-input-file 2>&1 | FileCheck %s --check-prefix=FREEZE
// RUN: not partita-opt %s --objective="freeze=[z-a]" --split-input-file 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: not partita-opt %s --objective=kind=lm --split-input-file 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not partita-opt %s --objective=kind=mse:hidden --split-input-file 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not partita-opt %s --objective=kind=output --split-input-file 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: not partita-opt %s --objective=kind=causal --split-input-file 2>&1 | FileCheck %s --check-prefix=CAUSAL
// RUN: not partita-opt %s --objective=inputs=ids=data --split-input-file 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: not partita-opt %s --objective=inputs=pixels=mask --split-input-file 2>&1 | FileCheck %s --check-prefix=ROLE
// RUN: not partita-opt %s --objective=inputs=pixels=positions --split-input-file 2>&1 | FileCheck %s --check-prefix=FLOAT
// RUN: not partita-opt %s --objective=inputs=pixels=ones --split-input-file 2>&1 | FileCheck %s --check-prefix=FIXED
// RUN: not partita-opt %s --objective=kind=classification --split-input-file 2>&1 | FileCheck %s --check-prefix=CLASSES
// RUN: not partita-opt %s --objective="freeze=*" --split-input-file 2>&1 | FileCheck %s --check-prefix=FROZEN
// RUN: not partita-opt %s --objective="freeze=h.* trainable=h.0.*" --split-input-file 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not partita-opt %s --objective="trainable=h.2.*" --split-input-file 2>&1 | FileCheck %s --check-prefix=TRAINABLE
// RUN: not partita-opt %s --objective="tie=h.0.weight=h.1.weight" --split-input-file 2>&1 | FileCheck %s --check-prefix=TIE
// RUN: not partita-opt %s --objective=inputs=pixels=ones:3 --split-input-file 2>&1 | FileCheck %s --check-prefix=FILLER
// RUN: not partita-opt %s --objective=inputs=pixels=data,pixels=ones --split-input-file 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not partita-opt %s --objective=inputs=one=labels,two=labels --split-input-file 2>&1 | FileCheck %s --check-prefix=LABELS
// RUN: not partita-opt %s --objective=inputs=one=shifted: --split-input-file 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not partita-opt %s --objective="kind=mse ignore-index=3" --split-input-file 2>&1 | FileCheck %s --check-prefix=IGNORE
// RUN: not partita-opt %s --objective=kind=none:scores --split-input-file 2>&1 | FileCheck %s --check-prefix=NONE

// IGNORE: error: --ignore-index: has no effect with objective 'mse'
// NONE: error: objective 'none' takes no output, here 'scores': the program computes all of them
// ACC: error: accumulate is 0, expected at least 1
// FIXED: error: no input takes anything from the data: all are ones, zeros or positions; bind one with --input NAME=ids or data
// FROZEN: error: freeze: all parameters are frozen, so nothing would be trained; --objective none makes a program for inference
// CLASSES: error: objective 'classification' wants one vector of scores a sample, output '0' is 'tensor<8x15x4xf32>'; 'masked' compares a class per token
// FREEZE: error: freeze: no parameter matches 'h.0.*.wieght'; the nearest names are 'h.0.weight', 'h.1.weight', 'bias'
// PATTERN: error: freeze: '[z-a]' is not a glob pattern:
// BOTH: error: parameter 'h.0.weight' matches patterns of both trainable and freeze
// TRAINABLE: error: trainable: no parameter matches 'h.2.*'; the nearest names are
// TIE: error: tie: 'h.0.weight' and 'h.1.weight' are not one parameter of this module; tensors are tied where the ONNX file is read: give the option to partita import
// KIND: error: objective 'lm' is unknown; known: auto, none, causal, masked, classification, binary, mse, output
// OUTPUT: error: objective: the model has no output 'hidden'; it has 'scores'
// LOSS: error: no result is a floating-point tensor that could be the loss, a single number
// CAUSAL: error: no input is an integer tensor [batch, sequence] that carries the tokens; bind one with --input NAME=ids, or take another objective than 'causal'
// INPUT: error: input: the model has no input 'ids'; it has 'pixels'
// ROLE: error: input 'pixels': role 'mask' is not one of ids, labels, targets, positions, ones, zeros, shifted, data
// FLOAT: error: input 'pixels' of type 'tensor<8x16xf32>' cannot be 'positions', which are integers along a dimension
// TWICE: error: input 'pixels' is bound twice, as 'data' and as 'ones'
// LABELS: error: inputs 'one' and 'two' are both 'labels', of which a program has one; bind what is a column of the data with --input NAME=targets
// EMPTY: error: input 'one': 'shifted:' is not a role; only shifted takes a token, such as shifted:0
// FILLER: error: input 'pixels': 'ones:3' is not a role; only shifted takes a token, such as shifted:0
func.func @forward(%x: tensor<8x16xf32> {train.name = "pixels"}) -> (tensor<8x16xf32> {train.name = "scores"}) attributes {train.entry_point = #train.entry_point<forward>} {
  return %x : tensor<8x16xf32>
}
train.parameter @h.1.weight : tensor<4x4xf32>
train.parameter @bias : tensor<4xf32>
train.parameter @h.0.weight : tensor<4x4xf32>

// -----

// expected-error@+1 {{no result is a floating-point tensor that could be the logits [batch, ..., classes]}}
func.func @forward(%a: tensor<8x16xi64>) -> tensor<8x16xi64> attributes {train.entry_point = #train.entry_point<forward>} {
  return %a : tensor<8x16xi64>
}

// -----

// One score too few for a next token of each.
// expected-error@+1 {{output '0' of type 'tensor<8x15x4xf32>' does not score a next token for each of number 0, 'tensor<8x16xi64>'}}
func.func @forward(%a: tensor<8x16xi64>) -> tensor<8x15x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<4x4xf32>
  %x = tx.embedding %w, %a : (tensor<4x4xf32>, tensor<8x16xi64>) -> tensor<8x16x4xf32>
  %y = tx.slice %x [0, 0, 0] by [1, 1, 1] : tensor<8x16x4xf32> -> tensor<8x15x4xf32>
  return %y : tensor<8x15x4xf32>
}
train.parameter @w : tensor<4x4xf32>

// -----

// expected-error@-2 {{the module has no entry point 'forward' with a body to train}}
func.func private @other()

// -----

// expected-error@-2 {{the module has no entry point 'forward' with a body to train; @forward has no train.entry_point = #train.entry_point<forward>}}
func.func @forward(%a: tensor<8x16xi64>) { return }

// -----

// A name that the pass needs: a function that is merely called so is no step, nor is a parameter.
train.parameter @w : tensor<4x4xf32>
func.func @forward(%a: tensor<8x16xi64> {train.name = "ids"}) -> (tensor<8x16x4xf32> {train.name = "logits"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<4x4xf32>
  %x = tx.embedding %w, %a : (tensor<4x4xf32>, tensor<8x16xi64>) -> tensor<8x16x4xf32>
  return %x : tensor<8x16x4xf32>
}
// expected-error@+1 {{@train_step is the name of an entry point that is made here, and this is none; rename it, or give it its train.entry_point}}
func.func private @train_step()

// -----
// What has no elements cannot be scored.
// expected-error@+1 {{no result is a floating-point tensor that could be the logits [batch, ..., classes]}}
func.func @forward(%x: tensor<2x3xf32> {train.name = "pixels"}) -> (tensor<0x4xf32> {train.name = "none"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %none = tx.constant dense<> : tensor<0x4xf32> : tensor<0x4xf32>
  return %none : tensor<0x4xf32>
}

// -----

// Two labels: by --input, and by the module's own attributes.
func.func @forward(%a: tensor<8x16xi64> {train.name = "one"}, %b: tensor<8x16xi64> {train.name = "two"}) -> tensor<8x16x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<4x4xf32>
  %x = tx.embedding %w, %a : (tensor<4x4xf32>, tensor<8x16xi64>) -> tensor<8x16x4xf32>
  %y = tx.embedding %w, %b : (tensor<4x4xf32>, tensor<8x16xi64>) -> tensor<8x16x4xf32>
  %z = tx.add %x, %y : (tensor<8x16x4xf32>, tensor<8x16x4xf32>) -> tensor<8x16x4xf32>
  return %z : tensor<8x16x4xf32>
}
train.parameter @w : tensor<4x4xf32>

// -----

// expected-error@+1 {{inputs 'first' and 'second' are both 'labels', of which a program has one; bind what is a column of the data with --input NAME=targets}}
func.func @forward(%a: tensor<8x16xi64> {train.name = "first", train.role = "labels"}, %b: tensor<8x16xi64> {train.name = "second", train.role = "labels"}) -> tensor<8x16x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<4x4xf32>
  %x = tx.embedding %w, %a : (tensor<4x4xf32>, tensor<8x16xi64>) -> tensor<8x16x4xf32>
  %y = tx.embedding %w, %b : (tensor<4x4xf32>, tensor<8x16xi64>) -> tensor<8x16x4xf32>
  %z = tx.add %x, %y : (tensor<8x16x4xf32>, tensor<8x16x4xf32>) -> tensor<8x16x4xf32>
  return %z : tensor<8x16x4xf32>
}
train.parameter @w : tensor<4x4xf32>
