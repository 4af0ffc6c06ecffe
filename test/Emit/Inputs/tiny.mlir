module attributes {par.mesh = #par.mesh<dp = 2>, train.phase = "overlap", train.plan = #train.plan<{}>} {
  train.parameter @table : tensor<16x8xf32> fill(<0.0, normal 0.2>)
  train.parameter @head.weight : tensor<8x16xf32> fill(<0.0, normal 0.2>)
  train.parameter @head.bias : tensor<16xf32> fill(<0.0>)
  train.state @head.weight.m : tensor<8x16xf32> = 0.0 of @head.weight "m"
  train.state @head.weight.v : tensor<8x16xf32> = 0.0 of @head.weight "v"
  func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
    %table = train.initial_value @table : tensor<16x8xf32>
    train.write @table, %table : tensor<16x8xf32>
    %w = train.initial_value @head.weight : tensor<8x16xf32>
    train.write @head.weight, %w : tensor<8x16xf32>
    %b = train.initial_value @head.bias : tensor<16xf32>
    train.write @head.bias, %b : tensor<16xf32>
    %m = train.initial_value @head.weight.m : tensor<8x16xf32>
    train.write @head.weight.m, %m : tensor<8x16xf32>
    %v = train.initial_value @head.weight.v : tensor<8x16xf32>
    train.write @head.weight.v, %v : tensor<8x16xf32>
    return
  }
  func.func @train_step(%ids: tensor<1x2x4xi64, #par.place<[1, 4 @dp, 4]>> {train.batch = 1 : i64, train.role = "ids", train.name = "input_ids"},
                        %labels: tensor<1x2x4xi64, #par.place<[1, 4 @dp, 4]>> {train.batch = 1 : i64, train.role = "labels"}) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>, par.no_cotangents} {
    %table = train.read @table : tensor<16x8xf32>
    %w = train.read @head.weight : tensor<8x16xf32>
    %b = train.read @head.bias : tensor<16xf32>
    %m = train.read @head.weight.m : tensor<8x16xf32>
    %v = train.read @head.weight.v : tensor<8x16xf32>
    %0 = train.token_count %labels ignore -100 : (tensor<1x2x4xi64, #par.place<[1, 4 @dp, 4]>>) -> tensor<f32, #par.place<[], partial [dp]>>
    %count = par.all_reduce %0 over "dp" {par.causes = [#par.cause<sum "" in "" of "tx.reduce_sum" "loss" layer -1 of 0>]} : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
    %one = tx.reciprocal %count : (tensor<f32>) -> tensor<f32>
    %i = tx.reshape %ids : tensor<1x2x4xi64, #par.place<[1, 4 @dp, 4]>> -> tensor<2x4xi64, #par.place<[4 @dp, 4]>>
    %l = tx.reshape %labels : tensor<1x2x4xi64, #par.place<[1, 4 @dp, 4]>> -> tensor<2x4xi64, #par.place<[4 @dp, 4]>>
    %x = tx.embedding %table, %i : (tensor<16x8xf32>, tensor<2x4xi64, #par.place<[4 @dp, 4]>>) -> tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>> loc("/model/embed/Gather")
    %half = tx.constant dense<0.5> : tensor<2x4x8xf32> : tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>
    %h = tx.fusion (%p = %x) : (tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>) -> tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>> {
      %c = tx.constant dense<-0.5> : tensor<2x4x8xf32> : tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>
      %s = tx.sub %p, %c : (tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>, tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>) -> tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>
      %g = tx.gelu_tanh %s : (tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>) -> tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>
      tx.fused %g : tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>
    } loc("/model/act/Gelu")
    %y = tx.matmul %h, %w : (tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>, tensor<8x16xf32>) -> tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>> loc("/model/head/MatMul")
    %bias = tx.broadcast %b : tensor<16xf32> -> tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>> loc("/model/head/Add")
    %logits = tx.add %y, %bias : (tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>>, tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>>) -> tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>> loc("/model/head/Add")
    %loss, %lse = tx.cross_entropy %logits, %l ignore -100 : (tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>>, tensor<2x4xi64, #par.place<[4 @dp, 4]>>) -> (tensor<2x4xf32, #par.place<[4 @dp, 4]>>, tensor<2x4xf32, #par.place<[4 @dp, 4]>>)
    %sum = tx.reduce_sum %loss [0, 1] : tensor<2x4xf32, #par.place<[4 @dp, 4]>> -> tensor<f32, #par.place<[], partial [dp]>>
    %mean = tx.mul %sum, %one : (tensor<f32, #par.place<[], partial [dp]>>, tensor<f32>) -> tensor<f32, #par.place<[], partial [dp]>>
    %total = par.all_reduce %mean over "dp" {par.causes = [#par.cause<sum "" in "" of "tx.reduce_sum" "loss" layer -1 of 0>]} : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
    %seed = tx.broadcast %one {train.backward} : tensor<f32> -> tensor<2x4xf32, #par.place<[4 @dp, 4]>>
    %dlogits = tx.cross_entropy_grad %logits, %l, %lse, %seed ignore -100 {train.backward} : (tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>>, tensor<2x4xi64, #par.place<[4 @dp, 4]>>, tensor<2x4xf32, #par.place<[4 @dp, 4]>>, tensor<2x4xf32, #par.place<[4 @dp, 4]>>) -> tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>>
    %dw = tx.matmul_tn %h, %dlogits {train.backward} : (tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>, tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>>) -> tensor<8x16xf32, #par.place<[8, 16], partial [dp]>> loc("/model/head/MatMul")
    %db = tx.reduce_sum %dlogits [0, 1] {train.backward} : tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>> -> tensor<16xf32, #par.place<[16], partial [dp]>> loc("/model/head/Add")
    %pending = par.all_reduce_start %dw, %db over "dp" {par.causes = [#par.cause<share "" in "" of "tx.matmul" "gradients of \22head\22 */ \\" layer -1 of 0>], train.backward} : tensor<8x16xf32, #par.place<[8, 16], partial [dp]>>, tensor<16xf32, #par.place<[16], partial [dp]>> -> i64
    %dh = tx.matmul_nt %dlogits, %w {train.backward} : (tensor<2x4x16xf32, #par.place<[4 @dp, 4, 16]>>, tensor<8x16xf32>) -> tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>> loc("/model/head/MatMul")
    %dx = tx.mul %dh, %half {train.backward} : (tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>, tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>) -> tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>> loc("/model/act/Gelu")
    %dtable = tx.embedding_grad %i, %dx {train.backward} : (tensor<2x4xi64, #par.place<[4 @dp, 4]>>, tensor<2x4x8xf32, #par.place<[4 @dp, 4, 8]>>) -> tensor<16x8xf32, #par.place<[16, 8], partial [dp]>> loc("/model/embed/Gather")
    %gtable = par.all_reduce %dtable over "dp" {par.causes = [#par.cause<share "" in "" of "tx.matmul" "gradient of table" layer -1 of 0>], train.backward} : tensor<16x8xf32, #par.place<[16, 8], partial [dp]>> -> tensor<16x8xf32>
    %gw, %gb = par.wait %pending, %dw, %db {train.backward} : i64, tensor<8x16xf32, #par.place<[8, 16], partial [dp]>>, tensor<16xf32, #par.place<[16], partial [dp]>> -> tensor<8x16xf32>, tensor<16xf32>
    %rate = train.learning_rate : tensor<f32>
    %t = train.step_number : tensor<f32>
    %w1, %m1, %v1 = train.adamw %w, %gw, %m, %v, %rate, %t {beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, decay = 0.1} : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<f32>, tensor<f32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
    %b1 = train.sgd %b, %gb, %rate {decay = 0.0} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
    %table1 = train.sgd %table, %gtable, %rate {decay = 0.1} : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<f32>) -> tensor<16x8xf32>
    train.write @head.weight, %w1 : tensor<8x16xf32>
    train.write @head.weight.m, %m1 : tensor<8x16xf32>
    train.write @head.weight.v, %v1 : tensor<8x16xf32>
    train.write @head.bias, %b1 : tensor<16xf32>
    train.write @table, %table1 : tensor<16x8xf32>
    return %total : tensor<f32>
  }
}
