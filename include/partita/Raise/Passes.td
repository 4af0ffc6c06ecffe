//===- Passes.td - phase raise, in running order ----------------------------------------------------===//
//
// Exporters write norms, activations, rotary embedding and attention as graphs of small operations, in many spellings. These
// passes recognize them by what they compute: a candidate is a subgraph with the right inputs, and it is
// accepted when the interpreter, in double precision and on random inputs, finds it equal to the op that
// replaces it. Isomorphic candidates (a model's layers) are computed once.
//
// With `remarks`, each pass tells what it raised and what it nearly raised and why not, at the location
// of the ONNX node.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_RAISE_PASSES
#define PARTITA_RAISE_PASSES

include "mlir/Pass/PassBase.td"

class Raise_Pass<string flag> : Pass<flag, "::mlir::func::FuncOp"> {
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::par::ParDialect", "::mlir::func::FuncDialect"];
  let options = [
    Option<"remarks", "remarks", "bool", "false", "Tell what was raised, and what nearly was and why not.">,
  ];
  let statistics = [
    Statistic<"numRaised", "raised", "Composites replaced by one op">,
    Statistic<"numMissed", "nearly raised", "Composites that look like one but do not compute it">,
    Statistic<"numChecks", "numeric checks", "Candidates evaluated; isomorphic ones once">,
  ];
}

def RaiseLayerNorm : Raise_Pass<"raise-layer-norm"> {
  let summary = "layer normalization in any spelling becomes tx.layer_norm";
  let description = [{
    Starts at a `tx.sqrt`, `tx.rsqrt` or `tx.pow` by a half, finds the values through which all that
    is computed from it passes, and from each of those the subgraph with one tensor x and at most two
    row vectors as inputs. The row vectors become weight and bias in whichever way the numbers agree.

        %m = tx.reduce_mean %x [1]        ...        %y = tx.add %scaled, %bias
        =>  %y, %mean, %rstd = tx.layer_norm %x, %w, %b eps 1.0e-05
  }];
}

def RaiseRmsNorm : Raise_Pass<"raise-rms-norm"> {
  let summary = "root-mean-square normalization in any spelling becomes tx.rms_norm";
  let description = [{
    As `raise-layer-norm`, which runs before it, with one tensor x and at most one row vector: the weight,
    multiplied before or after the division by the root.

        %v = tx.reduce_mean (tx.mul %x, %x) [1]   ...   %y = tx.mul %w, (tx.mul %x, (tx.rsqrt %v + eps))
        =>  %y, %rstd = tx.rms_norm %x, %w eps 1.0e-06
  }];
}

def RaiseActivation : Raise_Pass<"raise-activation"> {
  let summary = "GELU and SiLU in any spelling become tx.gelu, tx.gelu_tanh, tx.quick_gelu or tx.silu";
  let description = [{
    Starts at a `tx.erf`, `tx.tanh`, `tx.sigmoid` or `tx.exp` and finds the elementwise subgraphs around it that are
    functions of one tensor. Where such a function equals x Phi(x), its tanh approximation, x sigmoid(1.702 x)
    or x sigmoid(x) it is replaced, however it is associated. A constant that stands in the way is named.

        tx.mul %half_x, (1 + tx.tanh(0.79788 * (x + 0.044715 * x^3)))   =>   tx.gelu_tanh %x
  }];
}

def RaiseRotateHalf : Raise_Pass<"raise-rotate-half"> {
  let summary = "the quarter turn of rotary position embedding becomes tx.rotate_half";
  let description = [{
    Two ways to write it: the halves of a row, the second one negated, exchanged; or the elements of odd and
    even index, the odd ones negated, interleaved.

        tx.concat (tx.neg (tx.slice %x [0, 4])), (tx.slice %x [0, 0]) along 1   =>   tx.rotate_half %x
  }];
}

def RaiseAttention : Raise_Pass<"raise-attention"> {
  let summary = "softmax(scale q k^T + mask) v becomes tx.attention";
  let description = [{
    Starts at a `tx.softmax` between two `tx.batch_matmul`. What stands between the scores and the
    softmax is evaluated at every (query, key): where the result is scale * score the key is visible,
    where it is below -9000 it is hidden. All keys visible: attention; exactly the keys up to the query, or
    the last few of these: causal attention, with a window. What depends on an input, or is no mask, becomes
    a bias when it is added to the scores or hides them with a number below -1e30, to which a score adds
    nothing. Scales on q and k are collected, transposes and reshapes around q, k, v and the result absorbed
    into the layout [b, s, h, d], and heads of k and v that are repeated are read where they are.

        tx.batch_matmul (tx.softmax (tx.select %mask, (tx.div %qk, %sqrt_d), %lowest)), %v
        =>  %out, %lse = tx.attention %q, %k, %v scale 0.125 causal
  }];
}

#endif // PARTITA_RAISE_PASSES
