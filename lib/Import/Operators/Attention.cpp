//===- Attention.cpp - attention and rotary embeddings ----------------------------------------===//

#include "lib/Import/Operators/Attention.h"
#include "lib/Import/Operators/Lookup.h"
#include <cmath>

using namespace mlir;

namespace partita::importer {

LogicalResult checkBroadcast(Node &node, Tensor *tensor, llvm::ArrayRef<int64_t> shape,
                             const char *what) {
  bool fits = tensor->shape.size() <= shape.size();
  for (size_t i = 0; fits && i < tensor->shape.size(); ++i) {
    int64_t dim = tensor->shape[tensor->shape.size() - 1 - i];
    fits = dim == 1 || dim == shape[shape.size() - 1 - i];
  }
  if (!fits)
    return node.error() << "has a " << what << " that is " << typeText(*tensor)
                        << ", which does not broadcast to " << shapeText(shape);
  return success();
}

LogicalResult checkAttention(Node &node, const AttentionParts &parts) {
  llvm::ArrayRef<int64_t> q = shapeOf(parts.q), k = shapeOf(parts.k), v = shapeOf(parts.v);
  if (q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || q[1] % k[1] != 0 || k[2] != v[2] ||
      q[3] != k[3])
    return node.error() << "has queries " << shapeText(q) << ", keys " << shapeText(k)
                        << " and values " << shapeText(v)
                        << " (batch, heads, length, size), which do not fit one another";
  if (!elementCount({q[0], q[1], q[2], k[2]}))
    return node.error() << "has too many scores: queries " << shapeText(q) << ", keys "
                        << shapeText(k);
  return success();
}

Value splitHeads(Node &node, Value x, int64_t heads) {
  llvm::ArrayRef<int64_t> shape = shapeOf(x);
  return node.transpose(node.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}),
                        {0, 2, 1, 3});
}

Value joinHeads(Node &node, Value x) {
  Shape shape(shapeOf(x));
  return node.reshape(node.transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

Value causalMask(Node &node, int64_t queries, int64_t keys, int64_t past) {
  Math m(node);
  Value row = m.iota(m.i64(), 2, 0, queries, static_cast<double>(past));
  return m.apply<tx::LessEqualOp>(m.iota(m.i64(), 2, 1, keys), row);
}

Value alsoKeep(Node &node, Value keep, Value other) {
  return other ? Math(node).apply<tx::AndOp>(keep, other) : keep;
}

/// Every head of k or v as often as q has heads for it.
static Value repeatHeads(Node &node, Value x, int64_t times) {
  if (times == 1)
    return x;
  Shape s(shapeOf(x));
  Value apart = node.reshape(x, {s[0], s[1], 1, s[2], s[3]});
  return node.reshape(node.broadcast(apart, {s[0], s[1], times, s[2], s[3]}),
                      {s[0], s[1] * times, s[2], s[3]});
}

Value attend(Node &node, const AttentionParts &parts, AttentionScores *scores) {
  Math m(node);
  int64_t times = shapeOf(parts.q)[1] / shapeOf(parts.k)[1];
  Value k = repeatHeads(node, parts.k, times), v = repeatHeads(node, parts.v, times);
  AttentionScores steps;
  Value matmul = node.emit<tx::BatchMatMulOp>({parts.q, node.transpose(k, {0, 1, 3, 2})});
  Value score = steps.matmul = m.mul(matmul, parts.scale);
  if (parts.softcap > 0) // before the mask: a cap of -inf would be a score that counts
    score = m.mul(m.apply<tx::TanhOp>(m.div(score, parts.softcap)), parts.softcap);
  steps.capped = score;
  Shape shape(shapeOf(score));
  if (parts.bias)
    score = m.add(score, node.broadcast(parts.bias, shape));
  if (parts.keep)
    score = m.select(node.broadcast(parts.keep, shape), score, m.like(score, parts.filtered));
  steps.biased = score;
  Type element = getElementTypeOrSelf(parts.q.getType());
  Value weights =
      m.apply<tx::SoftmaxOp>(parts.softmaxType ? m.cast(score, parts.softmaxType) : score);
  if (parts.zeroHidden)
    weights = m.select(m.apply<tx::IsNanOp>(weights), m.like(weights, 0), weights);
  steps.weights = m.cast(weights, element);
  if (scores)
    *scores = steps;
  return node.emit<tx::BatchMatMulOp>({steps.weights, v});
}

Value rotate(Node &node, Value x, Value cos, Value sin, bool interleaved) {
  Math m(node);
  Shape shape(shapeOf(x));
  int64_t last = shape.size() - 1, half = shapeOf(cos).back(), rotated = 2 * half;
  Value turned = m.slice(x, last, 0, rotated), rest;
  if (rotated < shape[last])
    rest = m.slice(x, last, rotated, shape[last] - rotated);
  Value result;
  if (interleaved) {
    Value even = m.slice(turned, last, 0, half, 2), odd = m.slice(turned, last, 1, half, 2);
    Value real = m.sub(m.mul(even, cos), m.mul(odd, sin));
    Value imaginary = m.add(m.mul(even, sin), m.mul(odd, cos));
    Shape pairs(shapeOf(real)), joined(pairs);
    pairs.push_back(1);
    joined[last] = rotated;
    result = node.reshape(
        m.concat({node.reshape(real, pairs), node.reshape(imaginary, pairs)}, last + 1), joined);
  } else {
    Value first = m.slice(turned, last, 0, half), second = m.slice(turned, last, half, half);
    Value quarter = m.concat({m.negate(second), first}, last); // x turned by 90 degrees
    auto both = [&](Value v) { return m.concat({v, v}, shapeOf(v).size() - 1); };
    result = m.add(m.mul(turned, both(cos)), m.mul(quarter, both(sin)));
  }
  return rest ? m.concat({result, rest}, last) : result;
}

namespace {

//===------------------------------------------------------------------------------------------===//
// Attention
//===------------------------------------------------------------------------------------------===//

/// q, k and v with heads second; three dimensions need the number of heads.
LogicalResult readHeads(Node &node, AttentionParts &parts, bool &flat) {
  int64_t queryHeads = 0, keyHeads = 0;
  if (failed(node.attribute("q_num_heads", queryHeads)) ||
      failed(node.attribute("kv_num_heads", keyHeads)))
    return failure();
  Tensor *inputs[] = {node.input(0), node.input(1), node.input(2)};
  Value *heads[] = {&parts.q, &parts.k, &parts.v};
  size_t rank = inputs[0]->shape.size();
  flat = rank == 3;
  for (auto [i, tensor] : llvm::enumerate(inputs)) {
    int64_t count = i == 0 ? queryHeads : keyHeads;
    if (!isFloat(tensor->type) || tensor->type != inputs[0]->type || tensor->shape.size() != rank ||
        (rank != 3 && rank != 4))
      return node.error() << "input " << i << " is " << typeText(*tensor)
                          << ", expected floats of one type with three or four dimensions";
    if (failed(node.emittable(tensor)))
      return failure();
    if (flat && (count < 1 || tensor->shape[2] % count != 0))
      return node.error() << "input " << i << " is " << typeText(*tensor) << ", which " << count
                          << " heads do not divide";
    *heads[i] = flat ? splitHeads(node, node.value(tensor), count) : node.value(tensor);
  }
  return success();
}

/// Keys and values of earlier tokens stand before the new ones.
LogicalResult readPast(Node &node, AttentionParts &parts, int64_t &past) {
  Math m(node);
  past = 0;
  if (!node.input(4) != !node.input(5))
    return node.error() << "has one of past_key and past_value, expected both or none";
  for (auto [index, value] : {std::pair(4, &parts.k), {5, &parts.v}}) {
    Tensor *before = node.input(index);
    if (!before)
      continue;
    llvm::ArrayRef<int64_t> shape = shapeOf(*value);
    bool fits = before->shape.size() == 4 && before->type == node.input(0)->type;
    for (size_t i = 0; fits && i < 4; ++i)
      fits = i == 2 || before->shape[i] == shape[i];
    if (!fits)
      return node.error() << "input " << index << " is " << typeText(*before)
                          << ", which does not fit " << shapeText(shape);
    past = before->shape[2];
    if (past == 0)
      continue;
    if (failed(node.emittable(before)))
      return failure();
    *value = m.concat({node.value(before), *value}, 2);
  }
  return success();
}

/// A mask of bools says what counts, one of floats is added. Keys beyond it do not count.
LogicalResult readMask(Node &node, AttentionParts &parts) {
  Tensor *mask = node.input(3);
  if (!mask)
    return success();
  Shape shape{shapeOf(parts.q)[0], shapeOf(parts.q)[1], shapeOf(parts.q)[2], shapeOf(parts.k)[2]};
  Shape short4(shape);
  if (!mask->shape.empty() && mask->shape.back() < shape[3] && mask->shape.back() != 1)
    short4[3] = mask->shape.back();
  bool isBool = mask->type == DType::boolean;
  if (!isBool && mask->type != node.input(0)->type)
    return node.error() << "has a mask that is " << typeText(*mask) << ", expected bools or "
                        << dtypeName(node.input(0)->type);
  if (failed(checkBroadcast(node, mask, short4, "mask")) || failed(node.emittable(mask)))
    return failure();
  Math m(node);
  Value value = node.value(mask);
  if (int64_t missing = shape[3] - short4[3]) {
    Shape gap(mask->shape);
    gap.back() = missing;
    value = m.concat({value, m.constant(getElementTypeOrSelf(value.getType()), gap,
                                        isBool ? 0 : -std::numeric_limits<double>::infinity())},
                     gap.size() - 1);
  }
  (isBool ? parts.keep : parts.bias) = value;
  return success();
}

/// How far from its own position a query sees keys; -1: everything.
LogicalResult readWindow(Node &node, llvm::StringRef name, int64_t &size) {
  size = -1;
  if (node.version < 25) // an older opset has no windows
    return success();
  if (failed(node.attribute(name, size)))
    return failure();
  if (size < -1)
    return node.error() << "attribute " << quoted(name) << " is " << size
                        << ", expected -1 or more";
  return success();
}

/// The keys that a query sees: those of a cache that are there, by sample, no later ones (causal), and
/// those in its window. With a cache, queries align with the last keys, as
/// onnx 1.23 defines; it calls its earlier text (the first keys) a mistake.
LogicalResult readReach(Node &node, AttentionParts &parts, int64_t past) {
  int64_t causal = 0, left = -1, right = -1;
  if (failed(node.attribute("is_causal", causal)) ||
      failed(readWindow(node, "left_window_size", left)) ||
      failed(readWindow(node, "right_window_size", right)))
    return failure();
  Tensor *lengths = node.input(6);
  int64_t batch = shapeOf(parts.q)[0], queries = shapeOf(parts.q)[2], keys = shapeOf(parts.k)[2];
  if (lengths && failed(checkIndexType(node, *lengths)))
    return failure();
  if (lengths && lengths->shape != Shape{batch})
    return node.error() << "has lengths that are " << typeText(*lengths) << ", expected " << batch;
  Math m(node);
  int64_t rank = lengths ? 4 : 2;
  auto key = [&] { return m.iota(m.i64(), rank, rank - 1, keys); };
  auto keep = [&](Value that) { parts.keep = alsoKeep(node, that, parts.keep); };
  Value position;
  if (lengths) {
    Value count = node.reshape(m.cast(node.value(lengths), m.i64()), {batch, 1, 1, 1});
    position = m.add(count, m.iota(m.i64(), 4, 2, queries, -static_cast<double>(queries)));
    keep(m.apply<tx::LessOp>(key(), count));
  } else if (causal || left >= 0 || right >= 0) {
    position = m.iota(m.i64(), 2, 0, queries, static_cast<double>(past));
  }
  if (causal)
    keep(m.apply<tx::LessEqualOp>(key(), position));
  if (left >= 0)
    keep(m.apply<tx::LessEqualOp>(m.sub(position, static_cast<double>(left)), key()));
  if (right >= 0)
    keep(m.apply<tx::LessEqualOp>(key(), m.add(position, static_cast<double>(right))));
  // A causal query sees itself; others may see nothing.
  parts.zeroHidden = node.input(3) || lengths || left >= 0 || right >= 0;
  return success();
}

LogicalResult attention(Node &node) {
  int64_t precision = 0, mode = 0;
  float softcap = 0, scale = 0;
  if (failed(node.arity(3, node.version < 24 ? 6 : 7)) ||
      failed(node.attribute("softmax_precision", precision)) ||
      failed(node.attribute("qk_matmul_output_mode", mode)) ||
      failed(node.attribute("softcap", softcap)) || failed(node.attribute("scale", scale)))
    return failure();
  AttentionParts parts;
  bool flat = false;
  int64_t past = 0;
  if (failed(readHeads(node, parts, flat)))
    return failure();
  if (failed(readPast(node, parts, past)) || failed(checkAttention(node, parts)) ||
      failed(readMask(node, parts)) || failed(readReach(node, parts, past)))
    return failure();
  parts.scale = node.has("scale") ? scale : 1 / std::sqrt(double(shapeOf(parts.q)[3]));
  parts.softcap = softcap;
  if (precision) {
    std::optional<DType> type = dtypeFromOnnx(precision);
    if (!type || !isFloat(*type))
      return node.error() << "has softmax in " << dtypeName(precision) << ", expected floats";
    parts.softmaxType = mlirType(*type, node.importer.context());
  }
  AttentionScores scores;
  Value out = attend(node, parts, &scores);
  if (failed(node.set(0, flat ? joinHeads(node, out) : out)) || failed(node.set(1, parts.k)) ||
      failed(node.set(2, parts.v)))
    return failure();
  // Mode 1 has been defined as the scores with bias, and since onnx 1.23 as the capped ones.
  Value modes[] = {scores.matmul, softcap > 0 ? scores.capped : scores.biased, scores.biased,
                   scores.weights};
  if (mode < 0 || mode > 3)
    return node.error() << "attribute 'qk_matmul_output_mode' is " << mode << ", expected 0 to 3";
  return node.set(3, modes[mode]);
}

//===------------------------------------------------------------------------------------------===//
// RotaryEmbedding
//===------------------------------------------------------------------------------------------===//

LogicalResult rotaryEmbedding(Node &node) {
  int64_t heads = 0, rotated = 0, interleaved = 0;
  if (failed(node.arity(3, 4)) || failed(node.attribute("num_heads", heads)) ||
      failed(node.attribute("rotary_embedding_dim", rotated)) ||
      failed(node.attribute("interleaved", interleaved)))
    return failure();
  Tensor *x = node.input(0), *ids = node.input(3);
  size_t rank = x->shape.size();
  if (!isFloat(x->type) || (rank != 3 && rank != 4))
    return node.error() << "of " << typeText(*x) << ", expected floats of three or four dimensions";
  if (failed(node.emittable(x)))
    return failure();
  if (rank == 3 && (heads < 1 || x->shape[2] % heads != 0))
    return node.error() << "of " << typeText(*x) << ", which " << heads << " heads do not divide";
  Value value = rank == 3 ? splitHeads(node, node.value(x), heads) : node.value(x);
  Shape shape(shapeOf(value)); // batch, heads, length, size
  int64_t width = (rotated ? rotated : shape[3]) / 2;
  if (rotated < 0 || rotated > shape[3] || 2 * width != (rotated ? rotated : shape[3]) || width < 1)
    return node.error() << "rotates " << rotated << " of " << shape[3] << " numbers";
  Value angles[2];
  for (int i = 0; i < 2; ++i) {
    Tensor *table = node.input(1 + i);
    Shape expected = ids ? Shape{table->shape.empty() ? 0 : table->shape[0], width}
                         : Shape{shape[0], shape[2], width};
    // PyTorch's exporter writes the positions of all samples once, which the operator's definition by
    // other operators allows.
    if (!ids && table->shape.size() == 3 && table->shape[0] == 1)
      expected[0] = 1;
    if (table->type != x->type || table->shape != expected)
      return node.error() << "has cosines or sines that are " << typeText(*table) << ", expected "
                          << shapeText(expected) << " of " << dtypeName(x->type);
    if (failed(node.emittable(table)))
      return failure();
    angles[i] = node.value(table);
    if (ids) {
      if (failed(checkIndexType(node, *ids)) || failed(checkIndices(node, *ids, table->shape[0])))
        return failure();
      if (ids->shape != Shape{shape[0], shape[2]})
        return node.error() << "has positions that are " << typeText(*ids) << ", expected "
                            << shapeText({shape[0], shape[2]}) << " of int64";
      angles[i] = takeAlong(node, angles[i], 0, positions(node, ids, table->shape[0]));
    }
    angles[i] = node.reshape(angles[i], {ids ? shape[0] : expected[0], 1, shape[2], width});
  }
  Value result = rotate(node, value, angles[0], angles[1], interleaved);
  return node.set(0, rank == 3 ? joinHeads(node, result) : result);
}

const OpRow attentionRows[] = {
    OpRow{"Attention", "", 23, anyLater, attention}.masked(3),
    OpRow{"RotaryEmbedding", "", 23, anyLater, rotaryEmbedding}.fixed({1, 2}),
};

} // namespace

llvm::ArrayRef<OpRow> attentionOps() { return attentionRows; }

} // namespace partita::importer
