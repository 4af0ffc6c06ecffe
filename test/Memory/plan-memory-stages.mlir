// RUN: partita-opt %s --pass-pipeline='builtin.module(builtin.module(plan-memory))' --mlir-disable-threading | FileCheck %s

// Every stage's memory begins at its beginning, whichever stage was planned before.
// CHECK-COUNT-3: rt.persistent_bytes = 64 : i64
module {
module attributes {pipe.stage = 0 : i64} {
  train.parameter @a : tensor<16xf32>
  func.func @forward() -> tensor<16xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %0 = train.read @a : tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}
module attributes {pipe.stage = 1 : i64} {
  train.parameter @b : tensor<16xf32>
  func.func @forward() -> tensor<16xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %0 = train.read @b : tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}
module attributes {pipe.stage = 2 : i64} {
  train.parameter @c : tensor<16xf32>
  func.func @forward() -> tensor<16xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %0 = train.read @c : tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}
}
