// What has a kernel of its own against the same mathematics in small ops, and against written values.
// RUN: partita-interp %s --entry layer_norm | FileCheck %s --check-prefix=NORM
// RUN: partita-interp %s --entry tokens | FileCheck %s --check-prefix=TOKENS
// RUN: partita-interp %s --entry taken | FileCheck %s --check-prefix=TAKEN
// RUN: partita-interp %s --equal layer_norm_of,layer_norm_small
// RUN: partita-interp %s --equal rms_norm_of,rms_norm_small
// RUN: partita-interp %s --equal attention_of,attention_small --tolerance 1e-12
// RUN: partita-interp %s --equal documents_of,documents_small --tolerance 1e-12
// RUN: partita-interp %s --equal documents_gradient_of,documents_gradient_small --tolerance 1e-12
// RUN: partita-interp %s --equal dropped_of,dropped_small --tolerance 1e-12
// RUN: partita-interp %s --equal dropped_gradient_of,dropped_gradient_small --tolerance 1e-12
// RUN: not partita-interp %s --entry recurring 2>&1 | FileCheck %s --check-prefix=RECURRING
// RUN: not partita-interp %s --entry falling 2>&1 | FileCheck %s --check-prefix=FALLING
// RUN: not partita-interp %s --entry hidden 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: partita-interp %s --equal nt,nt_small
// RUN: partita-interp %s --equal tn,tn_small
// RUN: partita-interp %s --equal batch,batch_small
// RUN: partita-interp %s --equal cross_entropy_of,cross_entropy_small

// Mean 2, variance 2: the second row is the first one times ten.
// NORM: result 0: 2x3 = {{\[\[}}-1.22474, 0, 1.22474], [-1.22474, 0, 1.22474]]
// NORM-NEXT: result 1: 2 = [3, 30]
// NORM-NEXT: result 2: 2 = [0.612372, 0.0612372]
func.func @layer_norm() -> (tensor<2x3xf64>, tensor<2xf64>, tensor<2xf64>) {
  %x = tx.constant dense<[[1.0, 3.0, 5.0], [10.0, 30.0, 50.0]]> : tensor<2x3xf64> : tensor<2x3xf64>
  %w = tx.constant dense<1.0> : tensor<3xf64> : tensor<3xf64>
  %b = tx.constant dense<0.0> : tensor<3xf64> : tensor<3xf64>
  %y, %mean, %rstd = tx.layer_norm %x, %w, %b eps 0.0 : (tensor<2x3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<2x3xf64>, tensor<2xf64>, tensor<2xf64>)
  return %y, %mean, %rstd : tensor<2x3xf64>, tensor<2xf64>, tensor<2xf64>
}

// TOKENS: result 0: 3x2 = {{\[\[}}2, 3], [0, 1], [2, 3]]
// TOKENS-NEXT: result 1: 2x2 = {{\[\[}}0, 1], [4, 6]]
// TOKENS-NEXT: result 2: 3 = [0.693147, 0, 0.693147]
// TOKENS-NEXT: result 3: 3x2 = {{\[\[}}-0.5, 0.5], [0, 0], [1.5, -1.5]]
func.func @tokens() -> (tensor<3x2xf64>, tensor<2x2xf64>, tensor<3xf64>, tensor<3x2xf64>) {
  %i = tx.iota 0.0, 1.0 : tensor<4xf64>
  %table = tx.reshape %i : tensor<4xf64> -> tensor<2x2xf64>
  %ids = tx.constant dense<[1, 0, 1]> : tensor<3xi64> : tensor<3xi64>
  %0 = tx.embedding %table, %ids : (tensor<2x2xf64>, tensor<3xi64>) -> tensor<3x2xf64>
  %1 = tx.embedding_grad %ids, %0 : (tensor<3xi64>, tensor<3x2xf64>) -> tensor<2x2xf64>
  %logits = tx.constant dense<1000.0> : tensor<3x2xf64> : tensor<3x2xf64>
  %labels = tx.constant dense<[0, -100, 1]> : tensor<3xi64> : tensor<3xi64>
  %loss, %lse = tx.cross_entropy %logits, %labels ignore -100 : (tensor<3x2xf64>, tensor<3xi64>) -> (tensor<3xf64>, tensor<3xf64>)
  %dloss = tx.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf64> : tensor<3xf64>
  %2 = tx.cross_entropy_grad %logits, %labels, %lse, %dloss ignore -100 : (tensor<3x2xf64>, tensor<3xi64>, tensor<3xf64>, tensor<3xf64>) -> tensor<3x2xf64>
  return %0, %1, %loss, %2 : tensor<3x2xf64>, tensor<2x2xf64>, tensor<3xf64>, tensor<3x2xf64>
}

// TAKEN: result 0: 2x3x1 = {{\[\[\[}}1], [0], [1]], {{\[\[}}3], [3], [2]]]
// TAKEN-NEXT: result 1: 2x2x1 = {{\[\[\[}}0], [2]], {{\[\[}}2], [6]]]
func.func @taken() -> (tensor<2x3x1xf64>, tensor<2x2x1xf64>) {
  %i = tx.iota 0.0, 1.0 : tensor<4xf64>
  %x = tx.reshape %i : tensor<4xf64> -> tensor<2x2x1xf64>
  %ids = tx.constant dense<[[1, 0, 1], [1, 1, 0]]> : tensor<2x3xi64> : tensor<2x3xi64>
  %0 = tx.take %x, %ids : (tensor<2x2x1xf64>, tensor<2x3xi64>) -> tensor<2x3x1xf64>
  %1 = tx.take_grad %ids, %0 : (tensor<2x3xi64>, tensor<2x3x1xf64>) -> tensor<2x2x1xf64>
  return %0, %1 : tensor<2x3x1xf64>, tensor<2x2x1xf64>
}

func.func @layer_norm_of(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %y, %mean, %rstd = tx.layer_norm %x, %w, %b eps 1.0e-5 : (tensor<2x3x5xf64>, tensor<5xf64>, tensor<5xf64>) -> (tensor<2x3x5xf64>, tensor<2x3xf64>, tensor<2x3xf64>)
  return %y : tensor<2x3x5xf64>
}
func.func @layer_norm_small(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %mean = tx.reduce_mean %x [2] : tensor<2x3x5xf64> -> tensor<2x3xf64>
  %m1 = tx.reshape %mean : tensor<2x3xf64> -> tensor<2x3x1xf64>
  %m = tx.broadcast %m1 : tensor<2x3x1xf64> -> tensor<2x3x5xf64>
  %d = tx.sub %x, %m : (tensor<2x3x5xf64>, tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  %s = tx.mul %d, %d : (tensor<2x3x5xf64>, tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  %v = tx.reduce_mean %s [2] : tensor<2x3x5xf64> -> tensor<2x3xf64>
  %e = tx.constant dense<1.0e-5> : tensor<2x3xf64> : tensor<2x3xf64>
  %ve = tx.add %v, %e : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %r0 = tx.rsqrt %ve : (tensor<2x3xf64>) -> tensor<2x3xf64>
  %r1 = tx.reshape %r0 : tensor<2x3xf64> -> tensor<2x3x1xf64>
  %r = tx.broadcast %r1 : tensor<2x3x1xf64> -> tensor<2x3x5xf64>
  %h = tx.mul %d, %r : (tensor<2x3x5xf64>, tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  %ww = tx.broadcast %w : tensor<5xf64> -> tensor<2x3x5xf64>
  %bb = tx.broadcast %b : tensor<5xf64> -> tensor<2x3x5xf64>
  %hw = tx.mul %h, %ww : (tensor<2x3x5xf64>, tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  %y = tx.add %hw, %bb : (tensor<2x3x5xf64>, tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}

// Two queries, three keys: query i sees keys up to i + 1.
func.func @attention_of(%q: tensor<2x2x1x4xf64>, %k: tensor<2x3x1x4xf64>, %v: tensor<2x3x1x5xf64>) -> tensor<2x2x5xf64> {
  %out, %lse = tx.attention %q, %k, %v scale 0.5 causal : (tensor<2x2x1x4xf64>, tensor<2x3x1x4xf64>, tensor<2x3x1x5xf64>) -> (tensor<2x2x1x5xf64>, tensor<2x1x2xf64>)
  %0 = tx.reshape %out : tensor<2x2x1x5xf64> -> tensor<2x2x5xf64>
  return %0 : tensor<2x2x5xf64>
}
func.func @attention_small(%q4: tensor<2x2x1x4xf64>, %k4: tensor<2x3x1x4xf64>, %v4: tensor<2x3x1x5xf64>) -> tensor<2x2x5xf64> {
  %q = tx.reshape %q4 : tensor<2x2x1x4xf64> -> tensor<2x2x4xf64>
  %k = tx.reshape %k4 : tensor<2x3x1x4xf64> -> tensor<2x3x4xf64>
  %v = tx.reshape %v4 : tensor<2x3x1x5xf64> -> tensor<2x3x5xf64>
  %kt = tx.transpose %k [0, 2, 1] : tensor<2x3x4xf64> -> tensor<2x4x3xf64>
  %s = tx.batch_matmul %q, %kt : (tensor<2x2x4xf64>, tensor<2x4x3xf64>) -> tensor<2x2x3xf64>
  %half = tx.constant dense<0.5> : tensor<2x2x3xf64> : tensor<2x2x3xf64>
  %scaled = tx.mul %s, %half : (tensor<2x2x3xf64>, tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  %mask = tx.constant dense<[[0.0, 0.0, -1.0e30], [0.0, 0.0, 0.0]]> : tensor<2x3xf64> : tensor<2x3xf64>
  %masks = tx.broadcast %mask : tensor<2x3xf64> -> tensor<2x2x3xf64>
  %masked = tx.add %scaled, %masks : (tensor<2x2x3xf64>, tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  %p = tx.softmax %masked : (tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  %0 = tx.batch_matmul %p, %v : (tensor<2x2x3xf64>, tensor<2x3x5xf64>) -> tensor<2x2x5xf64>
  return %0 : tensor<2x2x5xf64>
}

// Documents of two, one and two positions, and one of five, against the mask that hides the others.
func.func @documents_of(%q: tensor<2x5x2x4xf64>, %k: tensor<2x5x1x4xf64>, %v: tensor<2x5x1x5xf64>) -> (tensor<2x5x2x5xf64>, tensor<2x2x5xf64>) {
  %ids = tx.constant dense<[[7, 7, 2, 9, 9], [0, 0, 0, 0, 0]]> : tensor<2x5xi64> : tensor<2x5xi64>
  %first = tx.document_starts %ids : (tensor<2x5xi64>) -> tensor<2x5xi32>
  %out, %lse = tx.attention %q, %k, %v from %first scale 0.5 causal : (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>, tensor<2x5xi32>) -> (tensor<2x5x2x5xf64>, tensor<2x2x5xf64>)
  return %out, %lse : tensor<2x5x2x5xf64>, tensor<2x2x5xf64>
}
func.func @documents_small(%q: tensor<2x5x2x4xf64>, %k: tensor<2x5x1x4xf64>, %v: tensor<2x5x1x5xf64>) -> (tensor<2x5x2x5xf64>, tensor<2x2x5xf64>) {
  %mask = tx.constant dense<[[[[0.0, -1.0e38, -1.0e38, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38, -1.0e38, -1.0e38], [-1.0e38, -1.0e38, 0.0, -1.0e38, -1.0e38], [-1.0e38, -1.0e38, -1.0e38, 0.0, -1.0e38], [-1.0e38, -1.0e38, -1.0e38, 0.0, 0.0]]], [[[0.0, -1.0e38, -1.0e38, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38, -1.0e38, -1.0e38], [0.0, 0.0, 0.0, -1.0e38, -1.0e38], [0.0, 0.0, 0.0, 0.0, -1.0e38], [0.0, 0.0, 0.0, 0.0, 0.0]]]]> : tensor<2x1x5x5xf64> : tensor<2x1x5x5xf64>
  %out, %lse = tx.attention %q, %k, %v bias %mask scale 0.5 : (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>, tensor<2x1x5x5xf64>) -> (tensor<2x5x2x5xf64>, tensor<2x2x5xf64>)
  return %out, %lse : tensor<2x5x2x5xf64>, tensor<2x2x5xf64>
}
func.func @documents_gradient_of(%q: tensor<2x5x2x4xf64>, %k: tensor<2x5x1x4xf64>, %v: tensor<2x5x1x5xf64>, %dout: tensor<2x5x2x5xf64>) -> (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>) {
  %first = tx.constant dense<[[0, 0, 2, 3, 3], [0, 0, 0, 0, 0]]> : tensor<2x5xi32> : tensor<2x5xi32>
  %out, %lse = tx.attention %q, %k, %v from %first scale 0.5 causal : (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>, tensor<2x5xi32>) -> (tensor<2x5x2x5xf64>, tensor<2x2x5xf64>)
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout from %first scale 0.5 causal : (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>, tensor<2x5x2x5xf64>, tensor<2x2x5xf64>, tensor<2x5x2x5xf64>, tensor<2x5xi32>) -> (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>
}
func.func @documents_gradient_small(%q: tensor<2x5x2x4xf64>, %k: tensor<2x5x1x4xf64>, %v: tensor<2x5x1x5xf64>, %dout: tensor<2x5x2x5xf64>) -> (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>) {
  %mask = tx.constant dense<[[[[0.0, -1.0e38, -1.0e38, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38, -1.0e38, -1.0e38], [-1.0e38, -1.0e38, 0.0, -1.0e38, -1.0e38], [-1.0e38, -1.0e38, -1.0e38, 0.0, -1.0e38], [-1.0e38, -1.0e38, -1.0e38, 0.0, 0.0]]], [[[0.0, -1.0e38, -1.0e38, -1.0e38, -1.0e38], [0.0, 0.0, -1.0e38, -1.0e38, -1.0e38], [0.0, 0.0, 0.0, -1.0e38, -1.0e38], [0.0, 0.0, 0.0, 0.0, -1.0e38], [0.0, 0.0, 0.0, 0.0, 0.0]]]]> : tensor<2x1x5x5xf64> : tensor<2x1x5x5xf64>
  %out, %lse = tx.attention %q, %k, %v bias %mask scale 0.5 : (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>, tensor<2x1x5x5xf64>) -> (tensor<2x5x2x5xf64>, tensor<2x2x5xf64>)
  %0:4 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %mask scale 0.5 : (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>, tensor<2x5x2x5xf64>, tensor<2x2x5xf64>, tensor<2x5x2x5xf64>, tensor<2x1x5x5xf64>) -> (tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>, tensor<2x1x5x5xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x5x2x4xf64>, tensor<2x5x1x4xf64>, tensor<2x5x1x5xf64>
}
// Dropout of the probabilities drops what tx.dropout drops between softmax and values.
func.func @dropped_of(%q: tensor<2x4x3x4xf64>, %k: tensor<2x6x3x4xf64>, %v: tensor<2x6x3x5xf64>) -> tensor<2x3x4x5xf64> {
  %key = tx.constant dense<42> : tensor<i64> : tensor<i64>
  %micro = tx.constant dense<1> : tensor<i64> : tensor<i64>
  %out, %lse = tx.attention %q, %k, %v scale 0.5 dropout 0.3 id 9 key %key micro %micro : (tensor<2x4x3x4xf64>, tensor<2x6x3x4xf64>, tensor<2x6x3x5xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x4x3x5xf64>, tensor<2x3x4xf64>)
  %0 = tx.transpose %out [0, 2, 1, 3] : tensor<2x4x3x5xf64> -> tensor<2x3x4x5xf64>
  return %0 : tensor<2x3x4x5xf64>
}
func.func @dropped_small(%q4: tensor<2x4x3x4xf64>, %k4: tensor<2x6x3x4xf64>, %v4: tensor<2x6x3x5xf64>) -> tensor<2x3x4x5xf64> {
  %key = tx.constant dense<42> : tensor<i64> : tensor<i64>
  %micro = tx.constant dense<1> : tensor<i64> : tensor<i64>
  %half = tx.constant dense<0.5> : tensor<2x3x4x6xf64> : tensor<2x3x4x6xf64>
  %q = tx.transpose %q4 [0, 2, 1, 3] : tensor<2x4x3x4xf64> -> tensor<2x3x4x4xf64>
  %kt = tx.transpose %k4 [0, 2, 3, 1] : tensor<2x6x3x4xf64> -> tensor<2x3x4x6xf64>
  %v = tx.transpose %v4 [0, 2, 1, 3] : tensor<2x6x3x5xf64> -> tensor<2x3x6x5xf64>
  %s = tx.batch_matmul %q, %kt : (tensor<2x3x4x4xf64>, tensor<2x3x4x6xf64>) -> tensor<2x3x4x6xf64>
  %x = tx.mul %s, %half : (tensor<2x3x4x6xf64>, tensor<2x3x4x6xf64>) -> tensor<2x3x4x6xf64>
  %p = tx.softmax %x : (tensor<2x3x4x6xf64>) -> tensor<2x3x4x6xf64>
  %d = tx.dropout %p ratio 0.3 id 9 key %key micro %micro : (tensor<2x3x4x6xf64>, tensor<i64>, tensor<i64>) -> tensor<2x3x4x6xf64>
  %0 = tx.batch_matmul %d, %v : (tensor<2x3x4x6xf64>, tensor<2x3x6x5xf64>) -> tensor<2x3x4x5xf64>
  return %0 : tensor<2x3x4x5xf64>
}
func.func @dropped_gradient_of(%q: tensor<2x4x1x4xf64>, %k: tensor<2x6x1x4xf64>, %v: tensor<2x6x1x5xf64>, %dout: tensor<2x4x1x5xf64>) -> (tensor<2x4x4xf64>, tensor<2x6x4xf64>, tensor<2x6x5xf64>) {
  %key = tx.constant dense<42> : tensor<i64> : tensor<i64>
  %micro = tx.constant dense<1> : tensor<i64> : tensor<i64>
  %out, %lse = tx.attention %q, %k, %v scale 0.5 dropout 0.3 id 9 key %key micro %micro : (tensor<2x4x1x4xf64>, tensor<2x6x1x4xf64>, tensor<2x6x1x5xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x4x1x5xf64>, tensor<2x1x4xf64>)
  %g:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 dropout 0.3 id 9 key %key micro %micro : (tensor<2x4x1x4xf64>, tensor<2x6x1x4xf64>, tensor<2x6x1x5xf64>, tensor<2x4x1x5xf64>, tensor<2x1x4xf64>, tensor<2x4x1x5xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x4x1x4xf64>, tensor<2x6x1x4xf64>, tensor<2x6x1x5xf64>)
  %dq = tx.reshape %g#0 : tensor<2x4x1x4xf64> -> tensor<2x4x4xf64>
  %dk = tx.reshape %g#1 : tensor<2x6x1x4xf64> -> tensor<2x6x4xf64>
  %dv = tx.reshape %g#2 : tensor<2x6x1x5xf64> -> tensor<2x6x5xf64>
  return %dq, %dk, %dv : tensor<2x4x4xf64>, tensor<2x6x4xf64>, tensor<2x6x5xf64>
}
func.func @dropped_gradient_small(%q4: tensor<2x4x1x4xf64>, %k4: tensor<2x6x1x4xf64>, %v4: tensor<2x6x1x5xf64>, %dout4: tensor<2x4x1x5xf64>) -> (tensor<2x4x4xf64>, tensor<2x6x4xf64>, tensor<2x6x5xf64>) {
  %key = tx.constant dense<42> : tensor<i64> : tensor<i64>
  %micro = tx.constant dense<1> : tensor<i64> : tensor<i64>
  %half = tx.constant dense<0.5> : tensor<2x4x6xf64> : tensor<2x4x6xf64>
  %q = tx.reshape %q4 : tensor<2x4x1x4xf64> -> tensor<2x4x4xf64>
  %k = tx.reshape %k4 : tensor<2x6x1x4xf64> -> tensor<2x6x4xf64>
  %kt = tx.transpose %k [0, 2, 1] : tensor<2x6x4xf64> -> tensor<2x4x6xf64>
  %v = tx.reshape %v4 : tensor<2x6x1x5xf64> -> tensor<2x6x5xf64>
  %vt = tx.transpose %v [0, 2, 1] : tensor<2x6x5xf64> -> tensor<2x5x6xf64>
  %dout = tx.reshape %dout4 : tensor<2x4x1x5xf64> -> tensor<2x4x5xf64>
  %s = tx.batch_matmul %q, %kt : (tensor<2x4x4xf64>, tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  %x = tx.mul %s, %half : (tensor<2x4x6xf64>, tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  %p = tx.softmax %x : (tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  %d = tx.dropout %p ratio 0.3 id 9 key %key micro %micro : (tensor<2x4x6xf64>, tensor<i64>, tensor<i64>) -> tensor<2x4x6xf64>
  %dt = tx.transpose %d [0, 2, 1] : tensor<2x4x6xf64> -> tensor<2x6x4xf64>
  %dv = tx.batch_matmul %dt, %dout : (tensor<2x6x4xf64>, tensor<2x4x5xf64>) -> tensor<2x6x5xf64>
  %dd = tx.batch_matmul %dout, %vt : (tensor<2x4x5xf64>, tensor<2x5x6xf64>) -> tensor<2x4x6xf64>
  %dp = tx.dropout %dd ratio 0.3 id 9 key %key micro %micro : (tensor<2x4x6xf64>, tensor<i64>, tensor<i64>) -> tensor<2x4x6xf64>
  %dx = tx.softmax_grad %p, %dp : (tensor<2x4x6xf64>, tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  %ds = tx.mul %dx, %half : (tensor<2x4x6xf64>, tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  %dst = tx.transpose %ds [0, 2, 1] : tensor<2x4x6xf64> -> tensor<2x6x4xf64>
  %dq = tx.batch_matmul %ds, %k : (tensor<2x4x6xf64>, tensor<2x6x4xf64>) -> tensor<2x4x4xf64>
  %dk = tx.batch_matmul %dst, %q : (tensor<2x6x4xf64>, tensor<2x4x4xf64>) -> tensor<2x6x4xf64>
  return %dq, %dk, %dv : tensor<2x4x4xf64>, tensor<2x6x4xf64>, tensor<2x6x5xf64>
}
// RECURRING: error: id 4 of sequence 1 comes back at position 2, after another document
func.func @recurring() -> tensor<2x3xi32> {
  %ids = tx.constant dense<[[4, 5, 5], [4, 5, 4]]> : tensor<2x3xi64> : tensor<2x3xi64>
  %0 = tx.document_starts %ids : (tensor<2x3xi64>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}
// FALLING: error: query 2 of sequence 0 begins at key 0, before the query in front of it
func.func @falling() -> tensor<1x3x1x2xf64> {
  %x = tx.constant dense<1.0> : tensor<1x3x1x2xf64> : tensor<1x3x1x2xf64>
  %first = tx.constant dense<[[0, 1, 0]]> : tensor<1x3xi32> : tensor<1x3xi32>
  %out, %lse = tx.attention %x, %x, %x from %first scale 0.5 causal : (tensor<1x3x1x2xf64>, tensor<1x3x1x2xf64>, tensor<1x3x1x2xf64>, tensor<1x3xi32>) -> (tensor<1x3x1x2xf64>, tensor<1x1x3xf64>)
  return %out : tensor<1x3x1x2xf64>
}
// HIDDEN: error: query 1 of sequence 0 begins at key 2: it sees none
func.func @hidden() -> tensor<1x3x1x2xf64> {
  %x = tx.constant dense<1.0> : tensor<1x3x1x2xf64> : tensor<1x3x1x2xf64>
  %first = tx.constant dense<[[0, 2, 2]]> : tensor<1x3xi32> : tensor<1x3xi32>
  %out, %lse = tx.attention %x, %x, %x from %first scale 0.5 causal : (tensor<1x3x1x2xf64>, tensor<1x3x1x2xf64>, tensor<1x3x1x2xf64>, tensor<1x3xi32>) -> (tensor<1x3x1x2xf64>, tensor<1x1x3xf64>)
  return %out : tensor<1x3x1x2xf64>
}

func.func @nt(%a: tensor<2x3x4xf64>, %b: tensor<5x4xf64>) -> tensor<2x3x5xf64> {
  %0 = tx.matmul_nt %a, %b : (tensor<2x3x4xf64>, tensor<5x4xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}
// The matmul as a sum of a broadcast product.
func.func @nt_small(%a: tensor<2x3x4xf64>, %b: tensor<5x4xf64>) -> tensor<2x3x5xf64> {
  %a1 = tx.reshape %a : tensor<2x3x4xf64> -> tensor<2x3x1x4xf64>
  %aa = tx.broadcast %a1 : tensor<2x3x1x4xf64> -> tensor<2x3x5x4xf64>
  %bb = tx.broadcast %b : tensor<5x4xf64> -> tensor<2x3x5x4xf64>
  %p = tx.mul %aa, %bb : (tensor<2x3x5x4xf64>, tensor<2x3x5x4xf64>) -> tensor<2x3x5x4xf64>
  %0 = tx.reduce_sum %p [3] : tensor<2x3x5x4xf64> -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}
func.func @tn(%a: tensor<2x3x4xf64>, %b: tensor<2x3x5xf64>) -> tensor<4x5xf64> {
  %0 = tx.matmul_tn %a, %b : (tensor<2x3x4xf64>, tensor<2x3x5xf64>) -> tensor<4x5xf64>
  return %0 : tensor<4x5xf64>
}
func.func @tn_small(%a: tensor<2x3x4xf64>, %b: tensor<2x3x5xf64>) -> tensor<4x5xf64> {
  %a2 = tx.reshape %a : tensor<2x3x4xf64> -> tensor<6x4xf64>
  %at = tx.transpose %a2 [1, 0] : tensor<6x4xf64> -> tensor<4x6xf64>
  %b2 = tx.reshape %b : tensor<2x3x5xf64> -> tensor<6x5xf64>
  %0 = tx.matmul %at, %b2 : (tensor<4x6xf64>, tensor<6x5xf64>) -> tensor<4x5xf64>
  return %0 : tensor<4x5xf64>
}
func.func @batch(%a: tensor<2x3x4xf64>, %b: tensor<2x4x5xf64>) -> tensor<2x3x5xf64> {
  %0 = tx.batch_matmul %a, %b : (tensor<2x3x4xf64>, tensor<2x4x5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}
func.func @batch_small(%a: tensor<2x3x4xf64>, %b: tensor<2x4x5xf64>) -> tensor<2x3x5xf64> {
  %a1 = tx.reshape %a : tensor<2x3x4xf64> -> tensor<2x3x4x1xf64>
  %aa = tx.broadcast %a1 : tensor<2x3x4x1xf64> -> tensor<2x3x4x5xf64>
  %b1 = tx.reshape %b : tensor<2x4x5xf64> -> tensor<2x1x4x5xf64>
  %bb = tx.broadcast %b1 : tensor<2x1x4x5xf64> -> tensor<2x3x4x5xf64>
  %p = tx.mul %aa, %bb : (tensor<2x3x4x5xf64>, tensor<2x3x4x5xf64>) -> tensor<2x3x4x5xf64>
  %0 = tx.reduce_sum %p [2] : tensor<2x3x4x5xf64> -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @cross_entropy_of(%x: tensor<3x4xf64>, %labels: tensor<3xi64>) -> tensor<3xf64> {
  %loss, %lse = tx.cross_entropy %x, %labels ignore -100 : (tensor<3x4xf64>, tensor<3xi64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %loss : tensor<3xf64>
}
func.func @cross_entropy_small(%x: tensor<3x4xf64>, %labels: tensor<3xi64>) -> tensor<3xf64> {
  %p = tx.softmax %x : (tensor<3x4xf64>) -> tensor<3x4xf64>
  %l = tx.log %p : (tensor<3x4xf64>) -> tensor<3x4xf64>
  %i = tx.iota 0.0, 1.0 : tensor<4xi64>
  %ii = tx.broadcast %i : tensor<4xi64> -> tensor<3x4xi64>
  %t1 = tx.reshape %labels : tensor<3xi64> -> tensor<3x1xi64>
  %t = tx.broadcast %t1 : tensor<3x1xi64> -> tensor<3x4xi64>
  %hit = tx.equal %ii, %t : (tensor<3x4xi64>, tensor<3x4xi64>) -> tensor<3x4xi1>
  %zero = tx.constant dense<0.0> : tensor<3x4xf64> : tensor<3x4xf64>
  %m = tx.select %hit, %l, %zero : (tensor<3x4xi1>, tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  %s = tx.reduce_sum %m [1] : tensor<3x4xf64> -> tensor<3xf64>
  %0 = tx.neg %s : (tensor<3xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

func.func @rms_norm_of(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %y, %rstd = tx.rms_norm %x, %w eps 1.0e-5 : (tensor<2x3x5xf64>, tensor<5xf64>) -> (tensor<2x3x5xf64>, tensor<2x3xf64>)
  return %y : tensor<2x3x5xf64>
}
func.func @rms_norm_small(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %s = tx.mul %x, %x : (tensor<2x3x5xf64>, tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  %v = tx.reduce_mean %s [2] : tensor<2x3x5xf64> -> tensor<2x3xf64>
  %e = tx.constant dense<1.0e-5> : tensor<2x3xf64> : tensor<2x3xf64>
  %ve = tx.add %v, %e : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %r0 = tx.rsqrt %ve : (tensor<2x3xf64>) -> tensor<2x3xf64>
  %r1 = tx.reshape %r0 : tensor<2x3xf64> -> tensor<2x3x1xf64>
  %r = tx.broadcast %r1 : tensor<2x3x1xf64> -> tensor<2x3x5xf64>
  %h = tx.mul %x, %r : (tensor<2x3x5xf64>, tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  %ww = tx.broadcast %w : tensor<5xf64> -> tensor<2x3x5xf64>
  %y = tx.mul %h, %ww : (tensor<2x3x5xf64>, tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  return %y : tensor<2x3x5xf64>
}
