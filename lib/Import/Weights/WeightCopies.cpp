//===- WeightCopies.cpp - tensors that hold a parameter again ---------------------------------===//

#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/Weights/WeightDecider.h"
#include "partita/Support/StableSort.h"

using namespace mlir;

namespace partita::importer {

void WeightDecider::addCopy(WeightCopy copy, llvm::StringRef name, llvm::StringRef table) {
  copy.name = name.str();
  copy.table = table.str();
  known(name)->isCopy = true;
  weights.copies.push_back(std::move(copy));
}

/// Copies of embedding tables, by their values, unless the record has two parameters or, where it has
/// neither, the user gives the exact name. (A pattern for all weights does not count.)
void WeightDecider::addTableCopies() {
  weights.tableCopies = findTableCopies(file);
  for (const WeightCopy &copy : weights.tableCopies) {
    const Tensor *tensor = known(copy.name), *table = known(copy.table);
    const Origin &first = origins.of(copy.name), &second = origins.of(copy.table);
    bool areOthers = first.kind != Origin::Unknown && second.kind != Origin::Unknown &&
                     first.parameters != second.parameters;
    bool isNamed = tensor->isNamed && first.kind == Origin::Unknown;
    if (tensor->isParameter && table->isParameter && !areOthers && !isNamed)
      addCopy(copy, copy.name, copy.table);
  }
}

/// Tensors that come from a single parameter by the record: those that equal others are copies;
/// the others of a group are trained independently.
void WeightDecider::addDerivedCopies() {
  std::map<std::string, std::vector<std::string>> byParameter;
  for (const std::string &name : order) {
    const Tensor &tensor = *known(name);
    const Origin &origin = origins.of(name);
    if (origin.parameters.size() == 1 && tensor.isParameter && !tensor.isUnreadConstant &&
        !tensor.isCopy)
      byParameter[origin.parameters.front()].push_back(name);
  }
  for (auto &entry : byParameter) {
    const std::string &parameter = entry.first;
    std::vector<std::string> &members = entry.second;
    partita::stableSort(members, [&](const std::string &a, const std::string &b) {
      bool isFull = a == parameter, isOther = b == parameter;
      return isFull != isOther ? isFull : known(a)->data.count > known(b)->data.count;
    });
    WeightTable::Group &group = weights.groups[parameter];
    for (const std::string &name : members) {
      std::optional<WeightCopy> copy;
      for (const std::string &table : group)
        if (!copy && (copy = findCopyIn(file, known(table)->data, known(name)->data, budget)))
          addCopy(*copy, name, table);
      if (!copy)
        group.push_back(name);
    }
  }
}

/// TorchScript's exporter merges equal parameters before it folds any. So a folded tensor with the
/// elements of a tensor that has its name in the model comes from that tensor.
void WeightDecider::addFoldedCopies() {
  if (weights.exporter != Exporter::TorchScript)
    return;
  std::vector<const std::string *> folded, named;
  for (const std::string &name : order) {
    const Tensor &tensor = *known(name);
    if (tensor.isRead && tensor.isParameter && !tensor.isUnreadConstant && !tensor.isCopy &&
        !tensor.isDecided && (isFoldedName(name) || isModelName(name)))
      (isFoldedName(name) ? folded : named).push_back(&name);
  }
  auto mayHold = [](const TensorData &table, const TensorData &copy, bool isFull) {
    return isFull ? table.count == copy.count
                  : table.count > copy.count && table.shape.size() == copy.shape.size() &&
                        llvm::any_of(copy.shape, [&](int64_t size) {
                          return size > 1 && llvm::is_contained(table.shape, size);
                        });
  };
  for (bool isFull : {true, false})
    for (const std::string *copy : folded)
      for (const std::string *table : named)
        if (const TensorData &data = known(*table)->data, &part = known(*copy)->data;
            !known(*copy)->isCopy && mayHold(data, part, isFull))
          if (std::optional<WeightCopy> found = findCopyIn(file, data, part, budget))
            addCopy(*found, *copy, *table);
}

} // namespace partita::importer
