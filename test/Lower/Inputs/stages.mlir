// Three stages: the outer two add something up, then all three; the first one sends two values to the second.
module attributes {pipe.axis = 0 : i64} {
  module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0 : i64, pipe.count = 3 : i64, pipe.stage = 0 : i64} {
    func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = pipe.sum %x on [0, 2] because "norm" : tensor<8xf32>
      %1 = pipe.sum %0 on [0, 1, 2] because "loss" : tensor<8xf32>
      pipe.send %0 over <0 to 1> : tensor<8xf32>
      pipe.send %1 over <0 to 1, number 2> : tensor<8xf32>
      return %1 : tensor<8xf32>
    }
  }
  module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0 : i64, pipe.count = 3 : i64, pipe.stage = 1 : i64} {
    func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %1 = pipe.sum %x on [0, 1, 2] because "loss" : tensor<8xf32>
      %2 = pipe.recv over <0 to 1> : tensor<8xf32>
      %3 = pipe.recv over <0 to 1, number 2> : tensor<8xf32>
      %4 = tx.add %2, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %5 = tx.add %1, %4 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      return %5 : tensor<8xf32>
    }
  }
  module attributes {par.mesh = #par.mesh<dp = 2>, pipe.axis = 0 : i64, pipe.count = 3 : i64, pipe.stage = 2 : i64} {
    func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = pipe.sum %x on [0, 2] because "norm" : tensor<8xf32>
      %1 = pipe.sum %0 on [0, 1, 2] because "loss" : tensor<8xf32>
      return %1 : tensor<8xf32>
    }
  }
}
