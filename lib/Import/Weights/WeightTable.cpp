//===- WeightTable.cpp ------------------------------------------------------------------------===//

#include "lib/Import/Weights/WeightTable.h"
#include "lib/Import/File/ExporterNames.h"
#include "lib/Import/Weights/Buffers.h"

using namespace mlir;

namespace partita::importer {

WeightTable::WeightTable(ModelFile &file)
    : file(file), graph(file.model().graph()), origins(graph),
      exporter(exporterOf(file.model(), origins)), buffers(findBuffers(graph, file)) {}

const WeightTable::Tensor *WeightTable::known(llvm::StringRef name) const {
  auto entry = tensors.find(name);
  return entry == tensors.end() ? nullptr : &entry->second;
}

const OriginalParameter *WeightTable::original(llvm::StringRef name) const {
  auto entry = originals.find(name);
  return entry == originals.end() ? nullptr : &entry->second;
}

bool WeightTable::isUsedAs(const Tensor &tensor, llvm::StringRef op, int operand) const {
  return !tensor.uses.empty() && llvm::all_of(tensor.uses, [&](const Use &use) {
    return use.node->op_type() == op && use.operand == operand;
  });
}

llvm::StringRef WeightTable::originOf(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  bool isOther = origin.parameters.size() == 1 && origin.parameters.front() != name;
  return isOther ? llvm::StringRef(origin.parameters.front()) : "";
}

train::Folded WeightTable::foldedBy(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  if (remade.contains(name))
    return train::Folded::Computed;
  if (exporter == Exporter::Dynamo)
    return origin.kind != Origin::Derived || original(name) ? train::Folded::No
           : isPart(name)                                   ? train::Folded::Part
           : isMoved(*known(name)) || origin.lookedUp       ? train::Folded::Moved
           : isShifted(name)                                ? train::Folded::Shifted
                                                            : train::Folded::Computed;
  return exporter == Exporter::TorchScript && isFoldedName(name) ? train::Folded::Moved
                                                                 : train::Folded::No;
}

llvm::SmallVector<int64_t, 2> WeightTable::originalDimensions(llvm::StringRef name) const {
  if (exporter != Exporter::Dynamo || !train::isMoved(foldedBy(name)))
    return {};
  const Origin &origin = origins.of(name);
  const Tensor &tensor = *known(name);
  int64_t own = tensor.data.shape.size(), before = own, padding = 0;
  Decomposed how = origin.lastInner ? decomposed(tensor) : Decomposed::Unknown;
  if (origin.lookedUp)
    before = 2; // a table
  else if (how == Decomposed::Vector)
    before = 1;
  else if (how == Decomposed::Padded)
    while (padding < own && tensor.data.shape[padding] == 1)
      ++padding;
  auto bounded = [](int64_t dims) { return std::clamp<int64_t>(dims, 0, mostDimensions); };
  int64_t least = bounded(before - padding + origin.leastDropped),
          most = bounded(before + origin.mostDropped);
  if (least == own && most == own)
    return {};
  return {least, most};
}

bool WeightTable::isRounded(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  return origin.kind == Origin::Derived && origin.cast && is16Bit(known(name)->data.type);
}

bool WeightTable::isPart(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  if (origin.parameters.size() != 1 || origin.lookedUp || !isMoved(*known(name)))
    return false;
  auto group = groups.find(origin.parameters.front());
  return group != groups.end() && group->second.size() > 1;
}

bool WeightTable::isShifted(llvm::StringRef name) const {
  const Origin &origin = origins.of(name);
  if (!origin.shifted)
    return false;
  auto group = groups.find(origin.parameters.front());
  return group != groups.end() && group->second.size() == 1 && group->second.front() == name;
}

Decomposed WeightTable::decomposed(const Tensor &tensor) const {
  const Origin &origin = origins.of(tensor.proto->name());
  std::optional<Decomposed> how;
  for (const Use &use : tensor.uses) {
    Decomposed here = Origins::decomposed(origin, *use.node, use.operand);
    if (how && *how != here)
      return Decomposed::Unknown;
    how = here;
  }
  return how.value_or(Decomposed::Unknown);
}

bool WeightTable::isMoved(const Tensor &tensor) const {
  const Origin &origin = origins.of(tensor.proto->name());
  return origin.moved && !tensor.mayRepeat && !isRounded(tensor.proto->name()) &&
         (!origin.lastInner || decomposed(tensor) != Decomposed::Unknown);
}

bool WeightTable::isSliced(llvm::StringRef name) const {
  return llvm::any_of(copies,
                      [&](const WeightCopy &each) { return each.table == name && each.dim >= 0; });
}

bool WeightTable::isReshaped(const WeightCopy &copy) const {
  const OriginalParameter *original = this->original(copy.table);
  Shape shape = original && !original->transposed ? original->shape : known(copy.table)->data.shape;
  if (copy.dim >= 0)
    shape[copy.dim] = copy.size;
  return !copy.transposed && shape != known(copy.name)->data.shape;
}

} // namespace partita::importer
