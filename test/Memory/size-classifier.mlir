// RUN: partita-opt %s --size-classifier=share=25 --split-input-file | FileCheck %s --check-prefixes=CHECK,MORE
// RUN: partita-opt %s --size-classifier --split-input-file | FileCheck %s --check-prefixes=CHECK,USUAL
// RUN: partita-opt %s --size-classifier=share=100 --split-input-file | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: partita-opt %s --size-classifier=rows=1000 --split-input-file | FileCheck %s --check-prefix=GIVEN

// A GPU takes 4,096 tokens of 16 bits at once, which is its own choice and no attribute. The program needs 42.4 MB with them, 32 MiB of these
// the workspace of matmuls: 8,192 cost another 8.2 MB, all tokens 24.6 MB. Evaluation, which adds up no gradient, gains nothing.
module attributes {rt.target = "cuda"} {
// CHECK-LABEL: @training(
// USUAL: ignore -100 :
// MORE: ignore -100 {rt.rows = 8192 : i64}
// ALL: ignore -100 {rt.rows = 16384 : i64}
// GIVEN: ignore -100 {rt.rows = 1000 : i64}
func.func @training(%x: tensor<16384x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<16384xi64>, %dloss: tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<16384x16xbf16>, tensor<1000x16xbf16>, tensor<16384xi64>, tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>
}
// CHECK-LABEL: @evaluation(
// USUAL: ignore -100 :
// MORE: ignore -100 :
// ALL: ignore -100 :
// GIVEN: ignore -100 {rt.rows = 1000 : i64}
func.func @evaluation(%x: tensor<16384x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<16384xi64>) -> tensor<16384xf32> {
  %0 = tx.classifier_loss %x, %w, %labels ignore -100 : (tensor<16384x16xbf16>, tensor<1000x16xbf16>, tensor<16384xi64>) -> tensor<16384xf32>
  return %0 : tensor<16384xf32>
}
}

// -----

// With a limit, blocks are as large as it allows, whatever the share: of 52 MB, all tokens take 67.0.
module attributes {rt.target = "cuda", rt.memory_limit = 52000000} {
// CHECK-LABEL: @limited(
// CHECK: ignore -100 {rt.rows = 8192 : i64}
func.func @limited(%x: tensor<16384x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<16384xi64>, %dloss: tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<16384x16xbf16>, tensor<1000x16xbf16>, tensor<16384xi64>, tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>
}
}

// -----

// 42.4 MB are too much, 38.3 are not.
module attributes {rt.target = "cuda", rt.memory_limit = 42000000} {
// CHECK-LABEL: @halved(
// CHECK: ignore -100 {rt.rows = 2048 : i64}
func.func @halved(%x: tensor<16384x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<16384xi64>, %dloss: tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<16384x16xbf16>, tensor<1000x16xbf16>, tensor<16384xi64>, tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>
}
}

// -----

// 35 MB need blocks that are smaller still.
module attributes {rt.target = "cuda", rt.memory_limit = 35000000} {
// CHECK-LABEL: @small(
// CHECK: ignore -100 {rt.rows = 256 : i64}
func.func @small(%x: tensor<16384x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<16384xi64>, %dloss: tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<16384x16xbf16>, tensor<1000x16xbf16>, tensor<16384xi64>, tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>
}
}

// -----

// One block of all tokens needs no sums of the weight's gradient, two do: here these take what the first halving saves.
module attributes {rt.target = "cuda", rt.memory_limit = 33700000} {
// CHECK-LABEL: @twice(
// CHECK: ignore -100 {rt.rows = 16 : i64}
func.func @twice(%x: tensor<64x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<64xi64>, %dloss: tensor<64xf32>) -> (tensor<64xf32>, tensor<64x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<64x16xbf16>, tensor<1000x16xbf16>, tensor<64xi64>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<64xf32>, tensor<64x16xbf16>, tensor<1000x16xbf16>
}
}

// -----

// Nothing helps, because the workspace of matmuls alone is too much: the size that needs least.
module attributes {rt.target = "cuda", rt.memory_limit = 30000000} {
// CHECK-LABEL: @hopeless(
// CHECK: rt.rows = 8
func.func @hopeless(%x: tensor<16384x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<16384xi64>, %dloss: tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<16384x16xbf16>, tensor<1000x16xbf16>, tensor<16384xi64>, tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>
}
}

// -----

// Blocks on the CPU are those that its caches hold, so that larger ones gain nothing; smaller ones save memory there too.
module attributes {rt.memory_limit = 3000000} {
// CHECK-LABEL: @on_cpu(
// CHECK: ignore -100 {rt.rows = 256 : i64}
func.func @on_cpu(%x: tensor<16384x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<16384xi64>, %dloss: tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<16384x16xbf16>, tensor<1000x16xbf16>, tensor<16384xi64>, tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>
}
}

// -----

// What the program says stays.
module attributes {rt.target = "cuda"} {
// CHECK-LABEL: @said(
// CHECK: ignore -100 {rt.rows = 24 : i64}
// GIVEN: ignore -100 {rt.rows = 24 : i64}
func.func @said(%x: tensor<16384x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<16384xi64>, %dloss: tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 {rt.rows = 24 : i64} : (tensor<16384x16xbf16>, tensor<1000x16xbf16>, tensor<16384xi64>, tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<16384xf32>, tensor<16384x16xbf16>, tensor<1000x16xbf16>
}
}
