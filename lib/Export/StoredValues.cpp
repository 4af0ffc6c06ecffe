//===- StoredValues.cpp -----------------------------------------------------------------------===//

#include "lib/Export/StoredValues.h"
#include "llvm/Support/Endian.h"
#include <functional>
#include <numeric>

using namespace llvm;
using namespace partita;

static const FloatType kFloats[] = {{1, "float32", 4, &APFloat::IEEEsingle},
                                    {10, "float16", 2, &APFloat::IEEEhalf},
                                    {11, "float64", 8, &APFloat::IEEEdouble},
                                    {16, "bfloat16", 2, &APFloat::BFloat}};

const FloatType *partita::floatType(int number) {
  for (const FloatType &type : kFloats)
    if (type.number == number)
      return &type;
  return nullptr;
}

bool partita::fits(ArrayRef<int64_t> shape, const ExportTensor &part, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> held(shape);
  if (part.dim >= int64_t(shape.size()) ||
      (part.dim >= 0 &&
       (part.begin < 0 || part.size < 1 || part.size > shape[part.dim] - part.begin)))
    return false;
  if (part.dim >= 0)
    held[part.dim] = part.size;
  if (part.transposed && held.size() != 2)
    return false;
  if (part.transposed)
    std::swap(held[0], held[1]);
  auto elements = [](ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  };
  return held == SmallVector<int64_t>(dims) ||
         (part.reshaped && !part.transposed && elements(held) == elements(dims));
}

uint64_t partita::countElements(const WeightTensor &weights, const ExportTensor &part) {
  uint64_t all = weights.size / 4;
  return part.dim < 0 ? all : all / weights.shape[part.dim] * part.size;
}

/// Maps a tensor's elements to their positions in the weights.
static auto elementsOf(const WeightTensor &weights, const ExportTensor &part) {
  ArrayRef<int64_t> shape = weights.shape;
  uint64_t held = countElements(weights, part), inner = held, full = held, begin = 0;
  if (part.dim >= 0) { // runs of the slice, with gaps between them
    uint64_t width = 1;
    for (int64_t size : shape.drop_front(part.dim + 1))
      width *= size;
    inner = part.size * width;
    full = shape[part.dim] * width;
    begin = part.begin * width;
  }
  uint64_t rows = !part.transposed ? 1 : part.dim == 0 ? part.size : shape[0];
  uint64_t columns = held == 0 ? 0 : held / rows;
  return [=](uint64_t i) {
    uint64_t at = i % rows * columns + i / rows; // in the part, before it is transposed
    return at / inner * full + begin + at % inner;
  };
}

void partita::writeValues(const WeightTensor &weights, const ExportTensor &part,
                          const FloatType &type, raw_ostream &os) {
  std::string storage;
  StringRef bytes = weights.read(storage);
  if (type.number == 1 && !part.transposed && part.dim < 0) {
    os << bytes;
    return;
  }
  auto placeOf = elementsOf(weights, part);
  for (uint64_t i = 0, count = countElements(weights, part); i < count; ++i) {
    const char *from = bytes.data() + placeOf(i) * 4;
    if (type.number == 1) {
      os.write(from, 4);
      continue;
    }
    APFloat value(APFloat::IEEEsingle(), APInt(32, support::endian::read32le(from)));
    bool lost;
    value.convert(type.semantics(), APFloat::rmNearestTiesToEven, &lost);
    uint64_t bits = value.bitcastToAPInt().getZExtValue();
    char little[8];
    support::endian::write64le(little, bits);
    os.write(little, type.width);
  }
}
