//===- TiedWeights.cpp ------------------------------------------------------------------------===//

#include "partita/Import/TiedWeights.h"
#include "lib/Import/Weights/CompareElements.h"
#include "lib/Import/Weights/WeightValues.h"
#include "onnx.pb.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <cstring>
#include <map>

using namespace mlir;

namespace partita::importer {

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
    std::optional<TensorData> data = file.tryLocate(proto);
    if (!data || !isFloat(data->type) || data->count < 2 || !data->isRaw() ||
        data->place == TensorData::declared)
      continue;
    if (gathered.contains(proto.name()))
      found.tables[{data->shape[0], data->shape[1]}].push_back({&proto, *data});
    else
      found.others.push_back({&proto, *data});
  }
  return found;
}

/// The first bytes of a matrix, where they are not one number throughout.
std::optional<std::string> beginning(ModelFile &file, const Matrix &matrix) {
  constexpr int64_t most = 512; // elements
  int64_t size = byteSize(matrix.data.type), count = std::min(most, matrix.data.shape[1]);
  std::vector<char> bytes = readElements(file, matrix.data, 0, count);
  if (bytes.empty() || std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0)
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
        return (transposed ? compareTransposed(file, each.data, other.data)
                           : compareElements(file, each.data, other.data)) == Equality::Varying;
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
    if (matrix.data.count > maxSearched || copies.contains(matrix.proto->name()))
      continue;
    std::optional<std::string> first = beginning(file, matrix);
    if (!first)
      continue;
    std::tuple<DType, Shape, std::string> key{matrix.data.type, matrix.data.shape, *first};
    std::vector<Group> &groups = alike[key];
    auto same = llvm::find_if(groups, [&](const Group &each) {
      return compareElements(file, each.front()->data, matrix.data) == Equality::Varying;
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
