// RUN: partita-opt %s --offload-states=what=optimizer --verify-diagnostics

// expected-error@below {{offload: optimizer: there are no states that the host could keep; the optimizer has none, or the program does not train}}
module {
  train.parameter @w : tensor<4xf32>
  func.func @no_states(%g: tensor<4xf32>) {
    %w = train.read @w : tensor<4xf32>
    %rate = train.learning_rate : tensor<f32>
    %new = train.sgd %w, %g, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    train.write @w, %new : tensor<4xf32>
    return
  }
}
