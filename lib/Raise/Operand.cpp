//===- Operand.cpp - see Operand.h ------------------------------------------------------------===//

#include "lib/Raise/Operand.h"

using namespace mlir;
using namespace partita;
using namespace partita::raise;

bool raise::assignRoles(const View &view, Operand::Role last, Operand::Role beforeLast,
                        bool oneSample, Operand &operand) {
  operand = Operand();
  operand.source = view.source;
  operand.scale = view.scale;
  auto rank = static_cast<unsigned>(cast<RankedTensorType>(view.source.getType()).getRank());
  auto assign = [&](Operand::Role role, ArrayRef<unsigned> atoms) {
    if (role == Operand::Head && !atoms.empty() && atoms.back() >= rank) {
      operand.repeats = view.atomSizes[atoms.back()];
      atoms = atoms.drop_back();
    }
    if (atoms.size() > 1 || (!atoms.empty() && (operand.dims[role] >= 0 || atoms[0] >= rank)))
      return false;
    if (!atoms.empty())
      operand.dims[role] = atoms[0];
    return true;
  };
  ArrayRef<Labels::value_type> labels(view.labels);
  if (labels.size() < 3 || !assign(last, labels.back()) ||
      !assign(beforeLast, labels[labels.size() - 2]))
    return false;
  ArrayRef<Labels::value_type> leading = labels.drop_back(2);
  if (leading.size() == 2)
    return assign(Operand::Batch, leading[0]) && assign(Operand::Head, leading[1]);
  // [batch * heads, ...]
  if (leading.size() != 1 || leading[0].size() > 3)
    return false;
  ArrayRef<unsigned> atoms(leading[0]);
  size_t ofBatch = oneSample ? 0 : std::min<size_t>(1, atoms.size());
  return assign(Operand::Batch, atoms.take_front(ofBatch)) &&
         assign(Operand::Head, atoms.drop_front(ofBatch));
}

Value raise::inLayout(OpBuilder &builder, Location loc, Value source, const Operand &operand) {
  // Dimensions in the order of their roles; those of size one, which play none, in the gaps.
  SmallVector<int64_t> permutation, idle;
  for (int64_t i = 0; i < cast<RankedTensorType>(source.getType()).getRank(); ++i)
    if (!llvm::is_contained(operand.dims, i))
      idle.push_back(i);
  size_t nextIdle = 0;
  SmallVector<int64_t> shape;
  auto type = cast<RankedTensorType>(source.getType());
  for (int dim : operand.dims) {
    shape.push_back(dim < 0 ? 1 : type.getDimSize(dim));
    if (dim >= 0)
      permutation.push_back(dim);
    else if (nextIdle < idle.size())
      permutation.push_back(idle[nextIdle++]);
  }
  permutation.append(idle.begin() + nextIdle, idle.end());
  return createReshape(builder, loc, createTranspose(builder, loc, source, permutation), shape);
}
