// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --mlir-print-op-generic | partita-opt | FileCheck %s
// RUN: partita-opt %s --canonicalize --cse | FileCheck %s

module {
// CHECK: module attributes {par.mesh = #par.mesh<dp = 2>, pipe.stage = 0 : i64}
module attributes {pipe.stage = 0, par.mesh = #par.mesh<dp = 2>} {
  // Neither a value that is not used nor the same one twice goes away: the other stage counts.
  // CHECK: @f
  func.func @f(%x: tensor<8xf32>) {
    // CHECK-NEXT: pipe.send %{{.*}} over <0 to 1> : tensor<8xf32>
    // CHECK-NEXT: pipe.send %{{.*}} over <0 to 1> : tensor<8xf32>
    // CHECK-NEXT: pipe.recv over <1 to 0, number 2> : tensor<4xi64>
    // CHECK-NEXT: return
    pipe.send %x over <0 to 1> : tensor<8xf32>
    pipe.send %x over <0 to 1> : tensor<8xf32>
    %0 = pipe.recv over <1 to 0, number 2> : tensor<4xi64>
    return
  }
}
}
