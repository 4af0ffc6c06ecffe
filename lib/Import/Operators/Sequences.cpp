//===- Sequences.cpp - SplitToSequence, SequenceAt, ConcatFromSequence and their kin ----------===//
//
// Exporters write torch.split and torch.unbind as sequences of tensors. Their lengths are known once
// all dimensions are, and so is which of them a node takes: a sequence is a list that the importer
// keeps, and the program has tensors alone.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Operators/Slices.h"

using namespace mlir;

namespace partita::importer {
namespace {

constexpr int64_t mostParts = int64_t(1) << 16;

LogicalResult setSequence(Node &node, DType type, llvm::ArrayRef<Tensor *> parts) {
  if (static_cast<int64_t>(parts.size()) > mostParts)
    return node.error() << "makes a sequence of " << parts.size() << " tensors, more than "
                        << mostParts;
  if (!node.importer.mayList(static_cast<int64_t>(parts.size())))
    return node.error() << "makes a sequence of " << parts.size()
                        << " tensors, with which the model's sequences have too many in all";
  for (Tensor *part : parts)
    if (part->sequence || part->type != type)
      return node.error() << "cannot put " << (part->sequence ? "a sequence" : typeText(*part))
                          << " into a sequence of tensors of " << dtypeName(type);
  return node.set(0, node.importer.createSequence(type, parts));
}

/// Input 0 as a sequence.
FailureOr<llvm::ArrayRef<Tensor *>> sequenceOf(Node &node) {
  if (node.input(0)->sequence)
    return llvm::ArrayRef<Tensor *>(*node.input(0)->sequence);
  node.error() << "of " << typeText(*node.input(0)) << ", expected a sequence of tensors";
  return failure();
}

/// An optional position among `count`, or after the last too; from the end if negative.
LogicalResult position(Node &node, int64_t input, int64_t count, int64_t &at,
                       bool orBehind = false) {
  if (!node.input(input))
    return success();
  if (failed(node.knownInt(input, "its position in the sequence", at)))
    return failure();
  if (at < -count || at >= count + orBehind)
    return node.error() << "position " << at << " is outside a sequence of " << count;
  at += at < 0 ? count : 0;
  return success();
}

LogicalResult sequenceConstruct(Node &node) {
  if (failed(node.arity(1, anyLater)))
    return failure();
  llvm::SmallVector<Tensor *> parts;
  for (int64_t i = 0; i < node.inputCount(); ++i) {
    if (!node.input(i))
      return node.error() << "input " << i << " is missing";
    parts.push_back(node.input(i));
  }
  return setSequence(node, parts[0]->type, parts);
}

LogicalResult sequenceEmpty(Node &node) {
  int64_t number = static_cast<int64_t>(DType::f32);
  if (failed(node.arity(0, 0)) || failed(node.attribute("dtype", number)))
    return failure();
  std::optional<DType> type = dtypeFromOnnx(number);
  if (!type)
    return node.error() << "of " << dtypeName(number) << " is not supported";
  return setSequence(node, *type, {});
}

LogicalResult sequenceInsert(Node &node) {
  if (failed(node.arity(2, 3)))
    return failure();
  FailureOr<llvm::ArrayRef<Tensor *>> parts = sequenceOf(node);
  if (failed(parts))
    return failure();
  int64_t at = parts->size(); // after the last
  if (failed(position(node, 2, parts->size(), at, /*orBehind=*/true)))
    return failure();
  llvm::SmallVector<Tensor *> all(*parts);
  all.insert(all.begin() + at, node.input(1));
  return setSequence(node, node.input(0)->type, all);
}

LogicalResult sequenceErase(Node &node) {
  if (failed(node.arity(1, 2)))
    return failure();
  FailureOr<llvm::ArrayRef<Tensor *>> parts = sequenceOf(node);
  if (failed(parts))
    return failure();
  if (parts->empty())
    return node.error() << "of an empty sequence";
  int64_t at = parts->size() - 1;
  if (failed(position(node, 1, parts->size(), at)))
    return failure();
  llvm::SmallVector<Tensor *> all(*parts);
  all.erase(all.begin() + at);
  return setSequence(node, node.input(0)->type, all);
}

LogicalResult sequenceAt(Node &node) {
  if (failed(node.arity(2, 2)))
    return failure();
  FailureOr<llvm::ArrayRef<Tensor *>> parts = sequenceOf(node);
  int64_t at = 0;
  if (failed(parts) || failed(position(node, 1, parts->size(), at)))
    return failure();
  return node.set(0, (*parts)[at]);
}

LogicalResult sequenceLength(Node &node) {
  if (failed(node.arity(1, 1)))
    return failure();
  FailureOr<llvm::ArrayRef<Tensor *>> parts = sequenceOf(node);
  if (failed(parts))
    return failure();
  return node.set(0, HostTensor::scalarInt(DType::i64, parts->size()));
}

/// `x` with the dimension `axis` of size one dropped, or put in.
FailureOr<Tensor *> reshaped(Node &node, Tensor *x, llvm::ArrayRef<int64_t> shape) {
  if (x->host)
    if (std::optional<HostTensor> view = x->host->viewAs(shape))
      return node.importer.create(*view);
  if (failed(node.emittable(x)))
    return failure();
  return node.importer.create(node.reshape(node.value(x), shape));
}

/// One size for all parts but a smaller last, a list of sizes, or single elements, whose dimension
/// `keepdims` keeps.
LogicalResult splitToSequence(Node &node) {
  int64_t axis = 0, keep = 1;
  if (failed(node.arity(1, 2)) || failed(node.attribute("axis", axis)) ||
      failed(node.attribute("keepdims", keep)) ||
      failed(node.normalizeAxis(axis, node.input(0)->shape.size())))
    return failure();
  Tensor *x = node.input(0);
  int64_t size = x->shape[axis];
  Shape sizes;
  bool single = !node.input(1);
  if (!single && failed(node.knownInts(1, "the list of sizes", sizes)))
    return failure();
  if (single || node.input(1)->shape.empty()) {
    int64_t each = single ? 1 : sizes[0];
    if (each < 1 || size / each > mostParts)
      return node.error() << "cannot split " << size << " into parts of " << each;
    sizes = equalSizes(size, (size + each - 1) / each, each);
  }
  if (failed(checkSizes(node, size, sizes)))
    return failure();
  Slice slice(x->shape);
  Shape dropped(x->shape);
  dropped.erase(dropped.begin() + axis);
  llvm::SmallVector<Tensor *> parts;
  for (int64_t each : sizes) {
    slice.sizes[axis] = each;
    FailureOr<Tensor *> part = takeSlice(node, x, slice);
    if (succeeded(part) && single && !keep)
      part = reshaped(node, *part, dropped);
    if (failed(part))
      return failure();
    parts.push_back(*part);
    slice.offsets[axis] += each;
  }
  return setSequence(node, x->type, parts);
}

LogicalResult concatFromSequence(Node &node) {
  int64_t axis = 0, isNew = 0;
  if (failed(node.arity(1, 1)) || failed(node.attribute("new_axis", isNew)))
    return failure();
  if (!node.has("axis"))
    return node.error() << "has no attribute 'axis'";
  FailureOr<llvm::ArrayRef<Tensor *>> sequence = sequenceOf(node);
  if (failed(sequence) || failed(node.attribute("axis", axis)))
    return failure();
  if (sequence->empty())
    return node.error() << "joins an empty sequence, whose element shape is unknown";
  llvm::SmallVector<Tensor *> parts(*sequence);
  if (isNew) {
    if (failed(node.normalizeAxis(axis, parts[0]->shape.size() + 1)))
      return failure();
    for (Tensor *&part : parts) {
      if (part->shape != sequence->front()->shape)
        return node.error() << "cannot stack " << typeText(*sequence->front()) << " and "
                            << typeText(*part);
      Shape shape(part->shape);
      shape.insert(shape.begin() + axis, 1);
      FailureOr<Tensor *> apart = reshaped(node, part, shape);
      if (failed(apart))
        return failure();
      part = *apart;
    }
  }
  FailureOr<Tensor *> joined = join(node, parts, axis);
  return failed(joined) ? failure() : node.set(0, *joined);
}

const OpRow sequenceRows[] = {
    {"SplitToSequence", "", 11, anyLater, splitToSequence},
    {"SequenceConstruct", "", 11, anyLater, sequenceConstruct},
    {"SequenceEmpty", "", 11, anyLater, sequenceEmpty},
    OpRow{"SequenceInsert", "", 11, anyLater, sequenceInsert}.takingSequences(),
    OpRow{"SequenceErase", "", 11, anyLater, sequenceErase}.takingSequences(),
    OpRow{"SequenceAt", "", 11, anyLater, sequenceAt}.takingSequences(),
    OpRow{"SequenceLength", "", 11, anyLater, sequenceLength}.takingSequences(),
    OpRow{"ConcatFromSequence", "", 11, anyLater, concatFromSequence}.takingSequences(),
};

} // namespace

llvm::ArrayRef<OpRow> sequenceOps() { return sequenceRows; }

} // namespace partita::importer
