// An error is one line; the op that it is about, which may be the whole module, follows on request.
// RUN: not partita-opt %s --optimize=kind=rmsprop 2>&1 | FileCheck %s --implicit-check-not=operation --implicit-check-not=func
// RUN: not partita-opt %s --optimize=kind=rmsprop --mlir-print-op-on-diagnostic 2>&1 | FileCheck %s --check-prefixes=CHECK,OP
// CHECK: error: optimizer 'rmsprop' is unknown; known: adagrad, adam, adamw, lamb, lion, momentum, onebit_adam, onebit_lamb, sgd, zero_one_adam{{$}}
// OP: note: see current operation:
// OP: "func.func"()

func.func @train_step(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<train_step>} {
  return %x : tensor<4xf32>
}
