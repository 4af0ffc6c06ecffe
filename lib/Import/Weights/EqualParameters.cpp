//===- EqualParameters.cpp --------------------------------------------------------------------===//

#include "lib/Import/Weights/EqualParameters.h"

namespace partita::importer {

EqualParameterFinder::EqualParameterFinder(
    const WeightTable &weights, llvm::function_ref<bool(const WeightTable::Tensor &)> isSearched)
    : weights(weights), finder(weights.file), budget(weights.file) {
  for (const std::string &name : weights.order) {
    const WeightTable::Tensor &tensor = *weights.known(name);
    const TensorData &data = tensor.data;
    if (!isWhole(name) || !data.isRaw() || data.place == TensorData::declared)
      continue;
    byParameter.try_emplace(weights.origins.of(name).parameters.front(), &data);
    if (data.shape.size() > 1 && isSearched(tensor))
      finder.add(name, data);
  }
}

/// Does it hold one parameter, under whatever name and in whatever order of its elements?
bool EqualParameterFinder::isWhole(llvm::StringRef name) const {
  const Origin &origin = weights.origins.of(name);
  return origin.kind == Origin::Parameter ||
         (origin.kind == Origin::Derived && origin.parameters.size() == 1 &&
          weights.isMoved(*weights.known(name)) && !weights.isPart(name));
}

std::vector<std::vector<EqualMatrix>> EqualParameterFinder::take() {
  std::vector<std::vector<EqualMatrix>> groups;
  for (std::vector<EqualMatrix> &group : finder.take()) {
    if (hasFewNumbers(weights.file, weights.known(group.front().name)->data))
      continue;
    constexpr size_t mostCompared = 16; // a note names fewer
    std::vector<EqualMatrix> apart;
    for (EqualMatrix &each : group) {
      auto first = llvm::ArrayRef(apart).take_front(mostCompared);
      if (llvm::none_of(first, [&](const auto &other) { return areCopies(other.name, each.name); }))
        apart.push_back(std::move(each));
    }
    if (apart.size() > 1)
      groups.push_back(std::move(apart));
  }
  return groups;
}

/// Are these the same parameter of two copied modules, whatever their nesting? "h.0.mlp.fc.weight" and
/// "h.1.mlp.fc.weight" may be of copies h.0 and h.1, or of copies of mlp or fc in them.
bool EqualParameterFinder::areCopies(llvm::StringRef tensor, llvm::StringRef other) {
  llvm::StringRef a = weights.origins.of(tensor).parameters.front(),
                  b = weights.origins.of(other).parameters.front();
  if (a == b)
    return true;
  for (llvm::StringRef pathA = a, pathB = b; pathA.contains('.') && pathB.contains('.');) {
    llvm::StringRef lastA, lastB;
    std::tie(pathA, lastA) = pathA.rsplit('.');
    std::tie(pathB, lastB) = pathB.rsplit('.');
    if (lastA != lastB || pathA == pathB)
      return false;
    if (areCopiedModules(pathA, pathB))
      return true;
  }
  return false;
}

bool EqualParameterFinder::areCopiedModules(llvm::StringRef path, llvm::StringRef other) {
  auto [entry, isNew] = compared.try_emplace({path, other});
  if (isNew)
    entry->second = compareModules(path, other);
  return entry->second;
}

EqualParameterFinder::Module EqualParameterFinder::moduleOf(llvm::StringRef path) const {
  Module module;
  std::string prefix = (path + ".").str();
  for (auto at = byParameter.lower_bound(prefix);
       at != byParameter.end() && llvm::StringRef(at->first).starts_with(prefix); ++at)
    module[llvm::StringRef(at->first).drop_front(prefix.size())] = at->second;
  return module;
}

/// Several of their parameters vary, and all equal the other's.
bool EqualParameterFinder::compareModules(llvm::StringRef path, llvm::StringRef other) {
  Module a = moduleOf(path), b = moduleOf(other);
  int varying = 0;
  for (auto [name, data] : a) {
    auto match = b.find(name);
    if (match == b.end() || match->second->shape != data->shape)
      return false;
    Equality equality = compareElements(weights.file, *data, *match->second, &budget);
    if (equality == Equality::Different)
      return false;
    varying += equality == Equality::Varying;
  }
  return a.size() == b.size() && varying > 1;
}

} // namespace partita::importer
