//===- UnplacedFinder.cpp ---------------------------------------------------------------------===//

#include "lib/Import/Weights/Merged/UnplacedFinder.h"
#include "lib/Import/File/ExporterNames.h"
#include "llvm/ADT/SetOperations.h"

namespace partita::importer {

void UnplacedFinder::run(MergedTensors &result) const {
  findParameters(result);
  findBuffers(result);
  findNowhere(result);
  findSharing(result);
}

//===------------------------------------------------------------------------------------------===//
// Absent targets
//===------------------------------------------------------------------------------------------===//

void UnplacedFinder::findParameters(MergedTensors &result) const {
  for (llvm::StringRef target : tensors.parameters()) {
    if (!isOpen(target))
      continue;
    if (const std::set<std::string> *found = matcher.candidatesFor(target))
      result.undecided.push_back({target.str(), {found->begin(), found->end()}});
    else
      result.removed.push_back(target.str());
  }
}

/// Those that may be in tensors which no warning of parameters is about.
void UnplacedFinder::findBuffers(MergedTensors &result) const {
  std::set<std::string> warned;
  for (const MergedTensors::Undecided &each : result.undecided)
    warned.insert(each.tensors.begin(), each.tensors.end());
  for (llvm::StringRef target : tensors.buffers()) {
    const std::set<std::string> *found = matcher.candidatesFor(target);
    if (!isOpen(target) || !found)
      continue;
    std::set<std::string> others = llvm::set_difference(*found, warned);
    if (!others.empty())
      result.undecided.push_back({target.str(), {others.begin(), others.end()}, /*isBuffer=*/true});
  }
}

void UnplacedFinder::findNowhere(MergedTensors &result) const {
  auto isNowhere = [&](llvm::StringRef target) {
    return tensors.isAbsent(target) && !readers.isWanted(target) && !tensors.isFolded(target);
  };
  for (llvm::StringRef target : tensors.parameters())
    if (isNowhere(target))
      result.nowhere.push_back(target.str());
  for (llvm::StringRef target : tensors.buffers())
    if (isNowhere(target))
      result.nowhereBuffers.push_back(target.str());
}

//===------------------------------------------------------------------------------------------===//
// Tensors that are read as more than their target
//===------------------------------------------------------------------------------------------===//

/// Where calls name no parameter, they name what the program has computed from one. The first two values
/// that a tensor is read as show that it is several; if no target is nowhere, it is one that was
/// computed twice.
void UnplacedFinder::findSharing(MergedTensors &result) const {
  std::map<llvm::StringRef, llvm::StringRef> values; // the first, by tensor
  std::set<llvm::StringRef> found;
  for (const CallReader &reader : readers.all())
    for (const Operand &operand : reader.operands) {
      if (found.count(operand.tensor))
        continue;
      if (operand.isOwn() && mayBeNumber(reader, operand)) {
        found.insert(operand.tensor);
        result.unnamed.push_back(
            {operand.tensor.str(), graph.node(reader.node).name(), reader.operation.str()});
        continue;
      }
      std::optional<llvm::StringRef> value = valueOf(reader, operand);
      if (!value || !mayBeSeveral(operand, *value, result))
        continue;
      llvm::StringRef first = operand.isOwn()
                                  ? operand.target
                                  : values.try_emplace(operand.tensor, *value).first->second;
      if (first == *value)
        continue;
      found.insert(operand.tensor);
      result.several.push_back({operand.tensor.str(), first.str(), value->str()});
    }
  if (result.nowhere.empty() && result.nowhereBuffers.empty())
    result.several.clear();
}

/// Does the call leave open what this operand is, a parameter that another node reads as itself?
bool UnplacedFinder::mayBeNumber(const CallReader &reader, const Operand &operand) const {
  return reader.mayHaveLiterals && operand.index != reader.literal &&
         tensors.isParameter(operand.target) && matcher.isReadAsItself(operand.target) &&
         !reader.names(operand.target);
}

/// Does reading the operand as this value show another value than its target, or its first reader's? A
/// parameter itself is read under another name for what is computed with it ("%mul"), or for a buffer
/// that the program copies; a moved one for another that was moved.
bool UnplacedFinder::mayBeSeveral(const Operand &operand, llvm::StringRef value,
                                  const MergedTensors &result) const {
  if (!operand.isOwn())
    return !result.nowhere.empty();
  const AtenOperation &operation = operationMaking(value);
  bool isCopied = !result.nowhereBuffers.empty() && operation.effect == AtenOperation::Copies;
  return matcher.isReadAsItself(operand.target) && (operation.hasNeutralNumber() || isCopied);
}

/// What the program calls an operand where the call does not name the parameter: the only argument that
/// the file has no other value of.
std::optional<llvm::StringRef> UnplacedFinder::valueOf(const CallReader &reader,
                                                       const Operand &operand) const {
  if (reader.operands.size() != 1 || reader.names(operand.target) ||
      !readers.absentArguments(reader).empty())
    return std::nullopt;
  std::optional<llvm::StringRef> found;
  for (llvm::StringRef name : reader.unnamed) {
    if (name != computedName(operand.tensor) && readers.isTaken(name))
      continue;
    if (found)
      return std::nullopt;
    found = name;
  }
  return found;
}

} // namespace partita::importer
