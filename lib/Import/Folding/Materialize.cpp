//===- Materialize.cpp - known tensors as values of the program -------------------------------===//
//
// A known tensor that the program needs becomes the smallest equivalent ops: repeated dimensions become
// a tx.broadcast, an arithmetic progression a tx.iota, a causal mask (two values, one on and below a
// diagonal) a comparison of two iotas; only the rest is a dense constant. A mask over 1024 positions
// is six ops, not a megabyte of text.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tx/Tx.h"
#include "lib/Import/Importer.h"
#include <cmath>
#include <cstring>

using namespace mlir;

namespace partita::importer {

namespace {

bool sameBytes(const HostTensor &a, int64_t i, const HostTensor &b, int64_t j) {
  return std::memcmp(a.bytes(i), b.bytes(j), byteSize(a.type())) == 0;
}

/// Shrinks to 1 every dimension along which nothing changes.
HostTensor shrinkToChanging(const HostTensor &host) {
  HostTensor result = host.withoutRepeats();
  for (int64_t dim = 0; dim < result.rank(); ++dim) {
    if (result.shape()[dim] <= 1)
      continue;
    Shape begins(result.rank(), 0), ones(result.rank(), 1), sizes(result.shape());
    sizes[dim] = 1;
    HostTensor first = result.slice(begins, sizes, ones);
    bool changes =
        false; // most tensors change at once, so masks are not compared in full per dimension
    for (begins[dim] = 1; begins[dim] < result.shape()[dim] && !changes; ++begins[dim]) {
      HostTensor next = result.slice(begins, sizes, ones);
      forEachElement(sizes, {&first, &next}, [&](llvm::ArrayRef<int64_t> at) {
        changes = changes || !sameBytes(first, at[0], next, at[1]);
      });
    }
    if (!changes)
      result = first;
  }
  return result;
}

struct Progression {
  int64_t start, step;
};

/// The elements, if all are integers that double precision holds exactly; positions are often floats, for a rotary embedding.
std::optional<llvm::SmallVector<int64_t>> asIntegers(const HostTensor &host) {
  constexpr int64_t exact = int64_t(1) << 53;
  llvm::SmallVector<int64_t> values;
  if (!isFloat(host.type())) {
    values = host.ints();
    bool fit = llvm::all_of(values, [](int64_t x) { return x >= -exact && x <= exact; });
    return fit ? std::optional(values) : std::nullopt;
  }
  bool fit = true;
  forEachElement(host.shape(), {&host}, [&](llvm::ArrayRef<int64_t> at) {
    double value = fit ? host.toDouble(at[0]) : 0;
    fit = fit && std::abs(value) <= static_cast<double>(exact) && std::trunc(value) == value &&
          !(value == 0 && std::signbit(value));
    values.push_back(fit ? static_cast<int64_t>(value) : 0);
  });
  return fit ? std::optional(values) : std::nullopt;
}

/// Integers start, start + step, ... over the only dimension that is not 1.
std::optional<Progression> asProgression(const HostTensor &host) {
  if (host.type() == DType::boolean || host.size() < 3 ||
      llvm::count_if(host.shape(), [](int64_t dim) { return dim != 1; }) != 1)
    return std::nullopt;
  std::optional<llvm::SmallVector<int64_t>> values = asIntegers(host);
  if (!values)
    return std::nullopt;
  Progression result{(*values)[0], (*values)[1] - (*values)[0]};
  for (size_t i = 1; i < values->size(); ++i)
    if ((*values)[i] - (*values)[i - 1] != result.step)
      return std::nullopt;
  return result;
}

/// `within` where column <= row + shift, `outside` elsewhere; both are storage positions.
struct Triangle {
  int64_t rows, columns, shift, within, outside;
};

std::optional<Triangle> asTriangle(const HostTensor &host) {
  if (host.rank() < 2)
    return std::nullopt;
  llvm::ArrayRef<int64_t> shape = host.shape();
  Triangle t{shape[shape.size() - 2], shape[shape.size() - 1], 0, host.origin(), 0};
  if (t.rows < 3 || t.columns < 3 || host.size() != t.rows * t.columns)
    return std::nullopt;
  int64_t step = host.strides().back();
  while (t.shift < t.columns && sameBytes(host, t.within, host, host.origin() + t.shift * step))
    ++t.shift;
  if (t.shift == t.columns)
    return std::nullopt;
  t.outside = host.origin() + t.shift * step;
  --t.shift;
  bool fits = true;
  int64_t next = 0;
  forEachElement(shape, {&host}, [&](llvm::ArrayRef<int64_t> at) {
    bool inside = next % t.columns <= next / t.columns + t.shift;
    fits = fits && sameBytes(host, at[0], host, inside ? t.within : t.outside);
    ++next;
  });
  return fits ? std::optional<Triangle>(t) : std::nullopt;
}

class Writer {
public:
  Writer(OpBuilder &builder, Location loc, llvm::DenseMap<Attribute, Value> &constants)
      : builder(builder), loc(loc), constants(constants) {}

  Value write(const HostTensor &host) {
    auto type = RankedTensorType::get(host.shape(), mlirType(host.type(), builder.getContext()));
    if (host.size() == 0)
      return constant(DenseElementsAttr::get(type, llvm::ArrayRef<Attribute>()));
    HostTensor changing = shrinkToChanging(host);
    if (changing.size() == 1)
      return splat(type, changing, changing.origin());
    if (auto progression = asProgression(changing)) {
      Value iota =
          makeIota(progression->start, progression->step, changing.size(), type.getElementType());
      return broadcast(reshape(iota, changing.shape()), host.shape());
    }
    if (auto triangle = asTriangle(changing))
      return broadcast(
          reshape(makeTriangle(*triangle, changing, type.getElementType()), changing.shape()),
          host.shape());
    return broadcast(dense(changing), host.shape());
  }

private:
  RankedTensorType typed(Value x, llvm::ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, getElementTypeOrSelf(x.getType()));
  }
  Value reshape(Value x, llvm::ArrayRef<int64_t> shape) {
    RankedTensorType type = typed(x, shape);
    return type == x.getType() ? x : tx::ReshapeOp::create(builder, loc, type, x).getResult();
  }
  Value broadcast(Value x, llvm::ArrayRef<int64_t> shape) {
    RankedTensorType type = typed(x, shape);
    return type == x.getType() ? x : tx::BroadcastOp::create(builder, loc, type, x).getResult();
  }
  Value constant(DenseElementsAttr attribute) {
    Value &value = constants[attribute];
    if (!value)
      value = tx::ConstantOp::create(builder, loc, attribute.getType(), attribute);
    return value;
  }
  Value splat(RankedTensorType type, const HostTensor &host, int64_t position) {
    Type element = type.getElementType();
    if (isa<FloatType>(element))
      return constant(
          DenseElementsAttr::get(type, builder.getFloatAttr(element, host.toDouble(position))));
    return constant(
        DenseElementsAttr::get(type, builder.getIntegerAttr(element, host.toInt(position))));
  }
  Value dense(const HostTensor &host) {
    auto type = RankedTensorType::get(host.shape(), mlirType(host.type(), builder.getContext()));
    if (host.type() == DType::boolean) {
      llvm::SmallVector<bool> values;
      for (int64_t value : host.ints())
        values.push_back(value != 0);
      return constant(DenseElementsAttr::get(type, values));
    }
    std::vector<char> bytes;
    bytes.reserve(host.size() * byteSize(host.type()));
    forEachElement(host.shape(), {&host}, [&](llvm::ArrayRef<int64_t> at) {
      bytes.insert(bytes.end(), host.bytes(at[0]), host.bytes(at[0]) + byteSize(host.type()));
    });
    return constant(DenseElementsAttr::getFromRawBuffer(type, bytes));
  }
  Value makeIota(int64_t start, int64_t step, int64_t size, Type element) {
    return tx::IotaOp::create(builder, loc, RankedTensorType::get({size}, element),
                              builder.getF64FloatAttr(static_cast<double>(start)),
                              builder.getF64FloatAttr(static_cast<double>(step)));
  }
  Value makeTriangle(const Triangle &t, const HostTensor &host, Type element) {
    Type index = builder.getI64Type();
    Value row =
        broadcast(reshape(makeIota(t.shift, 1, t.rows, index), {t.rows, 1}), {t.rows, t.columns});
    Value column = broadcast(makeIota(0, 1, t.columns, index), {t.rows, t.columns});
    auto bits = RankedTensorType::get({t.rows, t.columns}, builder.getI1Type());
    if (host.type() == DType::boolean && !host.toInt(t.within))
      return tx::GreaterOp::create(builder, loc, bits, column, row);
    Value mask = tx::LessEqualOp::create(builder, loc, bits, column, row);
    if (host.type() == DType::boolean)
      return mask;
    auto type = RankedTensorType::get({t.rows, t.columns}, element);
    return tx::SelectOp::create(builder, loc, type, mask, splat(type, host, t.within),
                                splat(type, host, t.outside));
  }

  OpBuilder &builder;
  Location loc;
  llvm::DenseMap<Attribute, Value> &constants;
};

} // namespace

Value Importer::materialize(Tensor *tensor, Location loc) {
  if (!tensor->value)
    tensor->value = Writer(builder, loc, constants).write(*tensor->host);
  return tensor->value;
}

} // namespace partita::importer
