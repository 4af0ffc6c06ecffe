// Quantization: to the nearest number of the format, halves to even, beyond the max the max. Without rounding nothing is lost.
// RUN: partita-interp %s | FileCheck %s --check-prefixes=CHECK,EXACT
// RUN: partita-interp %s --round-casts | FileCheck %s --check-prefixes=CHECK,ROUND

// CHECK-LABEL: @quantize
// EXACT-NEXT: result 0: 6 = [17, 19, 500, -1000, 0.000976562, 0.003]
// ROUND-NEXT: result 0: 6 = [16, 20, 448, -448, 0, 0.00390625]
// CHECK-NEXT: result 1: 2 = [1000, 5]
// EXACT-NEXT: result 2: 6 = [17, 19, 500, -1000, 0.000976562, 0.003]
// ROUND-NEXT: result 2: 6 = [16, 20, 512, -1024, 0.000976562, 0.00292969]
func.func @quantize() -> (tensor<6xf32>, tensor<2xf32>, tensor<6xf32>) {
  %x = tx.constant dense<[17.0, 19.0, 500.0, -1000.0, 0.0009765625, 0.003]> : tensor<6xf32> : tensor<6xf32>
  %scales = tx.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %maxima = tx.constant dense<[0.0, 5.0]> : tensor<2xf32> : tensor<2xf32>
  %q, %raised = amp.quantize %x by %scales[0] in f8E4M3FN noting %maxima : tensor<2xf32> : tensor<6xf32>, tensor<2x1xf32> -> rows tensor<6xf32> maxima tensor<2xf32>
  %r = amp.quantize %x by %scales[1] in f8E5M2 : tensor<6xf32>, tensor<2x1xf32> -> rows tensor<6xf32>
  return %q, %raised, %r : tensor<6xf32>, tensor<2xf32>, tensor<6xf32>
}

// A matmul multiplies what is stored with both scales.
// CHECK-LABEL: @matmul
// EXACT-NEXT: result 0: 1x1 = {{\[\[}}2023{{\]\]}}
// ROUND-NEXT: result 0: 1x1 = {{\[\[}}1904{{\]\]}}
func.func @matmul() -> tensor<1x1xf32> {
  %a = tx.constant dense<[[17.0, 19.0]]> : tensor<1x2xf32> : tensor<1x2xf32>
  %b = tx.constant dense<[[68.0], [45.6315789474]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %scales = tx.constant dense<[[1.0], [4.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %q = amp.quantize %a by %scales[0] in f8E4M3FN : tensor<1x2xf32>, tensor<2x1xf32> -> rows tensor<1x2xf8E4M3FN>
  %r = amp.quantize %b by %scales[1] in f8E4M3FN : tensor<2x1xf32>, tensor<2x1xf32> -> rows tensor<2x1xf8E4M3FN>
  %c = tx.scaled_matmul %q, %r scaled by %scales[0, 1] : (tensor<1x2xf8E4M3FN>, tensor<2x1xf8E4M3FN>, tensor<2x1xf32>) -> tensor<1x1xf32>
  return %c : tensor<1x1xf32>
}

// A bias has no scale.
// CHECK-LABEL: @bias
// CHECK-NEXT: result 0: 2x1 = {{\[\[}}-13], [91{{\]\]}}
// CHECK-NEXT: result 1: 2x1 = {{\[\[}}-13], [91{{\]\]}}
func.func @bias() -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %a = tx.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %b = tx.constant dense<[[6.0, 7.0]]> : tensor<1x2xf32> : tensor<1x2xf32>
  %c = tx.constant dense<[[6.0], [7.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %bias = tx.constant dense<-93.0> : tensor<1xf32> : tensor<1xf32>
  %scales = tx.constant dense<[[0.5], [8.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %q = tx.cast %a : tensor<2x2xf32> -> tensor<2x2xf8E4M3FN>
  %r = tx.cast %b : tensor<1x2xf32> -> tensor<1x2xf8E4M3FN>
  %s = tx.cast %c : tensor<2x1xf32> -> tensor<2x1xf8E4M3FN>
  %y = tx.scaled_matmul_nt_bias %q, %r scaled by %scales[0, 1] plus %bias : (tensor<2x2xf8E4M3FN>, tensor<1x2xf8E4M3FN>, tensor<2x1xf32>, tensor<1xf32>) -> tensor<2x1xf32>
  %z = tx.scaled_matmul_bias %q, %s scaled by %scales[0, 1] plus %bias : (tensor<2x2xf8E4M3FN>, tensor<2x1xf8E4M3FN>, tensor<2x1xf32>, tensor<1xf32>) -> tensor<2x1xf32>
  return %y, %z : tensor<2x1xf32>, tensor<2x1xf32>
}

// The transpose beside the rows, or alone: the last dimension comes first. A matmul of columns sums over all the others.
// CHECK-LABEL: @columns
// CHECK-NEXT: result 0: 2x1x3 = {{\[\[\[}}1, 2, 3]], {{\[\[}}4, 5, 6{{\]\]\]}}
// CHECK-NEXT: result 1: 3x2x1 = {{\[\[\[}}1], [4]], {{\[\[}}2], [5]], {{\[\[}}3], [6{{\]\]\]}}
// CHECK-NEXT: result 2: 2 = [6, 0]
// CHECK-NEXT: result 3: 3x2x1 = {{\[\[\[}}1], [4]], {{\[\[}}2], [5]], {{\[\[}}3], [6{{\]\]\]}}
// CHECK-NEXT: result 4: 3x3 = {{\[\[}}17, 22, 27], [22, 29, 36], [27, 36, 45{{\]\]}}
// CHECK-NEXT: result 5: 3 = [5, 7, 9]
func.func @columns() -> (tensor<2x1x3xf32>, tensor<3x2x1xf32>, tensor<2xf32>, tensor<3x2x1xf32>, tensor<3x3xf32>, tensor<3xf32>) {
  %x = tx.constant dense<[[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]> : tensor<2x1x3xf32> : tensor<2x1x3xf32>
  %scales = tx.constant dense<1.0> : tensor<2x1xf32> : tensor<2x1xf32>
  %maxima = tx.constant dense<0.0> : tensor<2xf32> : tensor<2xf32>
  %q, %qt, %raised = amp.quantize %x by %scales[0] in f8E4M3FN noting %maxima : tensor<2xf32> : tensor<2x1x3xf32>, tensor<2x1xf32> -> rows tensor<2x1x3xf8E4M3FN> columns tensor<3x2x1xf8E4M3FN> maxima tensor<2xf32>
  %rt, %sums = amp.quantize %x by %scales[1] in f8E4M3FN : tensor<2x1x3xf32>, tensor<2x1xf32> -> columns tensor<3x2x1xf8E4M3FN> sums tensor<3xf32>
  %rows = tx.cast %q : tensor<2x1x3xf8E4M3FN> -> tensor<2x1x3xf32>
  %columns = tx.cast %qt : tensor<3x2x1xf8E4M3FN> -> tensor<3x2x1xf32>
  %only = tx.cast %rt : tensor<3x2x1xf8E4M3FN> -> tensor<3x2x1xf32>
  %c = tx.scaled_matmul_columns %qt, %rt scaled by %scales[0, 1] : (tensor<3x2x1xf8E4M3FN>, tensor<3x2x1xf8E4M3FN>, tensor<2x1xf32>) -> tensor<3x3xf32>
  return %rows, %columns, %raised, %only, %c, %sums : tensor<2x1x3xf32>, tensor<3x2x1xf32>, tensor<2xf32>, tensor<3x2x1xf32>, tensor<3x3xf32>, tensor<3xf32>
}
