// A parameter is found by its name, by a tensor of the file that holds it, and by what an exporter computed that tensor from.
// RUN: partita-opt %s --objective="freeze=wte kind=none" | FileCheck %s --check-prefix=FROZEN
// RUN: partita-opt %s --objective="freeze=val_3 kind=none" | FileCheck %s --check-prefix=FROZEN
// RUN: partita-opt %s --objective="freeze=embedding.* kind=none" | FileCheck %s --check-prefix=FROZEN
// FROZEN: train.parameter @wte : tensor<256x4xf32> frozen
// RUN: not partita-opt %s --objective="freeze=embed kind=none" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: freeze: no parameter matches 'embed'

// A tensor of the file that is constant anyway may be named too, but its name is no parameter's.
// RUN: partita-opt %s --objective="freeze=position*,wte kind=none" | FileCheck %s --check-prefix=FROZEN
// RUN: not partita-opt %s --objective="trainable=position* kind=none" 2>&1 | FileCheck %s --check-prefix=CONSTANT
// CONSTANT: error: trainable: no parameter matches 'position*'
module attributes {train.frozen_constants = ["positions"]} {
train.parameter @wte : tensor<256x4xf32> {train.tensors = [#train.stored<name = "val_3", origin = "embedding.scale">]}
func.func @forward(%ids: tensor<8x16xi64>) -> tensor<8x16x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @wte : tensor<256x4xf32>
  %x = tx.embedding %w, %ids : (tensor<256x4xf32>, tensor<8x16xi64>) -> tensor<8x16x4xf32>
  return %x : tensor<8x16x4xf32>
}
}
