//===- EqualMatrices.cpp ----------------------------------------------------------------------===//

#include "lib/Import/Weights/EqualMatrices.h"
#include <cstring>

namespace partita::importer {

/// Elements from the beginning and the middle of a tensor (the first row of a table may be zeros), where
/// they are not one number throughout.
static std::optional<std::string> sampleOf(ModelFile &file, const TensorData &data) {
  constexpr int64_t most = 256; // elements of each
  int64_t size = byteSize(data.type), count = std::min(most, data.count), middle = data.count / 2;
  std::vector<char> bytes = readElements(file, data, 0, count),
                    more = readElements(file, data, middle, std::min(most, data.count - middle));
  if (bytes.empty() || more.empty())
    return std::nullopt;
  bytes.insert(bytes.end(), more.begin(), more.end());
  if (std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0)
    return std::nullopt;
  return std::string(bytes.begin(), bytes.end());
}

/// The first and the last element, which a matrix has in common with its transpose.
static std::string cornersOf(ModelFile &file, const TensorData &data) {
  std::vector<char> first = readElements(file, data, 0, 1),
                    last = readElements(file, data, data.count - 1, 1);
  return std::string(first.begin(), first.end()) + std::string(last.begin(), last.end());
}

void EqualTensorFinder::add(const std::string &name, const TensorData &data) {
  std::optional<std::string> sample = sampleOf(file, data);
  if (!sample)
    return;
  std::vector<size_t> &candidates = bySample[{data.type, data.shape, *sample}];
  for (size_t group : candidates)
    if (compareElements(file, *firsts[group], data, &budget) == Equality::Varying)
      return groups[group].push_back({name, /*transposed=*/false});
  if (data.shape.size() == 2) {
    std::string corners = cornersOf(file, data);
    for (size_t group : byCorners[{data.type, {data.shape[1], data.shape[0]}, corners}])
      if (compareTransposed(file, *firsts[group], data, &budget) == Equality::Varying)
        return groups[group].push_back({name, /*transposed=*/true});
    byCorners[{data.type, data.shape, corners}].push_back(groups.size());
  }
  candidates.push_back(groups.size());
  groups.push_back({{name, /*transposed=*/false}});
  firsts.push_back(&data);
}

std::vector<std::vector<EqualMatrix>> EqualTensorFinder::take() {
  llvm::erase_if(groups, [](const auto &group) { return group.size() < 2; });
  return std::move(groups);
}

} // namespace partita::importer
