// @init by itself, on two ranks: shards of rows, of columns, and full tensors. init.test takes the placements out of
// it for one rank.
module attributes {par.mesh = #par.mesh<dp = 2>, train.phase = "overlap", train.plan = #train.plan<{}>} {
  train.parameter @rows : tensor<8x6xf32> fill(<0.0, normal 0.5>)
  train.parameter @columns : tensor<6x8xf32> fill(<1.0, normal 0.25>)
  train.parameter @full : tensor<5xf32> fill(<3.0>)
  train.state @rows.m : tensor<8x6xf32> = 0.5 of @rows "m"
  train.state @scale : tensor<f32> = 65536.0
  train.state @count : tensor<i64> = -3.0
  func.func @init() attributes {train.entry_point = #train.entry_point<init>, par.no_cotangents} {
    %0 = train.initial_value @rows : tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    train.write @rows, %0 : tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %1 = train.initial_value @columns : tensor<6x4xf32, #par.place<[6, 8 @dp]>>
    train.write @columns, %1 : tensor<6x4xf32, #par.place<[6, 8 @dp]>>
    %2 = train.initial_value @full : tensor<5xf32>
    train.write @full, %2 : tensor<5xf32>
    %3 = train.initial_value @rows.m : tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    train.write @rows.m, %3 : tensor<4x6xf32, #par.place<[8 @dp, 6]>>
    %4 = train.initial_value @scale : tensor<f32>
    train.write @scale, %4 : tensor<f32>
    %5 = train.initial_value @count : tensor<i64>
    train.write @count, %5 : tensor<i64>
    return
  }
}
