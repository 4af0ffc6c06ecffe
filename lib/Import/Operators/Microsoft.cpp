//===- Microsoft.cpp - what onnxruntime's optimizer fuses -----------------------------------===//
//
// Operators of the domain com.microsoft that a model keeps when it was saved after optimization.
// Each is taken apart again. Caches of keys and values are for generation, not for training: a node
// that reads one is refused.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Operators/Microsoft.h"
#include <cmath>

using namespace mlir;

namespace partita::importer {

LogicalResult checkRow(Node &node, Tensor *row, const Tensor &x, int64_t count, const char *what) {
  if (row->type != x.type || row->shape != Shape{count})
    return node.error() << "has a " << what << " that is " << typeText(*row) << ", expected "
                        << count << " of " << dtypeName(x.type);
  return node.emittable(row);
}

FailureOr<Value> lookUp(Node &node, Tensor *ids, Tensor *table, llvm::ArrayRef<int64_t> idsShape) {
  if (failed(checkIndexType(node, *ids)) || failed(node.emittable({ids, table})))
    return failure();
  if (!isFloat(table->type) || table->shape.size() != 2 || ids->shape != idsShape)
    return FailureOr<Value>(node.error() << "looks up " << typeText(*ids) << " in "
                                         << typeText(*table) << ", expected ids of shape "
                                         << shapeText(idsShape) << " and a table of rows");
  if (failed(checkIndices(node, *ids, table->shape[0])))
    return failure();
  return node.emit<tx::EmbeddingOp>({node.value(table), node.value(ids)});
}

namespace {

//===------------------------------------------------------------------------------------------===//
// Attention
//===------------------------------------------------------------------------------------------===//

/// Inputs from `first` on, of which this import has no use, must be absent.
LogicalResult refuse(Node &node, std::initializer_list<std::pair<int64_t, const char *>> inputs) {
  for (auto [index, what] : inputs)
    if (Tensor *tensor = node.input(index); tensor && *elementCount(tensor->shape) != 0)
      return node.error() << "has " << what << " (input " << index << "), which is not supported";
  return success();
}

/// A mask of tokens: [b, t] or [b, s, t] where 0 is masked, or [b], how many count.
LogicalResult addTokenMask(Node &node, Tensor *mask, AttentionParts &parts, float filter) {
  if (!mask)
    return success();
  int64_t batch = shapeOf(parts.q)[0], queries = shapeOf(parts.q)[2], keys = shapeOf(parts.k)[2];
  if (failed(checkIndexType(node, *mask)) || failed(node.emittable(mask)))
    return failure();
  Math m(node);
  Value value = node.value(mask), counts;
  if (mask->shape == Shape{batch, keys})
    counts = node.reshape(value, {batch, 1, 1, keys});
  else if (mask->shape == Shape{batch, queries, keys})
    counts = node.reshape(value, {batch, 1, queries, keys});
  else if (mask->shape == Shape{batch})
    counts = Value();
  else
    return node.error() << "has a mask that is " << typeText(*mask) << ", expected " << batch
                        << ", " << shapeText({batch, keys}) << " or "
                        << shapeText({batch, queries, keys});
  Value seen;
  if (counts)
    seen = m.apply<tx::GreaterOp>(counts, m.like(counts, 0));
  else
    seen = m.apply<tx::LessOp>(m.iota(m.i64(), 4, 3, keys),
                               node.reshape(m.cast(value, m.i64()), {batch, 1, 1, 1}));
  Type element = getElementTypeOrSelf(parts.q.getType());
  Value bias = m.select(seen, m.constant(element, {}, 0), m.constant(element, {}, filter));
  parts.bias = parts.bias ? m.add(parts.bias, bias) : bias;
  return success();
}

/// What is added to the scores, of [b or 1, h or 1, s, t].
LogicalResult addBias(Node &node, Tensor *bias, AttentionParts &parts) {
  if (!bias)
    return success();
  llvm::ArrayRef<int64_t> q = shapeOf(parts.q);
  if (failed(checkBroadcast(node, bias, {q[0], q[1], q[2], shapeOf(parts.k)[2]}, "bias")) ||
      failed(node.emittable(bias)))
    return failure();
  if (bias->type != node.input(0)->type)
    return node.error() << "has a bias that is " << typeText(*bias);
  parts.bias = node.value(bias);
  return success();
}

/// Scale, mask and causality, which these operators share; then attention, heads joined.
LogicalResult finish(Node &node, AttentionParts &parts, Tensor *mask, Tensor *bias) {
  int64_t causal = 0;
  float scale = 0, filter = -10000;
  if (failed(node.attribute("unidirectional", causal)) || failed(node.attribute("scale", scale)) ||
      failed(node.attribute("mask_filter_value", filter)) || failed(checkAttention(node, parts)) ||
      failed(addBias(node, bias, parts)) || failed(addTokenMask(node, mask, parts, filter)))
    return failure();
  int64_t queries = shapeOf(parts.q)[2], keys = shapeOf(parts.k)[2];
  if (causal)
    parts.keep = causalMask(node, queries, keys, keys - queries);
  parts.scale = scale != 0 ? scale : 1 / std::sqrt(double(shapeOf(parts.q)[3]));
  return node.set(0, joinHeads(node, attend(node, parts)));
}

/// Queries, keys and values by one matmul with fused weights.
LogicalResult attention(Node &node) {
  int64_t heads = 0, rotary = 0, shared = 0;
  Shape sizes;
  if (failed(node.arity(2, 7)) || failed(node.attribute("num_heads", heads)) ||
      failed(node.attribute("do_rotary", rotary)) ||
      failed(node.attribute("past_present_share_buffer", shared)) ||
      failed(node.attribute("qkv_hidden_sizes", sizes)) ||
      failed(refuse(node, {{4, "a cache of keys"}, {6, "a cache of keys"}})))
    return failure();
  Tensor *x = node.input(0), *weight = node.input(1), *bias = node.input(2);
  if (rotary)
    return node.error() << "with attribute 'do_rotary' is not supported";
  if (!isFloat(x->type) || x->shape.size() != 3 || weight->type != x->type ||
      weight->shape.size() != 2 || weight->shape[0] != x->shape[2])
    return node.error() << "of " << typeText(*x) << " with weights " << typeText(*weight);
  int64_t width = weight->shape[1];
  if (sizes.empty())
    sizes.assign(3, width / 3);
  bool fits = sizes.size() == 3 && heads > 0;
  for (int64_t size : sizes)
    fits = fits && size > 0 && size <= width && size % heads == 0;
  if (!fits || sizes[0] + sizes[1] + sizes[2] != width)
    return node.error() << "has weights for " << width << " numbers, which are not three times "
                        << heads << " heads";
  if (failed(node.emittable({x, weight})) ||
      (bias && failed(checkRow(node, bias, *x, width, "bias"))))
    return failure();
  Math m(node);
  Value all = node.emit<tx::MatMulOp>({node.value(x), node.value(weight)});
  if (bias)
    all = m.add(all, node.value(bias));
  AttentionParts parts;
  parts.q = splitHeads(node, m.slice(all, 2, 0, sizes[0]), heads);
  parts.k = splitHeads(node, m.slice(all, 2, sizes[0], sizes[1]), heads);
  parts.v = splitHeads(node, m.slice(all, 2, sizes[0] + sizes[1], sizes[2]), heads);
  return finish(node, parts, node.input(3), node.input(5));
}

/// [b, t, h d] or [b, h, t, d]
FailureOr<Value> headsOf(Node &node, Tensor *tensor, int64_t heads, Value bias) {
  Math m(node);
  if (tensor->shape.size() == 4 && tensor->shape[1] == heads && !bias)
    return node.value(tensor);
  if (tensor->shape.size() != 3 || tensor->shape[2] % heads != 0)
    return FailureOr<Value>(node.error() << "has an input that is " << typeText(*tensor)
                                         << ", which " << heads << " heads do not divide");
  Value x = node.value(tensor);
  return splitHeads(node, bias ? m.add(x, bias) : x, heads);
}

/// One of the parts of a packed [b, t, h, parts, d].
Value unpack(Node &node, Tensor *packed, int64_t part) {
  Math m(node);
  llvm::ArrayRef<int64_t> s(packed->shape);
  Value one = node.reshape(m.slice(node.value(packed), 3, part, 1), {s[0], s[1], s[2], s[4]});
  return node.transpose(one, {0, 2, 1, 3});
}

LogicalResult multiHeadAttention(Node &node) {
  int64_t heads = 0;
  if (failed(node.arity(1, 10)) || failed(node.attribute("num_heads", heads)) ||
      failed(refuse(node, {{6, "a cache of keys"},
                           {7, "a cache of values"},
                           {8, "a cache of keys"},
                           {9, "a cache of keys"}})))
    return failure();
  Tensor *q = node.input(0), *k = node.input(1), *v = node.input(2), *bias = node.input(3);
  for (Tensor *each : {q, k, v})
    if (each && (!isFloat(each->type) || each->type != q->type || each->shape.size() < 3))
      return node.error() << "of " << typeText(*each) << ", expected floats of one type";
    else if (each && failed(node.emittable(each)))
      return failure();
  if (heads < 1 || node.wants(3))
    return node.error() << "has " << heads << " heads and " << node.proto.output_size()
                        << " results";
  Math m(node);
  AttentionParts parts;
  if (!k) { // packed, [b, t, h, 3, d]
    if (q->shape.size() != 5 || q->shape[2] != heads || q->shape[3] != 3 || bias)
      return node.error() << "of " << typeText(*q)
                          << " alone, expected packed queries, keys and "
                             "values without a bias";
    parts.q = unpack(node, q, 0), parts.k = unpack(node, q, 1), parts.v = unpack(node, q, 2);
  } else {
    Value biases[3];
    int64_t sizes[3] = {q->shape.back(), k->shape.back(), v ? v->shape.back() : 0};
    if (bias) {
      if (failed(checkRow(node, bias, *q, sizes[0] + sizes[1] + sizes[2], "bias")))
        return failure();
      for (int64_t i = 0, at = 0; i < 3; at += sizes[i++])
        if (sizes[i])
          biases[i] = m.slice(node.value(bias), 0, at, sizes[i]);
    }
    FailureOr<Value> first = headsOf(node, q, heads, biases[0]);
    if (failed(first))
      return failure();
    parts.q = *first;
    if (!v) { // packed, [b, t, h, 2, d]
      if (k->shape.size() != 5 || k->shape[2] != heads || k->shape[3] != 2 || bias)
        return node.error() << "of keys " << typeText(*k)
                            << " alone, expected packed keys and values without a bias";
      parts.k = unpack(node, k, 0), parts.v = unpack(node, k, 1);
    } else {
      FailureOr<Value> second = headsOf(node, k, heads, biases[1]);
      if (failed(second))
        return failure();
      FailureOr<Value> third = headsOf(node, v, heads, biases[2]);
      if (failed(third))
        return failure();
      parts.k = *second, parts.v = *third;
    }
  }
  if (failed(node.set(1, parts.k)) || failed(node.set(2, parts.v)))
    return failure();
  return finish(node, parts, node.input(4), node.input(5));
}

//===------------------------------------------------------------------------------------------===//
// Rotary embeddings, and attention of grouped queries, which may begin with them
//===------------------------------------------------------------------------------------------===//

/// Cosines and sines at positions [b, s] (null: 0, 1, ...) as [b or 1, 1, s, w].
LogicalResult readAngles(Node &node, Tensor *cos, Tensor *sin, Tensor *ids, int64_t batch,
                         int64_t length, Value &cosines, Value &sines) {
  Math m(node);
  int64_t offset = 0;
  bool isOffset = ids && *elementCount(ids->shape) == 1 && (batch != 1 || length != 1);
  if (isOffset) { // one number: where the positions begin
    if (failed(node.knownInt(node.proto.domain() == "com.microsoft" ? 1 : 3, "the first position",
                             offset)))
      return failure();
    ids = nullptr;
  }
  for (auto [table, result] : {std::pair(cos, &cosines), {sin, &sines}}) {
    if (!table || table->type != node.input(0)->type || table->shape.size() != 2 ||
        (!ids && (offset < 0 || offset > table->shape[0] - length)))
      return node.error() << "has no cosines and sines for " << length << " positions";
    if (failed(node.emittable(table)))
      return failure();
    int64_t width = table->shape[1];
    if (!ids) {
      *result = node.reshape(m.slice(node.value(table), 0, offset, length), {1, 1, length, width});
      continue;
    }
    FailureOr<Value> rows = lookUp(node, ids, table, {batch, length});
    if (failed(rows))
      return failure();
    *result = node.reshape(*rows, {batch, 1, length, width});
  }
  return success();
}

LogicalResult checkRotary(Node &node, Value cosines, Value sines, int64_t size) {
  int64_t width = shapeOf(cosines).back();
  if (shapeOf(sines).back() != width || width < 1 || 2 * width > size)
    return node.error() << "rotates " << 2 * width << " of " << size << " numbers";
  return success();
}

LogicalResult rotaryEmbedding(Node &node) {
  int64_t heads = 0, rotated = 0, interleaved = 0, ragged = 0;
  float scale = 1;
  if (failed(node.arity(4, 4)) || failed(node.attribute("num_heads", heads)) ||
      failed(node.attribute("rotary_embedding_dim", rotated)) ||
      failed(node.attribute("interleaved", interleaved)) ||
      failed(node.attribute("scale", scale)) ||
      failed(node.attribute("is_packed_batching", ragged)))
    return failure();
  Tensor *x = node.input(0), *cos = node.input(2);
  size_t rank = x->shape.size();
  if (scale != 1 || ragged)
    return node.error() << "with attribute 'scale' or 'is_packed_batching' is not supported";
  if (!isFloat(x->type) || (rank != 3 && rank != 4) || cos->shape.size() != 2)
    return node.error() << "of " << typeText(*x) << " and " << typeText(*cos);
  if (rank == 3 && heads == 0 && cos->shape[1] > 0) // a head is as large as the tables say
    heads = x->shape[2] / (2 * cos->shape[1]);
  if (rank == 3 && (heads < 1 || x->shape[2] % heads != 0))
    return node.error() << "of " << typeText(*x) << ", which " << heads << " heads do not divide";
  if (failed(node.emittable(x)))
    return failure();
  Value value = rank == 3 ? splitHeads(node, node.value(x), heads) : node.value(x);
  Shape shape(shapeOf(value));
  Value cosines, sines;
  if (failed(readAngles(node, cos, node.input(3), node.input(1), shape[0], shape[2], cosines,
                        sines)) ||
      failed(checkRotary(node, cosines, sines, shape[3])))
    return failure();
  value = rotate(node, value, cosines, sines, interleaved);
  return node.set(0, rank == 3 ? joinHeads(node, value) : value);
}

/// Queries, keys and values with heads second; keys and values may be packed after the queries.
LogicalResult readGroups(Node &node, int64_t heads, int64_t groups, AttentionParts &parts) {
  Tensor *q = node.input(0), *k = node.input(1), *v = node.input(2);
  if (heads < 1 || groups < 1 || heads % groups != 0 || !k != !v)
    return node.error() << "has " << heads << " heads and " << groups << " of keys";
  for (Tensor *each : {q, k, v})
    if (each && (!isFloat(each->type) || each->type != q->type || each->shape.size() != 3))
      return node.error() << "of " << typeText(*each) << ", expected floats of three dimensions";
    else if (each && failed(node.emittable(each)))
      return failure();
  Math m(node);
  if (!k) {
    int64_t all = heads + 2 * groups, size = q->shape[2] / all;
    if (q->shape[2] % all != 0)
      return node.error() << "of " << typeText(*q) << ", which " << all << " heads do not divide";
    Value x = node.value(q);
    parts.q = splitHeads(node, m.slice(x, 2, 0, heads * size), heads);
    parts.k = splitHeads(node, m.slice(x, 2, heads * size, groups * size), groups);
    parts.v = splitHeads(node, m.slice(x, 2, (heads + groups) * size, groups * size), groups);
    return success();
  }
  for (auto [tensor, count, value] :
       {std::tuple(q, heads, &parts.q), {k, groups, &parts.k}, {v, groups, &parts.v}}) {
    if (tensor->shape[2] % count != 0)
      return node.error() << "of " << typeText(*tensor) << ", which " << count
                          << " heads do not divide";
    *value = splitHeads(node, node.value(tensor), count);
  }
  return success();
}

/// Causal; `seqlens_k` says how many tokens count (less one), the others are padding at the end.
LogicalResult groupQueryAttention(Node &node) {
  int64_t heads = 0, groups = 0, rotary = 0, interleaved = 0, window = -1, smooth = -1;
  float scale = 0, softcap = 0;
  if (failed(node.arity(1, 14)) || failed(node.attribute("num_heads", heads)) ||
      failed(node.attribute("kv_num_heads", groups)) ||
      failed(node.attribute("do_rotary", rotary)) ||
      failed(node.attribute("rotary_interleaved", interleaved)) ||
      failed(node.attribute("local_window_size", window)) ||
      failed(node.attribute("smooth_softmax", smooth)) || failed(node.attribute("scale", scale)) ||
      failed(node.attribute("softcap", softcap)) ||
      failed(refuse(node, {{3, "a cache of keys"},
                           {4, "a cache of values"},
                           {11, "sinks"},
                           {12, "quantized keys"},
                           {13, "quantized values"}})))
    return failure();
  if (smooth > 0 || node.wants(3))
    return node.error() << "with smooth softmax, or yielding scores, is not supported";
  AttentionParts parts;
  if (failed(readGroups(node, heads, groups, parts)) || failed(checkAttention(node, parts)))
    return failure();
  Shape q(shapeOf(parts.q));
  if (shapeOf(parts.k)[2] != q[2])
    return node.error() << "has " << q[2] << " queries and " << shapeOf(parts.k)[2]
                        << " keys, expected as many: caches are not supported";
  if (rotary) {
    Value cosines, sines;
    if (failed(readAngles(node, node.input(7), node.input(8), node.input(9), q[0], q[2], cosines,
                          sines)) ||
        failed(checkRotary(node, cosines, sines, q[3])))
      return failure();
    parts.q = rotate(node, parts.q, cosines, sines, interleaved);
    parts.k = rotate(node, parts.k, cosines, sines, interleaved);
  }
  if (failed(addBias(node, node.input(10), parts)))
    return failure();
  Math m(node);
  parts.keep = causalMask(node, q[2], q[2], 0);
  if (window >= 0 && window < q[2]) {
    Value row = m.iota(m.i64(), 2, 0, q[2], static_cast<double>(-window));
    parts.keep =
        alsoKeep(node, m.apply<tx::GreaterOp>(m.iota(m.i64(), 2, 1, q[2]), row), parts.keep);
  }
  if (Tensor *last = node.input(5)) {
    if (failed(checkIndexType(node, *last)))
      return failure();
    if (*elementCount(last->shape) != q[0])
      return node.error() << "has lengths that are " << typeText(*last) << ", expected " << q[0];
    Value least = node.reshape(m.cast(node.value(last), m.i64()), {q[0], 1, 1, 1});
    parts.keep =
        alsoKeep(node, m.apply<tx::LessEqualOp>(m.iota(m.i64(), 4, 3, q[2]), least), parts.keep);
  }
  parts.scale = scale != 0 ? scale : 1 / std::sqrt(double(q[3]));
  parts.softcap = softcap;
  if (failed(node.set(1, parts.k)) || failed(node.set(2, parts.v)))
    return failure();
  return node.set(0, joinHeads(node, attend(node, parts)));
}

const OpRow microsoftRows[] = {
    OpRow{"Attention", kMicrosoft, 1, anyLater, attention}.masked(5),
    OpRow{"MultiHeadAttention", kMicrosoft, 1, anyLater, multiHeadAttention}.masked(5),
    OpRow{"GroupQueryAttention", kMicrosoft, 1, anyLater, groupQueryAttention}.fixed({7, 8}).masked(
        10),
    OpRow{"RotaryEmbedding", kMicrosoft, 1, anyLater, rotaryEmbedding}.fixed({2, 3}),
};

} // namespace

llvm::ArrayRef<OpRow> microsoftOps() { return microsoftRows; }

} // namespace partita::importer
