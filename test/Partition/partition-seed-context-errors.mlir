// RUN: partita-opt %s --split-input-file --verify-diagnostics --partition-seed-context=how=ring
// RUN: not partita-opt %s --split-input-file --partition-seed-context=how=rings 2>&1 | FileCheck %s
// CHECK: error: --context-parallel: 'rings' is unknown; known: auto, ring, all-to-all

module attributes {par.mesh = #par.mesh<cp = 4>} {
  train.parameter @wte : tensor<16x8xf32>
  func.func @odd(%ids: tensor<2x6xi64> {train.batch = 0}) -> tensor<2x6x8xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    // expected-error@+1 {{context parallelism splits a dimension of size 6, which does not divide over cp = 4; take a multiple of 4 (4, 8, ...)}}
    %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x6xi64>) -> tensor<2x6x8xf32>
    %q = tx.reshape %x : tensor<2x6x8xf32> -> tensor<2x6x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
    %y = tx.reshape %out : tensor<2x6x2x4xf32> -> tensor<2x6x8xf32>
    return %y : tensor<2x6x8xf32>
  }
}

// -----

// expected-error@+1 {{context parallelism (mesh axis 'cp') exchanges keys between the ranks that share a sequence, and no attention of this model is recognized; take dp instead}}
module attributes {par.mesh = #par.mesh<cp = 2>} {
  func.func @none(%x: tensor<2x6xf32> {train.batch = 0}) -> tensor<2x6xf32> {
    return %x : tensor<2x6xf32>
  }
}

// -----

// expected-error@+1 {{--context-parallel ring splits sequences over mesh axis 'cp', of which there is one rank; a mesh with cp=2 or more has what it splits}}
module attributes {par.mesh = #par.mesh<dp = 2>} {
}
