// RUN: partita-opt %s --offload-activations=what=activations --verify-diagnostics

// expected-error@below {{offload: activations: this program has no backward pass that would need them}}
module {
  func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %y = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
