// What an exporter has taken apart is trained as the parameter is, unless its norm matters. Weight decay goes by the parameter's number of
// dimensions: 'select' decays, 'column' does not. Where that is open, as for 'view', a warning says so, unless a group decides.
// RUN: partita-opt %s --optimize="weight-decay=0" 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: partita-opt %s --optimize="weight-decay=0.1" 2>&1 | FileCheck %s --check-prefix=DECAY
// RUN: partita-opt %s --optimize="weight-decay=0.1 groups=v*:weight-decay=0.2" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: partita-opt %s --optimize="kind=lamb weight-decay=0" 2>&1 | FileCheck %s --check-prefix=LAMB

// PLAIN-NOT: warning
// DECAY: warning: tensor 'view' is made of parameter 'gain' by the exporter, perhaps in another number of dimensions, and weight decay, which leaves out vectors, goes by its own number unless --group decides; to train the parameter, export without constant folding (torch.onnx.export: optimize=False)
// DECAY-NOT: warning
// DECAY-LABEL: func.func @train_step
// DECAY: train.adamw {{.*}} decay = 1.000000e-01 {{.*}} tensor<6xf32>
// DECAY: train.adamw {{.*}} decay = 1.000000e-01 {{.*}} tensor<2x6xf32>
// DECAY: train.adamw {{.*}} decay = 1.000000e-01 {{.*}} tensor<4x6xf32>
// DECAY: train.adamw {{.*}} decay = 0.000000e+00 {{.*}} tensor<6x1xf32>
// DECAY: train.adamw {{.*}} decay = 1.000000e-01 {{.*}} tensor<2x3xf32>
// GROUP-NOT: warning
// LAMB: warning: tensor 'select', one of 2, is a part of parameter 'stack' that the exporter made a tensor of its own, and lamb scales its updates by its own norm; to train
// LAMB-NOT: warning

train.parameter @select : tensor<6xf32> {train.tensors = [#train.stored<name = "select", origin = "stack", folded = part, dimensions = [2, 2]>]}
train.parameter @slice : tensor<2x6xf32> {train.tensors = [#train.stored<name = "slice", origin = "packed", folded = part>]}
train.parameter @t : tensor<4x6xf32> {train.tensors = [#train.stored<name = "t", origin = "w", folded = moved>]}
train.parameter @column : tensor<6x1xf32> {train.tensors = [#train.stored<name = "column", origin = "scale", folded = moved, dimensions = [1, 1]>]}
train.parameter @view : tensor<2x3xf32> {train.tensors = [#train.stored<name = "view", origin = "gain", folded = moved, dimensions = [0, 64]>]}

func.func @train_step(%gu: tensor<6xf32>, %gv: tensor<2x6xf32>, %gw: tensor<4x6xf32>, %gc: tensor<6x1xf32>, %gg: tensor<2x3xf32>) attributes {train.entry_point = #train.entry_point<train_step>, par.no_cotangents} {
  %u = train.read @select : tensor<6xf32>
  %v = train.read @slice : tensor<2x6xf32>
  %w = train.read @t : tensor<4x6xf32>
  %c = train.read @column : tensor<6x1xf32>
  %g = train.read @view : tensor<2x3xf32>
  train.update @select, %u by %gu : tensor<6xf32>, tensor<6xf32>
  train.update @slice, %v by %gv : tensor<2x6xf32>, tensor<2x6xf32>
  train.update @t, %w by %gw : tensor<4x6xf32>, tensor<4x6xf32>
  train.update @column, %c by %gc : tensor<6x1xf32>, tensor<6x1xf32>
  train.update @view, %g by %gg : tensor<2x3xf32>, tensor<2x3xf32>
  return
}
