//===- Slices.cpp - slicing, splitting, joining, repeating ------------------------------------===//

#include "lib/Import/Operators/Slices.h"
#include "lib/Import/Operators/Lookup.h"

using namespace mlir;

namespace partita::importer {

FailureOr<Tensor *> takeSlice(Node &node, Tensor *x, const Slice &slice) {
  if (x->host)
    return node.importer.create(x->host->slice(slice.offsets, slice.sizes, slice.strides));
  if (*elementCount(slice.sizes) == 0) // nothing is always known
    return node.importer.create(HostBuffer(x->type, slice.sizes).finish());
  if (failed(node.emittable(x)))
    return failure();
  Slice forward = slice;
  Value value = node.value(x);
  for (auto [axis, stride] : llvm::enumerate(slice.strides))
    if (stride < 0) { // the dialect's slices go forward
      value = takeProgression(node, value, axis, slice.offsets[axis], stride, slice.sizes[axis]);
      forward.offsets[axis] = 0;
      forward.strides[axis] = 1;
    }
  return node.importer.create(node.slice(value, forward.offsets, forward.sizes, forward.strides));
}

namespace {

/// One axis of ONNX's Slice: start:end:step, out-of-range values clamped. Unlike numpy's, a start
/// before the first element is the first element even when stepping backwards.
LogicalResult sliceAxis(Node &node, Slice &slice, int64_t axis, int64_t start, int64_t end,
                        int64_t step) {
  int64_t size = slice.sizes[axis];
  if (step == 0 || step == INT64_MIN)
    return node.error() << "slices with step " << step;
  if (size == 0)
    return success();
  int64_t high = step > 0 ? size : size - 1;
  auto clamp = [&](int64_t at, int64_t low) {
    at = std::max(at, -size - 1); // so that adding the size cannot overflow
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  start = clamp(start, 0), end = clamp(end, step > 0 ? 0 : -1);
  int64_t span = step > 0 ? end - start : start - end;
  int64_t stride = std::abs(step);
  int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
  slice.offsets[axis] = count == 0 ? 0 : start;
  slice.sizes[axis] = count;
  slice.strides[axis] = count <= 1 ? 1 : step;
  return success();
}

LogicalResult slice(Node &node) {
  Shape starts, ends, axes, steps;
  if (node.version < 10) {
    if (failed(node.arity(1, 1)) || failed(node.attribute("starts", starts)) ||
        failed(node.attribute("ends", ends)) || failed(node.attribute("axes", axes)))
      return failure();
  } else {
    if (failed(node.arity(3, 5)) || failed(node.knownInts(1, "the start", starts)) ||
        failed(node.knownInts(2, "the end", ends)) ||
        (node.input(3) && failed(node.knownInts(3, "the list of axes", axes))) ||
        (node.input(4) && failed(node.knownInts(4, "the step", steps))))
      return failure();
  }
  Tensor *x = node.input(0);
  if (axes.empty())
    for (size_t i = 0; i < starts.size(); ++i)
      axes.push_back(i);
  if (steps.empty())
    steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return node.error() << "has " << starts.size() << " starts, " << ends.size() << " ends, "
                        << axes.size() << " axes and " << steps.size() << " steps";
  Slice slice(x->shape);
  llvm::SmallVector<bool> seen(x->shape.size(), false);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (failed(node.normalizeAxis(axes[i], x->shape.size())))
      return failure();
    if (seen[axes[i]])
      return node.error() << "axis " << axes[i] << " is listed twice";
    seen[axes[i]] = true;
    if (failed(sliceAxis(node, slice, axes[i], starts[i], ends[i], steps[i])))
      return failure();
  }
  FailureOr<Tensor *> result = takeSlice(node, x, slice);
  return failed(result) ? failure() : node.set(0, *result);
}

} // namespace

Shape equalSizes(int64_t size, int64_t parts, int64_t each) {
  Shape sizes;
  for (int64_t i = 0; i < parts; ++i)
    sizes.push_back(std::clamp<int64_t>(size - i * each, 0, each));
  return sizes;
}

LogicalResult checkSizes(Node &node, int64_t size, llvm::ArrayRef<int64_t> sizes) {
  std::optional<int64_t> sum = 0;
  for (int64_t each : sizes)
    sum = each < 0 || each > size ? std::nullopt : sum ? std::optional(*sum + each) : sum;
  if (sum == size)
    return success();
  InFlightDiagnostic diagnostic = node.error() << "cannot split " << size << " into [";
  llvm::interleaveComma(sizes, diagnostic);
  return diagnostic << "]";
}

namespace {

/// Sizes from attribute (before 13) or input; else equal parts, the last one smaller.
LogicalResult splitSizes(Node &node, int64_t size, Shape &sizes) {
  int64_t parts = node.proto.output_size();
  if (node.version < 13) {
    if (failed(node.attribute("split", sizes)))
      return failure();
  } else if (node.input(1)) {
    if (failed(node.knownInts(1, "the list of sizes", sizes)))
      return failure();
  }
  if (node.version >= 18) {
    if (failed(node.attribute("num_outputs", parts)))
      return failure();
    if (parts != node.proto.output_size())
      return node.error() << "attribute 'num_outputs' is " << parts << ", it has "
                          << node.proto.output_size() << " results";
  }
  if (parts < 1)
    return node.error() << "has no results";
  if (sizes.empty())
    sizes = equalSizes(size, parts, (size + parts - 1) / parts);
  if (static_cast<int64_t>(sizes.size()) != parts)
    return node.error() << "has " << sizes.size() << " sizes for " << parts << " results";
  return checkSizes(node, size, sizes);
}

LogicalResult split(Node &node) {
  int64_t axis = 0;
  Shape sizes;
  if (failed(node.arity(1, 2)) || failed(node.attribute("axis", axis)) ||
      failed(node.normalizeAxis(axis, node.input(0)->shape.size())) ||
      failed(splitSizes(node, node.input(0)->shape[axis], sizes)))
    return failure();
  Slice slice(node.input(0)->shape);
  for (auto [index, size] : llvm::enumerate(sizes)) {
    slice.sizes[axis] = size;
    if (node.wants(index)) {
      FailureOr<Tensor *> result = takeSlice(node, node.input(0), slice);
      if (failed(result) || failed(node.set(index, *result)))
        return failure();
    }
    slice.offsets[axis] += size;
  }
  return success();
}

} // namespace

FailureOr<Tensor *> join(Node &node, llvm::ArrayRef<Tensor *> joined, int64_t axis) {
  Tensor *first = joined[0];
  if (failed(node.normalizeAxis(axis, first->shape.size())))
    return failure();
  llvm::SmallVector<Tensor *> parts;
  llvm::SmallVector<HostTensor> hosts;
  Shape shape(first->shape);
  shape[axis] = 0;
  for (Tensor *part : joined) {
    Shape expected(first->shape);
    if (part->shape.size() == expected.size())
      expected[axis] = part->shape[axis];
    if (part->type == first->type && part->shape.size() == expected.size()) {
      auto [ours, theirs] = std::mismatch(expected.begin(), expected.end(), part->shape.begin());
      if (ours != expected.end()) {
        node.importer.whyFailed.shapesClash = true;
        node.importer.whyFailed.clash = {*ours, *theirs};
      }
    }
    if (part->type != first->type || part->shape != expected)
      return FailureOr<Tensor *>(node.error() << "cannot join " << typeText(*first) << " and "
                                              << typeText(*part) << " along dimension " << axis);
    shape[axis] += part->shape[axis];
    if (part->host)
      hosts.push_back(*part->host);
    parts.push_back(part);
  }
  if (!elementCount(shape))
    return FailureOr<Tensor *>(node.error() << "its result would have shape " << shapeText(shape)
                                            << ", which is too large");
  if (hosts.size() == parts.size())
    if (MaybeHost host = node.folder().concat(hosts, axis))
      return node.importer.create(*host);
  llvm::erase_if(parts, [](Tensor *part) { return *elementCount(part->shape) == 0; });
  if (parts.size() <= 1)
    return parts.empty() ? first : parts[0];
  if (failed(node.emittable(parts)))
    return failure();
  llvm::SmallVector<Value> values;
  for (Tensor *part : parts)
    values.push_back(node.value(part));
  auto type = RankedTensorType::get(shape, mlirType(first->type, node.importer.context()));
  return node.importer.create(
      tx::ConcatOp::create(node.builder(), node.loc, type, values, axis).getResult());
}

namespace {

LogicalResult concat(Node &node) {
  int64_t axis = 0;
  if (failed(node.arity(1, anyLater)))
    return failure();
  if (!node.has("axis"))
    return node.error() << "has no attribute 'axis'";
  llvm::SmallVector<Tensor *> parts;
  for (int64_t i = 0; i < node.inputCount(); ++i) {
    if (!node.input(i))
      return node.error() << "input " << i << " is missing";
    parts.push_back(node.input(i));
  }
  if (failed(node.attribute("axis", axis)))
    return failure();
  FailureOr<Tensor *> joined = join(node, parts, axis);
  return failed(joined) ? failure() : node.set(0, *joined);
}

/// x's shape with a dimension of 1 in front of each that is repeated, that with its repeats, and both as one: [n] -> [1, n] -> [r, n]
/// -> [r n]. What is 1 itself, or stays as it is, needs no second dimension.
struct Tiled {
  Shape apart, repeated, merged;

  Tiled(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> repeats) {
    for (auto [dim, times] : llvm::zip_equal(shape, repeats)) {
      if (times != 1 && dim != 1) {
        apart.push_back(1);
        repeated.push_back(times);
      }
      apart.push_back(dim);
      repeated.push_back(dim == 1 ? times : dim);
      merged.push_back(
          times < 0 || times > (int64_t(1) << 48) / std::max<int64_t>(dim, 1) ? -1 : times * dim);
    }
  }
};

/// All dimensions at once, or one after the other where that would be more dimensions than kernels have.
Value repeat(Node &node, Value x, llvm::ArrayRef<int64_t> repeats) {
  constexpr size_t most = 8;
  Tiled tiled(shapeOf(x), repeats);
  if (tiled.apart.size() <= most)
    return node.reshape(node.broadcast(node.reshape(x, tiled.apart), tiled.repeated), tiled.merged);
  for (auto [i, times] : llvm::enumerate(repeats)) {
    Shape only(repeats.size(), 1);
    only[i] = times;
    Tiled one(shapeOf(x), only);
    if (times != 1)
      x = node.reshape(node.broadcast(node.reshape(x, one.apart), one.repeated), one.merged);
  }
  return x;
}

LogicalResult tile(Node &node) {
  Shape repeats;
  if (failed(node.arity(2, 2)) || failed(node.knownInts(1, "the number of repeats", repeats)))
    return failure();
  Tensor *x = node.input(0);
  if (repeats.size() != x->shape.size())
    return node.error() << "has " << repeats.size() << " repeats for " << x->shape.size()
                        << " dimensions";
  Tiled tiled(x->shape, repeats);
  if (!elementCount(tiled.merged))
    return node.error() << "its result would be too large";
  if (x->host)
    if (MaybeHost rows = node.folder().reshape(*x->host, tiled.apart))
      if (MaybeHost host = node.folder().reshape(rows->broadcast(tiled.repeated), tiled.merged))
        return node.set(0, *host);
  if (failed(node.emittable(x)))
    return failure();
  return node.set(0, repeat(node, node.value(x), repeats));
}

const OpRow sliceRows[] = {
    {"Slice", "", 1, anyLater, slice, OpEffect::Picks},
    {"Split", "", 2, anyLater, split, OpEffect::Picks},
    {"Concat", "", 4, anyLater, concat, OpEffect::Joins},
    {"Tile", "", 6, anyLater, tile, OpEffect::Picks},
};

} // namespace

llvm::ArrayRef<OpRow> sliceOps() { return sliceRows; }

} // namespace partita::importer
