//===- EqualParameters.cpp --------------------------------------------------------------------===//

#include "lib/Import/Weights/EqualParameters.h"

namespace partita::importer {

static bool isNumber(llvm::StringRef name) {
  return !name.empty() && llvm::all_of(name, llvm::isDigit);
}

/// Are these elements of a list ("h.0" and "h.1"), or of the same list in two such elements ("h.0.mlp.1" and
/// "h.1.mlp.2")?
static bool areOfOneList(llvm::StringRef path, llvm::StringRef other) {
  llvm::SmallVector<llvm::StringRef> a, b;
  path.split(a, '.');
  other.split(b, '.');
  return a.size() == b.size() && isNumber(a.back()) && llvm::all_of(llvm::zip(a, b), [](auto each) {
           auto [first, second] = each;
           return first == second || (isNumber(first) && isNumber(second));
         });
}

EqualParameterFinder::EqualParameterFinder(
    const WeightTable &weights, llvm::function_ref<bool(const WeightTable::Tensor &)> isSearched)
    : weights(weights), finder(weights.file), budget(weights.file) {
  for (const std::string &name : weights.order) {
    const WeightTable::Tensor &tensor = *weights.known(name);
    const TensorData &data = tensor.data;
    if (!isFull(name) || !data.isRaw() || data.place == TensorData::declared)
      continue;
    Parameter parameter{name, &data, isSearched(tensor)};
    byParameter.try_emplace(parameterOf(name).str(), parameter);
    if (data.shape.size() > 1 && parameter.isSearched)
      finder.add(name, data);
  }
}

/// Does it hold one parameter, under whatever name and in whatever order of its elements?
bool EqualParameterFinder::isFull(llvm::StringRef name) const {
  const Origin &origin = weights.origins.of(name);
  return origin.kind == Origin::Parameter ||
         (origin.kind == Origin::Derived && origin.parameters.size() == 1 &&
          weights.isMoved(*weights.known(name)) && !weights.isPart(name));
}

llvm::StringRef EqualParameterFinder::parameterOf(llvm::StringRef tensor) const {
  return weights.origins.of(tensor).parameters.front();
}

std::vector<std::vector<EqualMatrix>> EqualParameterFinder::take() {
  Groups groups;
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
    if (apart.size() < 2)
      continue;
    groups.push_back(std::move(apart));
    addVectors(std::vector(groups.back()), groups);
  }
  return groups;
}

/// Adds groups of equal vectors whose modules have equal matrices: a layer's bias beside its weight.
void EqualParameterFinder::addVectors(const std::vector<EqualMatrix> &matrices, Groups &groups) {
  llvm::StringRef path = parameterOf(matrices.front().name).rsplit('.').first;
  for (const auto &[last, vector] : moduleOf(path)) {
    const Parameter &first = vector;
    if (first.data->shape.size() != 1 || !first.isSearched || last.contains('.') ||
        hasFewNumbers(weights.file, *first.data))
      continue;
    std::vector<EqualMatrix> group{{first.tensor.str(), /*transposed=*/false}};
    for (const EqualMatrix &each : llvm::ArrayRef(matrices).drop_front()) {
      llvm::StringRef other = parameterOf(each.name).rsplit('.').first;
      auto match = byParameter.find((other + "." + last).str());
      if (match != byParameter.end() && match->second.tensor != first.tensor &&
          match->second.isSearched && match->second.data->shape == first.data->shape &&
          compareElements(weights.file, *first.data, *match->second.data, &budget) ==
              Equality::Varying)
        group.push_back({match->second.tensor.str(), /*transposed=*/false});
    }
    if (group.size() > 1)
      groups.push_back(std::move(group));
  }
}

/// Are these the same parameter of two copied layers, whatever their nesting? "h.0.mlp.1.weight" and
/// "h.1.mlp.1.weight" are of copies if h.0 and h.1 are.
bool EqualParameterFinder::areCopies(llvm::StringRef tensor, llvm::StringRef other) {
  llvm::StringRef a = parameterOf(tensor), b = parameterOf(other);
  if (a == b)
    return true;
  for (llvm::StringRef pathA = a, pathB = b; pathA.contains('.') && pathB.contains('.');) {
    llvm::StringRef lastA, lastB;
    std::tie(pathA, lastA) = pathA.rsplit('.');
    std::tie(pathB, lastB) = pathB.rsplit('.');
    if (lastA != lastB || pathA == pathB)
      return false;
    if (areOfOneList(pathA, pathB) && areCopiedLayers(pathA, pathB))
      return true;
  }
  return false;
}

bool EqualParameterFinder::areCopiedLayers(llvm::StringRef path, llvm::StringRef other) {
  auto [entry, isNew] = compared.try_emplace({path, other});
  if (isNew)
    entry->second = compareLayers(path, other);
  return entry->second;
}

EqualParameterFinder::Module EqualParameterFinder::moduleOf(llvm::StringRef path) const {
  Module module;
  std::string prefix = (path + ".").str();
  for (auto at = byParameter.lower_bound(prefix);
       at != byParameter.end() && llvm::StringRef(at->first).starts_with(prefix); ++at)
    module.try_emplace(llvm::StringRef(at->first).drop_front(prefix.size()), at->second);
  return module;
}

/// All of their parameters are equal, or all but one of several that vary: one that each layer has of its
/// own, as by its depth.
bool EqualParameterFinder::compareLayers(llvm::StringRef path, llvm::StringRef other) {
  Module a = moduleOf(path), b = moduleOf(other);
  int varying = 0, different = 0;
  for (const auto &[name, parameter] : a) {
    auto match = b.find(name);
    if (match == b.end() || match->second.data->shape != parameter.data->shape)
      return false;
    Equality equality =
        compareElements(weights.file, *parameter.data, *match->second.data, &budget);
    different += equality == Equality::Different;
    varying += equality == Equality::Varying;
  }
  constexpr int several = 3;
  return a.size() == b.size() && varying > 0 &&
         (different == 0 || (different == 1 && varying >= several));
}

} // namespace partita::importer
