// RUN: partita-opt %s --split-input-file --verify-diagnostics --verify-phase=after=differentiate
// RUN: not partita-opt %s --verify-phase=after=lower 2>&1 | FileCheck %s --check-prefix=LOWER
// LOWER: error: 'func.func' op is left after phase 'lower'
// RUN: not partita-opt %s --verify-phase=after=nothing 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: verify-phase: there is no phase 'nothing'

module attributes {par.mesh = #par.mesh<tp = 2>} {
  func.func @conjugate(%w: tensor<4x4xf32>) {
    // expected-error@+1 {{'par.f' op is left after phase 'differentiate'}}
    %f = par.f %w over "tp" : tensor<4x4xf32> -> tensor<4x4xf32, #par.place<[4, 4], replicated [tp]>>
    return
  }
}

// -----

func.func @dialect(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'offload.to_host' op is of a dialect that phase 'differentiate' does not know}}
  %h = offload.to_host %x : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// What differentiate, or a pass after it, has built without a location of the op that it is built from.
func.func @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.exp %x {train.layer = #train.layer<0 of 2>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'tx.neg' op has no train.layer after phase 'differentiate'}}
  %1 = tx.neg %0 {train.backward} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Constants are shared, and a program that nobody has divided into layers has none.
func.func @no_layers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @constant() -> tensor<4xf32> {
  %c = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %0 = tx.exp %c {train.layer = #train.layer<0 of 2>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
