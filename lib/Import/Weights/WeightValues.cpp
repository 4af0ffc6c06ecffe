//===- WeightValues.cpp -----------------------------------------------------------------------===//

#include "lib/Import/Weights/WeightValues.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"
#include <cstring>

using namespace mlir;

namespace partita::importer {

namespace {

bool varies(const char *bytes, int64_t count, int64_t size) {
  return count > 1 && std::memcmp(bytes, bytes + size, (count - 1) * size) != 0;
}

std::string transposedBytes(const char *bytes, int64_t rows, int64_t columns, int64_t size) {
  std::string result(rows * columns * size, '\0');
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      std::memcpy(&result[(column * rows + row) * size], bytes + (row * columns + column) * size,
                  size);
  return result;
}

/// Spends budget only up to the first block that differs.
bool areEqual(const char *a, const char *b, int64_t count, SearchBudget &budget) {
  constexpr int64_t block = 256;
  for (int64_t at = 0; at < count; at += block) {
    int64_t length = std::min(block, count - at);
    if (!budget.spend(length) || std::memcmp(a + at, b + at, length) != 0)
      return false;
  }
  return true;
}

/// Where in dimension `dim` of the table the slice with these values and this size begins; none if
/// there is no such slice or there are several.
std::optional<int64_t> findSlice(const char *table, llvm::ArrayRef<int64_t> shape, int64_t dim,
                                 const char *part, int64_t size, int64_t width,
                                 SearchBudget &budget) {
  int64_t outer = 1, inner = width;
  for (auto [i, length] : llvm::enumerate(shape))
    (static_cast<int64_t>(i) < dim ? outer : inner) *= static_cast<int64_t>(i) == dim ? 1 : length;
  std::optional<int64_t> found;
  for (int64_t begin = 0; begin + size <= shape[dim]; ++begin) {
    bool isEqual = true;
    for (int64_t i = 0; isEqual && i < outer; ++i)
      isEqual = areEqual(table + (i * shape[dim] + begin) * inner, part + i * size * inner,
                         size * inner, budget);
    if (budget.bytes < 0 || (isEqual && found))
      return std::nullopt;
    if (isEqual)
      found = begin;
  }
  return found;
}

/// The slice of the table that a tensor of this shape and these values is; a slice of one element
/// may have no dimension left.
std::optional<WeightCopy> findPart(const HostTensor &table, llvm::ArrayRef<int64_t> shape,
                                   const char *part, SearchBudget &budget) {
  llvm::ArrayRef<int64_t> full = table.shape();
  for (int64_t dim = 0; dim < static_cast<int64_t>(full.size()); ++dim) {
    Shape expected(full.begin(), full.end()), dropped = expected;
    dropped.erase(dropped.begin() + dim);
    bool isDropped = llvm::ArrayRef<int64_t>(dropped) == shape;
    int64_t size = isDropped ? 1 : shape.size() == full.size() ? shape[dim] : 0;
    expected[dim] = size;
    if (size < 1 || size >= full[dim] || (!isDropped && llvm::ArrayRef<int64_t>(expected) != shape))
      continue;
    if (std::optional<int64_t> begin =
            findSlice(table.bytes(0), full, dim, part, size, byteSize(table.type()), budget))
      return WeightCopy{"", "", false, dim, *begin, size};
  }
  return std::nullopt;
}

/// Finds tensors with a row, column or pair of neighbours in common.
class Lines {
public:
  explicit Lines(size_t tensors) : overlaps(tensors) {}

  /// Rows and columns; of a vector its pairs of neighbours.
  void add(const HostTensor &values, size_t tensor) {
    int64_t size = byteSize(values.type()), count = values.size();
    int64_t rows = values.rank() > 1 ? values.shape()[0] : 1, width = count / rows;
    const char *bytes = values.bytes(0);
    if (rows == 1 || width == 1) {
      for (int64_t i = 0; i + 1 < count; ++i)
        addRows(bytes + i * size, 1, 2, size, tensor);
      return;
    }
    addRows(bytes, rows, width, size, tensor);
    addRows(transposedBytes(bytes, rows, width, size).data(), width, rows, size, tensor);
  }

  std::vector<bool> overlaps;

private:
  /// All rows of a matrix that are not one value throughout.
  void addRows(const char *bytes, int64_t rows, int64_t width, int64_t size, size_t tensor) {
    for (int64_t row = 0; row < rows && static_cast<int64_t>(firsts.size()) < maxSearched; ++row) {
      const char *begin = bytes + row * width * size;
      if (!varies(begin, width, size))
        continue;
      auto hash = llvm::xxh3_128bits(
          {reinterpret_cast<const uint8_t *>(begin), static_cast<size_t>(width * size)});
      size_t first = firsts.try_emplace({hash.high64, hash.low64}, tensor).first->second;
      if (first != tensor)
        overlaps[first] = overlaps[tensor] = true;
    }
  }

  llvm::DenseMap<std::pair<uint64_t, uint64_t>, size_t> firsts;
};

} // namespace

std::optional<WeightCopy> findCopyIn(ModelFile &file, const TensorData &table,
                                     const TensorData &copy, SearchBudget &budget) {
  bool areMatrices = table.shape.size() == 2 && copy.shape.size() == 2;
  bool mayBeTransposed =
      areMatrices && table.shape[0] == copy.shape[1] && table.shape[1] == copy.shape[0];
  if (table.type != copy.type || copy.count < 2 || table.place == TensorData::declared ||
      copy.place == TensorData::declared)
    return std::nullopt;
  if (copy.count == table.count) {
    if (compareElements(file, table, copy, &budget) == Equality::Varying)
      return WeightCopy{};
    if (mayBeTransposed && compareTransposed(file, table, copy, &budget) == Equality::Varying)
      return WeightCopy{"", "", true};
    return std::nullopt;
  }
  if (table.count > maxSearched || copy.count > table.count ||
      !budget.spend((table.count + copy.count) * byteSize(table.type)))
    return std::nullopt;
  std::optional<HostTensor> full = file.tryRead(table), part = file.tryRead(copy);
  int64_t size = byteSize(table.type);
  if (!full || !part || !varies(part->bytes(0), copy.count, size))
    return std::nullopt;
  if (std::optional<WeightCopy> found = findPart(*full, copy.shape, part->bytes(0), budget))
    return found;
  if (!areMatrices)
    return std::nullopt;
  std::string turned = transposedBytes(part->bytes(0), copy.shape[0], copy.shape[1], size);
  std::optional<WeightCopy> found =
      findPart(*full, {copy.shape[1], copy.shape[0]}, turned.data(), budget);
  if (found)
    found->transposed = true;
  return found;
}

std::vector<bool> findOverlaps(ModelFile &file, llvm::ArrayRef<const TensorData *> tensors) {
  Lines lines(tensors.size());
  for (const auto &[i, data] : llvm::enumerate(tensors))
    if (data->count > 0 && data->count <= maxSearched && data->type == tensors.front()->type)
      if (std::optional<HostTensor> values = file.tryRead(*data))
        lines.add(*values, i);
  return lines.overlaps;
}

/// A hash that is the same for all permutations of the elements.
static llvm::XXH128_hash_t hashOfSorted(const HostTensor &values) {
  int64_t size = byteSize(values.type());
  std::vector<uint64_t> elements(values.size(), 0);
  for (int64_t i = 0; i < values.size(); ++i)
    std::memcpy(&elements[i], values.bytes(i), size);
  llvm::sort(elements);
  return llvm::xxh3_128bits(
      {reinterpret_cast<const uint8_t *>(elements.data()), elements.size() * sizeof(uint64_t)});
}

std::vector<bool> findRearranged(ModelFile &file, llvm::ArrayRef<const TensorData *> tensors) {
  std::vector<bool> rearranged(tensors.size());
  llvm::DenseMap<std::pair<uint64_t, uint64_t>, size_t> firsts;
  for (const auto &[i, data] : llvm::enumerate(tensors)) {
    bool isSearched = data->count > 1 && data->count <= maxSearched &&
                      data->type == tensors.front()->type &&
                      llvm::any_of(tensors, [&, data = data](const TensorData *other) {
                        return other != data && other->count == data->count;
                      });
    std::optional<HostTensor> values = isSearched ? file.tryRead(*data) : std::nullopt;
    if (!values || !varies(values->bytes(0), data->count, byteSize(data->type)))
      continue;
    llvm::XXH128_hash_t hash = hashOfSorted(*values);
    size_t first = firsts.try_emplace({hash.high64, hash.low64}, i).first->second;
    if (first != i)
      rearranged[first] = rearranged[i] = true;
  }
  return rearranged;
}

std::optional<double> onlyNumber(ModelFile &file, const TensorData &data) {
  if (data.count == 0 || data.count > maxSearched)
    return std::nullopt;
  std::optional<HostTensor> values = file.tryRead(data);
  if (!values || varies(values->bytes(0), data.count, byteSize(data.type)))
    return std::nullopt;
  return values->toDouble(0);
}

bool hasDistinctRuns(ModelFile &file, const TensorData &data, int64_t width) {
  if (data.count == 0 || data.count > maxSearched)
    return false;
  std::optional<HostTensor> values = file.tryRead(data);
  if (!values)
    return false;
  int64_t length = width * byteSize(data.type);
  llvm::StringSet<> seen;
  for (int64_t i = 0; i < data.count / width; ++i)
    if (!seen.insert(llvm::StringRef(values->bytes(0) + i * length, length)).second)
      return false;
  return true;
}

bool hasFewNumbers(ModelFile &file, const TensorData &data) {
  if (data.count == 0 || data.count > maxSearched)
    return false;
  std::optional<HostTensor> values = file.tryRead(data);
  if (!values)
    return false;
  // There are only so many numbers of 16 bits that random values could be.
  constexpr size_t most16 = 256;
  size_t size = byteSize(data.type), half = values->size() / 2,
         most = size > 2 ? half : std::min(half, most16);
  llvm::DenseSet<uint64_t> seen;
  for (int64_t i = 0; i < values->size() && seen.size() <= most; ++i) {
    uint64_t number = 0;
    std::memcpy(&number, values->bytes(i), size);
    seen.insert(std::min(number, ~uint64_t(2))); // a DenseSet reserves the two above
  }
  return seen.size() <= most;
}

bool repeatsSlice(ModelFile &file, const TensorData &data) {
  if (data.count == 0 || data.count > maxSearched)
    return false;
  std::optional<HostTensor> values = file.tryRead(data);
  if (!values)
    return false;
  // Shorter slices of random numbers are equal by chance in a large tensor.
  constexpr int64_t leastBytes = 8;
  int64_t size = byteSize(data.type), least = std::max<int64_t>(leastBytes / size, 2), inner = 1;
  for (int64_t length : llvm::reverse(data.shape)) {
    int64_t outer = data.count / (length * inner);
    // A vector has no slices but its elements: so many of them that are neighbours stand for one.
    bool isVector = outer * inner == 1;
    int64_t width = (isVector ? least : inner) * size;
    llvm::DenseSet<std::pair<uint64_t, uint64_t>> seen;
    std::string slice;
    for (int64_t i = 0; i + (isVector ? least : 1) <= length; ++i) {
      slice.clear();
      for (int64_t part = 0; part < outer; ++part)
        slice.append(values->bytes((part * length + i) * inner), width);
      int64_t count = static_cast<int64_t>(slice.size()) / size;
      if (count < least || !varies(slice.data(), count, size))
        continue;
      auto hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(slice));
      if (!seen.insert({hash.high64, hash.low64}).second)
        return true;
    }
    inner *= length;
  }
  return false;
}

} // namespace partita::importer
