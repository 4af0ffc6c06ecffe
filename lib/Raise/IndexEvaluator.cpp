//===- IndexEvaluator.cpp - see IndexEvaluator.h ----------------------------------------------===//

#include "partita/Raise/IndexEvaluator.h"
#include "dialects/Par/Placement.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace partita;
using namespace partita::raise;

using Index = SmallVector<int64_t, 6>;

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
  auto rowOf = [count](auto elementAt) {
    Row row;
    for (int64_t i = 0; i < count; ++i)
      row.append(1, elementAt(i));
    return row;
  };
  if (dense.getElementType().isF32())
    return rowOf([data = dense.getRawData().data() + from * sizeof(float)](int64_t i) {
      float element;
      std::memcpy(&element, data + i * sizeof(float), sizeof(float));
      return element;
    });
  if (dense.getElementType().isInteger(1))
    return rowOf(
        [values = dense.getValues<bool>().begin() + from](int64_t i) { return *(values + i); });
  return rowOf([&](int64_t i) { return *constantElement(op, from + i); });
}

/// A cast in double precision: rounding to a smaller float does not matter to a mask.
static double castTo(Type type, double x) {
  if (type.isInteger(1))
    return x != 0;
  return isa<FloatType>(type) ? x : std::trunc(x);
}

/// The row of a lookup's table that one of its ids names.
std::optional<int64_t> IndexEvaluator::tableRow(tx::EmbeddingOp lookup, ArrayRef<int64_t> index) {
  std::optional<double> id = element(lookup.getIds(), index);
  bool isRow = id && *id >= 0 && *id < lookup.getTable().getType().getDimSize(0);
  return isRow ? std::optional(static_cast<int64_t>(*id)) : std::nullopt;
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
    std::optional<int64_t> id = tableRow(lookup, ArrayRef(index).drop_back());
    return id ? element(lookup.getTable(), {*id, index.back()}) : std::nullopt;
  }
  obstacle = op;
  return std::nullopt;
}

std::optional<Row> IndexEvaluator::rowByElement(Value value, ArrayRef<int64_t> leading) {
  Index index(leading);
  index.push_back(0);
  Row row;
  for (int64_t size = typeOf(value).getShape().back(); index.back() < size; ++index.back()) {
    std::optional<double> here = element(value, index);
    if (!here)
      return std::nullopt;
    row.append(1, *here);
  }
  return row;
}

/// Is the elementwise op a sum of multiples of its operands?
bool IndexEvaluator::isLinear(Operation *op) {
  auto [found, isNew] = linear.try_emplace(op);
  std::string error;
  if (isNew)
    if (const ShardRule *rule = par::ruleOf(op, error))
      found->second = llvm::all_of(rule->operands, [](const RulePattern &operand) {
        return operand.linearity == Linearity::Together;
      });
  return found->second;
}

/// Appends a comparison of integers a and b within a stretch to `row`: it changes at most where they cross.
static void appendComparison(ScalarInterface op, const Row::Run &a, const Row::Run &b, Row &row) {
  int64_t count = a.size(), upTo = count,
          beyond = count; // elements before they are equal, and until then
  auto difference = static_cast<int64_t>(a.first - b.first),
       step = static_cast<int64_t>(a.step - b.step);
  if (step != 0) {
    upTo = std::clamp<int64_t>(llvm::divideCeilSigned(-difference, step), 0, count);
    beyond = std::clamp<int64_t>(llvm::divideFloorSigned(-difference, step) + 1, 0, count);
  }
  for (auto [from, to] : {std::pair(int64_t(0), upTo), {upTo, beyond}, {beyond, count}})
    if (from < to)
      row.append(to - from, op.evaluateScalar({a.at(a.begin + from), b.at(b.begin + from)}));
}

/// Appends an elementwise op's elements within a stretch to `row`.
void IndexEvaluator::appendStretch(Operation *op, ArrayRef<Row::Run> operands, Row &row) {
  int64_t count = operands.front().size();
  auto scalar = dyn_cast<ScalarInterface>(op);
  auto evaluate = [&](int64_t i) {
    SmallVector<double, 3> arguments;
    for (const Row::Run &operand : operands)
      arguments.push_back(operand.at(operand.begin + i));
    return scalar ? scalar.evaluateScalar(arguments)
                  : castTo(typeOf(op->getResult(0)).getElementType(), arguments[0]);
  };
  auto isConstant = [](const Row::Run &operand) { return operand.step == 0; };
  // The elements of a run with a step are integers, and so is what is compared with them.
  auto isInteger = [](const Row::Run &operand) { return Row::isExact(operand.first); };
  if (count == 1 || llvm::all_of(operands, isConstant))
    return row.append(count, evaluate(0));
  bool areIntegers = llvm::all_of(operands, isInteger);
  if (op->hasTrait<ComparesOperands>() && areIntegers)
    return appendComparison(scalar, operands[0], operands[1], row);
  if (auto select = dyn_cast<tx::SelectOp>(op); select && isConstant(operands[0])) {
    const Row::Run &chosen = operands[operands[0].first != 0 ? 1 : 2];
    return row.append(count, chosen.first, chosen.step);
  }
  bool keepsIntegers =
      isa<tx::CastOp>(op) && !typeOf(op->getResult(0)).getElementType().isInteger(1);
  if (keepsIntegers || (scalar && areIntegers && isLinear(op)))
    return row.append(count, evaluate(0), evaluate(1) - evaluate(0));
  for (int64_t i = 0; i < count; ++i)
    row.append(1, evaluate(i));
}

std::optional<Row> IndexEvaluator::elementwiseRow(Operation *op, ArrayRef<int64_t> leading) {
  SmallVector<Row, 3> rows;
  for (Value operand : op->getOperands()) {
    std::optional<Row> operandRow = row(operand, leading);
    if (!operandRow)
      return std::nullopt;
    rows.push_back(std::move(*operandRow));
  }
  SmallVector<const Row *, 3> pointers;
  for (const Row &each : rows)
    pointers.push_back(&each);
  Row result;
  forEachStretch(pointers, [&](ArrayRef<Row::Run> parts) {
    appendStretch(op, parts, result);
    return true;
  });
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
    return elementwiseRow(op, leading);
  if (auto iota = dyn_cast_or_null<tx::IotaOp>(op)) {
    Row result;
    result.append(size, iota.getStart().convertToDouble(), iota.getStep().convertToDouble());
    return result;
  }
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
  if (auto slice = dyn_cast_or_null<tx::SliceOp>(op); slice && slice.getStrides().back() > 0) {
    Index from;
    for (auto [i, offset, stride] :
         llvm::zip(leading, slice.getOffsets(), slice.getStrides())) // but the last
      from.push_back(offset + i * stride);
    std::optional<Row> x = row(slice.getX(), from);
    return x ? std::optional(x->slice(slice.getOffsets().back(), slice.getStrides().back(), size))
             : x;
  }
  if (auto lookup = dyn_cast_or_null<tx::EmbeddingOp>(op); lookup && !lookup.getFirst())
    if (std::optional<int64_t> id = tableRow(lookup, leading))
      return row(lookup.getTable(), {*id});
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
