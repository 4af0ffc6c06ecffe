//===- Pad.cpp - Pad in its modes -------------------------------------------------------------===//

#include "lib/Import/Operators/Lookup.h"

using namespace mlir;

namespace partita::importer {
namespace {

struct Pads {
  Shape before, after; // per dimension; negative cuts
};

/// Pads and axes: attributes before opset 11, inputs since; axes as an input since 18.
LogicalResult readPads(Node &node, Pads &pads) {
  Shape numbers, axes;
  int64_t rank = node.input(0)->shape.size();
  if (node.version < 11) {
    if (failed(node.attribute("pads", numbers)))
      return failure();
  } else if (failed(node.knownInts(1, "the list of pads", numbers))) {
    return failure();
  }
  if (node.version >= 18 && node.input(3)) {
    if (failed(node.knownInts(3, "the list of axes", axes)))
      return failure();
  } else {
    axes.assign(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  }
  if (numbers.size() != 2 * axes.size())
    return node.error() << "has " << numbers.size() << " pads for " << axes.size() << " dimensions";
  pads.before.assign(rank, 0);
  pads.after.assign(rank, 0);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (failed(node.normalizeAxis(axis, rank)))
      return failure();
    pads.before[axis] = numbers[i];
    pads.after[axis] = numbers[axes.size() + i];
  }
  return success();
}

/// Negative pads cut first; what is left must not be empty, nor what results too large.
LogicalResult checkPads(Node &node, const Pads &pads) {
  Shape result(node.input(0)->shape);
  for (auto [axis, dim] : llvm::enumerate(result)) {
    int64_t before = pads.before[axis], after = pads.after[axis], most = int64_t(1) << 40;
    if (before > most || after > most || before < -dim || after < -dim ||
        dim + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < 1)
      return node.error() << "pads dimension " << axis << " of " << shapeText(node.input(0)->shape)
                          << " by " << before << " and " << after << ", which is not possible";
    dim += before + after;
  }
  if (!elementCount(result))
    return node.error() << "its result would have shape " << shapeText(result)
                        << ", which is too large";
  return success();
}

/// Where in a dimension of `size` the padded position `at` reads, by the mode.
int64_t source(llvm::StringRef mode, int64_t at, int64_t size) {
  if (mode == "edge" || size == 1)
    return std::clamp<int64_t>(at, 0, size - 1);
  if (mode == "wrap")
    return (at % size + size) % size;
  int64_t period = 2 * (size - 1), within = (at % period + period) % period; // reflect
  return within < size ? within : period - within;
}

LogicalResult pad(Node &node) {
  std::string mode = "constant";
  float number = 0;
  Pads pads;
  if (failed(node.arity(1, node.version < 11   ? 1
                           : node.version < 18 ? 3
                                               : 4)) ||
      failed(node.attribute("mode", mode)) ||
      (node.version < 11 && failed(node.attribute("value", number))) ||
      failed(readPads(node, pads)) || failed(checkPads(node, pads)))
    return failure();
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return node.error() << "attribute 'mode' is " << quoted(mode)
                        << ", expected 'constant', 'edge', 'reflect' or 'wrap'";
  Tensor *x = node.input(0), *fill = node.version >= 11 ? node.input(2) : nullptr;
  if (fill && (fill->type != x->type || *elementCount(fill->shape) != 1))
    return node.error() << "fills " << typeText(*x) << " with " << typeText(*fill);
  if (failed(node.emittable(x)) || (fill && failed(node.emittable(fill))))
    return failure();
  Math m(node);
  Value value = node.value(x);
  Value filler = fill ? node.reshape(node.value(fill), llvm::ArrayRef<int64_t>())
                      : m.constant(getElementTypeOrSelf(value.getType()), {}, number);
  for (int64_t axis = 0; axis < static_cast<int64_t>(x->shape.size()); ++axis) {
    int64_t before = pads.before[axis], after = pads.after[axis], size = x->shape[axis];
    if (before < 0 || after < 0)
      value = m.slice(value, axis, std::max<int64_t>(-before, 0),
                      size + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
    before = std::max<int64_t>(before, 0), after = std::max<int64_t>(after, 0);
    size = shapeOf(value)[axis];
    if (before == 0 && after == 0)
      continue;
    if (mode == "constant") {
      llvm::SmallVector<Value> parts;
      auto gap = [&](int64_t width) {
        Shape shape(shapeOf(value));
        shape[axis] = width;
        if (width > 0)
          parts.push_back(node.broadcast(filler, shape));
      };
      gap(before);
      parts.push_back(value);
      gap(after);
      value = m.concat(parts, axis);
      continue;
    }
    if (!node.folder().admit({before + size + after}))
      return node.error() << "pads by " << before << " and " << after << ", which is too much";
    Shape from;
    for (int64_t at = -before; at < size + after; ++at)
      from.push_back(source(mode, at, size));
    value =
        takeAlong(node, value, axis, node.value(node.importer.create(HostTensor::vector(from))));
  }
  return node.set(0, value);
}

const OpRow padRows[] = {
    {"Pad", "", 2, anyLater, pad},
};

} // namespace

llvm::ArrayRef<OpRow> padOps() { return padRows; }

} // namespace partita::importer
