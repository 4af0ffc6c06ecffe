// For compress-momenta.mlir: rows, columns and a row of one dimension, over more ranks of tp than divide them.
!rows = tensor<3x8xf32, #par.place<[5 @tp, 8]>>
!columns = tensor<8x3xf32, #par.place<[8, 5 @tp]>>
!bias = tensor<1x5xf32, #par.place<[1, 9 @tp]>>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {
train.parameter @rows : tensor<5x8xf32>
train.parameter @columns : tensor<8x5xf32>
train.parameter @bias : tensor<1x9xf32>
func.func @train_step(%gr: tensor<3x8xf32, #par.place<[5 @tp, 8], partial [dp]>>, %gc: tensor<8x3xf32, #par.place<[8, 5 @tp], partial [dp]>>, %gb: tensor<1x5xf32, #par.place<[1, 9 @tp], partial [dp]>>) attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>} {
  %r = train.read @rows : !rows
  %c = train.read @columns : !columns
  %b = train.read @bias : !bias
  %0 = par.all_reduce %gr over "dp" because "gradient" : tensor<3x8xf32, #par.place<[5 @tp, 8], partial [dp]>> -> !rows
  %1 = par.all_reduce %gc over "dp" because "gradient" : tensor<8x3xf32, #par.place<[8, 5 @tp], partial [dp]>> -> !columns
  %2 = par.all_reduce %gb over "dp" because "gradient" : tensor<1x5xf32, #par.place<[1, 9 @tp], partial [dp]>> -> !bias
  train.update @rows, %r by %0 : !rows, !rows
  train.update @columns, %c by %1 : !columns, !columns
  train.update @bias, %b by %2 : !bias, !bias
  return
}
}
