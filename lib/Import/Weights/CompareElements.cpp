//===- CompareElements.cpp --------------------------------------------------------------------===//

#include "lib/Import/Weights/CompareElements.h"
#include "partita/Import/ExternalData.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace mlir;

namespace partita::importer {

namespace {

/// At most this much of each tensor is in memory at a time, bytes; less of it at first, since most
/// of what is compared differs at once.
constexpr int64_t blockBytes = 4 << 20, firstBytes = 4 << 10;

/// The elements of a tensor in its file. What is not raw, which no exporter writes for large
/// tensors, is decoded as a whole.
class ElementReader {
public:
  ElementReader(ModelFile &file, const TensorData &data)
      : offset(static_cast<int64_t>(data.offset)), size(byteSize(data.type)) {
    if (data.place == TensorData::declared)
      return;
    if (!data.isRaw())
      decoded = file.tryRead(data);
    else if (data.place == TensorData::external)
      descriptor =
          openExternalData(llvm::sys::path::parent_path(file.path()), data.location).descriptor;
    else
      descriptor = ::open(file.path().str().c_str(), O_RDONLY | O_CLOEXEC);
  }
  ~ElementReader() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  ElementReader(const ElementReader &) = delete;
  ElementReader &operator=(const ElementReader &) = delete;

  bool read(int64_t from, int64_t count, char *to) const {
    int64_t length = count * size;
    if (decoded) {
      std::memcpy(to, decoded->bytes(from), length);
      return true;
    }
    for (int64_t done = 0; done < length;) {
      ssize_t got = pread(descriptor, to + done, length - done, offset + from * size + done);
      if (got <= 0)
        return false;
      done += got;
    }
    return true;
  }

  /// A part of a matrix, row-major: one read where it is whole rows.
  bool readTile(int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t width,
                char *to) const {
    if (columns == width)
      return read(row * width, rows * width, to);
    for (int64_t i = 0; i < rows; ++i)
      if (!read((row + i) * width + column, columns, to + i * columns * size))
        return false;
    return true;
  }

private:
  int64_t offset, size;
  int descriptor = -1;
  std::optional<HostTensor> decoded;
};

/// Opening files costs as much as reading a block.
bool mayOpen(SearchBudget *budget) { return !budget || budget->spend(firstBytes); }

/// Are all elements of a block `first`?
bool isAll(const char *first, const char *block, int64_t bytes, int64_t size) {
  return std::memcmp(first, block, size) == 0 &&
         std::memcmp(block, block + size, bytes - size) == 0;
}

/// Is the tile `a` of so many rows and columns the transpose of the tile `b`?
template <typename Element>
bool isTransposed(const char *a, const char *b, int64_t rows, int64_t columns) {
  constexpr int64_t edge = 32; // of squares whose lines stay in the cache
  auto at = [](const char *tile, int64_t index) {
    Element element;
    std::memcpy(&element, tile + index * static_cast<int64_t>(sizeof(Element)), sizeof(Element));
    return element;
  };
  for (int64_t top = 0; top < rows; top += edge)
    for (int64_t left = 0; left < columns; left += edge)
      for (int64_t row = top; row < std::min(top + edge, rows); ++row)
        for (int64_t column = left; column < std::min(left + edge, columns); ++column)
          if (at(a, row * columns + column) != at(b, column * rows + row))
            return false;
  return true;
}

bool isTransposed(int64_t size, const char *a, const char *b, int64_t rows, int64_t columns) {
  switch (size) {
  case 1:
    return isTransposed<uint8_t>(a, b, rows, columns);
  case 2:
    return isTransposed<uint16_t>(a, b, rows, columns);
  case 4:
    return isTransposed<uint32_t>(a, b, rows, columns);
  case 8:
    return isTransposed<uint64_t>(a, b, rows, columns);
  default:
    return false;
  }
}

} // namespace

SearchBudget::SearchBudget(const ModelFile &file)
    : bytes(static_cast<int64_t>(
                std::clamp<uint64_t>(file.bytes(), uint64_t(1) << 29, uint64_t(1) << 40)) *
            8) {}

Equality compareElements(ModelFile &file, const TensorData &a, const TensorData &b,
                         SearchBudget *budget) {
  if (a.type != b.type || a.count != b.count || a.count == 0 || !mayOpen(budget))
    return Equality::Different;
  ElementReader readA(file, a), readB(file, b);
  int64_t size = byteSize(a.type), bytes = firstBytes;
  std::vector<char> first(size), blockA, blockB;
  bool varies = false;
  for (int64_t from = 0; from < a.count; bytes = std::min(bytes * 8, blockBytes)) {
    int64_t count = std::min(bytes / size, a.count - from), length = count * size;
    blockA.resize(length);
    blockB.resize(length);
    if (budget && !budget->spend(2 * length))
      return Equality::Different;
    if (!readA.read(from, count, blockA.data()) || !readB.read(from, count, blockB.data()) ||
        blockA != blockB)
      return Equality::Different;
    if (from == 0)
      std::memcpy(first.data(), blockA.data(), size);
    varies = varies || !isAll(first.data(), blockA.data(), length, size);
    from += count;
  }
  return varies ? Equality::Varying : Equality::OneNumber;
}

Equality compareTransposed(ModelFile &file, const TensorData &a, const TensorData &b,
                           SearchBudget *budget) {
  if (a.type != b.type || a.count == 0 || a.shape.size() != 2 ||
      b.shape != Shape{a.shape[1], a.shape[0]} || !mayOpen(budget))
    return Equality::Different;
  ElementReader readA(file, a), readB(file, b);
  int64_t rows = a.shape[0], columns = a.shape[1], size = byteSize(a.type);
  // A tile is square, or as long as that leaves room for where the matrix is narrow.
  constexpr int64_t edge = 512;
  int64_t width = std::min(columns, edge), height = std::min(rows, blockBytes / (width * size));
  width = std::min(columns, std::max(width, blockBytes / (height * size)));
  std::vector<char> first(size), tileA(height * width * size), tileB(height * width * size);
  bool varies = false;
  for (int64_t row = 0; row < rows; row += height)
    for (int64_t column = 0; column < columns; column += width) {
      int64_t h = std::min(height, rows - row), w = std::min(width, columns - column);
      if (budget && !budget->spend(2 * h * w * size))
        return Equality::Different;
      if (!readA.readTile(row, h, column, w, columns, tileA.data()) ||
          !readB.readTile(column, w, row, h, rows, tileB.data()) ||
          !isTransposed(size, tileA.data(), tileB.data(), h, w))
        return Equality::Different;
      if (row == 0 && column == 0)
        std::memcpy(first.data(), tileA.data(), size);
      varies = varies || !isAll(first.data(), tileA.data(), h * w * size, size);
    }
  return varies ? Equality::Varying : Equality::OneNumber;
}

std::vector<char> readElements(ModelFile &file, const TensorData &data, int64_t from,
                               int64_t count) {
  std::vector<char> bytes(count * byteSize(data.type));
  if (data.place == TensorData::declared ||
      !ElementReader(file, data).read(from, count, bytes.data()))
    bytes.clear();
  return bytes;
}

} // namespace partita::importer
