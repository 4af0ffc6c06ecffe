// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-documents{remarks}))' --split-input-file --verify-diagnostics | FileCheck %s
// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-documents{recurring}))' --split-input-file | FileCheck %s --check-prefix=RECUR --implicit-check-not=tx.document_starts

// The ids of query and key are compared; the causal mask is a comparison of positions. Two layers: first keys are computed once.
// With `recurring` they stay biases.
// RECUR-LABEL: @two_layers(
// RECUR: tx.attention %{{.*}} bias %
// CHECK-LABEL: @two_layers(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<2x5x2x4xf32>, %[[IDS:[a-z0-9]*]]: tensor<2x5xi64>
// CHECK-NEXT:    %[[F:.*]] = tx.document_starts %[[IDS]] : (tensor<2x5xi64>) -> tensor<2x5xi32>
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = tx.attention %[[X]], %[[X]], %[[X]] from %[[F]] scale 5.000000e-01 causal :
// CHECK-NEXT:    %[[P:.*]], %{{.*}} = tx.attention %[[O]], %[[O]], %[[O]] from %[[F]] scale 5.000000e-01 causal :
// CHECK-NEXT:    return %[[P]]
func.func @two_layers(%x: tensor<2x5x2x4xf32>, %ids: tensor<2x5xi64>) -> tensor<2x5x2x4xf32> {
  %zero = tx.constant dense<0.0> : tensor<2x1x5x5xf32> : tensor<2x1x5x5xf32>
  %low = tx.constant dense<-3.40282347E+38> : tensor<2x1x5x5xf32> : tensor<2x1x5x5xf32>
  %i = tx.iota 0.0, 1.0 : tensor<5xi64>
  %row = tx.reshape %i : tensor<5xi64> -> tensor<5x1xi64>
  %rows = tx.broadcast %row : tensor<5x1xi64> -> tensor<2x5x5xi64>
  %cols = tx.broadcast %i : tensor<5xi64> -> tensor<2x5x5xi64>
  %tril = tx.less_equal %cols, %rows : (tensor<2x5x5xi64>, tensor<2x5x5xi64>) -> tensor<2x5x5xi1>
  %idq = tx.reshape %ids : tensor<2x5xi64> -> tensor<2x5x1xi64>
  %idk = tx.reshape %ids : tensor<2x5xi64> -> tensor<2x1x5xi64>
  %ofq = tx.broadcast %idq : tensor<2x5x1xi64> -> tensor<2x5x5xi64>
  %ofk = tx.broadcast %idk : tensor<2x1x5xi64> -> tensor<2x5x5xi64>
  %same = tx.equal %ofq, %ofk : (tensor<2x5x5xi64>, tensor<2x5x5xi64>) -> tensor<2x5x5xi1>
  %seen = tx.and %tril, %same : (tensor<2x5x5xi1>, tensor<2x5x5xi1>) -> tensor<2x5x5xi1>
  %seen4 = tx.reshape %seen : tensor<2x5x5xi1> -> tensor<2x1x5x5xi1>
  %bias = tx.select %seen4, %zero, %low : (tensor<2x1x5x5xi1>, tensor<2x1x5x5xf32>, tensor<2x1x5x5xf32>) -> tensor<2x1x5x5xf32>
  // expected-remark@+1 {{raised to attention within documents}}
  %o, %l = tx.attention %x, %x, %x bias %bias scale 0.5 : (tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>, tensor<2x1x5x5xf32>) -> (tensor<2x5x2x4xf32>, tensor<2x2x5xf32>)
  // expected-remark@+1 {{raised to attention within documents}}
  %p, %m = tx.attention %o, %o, %o bias %bias scale 0.5 : (tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>, tensor<2x1x5x5xf32>) -> (tensor<2x5x2x4xf32>, tensor<2x2x5xf32>)
  return %p : tensor<2x5x2x4xf32>
}

// -----

// One row of ids for all samples, hidden where they differ, and a window of two keys.
// CHECK-LABEL: @window(
// CHECK:         %[[R:.*]] = tx.reshape %{{.*}} : tensor<4xi32> -> tensor<1x4xi32>
// CHECK:         %[[S:.*]] = tx.document_starts %[[R]]
// CHECK:         %[[F:.*]] = tx.broadcast %[[S]] : tensor<1x4xi32> -> tensor<2x4xi32>
// CHECK:         tx.attention %{{.*}}, %{{.*}}, %{{.*}} from %[[F]] scale 1.000000e+00 causal window 2 :
func.func @window(%x: tensor<2x4x1x4xf32>, %ids: tensor<4xi32>) -> tensor<2x4x1x4xf32> {
  %m = tx.constant dense<[[[[0.0, -1.0e38, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38, -1.0e38], [-1.0e38, 0.0, 0.0, -1.0e38], [-1.0e38, -1.0e38, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %low = tx.constant dense<-1.0e38> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %idq = tx.reshape %ids : tensor<4xi32> -> tensor<1x1x4x1xi32>
  %ofq = tx.broadcast %idq : tensor<1x1x4x1xi32> -> tensor<1x1x4x4xi32>
  %ofk = tx.broadcast %ids : tensor<4xi32> -> tensor<1x1x4x4xi32>
  %same = tx.equal %ofq, %ofk : (tensor<1x1x4x4xi32>, tensor<1x1x4x4xi32>) -> tensor<1x1x4x4xi1>
  %other = tx.not %same : (tensor<1x1x4x4xi1>) -> tensor<1x1x4x4xi1>
  %bias = tx.select %other, %low, %m : (tensor<1x1x4x4xi1>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  // expected-remark@+1 {{raised to attention within documents}}
  %o, %l = tx.attention %x, %x, %x bias %bias scale 1.0 : (tensor<2x4x1x4xf32>, tensor<2x4x1x4xf32>, tensor<2x4x1x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<2x4x1x4xf32>, tensor<2x1x4xf32>)
  return %o : tensor<2x4x1x4xf32>
}

// -----

// Within documents, later keys are visible too: not raised.
// CHECK-LABEL: @both_directions(
// CHECK:         tx.attention %{{.*}} bias
func.func @both_directions(%x: tensor<1x4x1x4xf32>, %ids: tensor<1x4xi64>) -> tensor<1x4x1x4xf32> {
  %zero = tx.constant dense<0.0> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %low = tx.constant dense<-1.0e38> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %idq = tx.reshape %ids : tensor<1x4xi64> -> tensor<1x1x4x1xi64>
  %ofq = tx.broadcast %idq : tensor<1x1x4x1xi64> -> tensor<1x1x4x4xi64>
  %ofk = tx.broadcast %ids : tensor<1x4xi64> -> tensor<1x1x4x4xi64>
  %same = tx.equal %ofq, %ofk : (tensor<1x1x4x4xi64>, tensor<1x1x4x4xi64>) -> tensor<1x1x4x4xi1>
  %bias = tx.select %same, %zero, %low : (tensor<1x1x4x4xi1>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  // expected-remark@+1 {{nearly attention within documents: its mask is not causal within documents at (0, 1), where the key is visible}}
  %o, %l = tx.attention %x, %x, %x bias %bias scale 1.0 : (tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x1x4xf32>, tensor<1x1x4xf32>)
  return %o : tensor<1x4x1x4xf32>
}

// -----

// The first token is visible from every document.
// CHECK-LABEL: @a_global_token(
// CHECK:         tx.attention %{{.*}} bias
func.func @a_global_token(%x: tensor<1x3x1x4xf32>, %ids: tensor<1x3xi64>) -> tensor<1x3x1x4xf32> {
  %m = tx.constant dense<[[[[0.0, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  %low = tx.constant dense<-1.0e38> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  %global = tx.constant dense<[[[[true, false, false], [true, false, false], [true, false, false]]]]> : tensor<1x1x3x3xi1> : tensor<1x1x3x3xi1>
  %idq = tx.reshape %ids : tensor<1x3xi64> -> tensor<1x1x3x1xi64>
  %ofq = tx.broadcast %idq : tensor<1x1x3x1xi64> -> tensor<1x1x3x3xi64>
  %ofk = tx.broadcast %ids : tensor<1x3xi64> -> tensor<1x1x3x3xi64>
  %same = tx.equal %ofq, %ofk : (tensor<1x1x3x3xi64>, tensor<1x1x3x3xi64>) -> tensor<1x1x3x3xi1>
  %seen = tx.or %same, %global : (tensor<1x1x3x3xi1>, tensor<1x1x3x3xi1>) -> tensor<1x1x3x3xi1>
  %bias = tx.select %seen, %m, %low : (tensor<1x1x3x3xi1>, tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
  // expected-remark@+1 {{nearly attention within documents: its mask is not causal within documents at (1, 0), where the key is visible}}
  %o, %l = tx.attention %x, %x, %x bias %bias scale 1.0 : (tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<1x1x3x3xf32>) -> (tensor<1x3x1x4xf32>, tensor<1x1x3xf32>)
  return %o : tensor<1x3x1x4xf32>
}

// -----

// A padding mask beside documents, and a bias that is no mask.
// CHECK-LABEL: @padding_too(
// CHECK:         tx.attention %{{.*}} bias
// CHECK:         tx.attention %{{.*}} bias
func.func @padding_too(%x: tensor<1x3x1x4xf32>, %ids: tensor<1x3xi64>, %padding: tensor<1x1x1x3xf32>) -> tensor<1x3x1x4xf32> {
  %m = tx.constant dense<[[[[0.0, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  %low = tx.constant dense<-1.0e38> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  %one = tx.constant dense<1.0> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  %idq = tx.reshape %ids : tensor<1x3xi64> -> tensor<1x1x3x1xi64>
  %ofq = tx.broadcast %idq : tensor<1x1x3x1xi64> -> tensor<1x1x3x3xi64>
  %ofk = tx.broadcast %ids : tensor<1x3xi64> -> tensor<1x1x3x3xi64>
  %same = tx.equal %ofq, %ofk : (tensor<1x1x3x3xi64>, tensor<1x1x3x3xi64>) -> tensor<1x1x3x3xi1>
  %mask = tx.select %same, %m, %low : (tensor<1x1x3x3xi1>, tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
  %paddings = tx.broadcast %padding : tensor<1x1x1x3xf32> -> tensor<1x1x3x3xf32>
  %both = tx.add %mask, %paddings : (tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
  // expected-remark@+1 {{nearly attention within documents: its mask depends on an input too, beside ids of documents}}
  %o, %l = tx.attention %x, %x, %x bias %both scale 1.0 : (tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<1x1x3x3xf32>) -> (tensor<1x3x1x4xf32>, tensor<1x1x3xf32>)
  %more = tx.add %mask, %one : (tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
  // expected-remark@+1 {{nearly attention within documents: its bias is no mask at (2, 0), where it is 1}}
  %p, %n = tx.attention %o, %o, %o bias %more scale 1.0 : (tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<1x1x3x3xf32>) -> (tensor<1x3x1x4xf32>, tensor<1x1x3xf32>)
  return %p : tensor<1x3x1x4xf32>
}
