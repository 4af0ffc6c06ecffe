// RUN: partita-opt %s --pad-classifier --split-input-file | FileCheck %s

module attributes {rt.target = "cuda"} {
// CHECK: train.parameter @w : tensor<50257x768xbf16> {rt.padded_rows = 50304 : i64}
train.parameter @w : tensor<50257x768xbf16>
// Another table of as many rows, which no classifier reads.
// CHECK: train.parameter @other : tensor<50257x768xbf16>{{$}}
train.parameter @other : tensor<50257x768xbf16>
func.func @train_step(%x: tensor<4x768xbf16>, %labels: tensor<4xi64>, %dloss: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.read @w : tensor<50257x768xbf16>
  %loss, %dx, %dw = tx.classifier_loss_grad %x, %0, %labels, %dloss ignore -100 : (tensor<4x768xbf16>, tensor<50257x768xbf16>, tensor<4xi64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4x768xbf16>, tensor<50257x768xbf16>)
  return %loss : tensor<4xf32>
}
// All functions read the same rows: padding is the parameter's.
func.func @eval_step(%x: tensor<4x768xbf16>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %0 = train.read @w : tensor<50257x768xbf16>
  %1 = tx.classifier_loss %x, %0, %labels ignore -100 : (tensor<4x768xbf16>, tensor<50257x768xbf16>, tensor<4xi64>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @embed(%ids: tensor<4xi64>) -> tensor<4x768xbf16> {
  %0 = train.read @other : tensor<50257x768xbf16>
  %1 = tx.embedding %0, %ids : (tensor<50257x768xbf16>, tensor<4xi64>) -> tensor<4x768xbf16>
  return %1 : tensor<4x768xbf16>
}
}

// -----

// A multiple of 8 is read as it is.
module attributes {rt.target = "cuda"} {
// CHECK: train.parameter @w : tensor<32000x768xbf16>{{$}}
train.parameter @w : tensor<32000x768xbf16>
func.func @eval_step(%x: tensor<4x768xbf16>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %0 = train.read @w : tensor<32000x768xbf16>
  %1 = tx.classifier_loss %x, %0, %labels ignore -100 : (tensor<4x768xbf16>, tensor<32000x768xbf16>, tensor<4xi64>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
}

// -----

// So is float32, whose matmuls take any number of rows.
module attributes {rt.target = "cuda"} {
// CHECK: train.parameter @w : tensor<50257x768xf32>{{$}}
train.parameter @w : tensor<50257x768xf32>
func.func @eval_step(%x: tensor<4x768xf32>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %0 = train.read @w : tensor<50257x768xf32>
  %1 = tx.classifier_loss %x, %0, %labels ignore -100 : (tensor<4x768xf32>, tensor<50257x768xf32>, tensor<4xi64>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
}

// -----

// CPUs take any number too.
module attributes {rt.target = "cpu"} {
// CHECK: train.parameter @w : tensor<50257x768xbf16>{{$}}
train.parameter @w : tensor<50257x768xbf16>
func.func @eval_step(%x: tensor<4x768xbf16>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %0 = train.read @w : tensor<50257x768xbf16>
  %1 = tx.classifier_loss %x, %0, %labels ignore -100 : (tensor<4x768xbf16>, tensor<50257x768xbf16>, tensor<4xi64>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
}

// -----

// Other pipeline stages have the parameter at the same offset, and nothing between it and the next.
module attributes {rt.target = "cuda"} {
// CHECK: train.parameter @w : tensor<50257x768xbf16> {pipe.offset = 0 : i64}{{$}}
train.parameter @w : tensor<50257x768xbf16> {pipe.offset = 0 : i64}
func.func @eval_step(%x: tensor<4x768xbf16>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %0 = train.read @w : tensor<50257x768xbf16>
  %1 = tx.classifier_loss %x, %0, %labels ignore -100 : (tensor<4x768xbf16>, tensor<50257x768xbf16>, tensor<4xi64>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
}

// -----

// A weight that is made before it is read (gathered, fetched, scaled) has a place for this read alone.
module attributes {rt.target = "cuda"} {
// CHECK: train.parameter @w : tensor<50257x768xbf16>{{$}}
train.parameter @w : tensor<50257x768xbf16>
func.func @eval_step(%x: tensor<4x768xbf16>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %0 = train.read @w : tensor<50257x768xbf16>
  %1 = tx.add %0, %0 : (tensor<50257x768xbf16>, tensor<50257x768xbf16>) -> tensor<50257x768xbf16>
  %2 = tx.classifier_loss %x, %1, %labels ignore -100 : (tensor<4x768xbf16>, tensor<50257x768xbf16>, tensor<4xi64>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
}
