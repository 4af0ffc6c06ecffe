// RUN: partita-opt %s --partition-seed=mesh=dp=3 --verify-diagnostics
// RUN: not partita-opt %s --partition-seed=mesh=dp=x 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not partita-opt %s --partition-seed=mesh=dp=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not partita-opt %s --partition-seed=mesh=dp=2,dp=2 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not partita-opt %s --partition-seed=mesh=dq=2 2>&1 | FileCheck %s --check-prefix=AXIS

// SIZE: error: mesh 'dp=x': expected AXIS=SIZE, found 'dp=x'
// ZERO: mesh axis "dp" has size 0, expected at least 1
// TWICE: mesh axis "dp" is given twice
// AXIS: error: mesh axis 'dq' is unknown; known axes: dp, fsdp, cp, ulysses, tp

// expected-error@+1 {{a batch of 8 does not divide over 3 data-parallel ranks; take a multiple of 3}}
func.func @forward(%ids: tensor<8x16xi64> {train.batch = 0 : i64}) -> tensor<8x16xi64> attributes {train.entry_point = #train.entry_point<forward>} {
  return %ids : tensor<8x16xi64>
}
