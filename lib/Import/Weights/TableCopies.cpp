//===- TableCopies.cpp ------------------------------------------------------------------------===//

#include "partita/Import/TableCopies.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/CompareElements.h"
#include "lib/Import/Weights/EqualMatrices.h"
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
    if (effectOf(node) == OpEffect::LooksUp && node.input_size() > 0)
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

/// The first and the last element, which a matrix has in common with its transpose.
std::string corners(ModelFile &file, const Matrix &matrix) {
  std::vector<char> first = readElements(file, matrix.data, 0, 1),
                    last = readElements(file, matrix.data, matrix.data.count - 1, 1);
  return std::string(first.begin(), first.end()) + std::string(last.begin(), last.end());
}

/// Groups equal matrices.
class EqualMatrixFinder {
public:
  explicit EqualMatrixFinder(ModelFile &file) : file(file), budget(file) {}

  void add(const Matrix &matrix) {
    std::optional<std::string> begins = beginning(file, matrix);
    if (!begins)
      return;
    const TensorData &data = matrix.data;
    std::vector<size_t> &candidates = byBeginning[{data.type, data.shape, *begins}];
    std::string ends = corners(file, matrix);
    for (size_t group : candidates)
      if (compareElements(file, firsts[group]->data, data) == Equality::Varying)
        return groups[group].push_back({matrix.proto->name(), /*transposed=*/false});
    for (size_t group : byCorners[{data.type, {data.shape[1], data.shape[0]}, ends}])
      if (compareTransposed(file, firsts[group]->data, data, &budget) == Equality::Varying)
        return groups[group].push_back({matrix.proto->name(), /*transposed=*/true});
    candidates.push_back(groups.size());
    byCorners[{data.type, data.shape, ends}].push_back(groups.size());
    groups.push_back({{matrix.proto->name(), /*transposed=*/false}});
    firsts.push_back(&matrix);
  }

  std::vector<std::vector<EqualMatrix>> take() {
    llvm::erase_if(groups, [](const auto &group) { return group.size() < 2; });
    return std::move(groups);
  }

private:
  using Key = std::tuple<DType, Shape, std::string>;
  ModelFile &file;
  SearchBudget budget;
  std::map<Key, std::vector<size_t>> byBeginning,
      byCorners; // groups, by what their first one holds
  std::vector<std::vector<EqualMatrix>> groups;
  std::vector<const Matrix *> firsts; // of each group
};

} // namespace

std::vector<WeightCopy> findTableCopies(ModelFile &file) {
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

std::vector<std::vector<EqualMatrix>> findEqualMatrices(ModelFile &file,
                                                        llvm::ArrayRef<WeightCopy> tableCopies) {
  llvm::StringSet<> copies;
  for (const WeightCopy &copy : tableCopies)
    copies.insert(copy.name);
  Matrices matrices = findMatrices(file);
  EqualMatrixFinder finder(file);
  for (const Matrix &matrix : matrices.others)
    if (matrix.data.count <= maxSearched && !copies.contains(matrix.proto->name()))
      finder.add(matrix);
  return finder.take();
}

} // namespace partita::importer
