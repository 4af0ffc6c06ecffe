//===- Lookup.cpp -----------------------------------------------------------------------------===//

#include "Lookup.h"

using namespace mlir;

namespace partita::importer {

LogicalResult checkIndexType(Node &node, const Tensor &indices) {
  if (indices.type != DType::i64 && indices.type != DType::i32)
    return node.error() << "its indices are " << typeText(indices) << ", expected integers";
  return success();
}

LogicalResult checkIndices(Node &node, const Tensor &indices, int64_t size, int64_t first,
                           int64_t every) {
  if (!indices.host)
    return success();
  HostTensor distinct = *indices.host;
  if (every == 1)
    distinct = distinct.withoutRepeats();
  std::optional<int64_t> bad;
  int64_t next = 0;
  forEachElement(distinct.shape(), {&distinct}, [&](llvm::ArrayRef<int64_t> at) {
    int64_t index = distinct.toInt(at[0]);
    if (next++ % every == first && (index < -size || index >= size))
      bad = index;
  });
  if (bad)
    return node.error() << "index " << *bad << " is outside a dimension of " << size;
  return success();
}

/// Known indices are counted from the start here, and cost the program nothing.
static MaybeHost wrapped(Node &node, const Tensor &indices, int64_t size) {
  if (!indices.host)
    return std::nullopt;
  static const ScalarFunction wrap{nullptr,
                                   [](const int64_t *v) { return v[0] < 0 ? v[0] + v[1] : v[0]; }};
  return node.folder().elementwise(DType::i64, indices.shape,
                                   {*indices.host, HostTensor::scalarInt(DType::i64, size)}, wrap);
}

Value positions(Node &node, Tensor *indices, int64_t size) {
  if (MaybeHost host = wrapped(node, *indices, size))
    return node.value(node.importer.create(*host));
  Math m(node);
  Value index = m.cast(node.value(indices), m.i64());
  return m.select(m.apply<tx::LessOp>(index, m.like(index, 0)),
                  m.add(index, static_cast<double>(size)), index);
}

Value takeAlong(Node &node, Value data, int64_t axis, Value positions) {
  Math m(node);
  llvm::ArrayRef<int64_t> dims = shapeOf(data);
  Shape front{axis}, others, shape(dims.take_front(axis));
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i)
    if (i != axis) {
      front.push_back(i);
      others.push_back(dims[i]);
    }
  llvm::ArrayRef<int64_t> taken = shapeOf(positions);
  Value table = node.reshape(node.transpose(data, front), {dims[axis], *elementCount(others)});
  Value rows = node.emit<tx::EmbeddingOp>({table, positions});
  // [positions..., before..., after...] -> [before..., positions..., after...]
  Shape apart(taken), order;
  apart.append(others);
  int64_t count = taken.size();
  for (int64_t i = 0; i < axis; ++i)
    order.push_back(count + i);
  for (int64_t i = 0; i < count; ++i)
    order.push_back(i);
  for (int64_t i = axis; i < static_cast<int64_t>(others.size()); ++i)
    order.push_back(count + i);
  return node.transpose(node.reshape(rows, apart), order);
}

Value takeOfEach(Node &node, Value data, Value positions) {
  llvm::ArrayRef<int64_t> dims = shapeOf(data), taken = shapeOf(positions);
  llvm::ArrayRef<int64_t> rest = dims.drop_front(taken.size());
  Shape tables(dims.take_front(taken.size())), shape(taken);
  tables.push_back(*elementCount(rest));
  shape.append(rest.begin(), rest.end());
  Value rows = node.emit<tx::TakeOp>({node.reshape(data, tables), positions});
  return node.reshape(rows, shape);
}

Value takeProgression(Node &node, Value data, int64_t axis, int64_t start, int64_t step,
                      int64_t count) {
  Math m(node);
  return takeAlong(
      node, data, axis,
      m.iota(m.i64(), 1, 0, count, static_cast<double>(start), static_cast<double>(step)));
}

static Shape rowMajor(llvm::ArrayRef<int64_t> shape) {
  Shape strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i])
    strides[i] = step;
  return strides;
}

Value flatPositions(Node &node, Value positions, llvm::ArrayRef<int64_t> shape, int64_t axis) {
  Math m(node);
  Shape strides = rowMajor(shape);
  llvm::ArrayRef<int64_t> taken = shapeOf(positions);
  Value flat = m.mul(positions, static_cast<double>(strides[axis]));
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
    if (dim != axis && taken[dim] > 1)
      flat = m.add(flat, m.iota(m.i64(), taken.size(), dim, taken[dim], 0,
                                static_cast<double>(strides[dim])));
  return flat;
}

//===------------------------------------------------------------------------------------------===//
// Scatter
//===------------------------------------------------------------------------------------------===//

LogicalResult scatterKind(Node &node, Scatter &kind) {
  std::string reduction = "none";
  if (failed(node.attribute("reduction", reduction)))
    return failure();
  static constexpr std::pair<llvm::StringLiteral, Scatter> kinds[] = {{"none", Scatter::replace},
                                                                      {"add", Scatter::add},
                                                                      {"mul", Scatter::mul},
                                                                      {"max", Scatter::max},
                                                                      {"min", Scatter::min}};
  for (auto [name, each] : kinds)
    if (name == reduction) {
      kind = each;
      return success();
    }
  return node.error() << "attribute 'reduction' is " << quoted(reduction)
                      << ", expected 'none', 'add', 'mul', 'max' or 'min'";
}

/// How many elements the matrix of all rows against all updates may have.
constexpr int64_t mostPairs = int64_t(1) << 22;

static LogicalResult checkPairs(Node &node, int64_t rows, int64_t updates, int64_t width) {
  if (rows > mostPairs / updates || rows * updates > mostPairs / width)
    return node.error() << "scatters " << updates << " updates over " << rows << " rows of "
                        << width << ", which is too large where positions are not known";
  return success();
}

/// [rows, updates]: does the update go there?
static Value meets(Math &m, int64_t rows, Value at) {
  Value row = m.iota(m.i64(), 2, 0, rows);
  return m.apply<tx::EqualOp>(row, at);
}

/// For every row the row of [old; new] that it becomes: the last update that goes there.
static FailureOr<Value> inverseOf(Node &node, int64_t rows, Value at, const MaybeHost &known) {
  Math m(node);
  int64_t updates = shapeOf(at)[0];
  if (known && node.folder().admit({rows + updates})) {
    HostBuffer buffer(DType::i64, {rows});
    for (int64_t row = 0; row < rows; ++row)
      buffer.putInt(row, row);
    for (auto [update, row] : llvm::enumerate(known->ints()))
      buffer.putInt(row, rows + update);
    return node.value(node.importer.create(buffer.finish()));
  }
  if (failed(checkPairs(node, rows, updates, 1)))
    return failure();
  Value update = m.iota(m.i64(), 2, 1, updates, static_cast<double>(rows));
  Value hits = meets(m, rows, node.reshape(at, {1, updates}));
  Value last = m.halve<tx::MaxOp>(m.select(hits, update, m.constant(m.i64(), {1, 1}, -1)), 1);
  return m.apply<tx::MaxOp>(node.reshape(last, {rows}), m.iota(m.i64(), 1, 0, rows));
}

/// Combines every row with all updates that go there, by `Op`, whose neutral element is given.
template <typename Op>
static FailureOr<Value> combineRows(Node &node, Value rows, Value at, Value updates,
                                    double neutral) {
  Math m(node);
  int64_t count = shapeOf(rows)[0], width = shapeOf(rows)[1], many = shapeOf(at)[0];
  if (failed(checkPairs(node, count, many, width)))
    return failure();
  Value hits = node.reshape(meets(m, count, node.reshape(at, {1, many})), {count, many, 1});
  Value each = node.reshape(updates, {1, many, width});
  Value relevant =
      m.select(hits, each, m.constant(getElementTypeOrSelf(rows.getType()), {1, 1, 1}, neutral));
  return m.apply<Op>(rows, node.reshape(m.halve<Op>(relevant, 1), {count, width}));
}

/// Elements `first` to `last` of every dimension.
struct Box {
  Shape first, last;
};

/// The box in `shape` that these row-major numbers are, in order.
static std::optional<Box> findBox(llvm::ArrayRef<int64_t> numbers, llvm::ArrayRef<int64_t> shape) {
  if (numbers.empty())
    return std::nullopt;
  Shape strides = rowMajor(shape);
  Box box;
  int64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    box.first.push_back(numbers.front() / strides[i] % shape[i]);
    box.last.push_back(numbers.back() / strides[i] % shape[i]);
    if (box.last[i] < box.first[i])
      return std::nullopt;
    count *= box.last[i] - box.first[i] + 1;
  }
  if (count != static_cast<int64_t>(numbers.size()))
    return std::nullopt;
  for (auto [next, number] : llvm::enumerate(numbers)) {
    int64_t left = next, expected = 0;
    for (size_t i = shape.size(); i-- > 0;) {
      int64_t extent = box.last[i] - box.first[i] + 1;
      expected += (box.first[i] + left % extent) * strides[i];
      left /= extent;
    }
    if (number != expected)
      return std::nullopt;
  }
  return box;
}

/// Dimension by dimension: what is before and behind the box stays.
static Value writeBox(Node &node, Value data, const Box &box, size_t dim, Value updates) {
  llvm::ArrayRef<int64_t> shape = shapeOf(data);
  if (dim == box.first.size())
    return node.reshape(updates, shape);
  auto piece = [&](int64_t from, int64_t to) {
    Shape offsets(shape.size(), 0), sizes(shape), strides(shape.size(), 1);
    offsets[dim] = from;
    sizes[dim] = to - from;
    return node.slice(data, offsets, sizes, strides);
  };
  int64_t first = box.first[dim], end = box.last[dim] + 1, size = shape[dim];
  llvm::SmallVector<Value> pieces;
  if (first > 0)
    pieces.push_back(piece(0, first));
  Value within = end - first == size ? data : piece(first, end);
  pieces.push_back(writeBox(node, within, box, dim + 1, updates));
  if (end < size)
    pieces.push_back(piece(end, size));
  return pieces.size() == 1 ? pieces[0] : Math(node).concat(pieces, dim);
}

Value writeBox(Node &node, Value data, llvm::ArrayRef<int64_t> rows, int64_t depth, Value updates) {
  std::optional<Box> box = findBox(rows, shapeOf(data).take_front(depth));
  return box ? writeBox(node, data, *box, 0, updates) : Value();
}

FailureOr<Value> scatterRows(Node &node, Value rows, Value at, const MaybeHost &known,
                             Value updates, Scatter kind) {
  Math m(node);
  if (kind != Scatter::replace && !isa<FloatType>(getElementTypeOrSelf(rows.getType())))
    return FailureOr<Value>(node.error() << "reduces values that are not floats, which is not "
                                            "supported where they depend on the model's input");
  double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
  case Scatter::add: {
    auto sums =
        tx::EmbeddingGradOp::create(node.builder(), node.loc, rows.getType(), at, updates, Value());
    return m.add(rows, sums);
  }
  case Scatter::mul:
    return combineRows<tx::MulOp>(node, rows, at, updates, 1);
  case Scatter::max:
    return combineRows<tx::MaxOp>(node, rows, at, updates, -infinity);
  case Scatter::min:
    return combineRows<tx::MinOp>(node, rows, at, updates, infinity);
  case Scatter::replace:
    break;
  }
  FailureOr<Value> inverse = inverseOf(node, shapeOf(rows)[0], at, known);
  if (failed(inverse))
    return failure();
  return node.emit<tx::EmbeddingOp>({m.concat({rows, updates}, 0), *inverse});
}

} // namespace partita::importer
