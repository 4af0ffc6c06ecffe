//===- TiedWeights.cpp ------------------------------------------------------------------------===//

#include "partita/Import/TiedWeights.h"
#include "onnx.pb.h"
#include "partita/Import/ExternalData.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"
#include <cstring>
#include <fcntl.h>
#include <map>
#include <unistd.h>

using namespace mlir;

namespace partita::importer {

namespace {

/// At most this much of a table is in memory at a time, bytes.
constexpr int64_t blockBytes = 4 << 20;

/// The bytes of a matrix in its file.
class MatrixReader {
public:
  MatrixReader(const ModelFile &file, const TensorData &data) : data(data) {
    if (data.place == TensorData::external) {
      OpenedData opened =
          openExternalData(llvm::sys::path::parent_path(file.path()), data.location);
      descriptor = opened.descriptor;
    } else {
      descriptor = ::open(file.path().str().c_str(), O_RDONLY | O_CLOEXEC);
    }
  }
  ~MatrixReader() {
    if (descriptor >= 0)
      ::close(descriptor);
  }

  /// `count` elements of row `row` from column `column` on.
  bool read(int64_t row, int64_t column, int64_t count, std::vector<char> &to, size_t at) const {
    int64_t size = byteSize(data.type), length = count * size;
    int64_t from = static_cast<int64_t>(data.offset) + (row * data.shape[1] + column) * size;
    for (int64_t done = 0; done < length;) {
      ssize_t got = pread(descriptor, to.data() + at + done, length - done, from + done);
      if (got <= 0)
        return false;
      done += got;
    }
    return true;
  }

private:
  const TensorData &data;
  int descriptor = -1;
};

} // namespace

bool repeats(const ModelFile &file, const TensorData &a, const TensorData &b, bool transposed) {
  int64_t rows = a.shape[0], columns = a.shape[1], size = byteSize(a.type);
  int64_t height = std::max<int64_t>(blockBytes / (columns * size), 1);
  if (columns * size > blockBytes)
    return false; // no table is as wide
  MatrixReader readA(file, a), readB(file, b);
  bool varies = false;
  for (int64_t row = 0; row < rows; row += height) {
    int64_t here = std::min(height, rows - row);
    std::vector<char> block(here * columns * size), other(transposed ? here * size : block.size());
    if (!readA.read(row, 0, here * columns, block, 0))
      return false;
    varies = varies || std::memcmp(block.data(), block.data() + size, block.size() - size) != 0;
    if (!transposed) {
      if (!readB.read(row, 0, here * columns, other, 0) || block != other)
        return false;
      continue;
    }
    for (int64_t column = 0; column < columns; ++column) {
      if (!readB.read(column, row, here, other, 0))
        return false;
      for (int64_t i = 0; i < here; ++i)
        if (std::memcmp(&other[i * size], &block[(i * columns + column) * size], size) != 0)
          return false;
    }
  }
  return varies;
}

namespace {

struct Matrix {
  const onnx::TensorProto *proto;
  TensorData data;
};

/// The matrices of a model whose values are in its files.
struct Matrices {
  std::vector<Matrix> others;
  std::map<std::pair<int64_t, int64_t>, std::vector<Matrix>> tables; // by shape
};

Matrices findMatrices(ModelFile &file) {
  const onnx::GraphProto &graph = file.model().graph();
  llvm::StringSet<> gathered;
  for (const onnx::NodeProto &node : graph.node())
    if (node.op_type() == "Gather" && node.input_size() > 0)
      gathered.insert(node.input(0));
  llvm::StringMap<int64_t> defined; // a name that is defined twice stands for neither
  for (const onnx::TensorProto &proto : graph.initializer())
    ++defined[proto.name()];
  Matrices found;
  for (const onnx::TensorProto &proto : graph.initializer()) {
    if (proto.dims_size() != 2 || proto.name().empty() || defined[proto.name()] > 1)
      continue;
    // The importer reports what is wrong with a tensor; here it is only left out.
    ScopedDiagnosticHandler quiet(file.location().getContext(), [](Diagnostic &) {});
    FailureOr<TensorData> data = file.locate(proto, [&] { return emitError(file.location()); });
    if (failed(data) || !isFloat(data->type) || data->count < 2 || !data->isRaw() ||
        data->place == TensorData::declared)
      continue;
    if (gathered.contains(proto.name()))
      found.tables[{data->shape[0], data->shape[1]}].push_back({&proto, *data});
    else
      found.others.push_back({&proto, *data});
  }
  return found;
}

/// Elements: no constant that an exporter folds has more.
constexpr int64_t maxRepeated = 1 << 22;

/// The first bytes of a matrix, where they are not one number throughout.
std::optional<std::string> beginning(const ModelFile &file, const Matrix &matrix) {
  constexpr int64_t most = 512; // elements
  int64_t size = byteSize(matrix.data.type), count = std::min(most, matrix.data.shape[1]);
  std::vector<char> bytes(count * size);
  if (!MatrixReader(file, matrix.data).read(0, 0, count, bytes, 0) ||
      std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0)
    return std::nullopt;
  return std::string(bytes.begin(), bytes.end());
}

} // namespace

std::vector<WeightCopy> findCopies(ModelFile &file) {
  auto [others, tables] = findMatrices(file);
  std::vector<WeightCopy> copies;
  for (const Matrix &other : others) {
    for (bool transposed : {false, true}) {
      int64_t first = other.data.shape[transposed], second = other.data.shape[!transposed];
      auto found = tables.find({first, second});
      if (found == tables.end())
        continue;
      // A model has a few tables; more of one shape would be a quadratic search.
      llvm::ArrayRef<Matrix> candidates = llvm::ArrayRef(found->second).take_front(4);
      const Matrix *table = llvm::find_if(candidates, [&](const Matrix &each) {
        return each.data.type == other.data.type &&
               repeats(file, each.data, other.data, transposed);
      });
      if (table != candidates.end()) {
        copies.push_back({other.proto->name(), table->proto->name(), transposed});
        break;
      }
    }
  }
  return copies;
}

std::vector<std::vector<std::string>> findRepeated(ModelFile &file) {
  llvm::StringSet<> copies;
  for (const WeightCopy &copy : findCopies(file))
    copies.insert(copy.name);
  using Group = std::vector<const Matrix *>;
  std::map<std::tuple<DType, Shape, std::string>, std::vector<Group>> alike; // by how they begin
  Matrices matrices = findMatrices(file);
  llvm::SmallVector<std::pair<decltype(alike)::key_type, size_t>> order;
  for (const Matrix &matrix : matrices.others) {
    if (matrix.data.count > maxRepeated || copies.contains(matrix.proto->name()))
      continue;
    std::optional<std::string> first = beginning(file, matrix);
    if (!first)
      continue;
    std::tuple<DType, Shape, std::string> key{matrix.data.type, matrix.data.shape, *first};
    std::vector<Group> &groups = alike[key];
    auto same = llvm::find_if(groups, [&](const Group &each) {
      return repeats(file, each.front()->data, matrix.data, /*transposed=*/false);
    });
    if (same != groups.end()) {
      same->push_back(&matrix);
      continue;
    }
    order.push_back({key, groups.size()});
    groups.push_back({&matrix});
  }
  std::vector<std::vector<std::string>> repeated;
  for (const auto &[key, index] : order) {
    const Group &group = alike[key][index];
    if (group.size() < 2)
      continue;
    repeated.emplace_back();
    for (const Matrix *matrix : group)
      repeated.back().push_back(matrix->proto->name());
  }
  return repeated;
}

} // namespace partita::importer
