//===- TxFp8.td - op table: matmuls of 8-bit floats ---------------------------------------------------===//
//
// Linear layers in FP8 (Micikevicius et al., arXiv 2209.05433): operands of the forward matmul in e4m3, the
// cotangent in e5m2. `quantize-linears` marks where a value passes through 8 bits; the marks split and
// differentiate like the identity. `scale-fp8` replaces them with amp.quantize, whose scale it takes from
// maxima of earlier steps, and with the matmuls of 8-bit operands.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TX_FP8
#define PARTITA_TX_FP8

include "dialects/Tx/TxBase.td"

def Tx_StoredFp8 : TypeAttrOf<AnyTypeOf<[F8E4M3FN, F8E5M2]>>;
def Tx_Fp8 : Tx_Static<RankedTensorOf<[F8E4M3FN, F8E5M2]>>;
def Tx_Scales : Tx_Static<2DTensorOf<[F32]>>;

//===------------------------------------------------------------------------------------------------===//
// Marks
//===------------------------------------------------------------------------------------------------===//

def Tx_ThroughFp8Op : Tx_Elementwise<"through_fp8", ["x"], "x"> {
  let summary = "x as an 8-bit matmul will read it: the identity until scales are known";
  let description = [{
    `number` is the row of the maxima that x's scale comes from. The gradient is the cotangent itself, as if nothing
    were rounded. Created by `quantize-linears`; replaced by `scale-fp8`.

        %1 = tx.through_fp8 %0 {number = 3, stored = f8E4M3FN} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  }];
  let shardRule = "* -> *";
  let arguments = (ins Tx_Float:$x, I64Attr:$number, Tx_StoredFp8:$stored);
  let gradient = [{ return {g.dy()}; }];
}
def Tx_CotangentThroughFp8Op : Tx_Elementwise<"cotangent_through_fp8", ["x"], "x"> {
  let summary = "x, whose cotangent the matmuls of the backward pass will read in 8 bits";
  let shardRule = "* -> *";
  let arguments = (ins Tx_Float:$x, I64Attr:$number, Tx_StoredFp8:$stored);
  let gradient = [{
    if (!par::Layout::of(g.dy().getType()).partial.empty())
      return {g.dy()}; // a sum that is not complete has no max: `scale-fp8` refuses it
    return {ThroughFp8Op::create(g.builder, getLoc(), g.dy(), getNumberAttr(), getStoredAttr())->getResult(0)};
  }];
}

//===------------------------------------------------------------------------------------------------===//
// Scales and matmuls: after differentiation, without gradients
//===------------------------------------------------------------------------------------------------===//

def Tx_Fp8ScaleOp : Tx_Elementwise<"fp8_scale", ["max", "unit", "initial"], "fp8_scale(max, unit, initial)"> {
  let summary = "the power of two that stored numbers are multiplied by";
  let description = [{
    The smallest one for which `max` is at most the format's max, 1.75 / `unit`; where no max is known yet (0), `initial`. A
    power of two changes no digit: only the range of exponents moves, and bfloat16 holds every stored number times its scale.
  }];
  let shardRule = "*, *, * -> *";
  let arguments = (ins Tx_Float:$max, Tx_Float:$unit, Tx_Float:$initial);
}

class Tx_ScaledMatmul<string mnemonic> : Tx_Op<mnemonic> {
  let precision = "Low";
  let description = [{
    The operands are in 8 bits; rows `number_a` and `number_b` of `scales` have what they are multiplied by. A row has copies of one number:
    cuBLASLt wants it at an address of 16 bytes. Sums are float32.
  }];
  let arguments = (ins Tx_Fp8:$a, Tx_Fp8:$b, Tx_Scales:$scales, I64Attr:$number_a, I64Attr:$number_b);
  let results = (outs Tx_Float:$result);
  let assemblyFormat = [{
    $a `,` $b `scaled` `by` $scales `[` $number_a `,` $number_b `]` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let moreDefinitions = "::llvm::LogicalResult $cppClass::verify() { return verifyScales(*this); }\n";
}
def Tx_ScaledMatMulOp : Tx_ScaledMatmul<"scaled_matmul"> {
  let summary = "tx.matmul of 8-bit operands";
  let shardRule = "~* k+, ~k+ n, s^ c^ -> * n";
}
def Tx_ScaledMatMulNTOp : Tx_ScaledMatmul<"scaled_matmul_nt"> {
  let summary = "tx.matmul_nt of 8-bit operands";
  let shardRule = "~* k+, ~n k+, s^ c^ -> * n";
}
def Tx_ScaledMatMulTNOp : Tx_ScaledMatmul<"scaled_matmul_tn"> {
  let summary = "tx.matmul_tn of 8-bit operands";
  let shardRule = "~*+ k, ~*+ n, s^ c^ -> k n";
}
def Tx_ScaledMatMulColumnsOp : Tx_ScaledMatmul<"scaled_matmul_columns"> {
  let summary = "tx.matmul_tn of 8-bit operands that are stored transposed: a [k, ...], b [n, ...] -> [k, n]";
  let shardRule = "~k *+, ~n *+, s^ c^ -> k n";
}

/// The same with a bias, created by `fuse-bias`: a matmul cannot be split along k then, since the bias would be added on every rank.
class Tx_ScaledBiasedMatmul<string mnemonic> : Tx_ScaledMatmul<mnemonic> {
  let arguments = (ins Tx_Fp8:$a, Tx_Fp8:$b, Tx_Scales:$scales, Tx_Float:$bias, I64Attr:$number_a, I64Attr:$number_b);
  let assemblyFormat = [{
    $a `,` $b `scaled` `by` $scales `[` $number_a `,` $number_b `]` `plus` $bias attr-dict `:` functional-type(operands, results)
  }];
}
def Tx_ScaledMatMulBiasOp : Tx_ScaledBiasedMatmul<"scaled_matmul_bias"> {
  let summary = "tx.matmul_bias of 8-bit operands";
  let shardRule = "* k^, k^ n, s^ c^, n -> * n";
}
def Tx_ScaledMatMulNTBiasOp : Tx_ScaledBiasedMatmul<"scaled_matmul_nt_bias"> {
  let summary = "tx.matmul_nt_bias of 8-bit operands";
  let shardRule = "* k^, n k^, s^ c^, n -> * n";
}

#endif // PARTITA_TX_FP8
