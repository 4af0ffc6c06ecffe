// RUN: partita-opt %s --plan-memory --split-input-file | FileCheck %s

// What @forward needs for its outputs is no part of what training needs.
// CHECK: module attributes {rt.arena_bytes = 64 : i64, rt.forward_arena_bytes = 4096 : i64,
module {
  func.func @train_step(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<train_step>} {
    %y = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func @forward(%x: tensor<1024xf32>) -> tensor<1024xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %y = tx.exp %x : (tensor<1024xf32>) -> tensor<1024xf32>
    return %y : tensor<1024xf32>
  }
}

// -----

// A program that infers does nothing else.
// CHECK: module attributes {rt.arena_bytes = 4096 : i64, rt.ledger
module {
  func.func @forward(%x: tensor<1024xf32>) -> tensor<1024xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %y = tx.exp %x : (tensor<1024xf32>) -> tensor<1024xf32>
    return %y : tensor<1024xf32>
  }
}
