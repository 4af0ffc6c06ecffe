//===- TableCopies.cpp ------------------------------------------------------------------------===//

#include "partita/Import/TableCopies.h"
#include "lib/Import/Weights/CompareElements.h"
#include "lib/Import/Weights/EqualMatrices.h"
#include "lib/Import/Weights/InitializerUses.h"
#include "lib/Import/Weights/WeightValues.h"
#include "onnx.pb.h"
#include "llvm/ADT/StringMap.h"
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
  InitializerUses uses(graph);
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
    if (llvm::any_of(uses.of(proto.name()), [](auto use) { return use.looksUp(); }))
      found.tables[{data->shape[0], data->shape[1]}].push_back({&proto, *data});
    else
      found.others.push_back({&proto, *data});
  }
  return found;
}

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
  EqualTensorFinder finder(file);
  for (const Matrix &matrix : matrices.others)
    if (matrix.data.count <= maxSearched && !copies.contains(matrix.proto->name()))
      finder.add(matrix.proto->name(), matrix.data);
  return finder.take();
}

} // namespace partita::importer
