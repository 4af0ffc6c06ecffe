// RUN: partita-opt %s --note-phase=phase=raise | FileCheck %s
// RUN: partita-opt %s --partita-raise | FileCheck %s
// A phase runs after the one before it, and once.
// RUN: not partita-opt %s --partita-precision 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: not partita-opt %s --partita-raise --partita-raise 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not partita-opt %s --note-phase=phase=lower 2>&1 | FileCheck %s --check-prefix=LOWER
// RUN: not partita-opt %s --note-phase=phase=lowr 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not partita-opt %s --partita-raise=mesh=dp=2 2>&1 | FileCheck %s --check-prefix=READS
// EARLY: error: phase 'precision' follows 'objective', and this module's train.phase is "import"; next is --partita-raise
// TWICE: error: phase 'raise' follows 'import', and this module's train.phase is "raise"; next is --partita-objective
// LOWER: error: phase 'lower' follows 'sync', and this module's train.phase is "import"; next is --partita-raise
// NONE: error: note-phase: there is no phase 'lowr'
// READS: mesh: has no effect on phase 'raise'; phase 'stages' reads it

module attributes {train.phase = "import", train.plan = #train.plan<{}>} {
// CHECK: train.phase = "raise"
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  return %x : tensor<4xf32>
}
}
