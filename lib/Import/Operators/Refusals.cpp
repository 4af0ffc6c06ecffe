//===- Refusals.cpp ---------------------------------------------------------------------------===//

#include "lib/Import/Operators/Refusals.h"
#include "lib/Import/File/Node.h"
#include "lib/Import/Operators/Registry.h"

namespace partita::importer {

namespace {

struct Refusal {
  llvm::StringRef type;
  llvm::StringRef cause; ///< "comes from ..."
  llvm::StringRef remedy;
};

constexpr llvm::StringLiteral quantized = "a model that was quantized";
constexpr llvm::StringLiteral unquantized = "export it before it is quantized";
constexpr llvm::StringLiteral recurrent =
    "write it as a loop over a fixed number of positions (nn.LSTMCell, nn.GRUCell, nn.RNNCell), "
    "which is exported as matmuls";
constexpr llvm::StringLiteral noise =
    "make the noise an input of the model, a column of the data (dropout is supported)";
constexpr llvm::StringLiteral rearranged = "write it as view() and permute()";
constexpr llvm::StringLiteral inExponentials = "write it with torch.exp() or torch.log()";
constexpr llvm::StringLiteral inPolynomials = "approximate it by a polynomial";
constexpr llvm::StringLiteral masked =
    "how many elements are chosen depends on the data, so keep all and use torch.where(mask, x, 0), or "
    "label -100 for tokens that do not count";
constexpr llvm::StringLiteral bits = "write it with comparisons and arithmetic on int64";
constexpr llvm::StringLiteral fixedLoop =
    "export it with dynamo=True, or write a loop with a number of iterations that Python knows";
constexpr llvm::StringLiteral ofImages = "do it when preparing the data";
constexpr llvm::StringLiteral transform =
    "write it as a matmul with constant tables of cosines and sines";

constexpr Refusal refusals[] = {
    {"Acos", "torch.acos()", inPolynomials},
    {"Acosh", "torch.acosh()", inExponentials},
    {"AffineGrid", "F.affine_grid()", ofImages},
    {"Asin", "torch.asin()", inPolynomials},
    {"Asinh", "torch.asinh()", inExponentials},
    {"Atan", "torch.atan() or torch.atan2()", inPolynomials},
    {"Atanh", "torch.atanh()", inExponentials},
    {"AveragePool", "nn.AvgPool1d or nn.AvgPool2d",
     "where windows do not overlap, write x.unflatten(-1, (-1, size)).mean(-1), else F.conv1d() or "
     "F.conv2d() with a constant weight"},
    {"Bernoulli", "torch.bernoulli()", noise},
    {"BitShift", "<< or >> of integers", bits},
    {"BitwiseAnd", "& of integers", bits},
    {"BitwiseNot", "~ of integers", bits},
    {"BitwiseOr", "| of integers", bits},
    {"BitwiseXor", "^ of integers", bits},
    {"Col2Im", "nn.Fold", "where windows do not overlap, write it as view() and permute()"},
    {"Compress", "masked_select() or x[mask]", masked},
    {"ConvInteger", quantized, unquantized},
    {"ConvTranspose", "nn.ConvTranspose1d or nn.ConvTranspose2d",
     "where windows do not overlap, write it as nn.Linear, view() and permute()"},
    {"Cosh", "torch.cosh()", inExponentials},
    {"CumProd", "torch.cumprod()", "of positive numbers, write torch.cumsum(x.log(), dim).exp()"},
    {"DFT", "torch.fft", transform},
    {"DepthToSpace", "nn.PixelShuffle", rearranged},
    {"DequantizeLinear", quantized, unquantized},
    {"DynamicQuantizeLinear", quantized, unquantized},
    {"GRU", "nn.GRU", recurrent},
    {"GridSample", "F.grid_sample()", ofImages},
    {"LSTM", "nn.LSTM", recurrent},
    {"Loop", "as_strided(), nn.EmbeddingBag or a loop in a scripted function",
     "write as_strided() as slices, nn.EmbeddingBag as nn.Embedding and sum() or mean(), a loop with a "
     "number of iterations that Python knows"},
    {"MatMulInteger", quantized, unquantized},
    {"MaxPool", "nn.MaxPool1d or nn.MaxPool2d",
     "where windows do not overlap, write x.unflatten(-1, (-1, size)).amax(-1), else torch.maximum() of "
     "slices"},
    {"MaxUnpool", "nn.MaxUnpool1d or nn.MaxUnpool2d", "write it with scatter()"},
    {"Multinomial", "torch.multinomial()", noise},
    {"NonMaxSuppression", "torchvision.ops.nms()", "leave it to what reads the model's output"},
    {"NonZero", "x[mask], torch.nonzero() or routing to experts", masked},
    {"QLinearConv", quantized, unquantized},
    {"QLinearMatMul", quantized, unquantized},
    {"QuantizeLinear", quantized, unquantized},
    {"RNN", "nn.RNN", recurrent},
    {"RandomNormal", "torch.randn() or torch.normal()", noise},
    {"RandomNormalLike", "torch.randn_like() or torch.randn()", noise},
    {"RandomUniform", "torch.rand()", noise},
    {"RandomUniformLike", "torch.rand_like() or torch.rand()", noise},
    {"RoiAlign", "torchvision.ops.roi_align()", ofImages},
    {"STFT", "torch.stft()", transform},
    {"Scan", "a loop in a scripted function", fixedLoop},
    {"Sinh", "torch.sinh()", inExponentials},
    {"SpaceToDepth", "nn.PixelUnshuffle", rearranged},
    {"Tan", "torch.tan()", "write it as torch.sin(x) / torch.cos(x)"},
    {"TensorScatter", "a cache of keys and values",
     "export the model without it (use_cache=False)"},
    {"Unique", "torch.unique(), or max_norm of nn.Embedding",
     "leave max_norm out, and compute no set of values in the model"},
};

} // namespace

std::string refusalHint(llvm::StringRef domain, llvm::StringRef type) {
  if (!canonicalDomain(domain).empty())
    return {};
  const Refusal *found =
      llvm::find_if(refusals, [&](const Refusal &each) { return each.type == type; });
  if (found == std::end(refusals))
    return {};
  return (quoted(type) + " comes from " + found->cause + ": " + found->remedy).str();
}

} // namespace partita::importer
