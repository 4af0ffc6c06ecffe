//===- IndexEvaluator.cpp - see IndexEvaluator.h ----------------------------------------------===//

#include "partita/Raise/IndexEvaluator.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace partita;
using namespace partita::raise;

using Index = SmallVector<int64_t, 6>;
using Row = std::vector<double>;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static int64_t linearize(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t linear = 0;
  for (auto [i, size] : llvm::zip_equal(index, shape))
    linear = linear * size + i;
  return linear;
}

static Index delinearize(int64_t linear, ArrayRef<int64_t> shape) {
  Index index(shape.size());
  for (int64_t d = shape.size() - 1; d >= 0; --d) {
    index[d] = linear % shape[d];
    linear /= shape[d];
  }
  return index;
}

/// Element `position` of a constant.
static std::optional<double> constantElement(tx::ConstantOp op, int64_t position) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense)
    return std::nullopt;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getValues<APFloat>()[position].convertToDouble();
  APInt value = dense.getValues<APInt>()[position];
  return value.getBitWidth() == 1 ? static_cast<double>(value.getZExtValue())
                                  : static_cast<double>(value.getSExtValue());
}

/// Elements [from, from + count) of a constant; raw bytes where that is plain.
static std::optional<Row> constantRow(tx::ConstantOp op, int64_t from, int64_t count) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense)
    return std::nullopt;
  if (dense.isSplat())
    return Row(count, *constantElement(op, 0));
  Row row(count);
  if (dense.getElementType().isF32()) {
    const char *data = dense.getRawData().data() + from * sizeof(float);
    for (int64_t i = 0; i < count; ++i) {
      float element;
      std::memcpy(&element, data + i * sizeof(float), sizeof(float));
      row[i] = element;
    }
    return row;
  }
  if (dense.getElementType().isInteger(1)) {
    auto values = dense.getValues<bool>().begin() + from;
    for (int64_t i = 0; i < count; ++i, ++values)
      row[i] = *values;
    return row;
  }
  for (int64_t i = 0; i < count; ++i)
    row[i] = *constantElement(op, from + i);
  return row;
}

/// A cast in double precision: rounding to a smaller float does not matter to a mask.
static double castTo(Type type, double x) {
  if (type.isInteger(1))
    return x != 0;
  return isa<FloatType>(type) ? x : std::trunc(x);
}

std::optional<double> IndexEvaluator::element(Value value, ArrayRef<int64_t> index) {
  if (auto found = assumed.find(value); found != assumed.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  auto type = typeOf(value);
  if (auto found = numbered.find(value); found != numbered.end())
    return found->second(linearize(index, type.getShape()));
  if (auto constant = dyn_cast_or_null<tx::ConstantOp>(op))
    return constantElement(constant, linearize(index, type.getShape()));
  if (auto iota = dyn_cast_or_null<tx::IotaOp>(op))
    return iota.getStart().convertToDouble() + iota.getStep().convertToDouble() * index[0];
  if (auto scalar = dyn_cast_or_null<ScalarInterface>(op)) {
    SmallVector<double> operands;
    for (Value operand : op->getOperands()) {
      std::optional<double> x = element(operand, index);
      if (!x)
        return std::nullopt;
      operands.push_back(*x);
    }
    return scalar.evaluateScalar(operands);
  }
  if (auto cast = dyn_cast_or_null<tx::CastOp>(op)) {
    std::optional<double> x = element(cast.getX(), index);
    return x ? std::optional(castTo(type.getElementType(), *x)) : std::nullopt;
  }
  if (auto broadcast = dyn_cast_or_null<tx::BroadcastOp>(op)) {
    ArrayRef<int64_t> shape = typeOf(broadcast.getX()).getShape();
    Index from(index.take_back(shape.size()));
    for (auto [i, size] : llvm::zip_equal(from, shape))
      i = size == 1 ? 0 : i;
    return element(broadcast.getX(), from);
  }
  if (auto reshape = dyn_cast_or_null<tx::ReshapeOp>(op))
    return element(reshape.getX(), delinearize(linearize(index, type.getShape()),
                                               typeOf(reshape.getX()).getShape()));
  if (auto transpose = dyn_cast_or_null<tx::TransposeOp>(op)) {
    Index from(index.size());
    for (auto [i, p] : llvm::zip_equal(index, transpose.getPermutation()))
      from[p] = i;
    return element(transpose.getX(), from);
  }
  if (auto slice = dyn_cast_or_null<tx::SliceOp>(op)) {
    Index from;
    for (auto [i, offset, stride] : llvm::zip_equal(index, slice.getOffsets(), slice.getStrides()))
      from.push_back(offset + i * stride);
    return element(slice.getX(), from);
  }
  if (auto lookup = dyn_cast_or_null<tx::EmbeddingOp>(op); lookup && !lookup.getFirst()) {
    std::optional<double> id = element(lookup.getIds(), ArrayRef(index).drop_back());
    bool isRow = id && *id >= 0 && *id < lookup.getTable().getType().getDimSize(0);
    return isRow ? element(lookup.getTable(), {static_cast<int64_t>(*id), index.back()})
                 : std::nullopt;
  }
  obstacle = op;
  return std::nullopt;
}

std::optional<Row> IndexEvaluator::rowByElement(Value value, ArrayRef<int64_t> leading) {
  Index index(leading);
  index.push_back(0);
  Row row(typeOf(value).getShape().back());
  for (auto &x : row) {
    std::optional<double> here = element(value, index);
    if (!here)
      return std::nullopt;
    x = *here;
    ++index.back();
  }
  return row;
}

std::optional<Row> IndexEvaluator::scalarRow(Operation *op, ArrayRef<int64_t> leading) {
  SmallVector<Row, 3> rows;
  for (Value operand : op->getOperands()) {
    std::optional<Row> operandRow = row(operand, leading);
    if (!operandRow)
      return std::nullopt;
    rows.push_back(std::move(*operandRow));
  }
  Row result(rows.front().size());
  auto scalar = dyn_cast<ScalarInterface>(op);
  SmallVector<double, 3> arguments(rows.size());
  for (size_t i = 0; i < result.size(); ++i) {
    for (auto [argument, from] : llvm::zip_equal(arguments, rows))
      argument = from[i];
    result[i] = scalar ? scalar.evaluateScalar(arguments)
                       : castTo(typeOf(op->getResult(0)).getElementType(), arguments[0]);
  }
  return result;
}

std::optional<Row> IndexEvaluator::row(Value value, ArrayRef<int64_t> leading) {
  auto type = typeOf(value);
  int64_t size = type.getShape().back();
  if (auto found = assumed.find(value); found != assumed.end())
    return Row(size, found->second);
  if (numbered.count(value))
    return rowByElement(value, leading);
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<tx::ConstantOp>(op))
    return constantRow(constant, linearize(leading, type.getShape().drop_back()) * size, size);
  if (op && tx::isElementwise(op))
    return scalarRow(op, leading);
  if (auto broadcast = dyn_cast_or_null<tx::BroadcastOp>(op)) {
    ArrayRef<int64_t> shape = typeOf(broadcast.getX()).getShape();
    if (!shape.empty()) {
      Index from(leading.take_back(shape.size() - 1));
      for (auto [i, d] : llvm::zip_equal(from, shape.drop_back()))
        i = d == 1 ? 0 : i;
      std::optional<Row> x = row(broadcast.getX(), from);
      return x && x->size() == 1 ? std::optional(Row(size, x->front())) : x;
    }
  }
  if (auto reshape = dyn_cast_or_null<tx::ReshapeOp>(op)) {
    ArrayRef<int64_t> shape = typeOf(reshape.getX()).getShape();
    if (!shape.empty() && shape.back() == size)
      return row(reshape.getX(),
                 delinearize(linearize(leading, type.getShape().drop_back()), shape.drop_back()));
  }
  if (auto transpose = dyn_cast_or_null<tx::TransposeOp>(op)) {
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    if (permutation.back() == type.getRank() - 1) {
      Index from(leading.size());
      for (auto [i, p] : llvm::zip_equal(leading, permutation.drop_back()))
        from[p] = i;
      return row(transpose.getX(), from);
    }
  }
  return rowByElement(value, leading);
}

/// Are all slices of a constant along `dim` the same?
static bool constantVaries(tx::ConstantOp op, int64_t dim) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  ArrayRef<int64_t> shape = op.getType().getShape();
  if (!dense || (!dense.isSplat() && dense.getElementType().getIntOrFloatBitWidth() % 8))
    return shape[dim] != 1;
  if (dense.isSplat() || shape[dim] == 1)
    return false;
  ArrayRef<char> data = dense.getRawData();
  int64_t outer = 1, inner = data.size();
  for (int64_t i = 0; i <= dim; ++i)
    inner /= shape[i];
  for (int64_t i = 0; i < dim; ++i)
    outer *= shape[i];
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 1; j < shape[dim]; ++j) {
      const char *first = data.data() + i * shape[dim] * inner;
      if (std::memcmp(first, first + j * inner, inner))
        return true;
    }
  return false;
}

bool IndexEvaluator::variesAlong(Value value, int64_t dim) {
  if (assumed.count(value) || typeOf(value).getDimSize(dim) == 1)
    return false;
  if (numbered.count(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<tx::ConstantOp>(op))
    return constantVaries(constant, dim);
  if (op && tx::isElementwise(op))
    return llvm::any_of(op->getOperands(),
                        [&](Value operand) { return variesAlong(operand, dim); });
  if (auto broadcast = dyn_cast_or_null<tx::BroadcastOp>(op)) {
    int64_t inner = dim - (typeOf(value).getRank() - typeOf(broadcast.getX()).getRank());
    return inner >= 0 && variesAlong(broadcast.getX(), inner);
  }
  if (auto slice = dyn_cast_or_null<tx::SliceOp>(op))
    return variesAlong(slice.getX(), dim);
  if (auto transpose = dyn_cast_or_null<tx::TransposeOp>(op))
    return variesAlong(transpose.getX(), transpose.getPermutation()[dim]);
  return true;
}
