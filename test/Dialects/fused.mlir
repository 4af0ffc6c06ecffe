// What the loop over micro-batches and a matmul's kernel may be, and what not.
// RUN: partita-opt %s --split-input-file --verify-diagnostics

func.func @grown(%x: tensor<3x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expects 2 region arguments (1 micro-batches, 1 running sums), found 1}}
  %0 = "train.accumulate"(%x) <{grown = array<i64: 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: tensor<4xf32>):
    train.yield %a : tensor<4xf32>
  }) : (tensor<3x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @no_such_sum(%x: tensor<3x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{there is no sum number 1 of 1}}
  %0 = train.accumulate (%a = %x) : (tensor<3x4xf32>) -> tensor<4xf32> onto (%s = 1) {
    train.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @twice(%x: tensor<3x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has a region that receives running sum #0 twice}}
  %0 = train.accumulate (%a = %x) : (tensor<3x4xf32>) -> tensor<4xf32> onto (%s = 0, %t = 0) {
    train.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @narrow(%x: tensor<3x4xbf16>) -> tensor<4xf32> {
  // expected-error @+1 {{has sum #0 of type 'tensor<4xf32>', but its region receives 'tensor<4xf32>' and yields 'tensor<4xbf16>'}}
  %0 = train.accumulate (%a = %x) : (tensor<3x4xbf16>) -> tensor<4xf32> onto (%s = 0) {
    train.yield %a : tensor<4xbf16>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @nothing(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32> {
  // expected-error @+1 {{its region does nothing along with its matmul}}
  %0 = tx.fused_matmul (%a = %x, %b = %w) : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32> {
    %1 = tx.matmul %a, %b : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    tx.fused %1 : tensor<8x6xf32>
  }
  return %0 : tensor<8x6xf32>
}

// -----

func.func @other(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32> {
  // expected-error @+1 {{'tx.silu' is nothing that a matmul's kernel does along with this matmul}}
  %0 = tx.fused_matmul (%a = %x, %b = %w) : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32> {
    %1 = tx.matmul %a, %b : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %2 = tx.silu %1 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    tx.fused %2 : tensor<8x6xf32>
  }
  return %0 : tensor<8x6xf32>
}

// -----

func.func @no_bias(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  // expected-error @+1 {{'tx.gelu_tanh' is nothing that a matmul's kernel does along with this matmul}}
  %0:2 = tx.fused_matmul (%a = %x, %b = %w) : (tensor<8x4xf32>, tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
    %1 = tx.matmul %a, %b : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %2 = tx.gelu_tanh %1 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    tx.fused %2, %1 : tensor<8x6xf32>, tensor<8x6xf32>
  }
  return %0#0, %0#1 : tensor<8x6xf32>, tensor<8x6xf32>
}

// -----

func.func @only_argument(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %v: tensor<6xf32>) -> tensor<8x6xf32> {
  // expected-error @+1 {{its results are not what its region makes, in that order}}
  %0 = tx.fused_matmul (%a = %x, %b = %w, %c = %v) : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<8x6xf32> {
    %1 = tx.matmul_bias %a, %b plus %c : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    %2 = tx.gelu_tanh %1 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    tx.fused %1 : tensor<8x6xf32>
  }
  return %0 : tensor<8x6xf32>
}

// -----

func.func @no_matmul(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @+1 {{'tx.gelu_tanh' is nothing that a matmul's kernel does along with this matmul}}
  %0 = tx.fused_matmul (%a = %x) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    %1 = tx.gelu_tanh %a : (tensor<8x4xf32>) -> tensor<8x4xf32>
    tx.fused %1 : tensor<8x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

func.func @empty(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @+1 {{its region has no matmul}}
  %0 = tx.fused_matmul (%a = %x) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    tx.fused %a : tensor<8x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

func.func @one_added(%x: tensor<8x4xf32>, %dy: tensor<8x6xf32>, %s: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  // expected-error @+1 {{of a weight's gradient and its bias's it adds one to what is there and not the other}}
  %0:2 = tx.fused_matmul (%a = %x, %b = %dy, %c = %s) : (tensor<8x4xf32>, tensor<8x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
    %1 = tx.matmul_tn %a, %b : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %2 = tx.reduce_sum %b [0] : tensor<8x6xf32> -> tensor<6xf32>
    %3 = tx.add %c, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    tx.fused %3, %2 : tensor<4x6xf32>, tensor<6xf32>
  }
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<6xf32>
}

// -----

func.func @columns(%x: tensor<8x4xf32>, %dy: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  // expected-error @+1 {{its region sums up something else than the rows of one of the matmul's operands}}
  %0:2 = tx.fused_matmul (%a = %x, %b = %dy) : (tensor<8x4xf32>, tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
    %1 = tx.matmul_tn %a, %b : (tensor<8x4xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %2 = tx.reduce_sum %b [1] : tensor<8x8xf32> -> tensor<8xf32>
    tx.fused %1, %2 : tensor<4x8xf32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<4x8xf32>, tensor<8xf32>
}

// -----

func.func @columns_of_slope(%g: tensor<6x4xf32>, %w: tensor<6x4xf32>, %x: tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6xf32>) {
  // expected-error @+1 {{its region sums up something else than the rows of the slope's result}}
  %0:2 = tx.fused_matmul (%a = %g, %b = %w, %c = %x) : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6xf32>) {
    %1 = tx.matmul_nt %a, %b : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x6xf32>
    %2 = tx.gelu_tanh_grad %c, %1 : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    %3 = tx.reduce_sum %1 [0] : tensor<6x6xf32> -> tensor<6xf32>
    tx.fused %2, %3 : tensor<6x6xf32>, tensor<6xf32>
  }
  return %0#0, %0#1 : tensor<6x6xf32>, tensor<6xf32>
}

// -----

func.func @mixed(%x: tensor<8x4xbf16>, %dy: tensor<8x6xf32>, %s: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{its kernel has no such types of elements}}
  %0 = tx.fused_matmul (%a = %x, %b = %dy, %c = %s) : (tensor<8x4xbf16>, tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32> {
    %1 = tx.matmul_tn %a, %b : (tensor<8x4xbf16>, tensor<8x6xf32>) -> tensor<4x6xbf16>
    %2 = tx.cast %1 : tensor<4x6xbf16> -> tensor<4x6xf32>
    %3 = tx.add %c, %2 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    tx.fused %3 : tensor<4x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

func.func @onto_itself(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{it adds to an operand of its matmul}}
  %0 = tx.fused_matmul (%x = %a) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    %1 = tx.matmul_tn %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = tx.add %x, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    tx.fused %2 : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// -----

func.func @rounded_angles(%x: tensor<2x4xbf16>, %cos: tensor<2x4xbf16>, %sin: tensor<2x4xf32>) -> tensor<2x4xbf16> {
  // expected-error @+1 {{turns elements of type 'bf16' by angles of type 'f32', not 'bf16'}}
  %0 = tx.rotary %x, %cos, %sin : (tensor<2x4xbf16>, tensor<2x4xbf16>, tensor<2x4xf32>) -> tensor<2x4xbf16>
  return %0 : tensor<2x4xbf16>
}

// -----

func.func @gelu_of_sum(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %v: tensor<6xf32>, %s: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  // expected-error @+1 {{'tx.gelu_tanh' is nothing that a matmul's kernel does along with this matmul}}
  %0:2 = tx.fused_matmul (%a = %x, %b = %w, %c = %v, %d = %s) : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
    %1 = tx.matmul_bias %a, %b plus %c : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    %2 = tx.add %d, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %3 = tx.gelu_tanh %2 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    tx.fused %3, %2 : tensor<8x6xf32>, tensor<8x6xf32>
  }
  return %0#0, %0#1 : tensor<8x6xf32>, tensor<8x6xf32>
}

// -----

func.func @added_gelu(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %v: tensor<6xf32>, %s: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  // expected-error @+1 {{'tx.add' is nothing that a matmul's kernel does along with this matmul}}
  %0:2 = tx.fused_matmul (%a = %x, %b = %w, %c = %v, %d = %s) : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>, tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
    %1 = tx.matmul_bias %a, %b plus %c : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    %2 = tx.gelu_tanh %1 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %3 = tx.add %d, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    tx.fused %2, %3 : tensor<8x6xf32>, tensor<8x6xf32>
  }
  return %0#0, %0#1 : tensor<8x6xf32>, tensor<8x6xf32>
}

// -----

func.func @wide_sum(%x: tensor<8x4xbf16>, %w: tensor<4x6xbf16>, %s: tensor<8x6xf32>) -> tensor<8x6xf32> {
  // expected-error @+1 {{'tx.cast' is nothing that a matmul's kernel does along with this matmul}}
  %0 = tx.fused_matmul (%a = %x, %b = %w, %c = %s) : (tensor<8x4xbf16>, tensor<4x6xbf16>, tensor<8x6xf32>) -> tensor<8x6xf32> {
    %1 = tx.matmul %a, %b : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
    %2 = tx.cast %1 : tensor<8x6xbf16> -> tensor<8x6xf32>
    %3 = tx.add %c, %2 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    tx.fused %3 : tensor<8x6xf32>
  }
  return %0 : tensor<8x6xf32>
}

// -----

func.func @saves_for_nobody(%xs: tensor<3x4xf32>) {
  // expected-error @+1 {{saves values, but has no later region that takes them}}
  %0 = train.accumulate (%x = %xs) : (tensor<3x4xf32>) -> tensor<4xf32> {
    train.yield %x : tensor<4xf32> saves %x : tensor<4xf32>
  }
  return
}

// -----

func.func @backward_saves(%xs: tensor<3x4xf32>) {
  // expected-error @+1 {{has a backward region that saves values, and none after it}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<3x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32>
  } backward (%x1) {
    train.yield %x1 : tensor<4xf32> saves %x1 : tensor<4xf32>
  }
  return
}

// -----

func.func @arguments(%xs: tensor<3x4xf32>) {
  // expected-error @+1 {{expects 2 arguments of its backward region (1 micro-batches, 1 saved values, 0 running sums), found 1}}
  %0:2 = "train.accumulate"(%xs) <{laterPasses = [#train.pass<backward>], resultSegmentSizes = array<i32: 2, 0>}> ({
  ^bb0(%x: tensor<4xf32>):
    train.yield %x : tensor<4xf32> saves %x : tensor<4xf32>
  }, {
  ^bb0(%x1: tensor<4xf32>):
    train.yield %x1 : tensor<4xf32>
  }) : (tensor<3x4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @types(%xs: tensor<3x4xf32>) {
  // expected-error @+1 {{has a backward region whose argument #0 has type 'tensor<4xf64>'; in the forward region it has type 'tensor<4xf32>'}}
  %0:2 = "train.accumulate"(%xs) <{laterPasses = [#train.pass<backward>], resultSegmentSizes = array<i32: 2, 0>}> ({
  ^bb0(%x: tensor<4xf32>):
    train.yield %x : tensor<4xf32>
  }, {
  ^bb0(%x1: tensor<4xf64>):
    %y = tx.cast %x1 : tensor<4xf64> -> tensor<4xf32>
    train.yield %y : tensor<4xf32>
  }) : (tensor<3x4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @count(%xs: tensor<3x4xf32>) {
  %0:2 = train.accumulate (%x = %xs) : (tensor<3x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    train.yield %x : tensor<4xf32> saves %x : tensor<4xf32>
  // expected-error @+1 {{expects 2 arguments of the backward region (1 micro-batches, 1 saved values), found 3}}
  } backward (%x1, %y1, %z1) {
    train.yield %x1 : tensor<4xf32>
  }
  return
}

// -----

func.func @grown(%xs: tensor<3x4xf32>) {
  // expected-error @+1 {{adds to running sums, but its passes are not scheduled}}
  %0:2 = train.accumulate (%x = %xs) : (tensor<3x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) onto (%s = 0) {
    %1 = tx.add %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    train.yield %1 : tensor<4xf32>
  } backward (%x1) {
    train.yield %x1 : tensor<4xf32>
  }
  return
}

// -----

func.func @no_argument(%xs: tensor<3x4xf32>) {
  // expected-error @+1 {{expects 1 region arguments (1 micro-batches, 0 running sums), found 0}}
  %0:2 = "train.accumulate"(%xs) <{laterPasses = [#train.pass<backward>], resultSegmentSizes = array<i32: 2, 0>}> ({
    %y = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
    train.yield %y : tensor<4xf32>
  }, {
  ^bb0(%x1: tensor<4xf32>):
    train.yield %x1 : tensor<4xf32>
  }) : (tensor<3x4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @no_micro_batch(%xs: tensor<0x4xf32>) {
  // expected-error @+1 {{needs at least one micro-batch, and has none: 'tensor<0x4xf32>'}}
  %0 = train.accumulate (%x = %xs) : (tensor<0x4xf32>) -> tensor<4xf32> {
    train.yield %x : tensor<4xf32>
  }
  return
}

// -----

func.func @lookup_alone(%table: tensor<6x8xf32>, %ids: tensor<4xi64>) -> tensor<4x8xf32> {
  // expected-error @+1 {{its region is not a lookup, or its gradient, and an addition}}
  %0 = tx.fused_lookup (%a = %table, %b = %ids) : (tensor<6x8xf32>, tensor<4xi64>) -> tensor<4x8xf32> {
    %1 = tx.embedding %a, %b : (tensor<6x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
    tx.fused %1 : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

func.func @lookup_twice(%table: tensor<6x8xf32>, %ids: tensor<4xi64>) -> tensor<4x8xf32> {
  // expected-error @+1 {{its region does not add the lookup to an argument}}
  %0 = tx.fused_lookup (%a = %table, %b = %ids) : (tensor<6x8xf32>, tensor<4xi64>) -> tensor<4x8xf32> {
    %1 = tx.embedding %a, %b : (tensor<6x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
    %2 = tx.add %1, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    tx.fused %2 : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

func.func @lookup_onto_table(%table: tensor<4x8xf32>, %ids: tensor<4xi64>) -> tensor<4x8xf32> {
  // expected-error @+1 {{it adds to an operand of its lookup}}
  %0 = tx.fused_lookup (%a = %table, %b = %ids) : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32> {
    %1 = tx.embedding %a, %b : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
    %2 = tx.add %a, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    tx.fused %2 : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

func.func @lookup_of_numbers(%table: tensor<6x8xi64>, %ids: tensor<4xi64>, %x: tensor<4x8xi64>) -> tensor<4x8xi64> {
  // expected-error @+1 {{its kernel has no such types of elements}}
  %0 = tx.fused_lookup (%a = %table, %b = %ids, %c = %x) : (tensor<6x8xi64>, tensor<4xi64>, tensor<4x8xi64>) -> tensor<4x8xi64> {
    %1 = tx.embedding %a, %b : (tensor<6x8xi64>, tensor<4xi64>) -> tensor<4x8xi64>
    %2 = tx.add %c, %1 : (tensor<4x8xi64>, tensor<4x8xi64>) -> tensor<4x8xi64>
    tx.fused %2 : tensor<4x8xi64>
  }
  return %0 : tensor<4x8xi64>
}

// -----

func.func @lookup_not_added(%ids: tensor<4xi64>, %dy: tensor<4x8xf32>, %x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  // expected-error @+1 {{its result is not the sum}}
  %0 = tx.fused_lookup (%a = %ids, %b = %dy, %c = %x) : (tensor<4xi64>, tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32> {
    %1 = tx.embedding_grad %a, %b : (tensor<4xi64>, tensor<4x8xf32>) -> tensor<6x8xf32>
    %2 = tx.add %c, %1 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    tx.fused %1 : tensor<6x8xf32>
  }
  return %0 : tensor<6x8xf32>
}
