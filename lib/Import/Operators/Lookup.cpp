//===- Lookup.cpp -----------------------------------------------------------------------------===//

#include "lib/Import/Operators/Lookup.h"
#include "lib/Import/File/ExportRecord.h"

using namespace mlir;

namespace partita::importer {

LogicalResult checkIndexType(Node &node, const Tensor &indices) {
  if (indices.type != DType::i64 && indices.type != DType::i32)
    return node.error() << "its indices are " << typeText(indices) << ", expected integers";
  return success();
}

/// What to do if the indices are positions along a dimension of the model's input: they count on from a
/// first one, and there are as many as the dimension has.
static std::string ofPositions(Node &node, llvm::ArrayRef<int64_t> indices, int64_t size) {
  int64_t count = indices.size(), first = indices.front();
  llvm::StringRef dim = node.importer.dimOfSize(count);
  bool isCounted = llvm::all_of(llvm::enumerate(indices), [&](const auto &each) {
    return each.value() == first + static_cast<int64_t>(each.index());
  });
  if (dim.empty() || count < 2 || !isCounted || first < 0 || first >= size)
    return "";
  const Tensor *table = node.input(0);
  std::string what = table->initializer ? quoted(table->initializer->name()) : "the table";
  return ": " + what + " has an entry for each position along " + quoted(dim) + ", which is " +
         std::to_string(count) + "; give at most --dim " + dim.str() + "=" +
         std::to_string(size - first);
}

LogicalResult checkIndices(Node &node, const Tensor &indices, int64_t size, int64_t first,
                           int64_t every) {
  if (!indices.host)
    return success();
  HostTensor distinct = *indices.host;
  if (every == 1)
    distinct = distinct.withoutRepeats();
  std::optional<int64_t> bad;
  llvm::SmallVector<int64_t> all;
  int64_t next = 0;
  forEachElement(distinct.shape(), {&distinct}, [&](llvm::ArrayRef<int64_t> at) {
    int64_t index = distinct.toInt(at[0]);
    all.push_back(index);
    if (next++ % every == first && (index < -size || index >= size))
      bad = index;
  });
  if (bad)
    return node.error() << "index " << *bad << " is outside a dimension of " << size
                        << (every == 1 ? ofPositions(node, all, size) : "");
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

Value takeAlong(Node &node, Value data, int64_t axis, Value positions,
                std::optional<int64_t> padding) {
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
  if (padding)
    rows.getDefiningOp<tx::EmbeddingOp>().setPadding(*padding);
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

Value addToEach(Node &node, Value data, int64_t axis, Value positions, Value updates) {
  Math m(node);
  auto withColumn = [&](Value x) {
    Shape shape(shapeOf(x));
    shape.push_back(1);
    return node.reshape(x, shape);
  };
  Value tables = withColumn(m.axisToLast(data, axis));
  auto sums = tx::TakeGradOp::create(node.builder(), node.loc, tables.getType(),
                                     m.axisToLast(positions, axis),
                                     withColumn(m.axisToLast(updates, axis)));
  Shape shape(llvm::ArrayRef<int64_t>(shapeOf(tables)).drop_back());
  return m.add(data, m.lastToAxis(node.reshape(sums, shape), axis));
}

Value takeProgression(Node &node, Value data, int64_t axis, int64_t start, int64_t step,
                      int64_t count) {
  Math m(node);
  return takeAlong(
      node, data, axis,
      m.iota(m.i64(), 1, 0, count, static_cast<double>(start), static_cast<double>(step)));
}

Shape rowMajor(llvm::ArrayRef<int64_t> shape) {
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
      std::optional<ProgramCall> call = callOf(node.proto);
      if (kind == Scatter::replace && call && call->operation == "scatter_reduce" &&
          call->textAt(4) == "mean")
        return node.error() << "is what the exporter writes for scatter_reduce(..., 'mean'), which "
                               "ONNX does not have: it would replace; use 'sum' and divide";
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

/// Combines every row with all updates that go there, by `reduce`, which reduces a dimension;
/// its neutral element is given.
static FailureOr<Value> combineRows(Node &node, Value rows, Value at, Value updates, double neutral,
                                    llvm::function_ref<Value(Math &, Value, int64_t)> reduce) {
  Math m(node);
  int64_t count = shapeOf(rows)[0], width = shapeOf(rows)[1], many = shapeOf(at)[0];
  if (failed(checkPairs(node, count, many, width)))
    return failure();
  Value hits = node.reshape(meets(m, count, node.reshape(at, {1, many})), {count, many, 1});
  Value each = node.reshape(updates, {1, many, width});
  Value relevant =
      m.select(hits, each, m.constant(getElementTypeOrSelf(rows.getType()), {1, 1, 1}, neutral));
  Value all = m.concat({node.reshape(rows, {count, 1, width}), relevant}, 1);
  return node.reshape(reduce(m, all, 1), {count, width});
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
    auto sums = tx::EmbeddingGradOp::create(node.builder(), node.loc, rows.getType(), at, updates,
                                            Value(), IntegerAttr());
    return m.add(rows, sums);
  }
  case Scatter::mul:
    return combineRows(node, rows, at, updates, 1, [](Math &m, Value all, int64_t axis) {
      return m.halve<tx::MulOp>(all, axis);
    });
  case Scatter::max: // equal ones share the gradient, as in PyTorch
    return combineRows(node, rows, at, updates, -infinity,
                       [](Math &m, Value all, int64_t axis) { return m.max(all, axis); });
  case Scatter::min:
    return combineRows(node, rows, at, updates, infinity,
                       [](Math &m, Value all, int64_t axis) { return m.min(all, axis); });
  case Scatter::replace:
    break;
  }
  FailureOr<Value> inverse = inverseOf(node, shapeOf(rows)[0], at, known);
  if (failed(inverse))
    return failure();
  return node.emit<tx::EmbeddingOp>({m.concat({rows, updates}, 0), *inverse});
}

FailureOr<Value> setInEach(Node &node, Value data, int64_t axis, Value positions, Value updates) {
  Math m(node);
  Value rows = m.axisToLast(data, axis), at = m.axisToLast(positions, axis);
  Shape shape(shapeOf(rows)), row(shapeOf(at)), ones(shape.size() + 1, 1);
  int64_t rank = static_cast<int64_t>(shape.size()), size = shape.back(), count = row.back();
  if (failed(checkPairs(node, *elementCount(shape), count, 1)))
    return failure();
  row.insert(row.end() - 1, 1);
  Value hits =
      m.apply<tx::EqualOp>(m.iota(m.i64(), rank + 1, rank - 1, size), node.reshape(at, row));
  Value update = m.iota(m.i64(), rank + 1, rank, count, static_cast<double>(size));
  Value last = m.halve<tx::MaxOp>(m.select(hits, update, m.constant(m.i64(), ones, -1)), rank);
  Value source =
      m.apply<tx::MaxOp>(node.reshape(last, shape), m.iota(m.i64(), rank, rank - 1, size));
  Value all = m.concat({rows, m.axisToLast(updates, axis)}, rank - 1);
  return m.lastToAxis(takeOfEach(node, all, source), axis);
}

//===------------------------------------------------------------------------------------------===//
// Grids
//===------------------------------------------------------------------------------------------===//

std::optional<Grid> gridOf(Node &node, Tensor *indices, int64_t size,
                           std::optional<int64_t> column) {
  std::optional<Grid> grid;
  int64_t last = static_cast<int64_t>(indices->shape.size()) - 1;
  if (indices->host) {
    HostTensor host = *indices->host;
    if (column) {
      Shape offsets(last + 1, 0), sizes(host.shape());
      offsets[last] = *column;
      sizes[last] = 1;
      host = host.slice(offsets, sizes, Shape(last + 1, 1));
    }
    grid = findGrid(host);
  } else {
    Value value = node.value(indices);
    grid = findGrid(column ? Math(node).slice(value, last, *column, 1) : value);
  }
  return grid ? within(*grid, size) : std::nullopt;
}

/// The grid's dimensions that count through one of the box, in the box's order.
static Shape movingDims(const Box &box) {
  Shape dims;
  for (int64_t dim : box.gridDims)
    if (dim >= 0)
      dims.push_back(dim);
  return dims;
}

/// Where the elements of a sorted `order` stand in it.
static Shape ranksIn(llvm::ArrayRef<int64_t> order) {
  Shape sorted(order), ranks;
  llvm::sort(sorted);
  for (int64_t each : sorted)
    ranks.push_back(llvm::find(order, each) - order.begin());
  return ranks;
}

Value takeGrid(Node &node, Value data, int64_t from, int64_t count, const Grid &grid,
               llvm::ArrayRef<int64_t> shape) {
  llvm::ArrayRef<int64_t> dims = shapeOf(data), before = dims.take_front(from),
                          behind = dims.drop_front(from + count);
  std::optional<Box> box = findBox(grid, dims.slice(from, count));
  if (!box)
    return {};
  auto around = [&](llvm::ArrayRef<int64_t> middle, std::optional<int64_t> otherwise = {}) {
    Shape all(before);
    all.append(middle.begin(), middle.end());
    all.append(behind.begin(), behind.end());
    for (size_t i = 0; otherwise && i < all.size(); ++i)
      if (i < before.size() || i >= before.size() + middle.size())
        all[i] = *otherwise;
    return all;
  };
  Value taken = node.slice(node.reshape(data, around(box->sizes)), around(box->offsets, 0),
                           around(box->extents), around(box->steps, 1));
  // The box's dimensions that move, in the grid's order; those that stand still repeat.
  Shape moving = movingDims(*box), apart, order, placed, all;
  if (!llvm::is_sorted(moving)) {
    for (int64_t dim : moving)
      apart.push_back(grid.dims[dim].size);
    taken = node.reshape(taken, around(apart));
    llvm::append_range(order, llvm::seq<int64_t>(0, from));
    for (int64_t rank : ranksIn(moving))
      order.push_back(from + rank);
    llvm::append_range(order, llvm::seq<int64_t>(from + moving.size(), shapeOf(taken).size()));
    taken = node.transpose(taken, order);
  }
  for (auto [i, dim] : llvm::enumerate(grid.dims)) {
    placed.push_back(llvm::is_contained(moving, static_cast<int64_t>(i)) ? dim.size : 1);
    all.push_back(dim.size);
  }
  taken = node.broadcast(node.reshape(taken, around(placed)), around(all));
  return node.reshape(taken, around(shape));
}

/// Dimension by dimension: what is before and after the box stays.
static Value replaceBox(Node &node, Value data, const Box &box, size_t dim, Value updates) {
  llvm::ArrayRef<int64_t> shape = shapeOf(data);
  if (dim == box.sizes.size())
    return node.reshape(updates, shape);
  auto between = [&](int64_t from, int64_t to) {
    Shape offsets(shape.size(), 0), sizes(shape), strides(shape.size(), 1);
    offsets[dim] = from;
    sizes[dim] = to - from;
    return node.slice(data, offsets, sizes, strides);
  };
  int64_t first = box.offsets[dim], end = first + box.extents[dim], size = shape[dim];
  llvm::SmallVector<Value> parts;
  if (first > 0)
    parts.push_back(between(0, first));
  parts.push_back(replaceBox(node, between(first, end), box, dim + 1, updates));
  if (end < size)
    parts.push_back(between(end, size));
  return parts.size() == 1 ? parts[0] : Math(node).concat(parts, dim);
}

static Value combined(Node &node, Value old, Value update, Scatter kind) {
  switch (kind) {
  case Scatter::add:
    return node.emit<tx::AddOp>({old, update});
  case Scatter::mul:
    return node.emit<tx::MulOp>({old, update});
  case Scatter::max: {
    Value larger = node.emit<tx::MaxOp>({old, update});
    larger.getDefiningOp<tx::MaxOp>().setShared(true);
    return larger;
  }
  case Scatter::min: {
    Value smaller = node.emit<tx::MinOp>({old, update});
    smaller.getDefiningOp<tx::MinOp>().setShared(true);
    return smaller;
  }
  case Scatter::replace:
    break;
  }
  return update;
}

Value writeGrid(Node &node, Value data, int64_t count, const Grid &grid, Value updates,
                Scatter kind) {
  llvm::ArrayRef<int64_t> dims = shapeOf(data), behind = dims.drop_front(count);
  std::optional<Box> box = findBox(grid, dims.take_front(count));
  Shape moving = box ? movingDims(*box) : Shape();
  if (!box || moving.size() != grid.dims.size() ||
      llvm::any_of(box->steps, [](int64_t step) { return step != 1; }))
    return {};
  auto inFront = [&](llvm::ArrayRef<int64_t> front) {
    Shape all(front);
    all.append(behind.begin(), behind.end());
    return all;
  };
  if (!llvm::is_sorted(moving)) {
    Shape counted, order(moving);
    for (Grid::Dim dim : grid.dims)
      counted.push_back(dim.size);
    updates = node.reshape(updates, inFront(counted));
    llvm::append_range(order, llvm::seq<int64_t>(moving.size(), shapeOf(updates).size()));
    updates = node.transpose(updates, order);
  }
  Value update = node.reshape(updates, inFront(box->extents));
  Value full = node.reshape(data, inFront(box->sizes));
  if (kind != Scatter::replace) {
    Shape offsets(box->offsets), ones(shapeOf(full).size(), 1);
    offsets.resize(ones.size(), 0);
    Value old = node.slice(full, offsets, shapeOf(update), ones);
    update = combined(node, old, update, kind);
  }
  return node.reshape(replaceBox(node, full, *box, 0, update), dims);
}

} // namespace partita::importer
