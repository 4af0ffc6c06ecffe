// Places in memory that text lacks: an error, whoever removed them.
// RUN: not partita-opt %s --lower-to-rt --split-input-file 2>&1 | FileCheck %s

func.func @buffers(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: :[[#@LINE+1]]:8: error: 'tx.exp' op has [] as rt.buffers, and 1 results need a place each (#rt.at)
  %0 = tx.exp %x {rt.buffers = []} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
