// RUN: not partita-opt %s --mark-layers --note-flops --choose-schedule=stages=3 --note-costs --pipe-place 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: 3 stages need as many layers, and the model has 2: parts of it that repeat (partita explain --flops lists them){{$}}
// RUN: not partita-opt %s --mark-layers --note-flops --choose-schedule=stages=2 --pipe-place=assign=evenly 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: error: assign: 'evenly' is not one of auto, uniform, parameters, cuts:LAYER,...
// RUN: not partita-opt %s --mark-layers --note-flops --choose-schedule=stages=2 --pipe-place=assign=cuts:2 2>&1 | FileCheck %s --check-prefix=BEHIND
// BEHIND: error: cuts: stage 1 cannot begin at layer '2': stage 0 begins at layer 0, and the model's last layer is 1{{$}}
// RUN: not partita-opt %s --mark-layers --note-flops --choose-schedule=stages=2 --pipe-place=assign=cuts:x 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: cuts: 'x' is not the number of a layer, such as cuts:4,8
// RUN: not partita-opt %s --choose-schedule=stages=2 --note-costs --pipe-place 2>&1 | FileCheck %s --check-prefix=UNMARKED
// UNMARKED: error: has no train.work; note-flops records what each layer computes
// RUN: not partita-opt %s --note-flops --choose-schedule=stages=2 --note-costs --pipe-place 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 2 stages need as many layers, and the model has 0
// RUN: not partita-opt %s --mark-layers --note-flops --choose-schedule="stages=2 schedule=interleaved" --note-costs --pipe-place 2>&1 | FileCheck %s --check-prefix=CHUNKS
// CHUNKS: error: 2 stages of 2 chunks need 4 layers, and the model has 2: parts of it that repeat (partita explain --flops lists them)
// RUN: not partita-opt %s --mark-layers --note-flops --choose-schedule=stages=2 --note-costs --pipe-place --pipe-place=assign=uniform 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: stages: the program has layers on them already
// RUN: not partita-opt %s --mark-layers --note-flops --choose-schedule=stages=2 --pipe-place 2>&1 | FileCheck %s --check-prefix=FREE
// FREE: error: assign: auto needs the costs of layers; note-costs records them
// RUN: partita-opt %s --mark-layers --pipe-place | FileCheck %s --check-prefix=ONE
// ONE-NOT: pipe.
// ONE: return

train.parameter @a0 : tensor<4x4xf32>
train.parameter @b0 : tensor<4x4xf32>

func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %s = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = tx.add %s, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = tx.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = tx.exp %3 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}
