// RUN: partita-opt %s --optimize --verify-diagnostics

train.parameter @w : tensor<4xf32>
func.func @train_step(%g: tensor<2xf32, #par.place<[4 @dp]>>) attributes {train.entry_point = #train.entry_point<train_step>, par.no_cotangents} {
  %w = train.read @w : tensor<4xf32>
  // expected-error@+1 {{the gradient of @w is 'tensor<2xf32, #par.place<[4 @dp]>>', the parameter 'tensor<4xf32>'}}
  train.update @w, %w by %g : tensor<4xf32>, tensor<2xf32, #par.place<[4 @dp]>>
  return
}
