// RUN: partita-opt %s --plan-memory --lower-to-rt --split-input-file | FileCheck %s

// How many rows a classifier works on at once, and its scratch memory. Blocks of rows add up a 16-bit gradient of the weight in floats:
// 300 * (1024 + 512 + 16) and 1000 * 16 of them.
// CHECK-LABEL: func.func @blocks(
// CHECK: rt.arena {{[0-9]+}} [481600]{{.*}} : <f32>
// CHECK: rt.classifier_loss_grad {{.*}}block = array<i64: 300, 512>
func.func @blocks(%x: tensor<600x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<600xi64>, %dloss: tensor<600xf32>) -> (tensor<600xf32>, tensor<600x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<600x16xbf16>, tensor<1000x16xbf16>, tensor<600xi64>, tensor<600xf32>) -> (tensor<600xf32>, tensor<600x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<600xf32>, tensor<600x16xbf16>, tensor<1000x16xbf16>
}

// Where that takes no more memory than the sums, all rows are one block.
// CHECK-LABEL: func.func @wide(
// CHECK: rt.arena {{[0-9]+}} [1401600]{{.*}} : <f32>
// CHECK: rt.classifier_loss_grad {{.*}}block = array<i64: 600, 512>
func.func @wide(%x: tensor<600x800xbf16>, %w: tensor<1000x800xbf16>, %labels: tensor<600xi64>, %dloss: tensor<600xf32>) -> (tensor<600xf32>, tensor<600x800xbf16>, tensor<1000x800xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<600x800xbf16>, tensor<1000x800xbf16>, tensor<600xi64>, tensor<600xf32>) -> (tensor<600xf32>, tensor<600x800xbf16>, tensor<1000x800xbf16>)
  return %0#0, %0#1, %0#2 : tensor<600xf32>, tensor<600x800xbf16>, tensor<1000x800xbf16>
}

// But no more than the cache bears.
// CHECK-LABEL: func.func @too_many(
// CHECK: rt.arena {{[0-9]+}} [11499712]{{.*}} : <f32>
// CHECK: rt.classifier_loss_grad {{.*}}block = array<i64: 367, 512>
func.func @too_many(%x: tensor<1100x8000xbf16>, %w: tensor<1000x8000xbf16>, %labels: tensor<1100xi64>, %dloss: tensor<1100xf32>) -> (tensor<1100xf32>, tensor<1100x8000xbf16>, tensor<1000x8000xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<1100x8000xbf16>, tensor<1000x8000xbf16>, tensor<1100xi64>, tensor<1100xf32>) -> (tensor<1100xf32>, tensor<1100x8000xbf16>, tensor<1000x8000xbf16>)
  return %0#0, %0#1, %0#2 : tensor<1100xf32>, tensor<1100x8000xbf16>, tensor<1000x8000xbf16>
}

// As many as the program says (size-classifier), 4,096 at most: 4096 * (1024 + 512 + 16) and 1000 * 16.
// CHECK-LABEL: func.func @given(
// CHECK: rt.arena {{[0-9]+}} [6372992]{{.*}} : <f32>
// CHECK: rt.classifier_loss_grad {{.*}}block = array<i64: 4096, 512>
func.func @given(%x: tensor<6000x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<6000xi64>, %dloss: tensor<6000xf32>) -> (tensor<6000xf32>, tensor<6000x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 {rt.rows = 5000 : i64} : (tensor<6000x16xbf16>, tensor<1000x16xbf16>, tensor<6000xi64>, tensor<6000xf32>) -> (tensor<6000xf32>, tensor<6000x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<6000xf32>, tensor<6000x16xbf16>, tensor<1000x16xbf16>
}

// -----

module attributes {rt.target = "cuda"} {

// A GPU's block has logits in 16 bits, which become their gradient in place, and no room for dx: 4096 * 1000 / 2 and 1000 * 16 floats.
// CHECK-LABEL: func.func @on_gpu(
// CHECK: rt.arena {{[0-9]+}} [2064000]{{.*}} : <f32>
// CHECK: rt.classifier_loss_grad {{.*}}block = array<i64: 4096, 1000>
func.func @on_gpu(%x: tensor<6144x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<6144xi64>, %dloss: tensor<6144xf32>) -> (tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<6144x16xbf16>, tensor<1000x16xbf16>, tensor<6144xi64>, tensor<6144xf32>) -> (tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1000x16xbf16>
}

// 4,100 rows are one block: four more than 4,096 take less memory than the sums.
// CHECK-LABEL: func.func @on_gpu_at_once(
// CHECK: rt.arena {{[0-9]+}} [2050000]{{.*}} : <f32>
// CHECK: rt.classifier_loss_grad {{.*}}block = array<i64: 4100, 1000>
func.func @on_gpu_at_once(%x: tensor<4100x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<4100xi64>, %dloss: tensor<4100xf32>) -> (tensor<4100xf32>, tensor<4100x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<4100x16xbf16>, tensor<1000x16xbf16>, tensor<4100xi64>, tensor<4100xf32>) -> (tensor<4100xf32>, tensor<4100x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<4100xf32>, tensor<4100x16xbf16>, tensor<1000x16xbf16>
}

// As many as the program says; all tokens need no sums.
// CHECK-LABEL: func.func @given_on_gpu(
// CHECK: rt.arena {{[0-9]+}} [2516000]{{.*}} : <f32>
// CHECK: rt.classifier_loss_grad {{.*}}block = array<i64: 5000, 1000>
func.func @given_on_gpu(%x: tensor<6144x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<6144xi64>, %dloss: tensor<6144xf32>) -> (tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 {rt.rows = 5000 : i64} : (tensor<6144x16xbf16>, tensor<1000x16xbf16>, tensor<6144xi64>, tensor<6144xf32>) -> (tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1000x16xbf16>
}
// CHECK-LABEL: func.func @all_on_gpu(
// CHECK: rt.arena {{[0-9]+}} [3072000]{{.*}} : <f32>
// CHECK: rt.classifier_loss_grad {{.*}}block = array<i64: 6144, 1000>
func.func @all_on_gpu(%x: tensor<6144x16xbf16>, %w: tensor<1000x16xbf16>, %labels: tensor<6144xi64>, %dloss: tensor<6144xf32>) -> (tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1000x16xbf16>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 {rt.rows = 6144 : i64} : (tensor<6144x16xbf16>, tensor<1000x16xbf16>, tensor<6144xi64>, tensor<6144xf32>) -> (tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1000x16xbf16>)
  return %0#0, %0#1, %0#2 : tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1000x16xbf16>
}
}
