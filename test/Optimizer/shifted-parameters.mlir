// What an exporter has folded a constant into (1 + w) has the parameter's gradient, and is warned of only where its value matters too.
// RUN: partita-opt %s --optimize=weight-decay=0.1 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: partita-opt %s --optimize="kind=sgd groups=w:weight-decay=0.1,*:weight-decay=0" 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: partita-opt %s --optimize=groups=*:weight-decay=0.1 2>&1 | FileCheck %s --check-prefix=DECAY
// RUN: partita-opt %s --optimize=groups=add:weight-decay=0.1 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: partita-opt %s --optimize=kind=lamb 2>&1 | FileCheck %s --check-prefix=LAMB

// PLAIN-NOT: warning
// DECAY: warning: tensor 'add', one of 2, is parameter 'u' plus a constant that the exporter folded in, and weight decay pulls the sum toward zero, not the parameter; to train the parameter, export without constant folding (torch.onnx.export: optimize=False)
// DECAY-NOT: warning
// It is also said when the program runs.
// DECAY: train.notes = [#train.note<text = "tensor 'add', one of 2, is parameter 'u' plus a constant {{.*}}", of_parameters = true>]
// ONE: warning: tensor 'add' is parameter 'u' plus a constant that the exporter folded in, and weight decay
// LAMB: warning: tensor 'add', one of 2, is parameter 'u' plus a constant that the exporter folded in, and lamb scales updates by the norm of the sum, not the parameter; to train

train.parameter @add : tensor<6xf32> {train.tensors = [#train.stored<name = "add", origin = "u", folded = shifted>]}
train.parameter @add_1 : tensor<6xf32> {train.tensors = [#train.stored<name = "add_1", origin = "v", folded = shifted>]}
train.parameter @w : tensor<4x6xf32>

func.func @train_step(%gu: tensor<6xf32>, %gv: tensor<6xf32>, %gw: tensor<4x6xf32>) attributes {train.entry_point = #train.entry_point<train_step>, par.no_cotangents} {
  %u = train.read @add : tensor<6xf32>
  %v = train.read @add_1 : tensor<6xf32>
  %w = train.read @w : tensor<4x6xf32>
  train.update @add, %u by %gu : tensor<6xf32>, tensor<6xf32>
  train.update @add_1, %v by %gv : tensor<6xf32>, tensor<6xf32>
  train.update @w, %w by %gw : tensor<4x6xf32>, tensor<4x6xf32>
  return
}
