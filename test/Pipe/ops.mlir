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

// One program of all stages, and its gradient: what crosses stages goes back, what several share is summed.
// CHECK: @g
func.func @g(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: pipe.share %{{.*}} on [0, 2] : tensor<8xf32>
  // CHECK-NEXT: pipe.pin %{{.*}} to 0 : tensor<8xf32>
  // CHECK-NEXT: pipe.move %{{.*}} over <0 to 1> : tensor<8xf32>
  // CHECK-NEXT: pipe.sum %{{.*}} on [0, 1] : tensor<8xf32>
  // CHECK-NEXT: pipe.copies %{{.*}}, %{{.*}} on [1, 0] : tensor<8xf32>
  %0 = pipe.share %x on [0, 2] : tensor<8xf32>
  %1 = pipe.pin %0 to 0 : tensor<8xf32>
  %2 = pipe.move %1 over <0 to 1> : tensor<8xf32>
  %3 = pipe.sum %2 on [0, 1] : tensor<8xf32>
  %4 = pipe.copies %2, %3 on [1, 0] : tensor<8xf32>
  return %4 : tensor<8xf32>
}
