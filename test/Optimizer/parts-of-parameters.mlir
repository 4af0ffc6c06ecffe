// What an exporter has taken apart is trained as the parameter is, unless its number of dimensions or its norm matters.
// RUN: partita-opt %s --optimize="weight-decay=0" 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: partita-opt %s --optimize="weight-decay=0.1" 2>&1 | FileCheck %s --check-prefix=DECAY
// RUN: partita-opt %s --optimize="kind=lamb weight-decay=0" 2>&1 | FileCheck %s --check-prefix=LAMB

// PLAIN-NOT: warning
// DECAY: warning: tensor 'select' is a part of parameter 'stack' that the exporter made a tensor of its own, and weight decay, which leaves out vectors, goes by its own number of dimensions; to train the parameter, export without constant folding (torch.onnx.export: optimize=False)
// DECAY-NOT: warning
// LAMB: warning: tensor 'select', one of 2, is a part of parameter 'stack' that the exporter made a tensor of its own, and lamb scales its updates by its own norm; to train
// LAMB-NOT: warning

train.parameter @select : tensor<6xf32> {train.tensors = [{folded = "reshaped", name = "select", origin = "stack"}]}
train.parameter @slice : tensor<2x6xf32> {train.tensors = [{folded = "part", name = "slice", origin = "packed"}]}
train.parameter @t : tensor<4x6xf32> {train.tensors = [{folded = "moved", name = "t", origin = "w"}]}

func.func @train_step(%gu: tensor<6xf32>, %gv: tensor<2x6xf32>, %gw: tensor<4x6xf32>) attributes {par.no_cotangents} {
  %u = train.read @select : tensor<6xf32>
  %v = train.read @slice : tensor<2x6xf32>
  %w = train.read @t : tensor<4x6xf32>
  train.update @select, %u by %gu : tensor<6xf32>, tensor<6xf32>
  train.update @slice, %v by %gv : tensor<2x6xf32>, tensor<2x6xf32>
  train.update @t, %w by %gw : tensor<4x6xf32>, tensor<4x6xf32>
  return
}
