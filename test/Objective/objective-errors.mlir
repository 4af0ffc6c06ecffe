// RUN: partita-opt %s --objective --split-input-file --verify-diagnostics
// RUN: not partita-opt %s --objective=accumulate=0 --split-input-file 2>&1 | FileCheck %s --check-prefix=ACC
// RUN: not partita-opt %s --objective=freeze=nothing --split-input-file 2>&1 | FileCheck %s --check-prefix=FREEZE
// RUN: not partita-opt %s --objective=kind=lm --split-input-file 2>&1 | FileCheck %s --check-prefix=KIND

// ACC: error: accumulate is 0, expected at least 1
// FREEZE: error: freeze: no parameter matches 'nothing'
// KIND: error: objective 'lm' is unknown; known: auto, none

// expected-error@+1 {{no input is an integer tensor [batch, sequence] that could carry the tokens}}
func.func @forward(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  return %x : tensor<8x16xf32>
}

// -----

// expected-error@+1 {{inputs 'input_ids' and 'token_type_ids' could both carry the tokens; mark one with train.role = "ids"}}
func.func @forward(%a: tensor<8x16xi64> {train.name = "input_ids"}, %b: tensor<8x16xi64> {train.name = "token_type_ids"}) -> tensor<8x16xi64> {
  return %a : tensor<8x16xi64>
}

// -----

// expected-error@+1 {{no result is a floating-point tensor [8, 16, vocabulary] that could be the logits}}
func.func @forward(%a: tensor<8x16xi64>) -> tensor<8x16xi64> {
  return %a : tensor<8x16xi64>
}

// -----

// expected-error@-2 {{the module has no function @forward with a body to train}}
func.func private @other()
