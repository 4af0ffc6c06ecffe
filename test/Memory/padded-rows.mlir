// Rows of zeros behind a classifier's weight are bytes of persistent memory between it and the next parameter, and a number for the kernel; its
// scratch memory has rows of logits, and sums of the weight's gradient, that are as long: 2 * 1024 * 1024 and 1024 * 16 floats. The gradient has
// the rows of its type.
// RUN: partita-opt %s --plan-memory -o %t.mlir && FileCheck %s --check-prefix=PLAN < %t.mlir
// RUN: partita-opt %t.mlir --check-memory --lower-to-rt | FileCheck %s
// PLAN: rt.persistent_bytes = 32784
// PLAN-DAG: train.parameter @w {{.*}}rt.at = #rt.at<persistent 0>
// PLAN-DAG: train.parameter @b {{.*}}rt.at = #rt.at<persistent 32768>
// CHECK: rt.arena {{[0-9]+}} [1001, 16]
// CHECK: rt.persistent 0 [1001, 16]
// CHECK: rt.arena {{[0-9]+}} [2113536]
// CHECK: rt.classifier_loss_grad {{.*}}block = array<i64: 4096, 1024>, {{.*}}padded = 1024 : i64, {{.*}}vocabulary = 1001
// CHECK: rt.classifier_loss {{.*}}padded = 1024 : i64

// Nothing else may be there.
// RUN: sed 's/persistent 32768>/persistent 32032>/g' %t.mlir > %t.shared.mlir
// RUN: not partita-opt %t.shared.mlir --check-memory 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: error: 'train.parameter' op shares byte 32032 of the persistent memory with @w
// RUN: sed 's/padded_rows = 1024/padded_rows = 1040/' %t.mlir > %t.more.mlir
// RUN: not partita-opt %t.more.mlir --check-memory 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: 'train.parameter' op is placed at #rt.at<persistent 0>, up to byte 33280 of the persistent memory, which has 32784

module attributes {rt.target = "cuda"} {
train.parameter @b : tensor<4xf32>
train.parameter @w : tensor<1001x16xbf16> {rt.padded_rows = 1024 : i64}
func.func @train_step(%x: tensor<6144x16xbf16>, %labels: tensor<6144xi64>, %dloss: tensor<6144xf32>) -> (tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1001x16xbf16>, tensor<4xf32>) {
  %w = train.read @w : tensor<1001x16xbf16>
  %b = train.read @b : tensor<4xf32>
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : (tensor<6144x16xbf16>, tensor<1001x16xbf16>, tensor<6144xi64>, tensor<6144xf32>) -> (tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1001x16xbf16>)
  %1 = tx.exp %b : (tensor<4xf32>) -> tensor<4xf32>
  return %0#0, %0#1, %0#2, %1 : tensor<6144xf32>, tensor<6144x16xbf16>, tensor<1001x16xbf16>, tensor<4xf32>
}
func.func @eval_step(%x: tensor<6144x16xbf16>, %labels: tensor<6144xi64>) -> tensor<6144xf32> {
  %w = train.read @w : tensor<1001x16xbf16>
  %0 = tx.classifier_loss %x, %w, %labels ignore -100 : (tensor<6144x16xbf16>, tensor<1001x16xbf16>, tensor<6144xi64>) -> tensor<6144xf32>
  return %0 : tensor<6144xf32>
}
}
