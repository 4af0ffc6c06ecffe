//===- HostTensor.cpp -------------------------------------------------------------------------===//

#include "partita/Import/HostTensor.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using llvm::APFloat;

namespace partita::importer {

std::optional<DType> dtypeFromOnnx(int64_t number) {
  switch (number) {
  case 1:
  case 2:
  case 3:
  case 4:
  case 5:
  case 6:
  case 7:
  case 9:
  case 10:
  case 11:
  case 12:
  case 13:
  case 16:
    return static_cast<DType>(number);
  default:
    return std::nullopt;
  }
}

std::string dtypeName(int64_t number) {
  static const char *const names[] = {
      "undefined",      "float",    "uint8",        "int8",           "uint16",
      "int16",          "int32",    "int64",        "string",         "bool",
      "float16",        "double",   "uint32",       "uint64",         "complex64",
      "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
      "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
      "uint2",          "int2"};
  if (number >= 0 && number < static_cast<int64_t>(std::size(names)))
    return names[number];
  return "unknown type " + std::to_string(number);
}

int64_t byteSize(DType type) {
  switch (type) {
  case DType::u8:
  case DType::i8:
  case DType::boolean:
    return 1;
  case DType::u16:
  case DType::i16:
  case DType::f16:
  case DType::bf16:
    return 2;
  case DType::f32:
  case DType::i32:
  case DType::u32:
    return 4;
  case DType::i64:
  case DType::f64:
  case DType::u64:
    return 8;
  }
  return 8;
}

bool isFloat(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::f64 || type == DType::bf16;
}

Type mlirType(DType type, MLIRContext *context) {
  switch (type) {
  case DType::f32:
    return Float32Type::get(context);
  case DType::f64:
    return Float64Type::get(context);
  case DType::f16:
    return Float16Type::get(context);
  case DType::bf16:
    return BFloat16Type::get(context);
  case DType::i64:
    return IntegerType::get(context, 64);
  case DType::i32:
    return IntegerType::get(context, 32);
  case DType::boolean:
    return IntegerType::get(context, 1);
  default:
    return {};
  }
}

static std::string typeNames(llvm::function_ref<bool(DType)> isNamed) {
  constexpr int64_t most = 32; // more than ONNX has
  llvm::SmallVector<std::string> names;
  for (int64_t number = 0; number < most; ++number)
    if (std::optional<DType> type = dtypeFromOnnx(number); type && isNamed(*type))
      names.push_back(dtypeName(*type));
  std::string last = names.pop_back_val();
  return llvm::join(names, ", ") + " or " + last;
}

std::string readableTypeNames() {
  return typeNames([](DType) { return true; });
}

std::string valueTypeNames(MLIRContext *context) {
  return typeNames([&](DType type) { return static_cast<bool>(mlirType(type, context)); });
}

std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      return std::nullopt;
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (count > (int64_t(1) << 48) / dim)
      return std::nullopt;
    count *= dim;
  }
  return empty ? 0 : count;
}

std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return llvm::join(llvm::map_range(shape, [](int64_t dim) { return std::to_string(dim); }), "x");
}

static Shape denseStrides(llvm::ArrayRef<int64_t> shape) {
  Shape strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= std::max<int64_t>(shape[i], 1))
    strides[i] = step;
  return strides;
}

HostTensor HostTensor::view(DType type, llvm::ArrayRef<int64_t> shape,
                            std::shared_ptr<const char> data) {
  HostTensor tensor;
  tensor.elementType = type;
  tensor.dims.assign(shape.begin(), shape.end());
  tensor.steps = denseStrides(shape);
  tensor.storage = std::move(data);
  return tensor;
}

HostTensor HostTensor::scalar(DType type, double value) {
  HostBuffer buffer(type, {});
  buffer.putDouble(0, value);
  return buffer.finish();
}

HostTensor HostTensor::scalarInt(DType type, int64_t value) {
  HostBuffer buffer(type, {});
  buffer.putInt(0, value);
  return buffer.finish();
}

HostTensor HostTensor::vector(llvm::ArrayRef<int64_t> values) {
  HostBuffer buffer(DType::i64, {static_cast<int64_t>(values.size())});
  for (auto [index, value] : llvm::enumerate(values))
    buffer.putInt(index, value);
  return buffer.finish();
}

int64_t HostTensor::distinctSize() const {
  int64_t count = 1;
  for (auto [dim, step] : llvm::zip_equal(dims, steps))
    count *= step == 0 && dim != 0 ? 1 : dim;
  return count;
}

template <typename T> static T load(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof value); // the file aligns nothing
  return value;
}

static double fromBits(const llvm::fltSemantics &semantics, uint16_t bits) {
  bool lossy;
  APFloat value(semantics, llvm::APInt(16, bits));
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  return value.convertToDouble();
}

static uint16_t toBits(const llvm::fltSemantics &semantics, double value) {
  bool lossy;
  APFloat number(value);
  number.convert(semantics, APFloat::rmNearestTiesToEven, &lossy);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

double HostTensor::toDouble(int64_t position) const {
  const char *from = bytes(position);
  switch (elementType) {
  case DType::f32:
    return load<float>(from);
  case DType::f64:
    return load<double>(from);
  case DType::f16:
    return fromBits(APFloat::IEEEhalf(), load<uint16_t>(from));
  case DType::bf16:
    return fromBits(APFloat::BFloat(), load<uint16_t>(from));
  case DType::u64:
    return static_cast<double>(load<uint64_t>(from));
  default:
    return static_cast<double>(toInt(position));
  }
}

/// Out-of-range and NaN give the nearest representable integer, or 0; never undefined behaviour.
static int64_t truncateToInt(double value) {
  if (std::isnan(value))
    return 0;
  if (value >= 9223372036854775807.0)
    return INT64_MAX;
  if (value <= -9223372036854775808.0)
    return INT64_MIN;
  return static_cast<int64_t>(value);
}

int64_t HostTensor::toInt(int64_t position) const {
  const char *from = bytes(position);
  switch (elementType) {
  case DType::i64:
  case DType::u64:
    return load<int64_t>(from);
  case DType::i32:
    return load<int32_t>(from);
  case DType::u32:
    return load<uint32_t>(from);
  case DType::i16:
    return load<int16_t>(from);
  case DType::u16:
    return load<uint16_t>(from);
  case DType::i8:
    return load<int8_t>(from);
  case DType::u8:
    return load<uint8_t>(from);
  case DType::boolean:
    return load<uint8_t>(from) != 0;
  default:
    return truncateToInt(toDouble(position));
  }
}

llvm::SmallVector<int64_t> HostTensor::ints() const {
  llvm::SmallVector<int64_t> values;
  forEachElement(dims, {this}, [&](llvm::ArrayRef<int64_t> at) { values.push_back(toInt(at[0])); });
  return values;
}

HostTensor HostTensor::broadcast(llvm::ArrayRef<int64_t> shape) const {
  HostTensor result = *this;
  size_t added = shape.size() - dims.size();
  result.dims.assign(shape.begin(), shape.end());
  result.steps.assign(shape.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i)
    result.steps[added + i] = dims[i] == 1 && shape[added + i] != 1 ? 0 : steps[i];
  return result;
}

HostTensor HostTensor::slice(llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes,
                             llvm::ArrayRef<int64_t> by) const {
  HostTensor result = *this;
  for (size_t i = 0; i < dims.size(); ++i) {
    result.start += offsets[i] * steps[i];
    result.dims[i] = sizes[i];
    result.steps[i] = steps[i] * by[i];
  }
  return result;
}

HostTensor HostTensor::transpose(llvm::ArrayRef<int64_t> permutation) const {
  HostTensor result = *this;
  for (size_t i = 0; i < dims.size(); ++i) {
    result.dims[i] = dims[permutation[i]];
    result.steps[i] = steps[permutation[i]];
  }
  return result;
}

HostTensor HostTensor::withoutRepeats() const {
  HostTensor result = *this;
  for (size_t i = 0; i < dims.size(); ++i)
    if (steps[i] == 0 && dims[i] > 1)
      result.dims[i] = 1;
  return result;
}

std::optional<HostTensor> HostTensor::viewAs(llvm::ArrayRef<int64_t> shape) const {
  HostTensor result = *this;
  result.dims.assign(shape.begin(), shape.end());
  result.steps.assign(shape.size(), 0);
  size_t from = 0;
  for (size_t to = 0; to < shape.size(); ++to) {
    if (shape[to] == 1)
      continue;
    while (from < dims.size() && dims[from] == 1)
      ++from;
    if (from == dims.size() || dims[from] != shape[to])
      return std::nullopt;
    result.steps[to] = steps[from++];
  }
  for (; from < dims.size(); ++from)
    if (dims[from] != 1)
      return std::nullopt;
  return result;
}

bool HostTensor::isDense() const {
  Shape dense = denseStrides(dims);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] > 1 && steps[i] != dense[i])
      return false;
  return true;
}

HostTensor HostTensor::reinterpret(llvm::ArrayRef<int64_t> shape) const {
  HostTensor result = *this;
  result.dims.assign(shape.begin(), shape.end());
  result.steps = denseStrides(shape);
  return result;
}

HostBuffer::HostBuffer(DType type, llvm::ArrayRef<int64_t> shape) {
  size_t size = static_cast<size_t>(*elementCount(shape) * byteSize(type));
  std::shared_ptr<char> owner(new char[std::max<size_t>(size, 1)](), std::default_delete<char[]>());
  data = owner.get();
  tensor = HostTensor::view(type, shape, owner);
}

template <typename T> static void store(char *to, T value) {
  std::memcpy(to, &value, sizeof value);
}

void HostBuffer::putDouble(int64_t index, double value) {
  char *to = data + index * byteSize(tensor.elementType);
  switch (tensor.elementType) {
  case DType::f32:
    return store(to, static_cast<float>(value));
  case DType::f64:
    return store(to, value);
  case DType::f16:
    return store(to, toBits(APFloat::IEEEhalf(), value));
  case DType::bf16:
    return store(to, toBits(APFloat::BFloat(), value));
  case DType::boolean:
    return store(to, static_cast<uint8_t>(value != 0));
  default:
    return putInt(index, truncateToInt(value));
  }
}

void HostBuffer::putInt(int64_t index, int64_t value) {
  char *to = data + index * byteSize(tensor.elementType);
  switch (tensor.elementType) {
  case DType::i64:
  case DType::u64:
    return store(to, value);
  case DType::i32:
  case DType::u32:
    return store(to, static_cast<uint32_t>(value));
  case DType::i16:
  case DType::u16:
    return store(to, static_cast<uint16_t>(value));
  case DType::i8:
  case DType::u8:
    return store(to, static_cast<uint8_t>(value));
  case DType::boolean:
    return store(to, static_cast<uint8_t>(value != 0));
  default:
    return putDouble(index, static_cast<double>(value));
  }
}

void HostBuffer::putBytes(int64_t index, const char *from) {
  int64_t size = byteSize(tensor.elementType);
  std::memcpy(data + index * size, from, size);
}

void forEachElement(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<const HostTensor *> views,
                    llvm::function_ref<void(llvm::ArrayRef<int64_t>)> body) {
  if (llvm::is_contained(shape, 0))
    return;
  llvm::SmallVector<int64_t, 4> positions;
  for (const HostTensor *view : views)
    positions.push_back(view->origin());
  Shape index(shape.size(), 0);
  while (true) {
    body(positions);
    size_t dim = shape.size();
    while (dim-- > 0) {
      for (auto [position, view] : llvm::zip_equal(positions, views))
        position += view->strides()[dim];
      if (++index[dim] < shape[dim])
        break;
      for (auto [position, view] : llvm::zip_equal(positions, views))
        position -= view->strides()[dim] * shape[dim];
      index[dim] = 0;
    }
    if (dim == static_cast<size_t>(-1))
      return;
  }
}

} // namespace partita::importer
