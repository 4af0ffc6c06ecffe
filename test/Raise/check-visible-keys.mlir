// What a query may see: nothing is said, and nothing changes.
// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(check-visible-keys))' > %t.mlir 2> %t.err
// RUN: partita-opt %s | diff - %t.mlir && test ! -s %t.err

// The model yields zeros there.
func.func @guarded(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0xFF800000]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 zero_hidden : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// Softmax of equal numbers is a mean, as low as they are; a layout leaves it one of fewer keys.
func.func @by_number(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[-3.0e38, -3.0e38, -3.0e38, -3.0e38], [0.0, -3.0e38, -3.0e38, -3.0e38], [0.0, 0.0, -3.0e38, -3.0e38], [0.0, 0.0, 0.0, -3.0e38]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// The first query's block has two such keys, and the others see theirs.
func.func @by_number_in_blocks(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[-3.0e38, -3.0e38, -3.0e38, -3.0e38], [0.0, -3.0e38, -3.0e38, -3.0e38], [0.0, 0.0, -3.0e38, -3.0e38], [0.0, 0.0, 0.0, -3.0e38]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 blocks <2, [band -1 to 0]> : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// The blocks next to the diagonal have them.
func.func @wider_blocks(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[0xFF800000, 0xFF800000, 0.0, 0.0], [0xFF800000, 0xFF800000, 0.0, 0.0], [0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 blocks <2, [band -1 to 1]> : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// A padding mask is not known: the run sees it.
func.func @padding(%x: tensor<1x4x2x4xf32>, %m: tensor<1x1x1x4xf32>) -> tensor<1x4x2x4xf32> {
  %low = tx.constant dense<0xFF800000> : tensor<1x1x1x4xf32> : tensor<1x1x1x4xf32>
  %b = tx.mul %m, %low : (tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32>) -> tensor<1x1x1x4xf32>
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x1x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}
