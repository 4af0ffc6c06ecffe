//===- Conv.cpp - convolution as a matmul with patches ----------------------------------------===//
//
// A kernel that steps by its own size over an image that it divides (a vision Transformer's patch
// embedding) is a reshape and a matmul. Any other one reads each of the kernel's positions as a
// strided slice of the padded image; the concatenated slices are the patches.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Operators/Math.h"

using namespace mlir;

namespace partita::importer {
namespace {

struct Window {
  Shape kernel, strides, dilations, before, after, out; // per spatial dimension
};

/// The most positions of a kernel that is read slice by slice.
constexpr int64_t mostSlices = 256;

/// Pads that make the result ceil(size / stride) long; the odd one comes after, or before.
void padSame(Window &w, int64_t i, int64_t size, bool oddBefore) {
  int64_t out = (size + w.strides[i] - 1) / w.strides[i];
  int64_t extent = (w.kernel[i] - 1) * w.dilations[i] + 1;
  int64_t total = std::max<int64_t>((out - 1) * w.strides[i] + extent - size, 0);
  w.before[i] = oddBefore ? total - total / 2 : total / 2;
  w.after[i] = total - w.before[i];
}

LogicalResult readWindow(Node &node, llvm::ArrayRef<int64_t> image, llvm::ArrayRef<int64_t> kernel,
                         Window &w) {
  size_t rank = kernel.size();
  std::string autoPad = "NOTSET";
  Shape pads(2 * rank, 0);
  w.kernel.assign(kernel.begin(), kernel.end());
  w.strides.assign(rank, 1);
  w.dilations.assign(rank, 1);
  Shape declared(kernel);
  if (failed(node.attribute("kernel_shape", declared)) ||
      failed(node.attribute("strides", w.strides)) ||
      failed(node.attribute("dilations", w.dilations)) || failed(node.attribute("pads", pads)) ||
      failed(node.attribute("auto_pad", autoPad)))
    return failure();
  constexpr int64_t most = int64_t(1) << 30;
  auto within = [&](llvm::ArrayRef<int64_t> values, int64_t least) {
    return llvm::all_of(values, [&](int64_t v) { return v >= least && v <= most; });
  };
  if (declared != w.kernel || w.strides.size() != rank || w.dilations.size() != rank ||
      pads.size() != 2 * rank || !within(w.strides, 1) || !within(w.dilations, 1) ||
      !within(pads, 0) || !within(kernel, 1) || !within(image, 1))
    return node.error() << "has a kernel of shape " << shapeText(kernel)
                        << " that its attributes do not fit";
  w.before.assign(pads.begin(), pads.begin() + rank);
  w.after.assign(pads.begin() + rank, pads.end());
  for (size_t i = 0; i < rank; ++i) {
    if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER")
      padSame(w, i, image[i], autoPad == "SAME_LOWER");
    else if (autoPad != "NOTSET" && autoPad != "VALID")
      return node.error() << "attribute 'auto_pad' is " << quoted(autoPad);
    int64_t extent = (kernel[i] - 1) * w.dilations[i] + 1;
    int64_t room = image[i] + w.before[i] + w.after[i] - extent;
    if (room < 0)
      return node.error() << "has a kernel of " << extent << " for a padded image of "
                          << room + extent << " in spatial dimension " << i;
    w.out.push_back(room / w.strides[i] + 1);
  }
  return success();
}

/// [n, c, s...] -> [n, out..., c, kernel...] by a reshape.
Value reshapedPatches(Node &node, Value x, const Window &w) {
  Shape apart(shapeOf(x).take_front(2)), order{0};
  int64_t rank = w.kernel.size();
  for (int64_t i = 0; i < rank; ++i) {
    apart.append({w.out[i], w.kernel[i]});
    order.push_back(2 + 2 * i);
  }
  order.push_back(1);
  for (int64_t i = 0; i < rank; ++i)
    order.push_back(3 + 2 * i);
  return node.transpose(node.reshape(x, apart), order);
}

/// The same by a slice for every position of the kernel.
Value slicedPatches(Node &node, Value x, const Window &w) {
  Math m(node);
  int64_t rank = w.kernel.size(), count = *elementCount(w.kernel);
  for (int64_t i = 0; i < rank; ++i)
    x = m.padZero(x, 2 + i, w.before[i], w.after[i]);
  Shape dims(shapeOf(x).take_front(2)), order{0};
  dims.append(w.out);
  Shape with1(dims);
  with1.push_back(1);
  llvm::SmallVector<Value> slices;
  for (int64_t position = 0; position < count; ++position) {
    Shape offsets(2 + rank, 0), strides(2 + rank, 1);
    int64_t left = position;
    for (int64_t i = rank; i-- > 0; left /= w.kernel[i]) {
      offsets[2 + i] = left % w.kernel[i] * w.dilations[i];
      strides[2 + i] = w.out[i] == 1 ? 1 : w.strides[i];
    }
    slices.push_back(node.reshape(node.slice(x, offsets, dims, strides), with1));
  }
  Value joined = m.concat(slices, 2 + rank); // [n, c, out..., positions]
  for (int64_t i = 0; i < rank; ++i)
    order.push_back(2 + i);
  order.append({1, 2 + rank});
  return node.transpose(joined, order);
}

LogicalResult conv(Node &node) {
  int64_t groups = 1;
  if (failed(node.arity(2, 3)) || failed(node.attribute("group", groups)))
    return failure();
  Tensor *x = node.input(0), *weight = node.input(1), *bias = node.input(2);
  size_t rank = x->shape.size();
  if (!isFloat(x->type) || weight->type != x->type || rank < 3 || weight->shape.size() != rank ||
      (bias && (bias->type != x->type || bias->shape != Shape{weight->shape[0]})))
    return node.error() << "of " << typeText(*x) << " with kernel " << typeText(*weight)
                        << ", expected floats of one type and number of dimensions";
  if (groups < 1 || x->shape[1] % groups != 0 || weight->shape[0] % groups != 0 ||
      weight->shape[1] != x->shape[1] / groups)
    return node.error() << "of " << x->shape[1] << " channels in " << groups
                        << " groups with a kernel of shape " << shapeText(weight->shape);
  if (failed(node.emittable({x, weight})) || (bias && failed(node.emittable(bias))))
    return failure();
  Window w;
  llvm::ArrayRef<int64_t> image(x->shape), kernel(weight->shape);
  if (failed(readWindow(node, image.drop_front(2), kernel.drop_front(2), w)))
    return failure();
  std::optional<int64_t> positions = elementCount(w.kernel), places = elementCount(w.out);
  int64_t batch = image[0], channels = image[1] / groups, features = kernel[0];
  if (!positions || !places || !elementCount({batch, image[1], *places, *positions}) ||
      !elementCount({batch, features, *places}))
    return node.error() << "its patches would be too large";
  bool isPatches =
      w.kernel == w.strides && llvm::all_of(w.dilations, [](int64_t d) { return d == 1; });
  for (size_t i = 0; i < w.kernel.size(); ++i)
    isPatches &= w.before[i] == 0 && w.after[i] == 0 && image[2 + i] % w.kernel[i] == 0;
  if (!isPatches && *positions > mostSlices)
    return node.error() << "has a kernel of " << *positions << " positions, at most " << mostSlices
                        << " are supported unless they divide the image";
  Value value = node.value(x);
  Value patches = isPatches ? reshapedPatches(node, value, w) : slicedPatches(node, value, w);
  int64_t width = channels * *positions;
  Value matmul;
  if (groups == 1) {
    Value flat = node.reshape(patches, {batch, *places, width});
    matmul = node.emit<tx::MatMulNTOp>({flat, node.reshape(node.value(weight), {features, width})});
  } else { // one matmul for every group: [n, places, g, width] x [g, features / g, width]
    int64_t each = features / groups;
    Value rows = node.transpose(node.reshape(patches, {batch * *places, groups, width}), {1, 0, 2});
    Value table =
        node.transpose(node.reshape(node.value(weight), {groups, each, width}), {0, 2, 1});
    Value out = node.emit<tx::BatchMatMulOp>({rows, table}); // [g, n places, each]
    matmul = node.reshape(node.transpose(out, {1, 0, 2}), {batch, *places, features});
  }
  if (bias)
    matmul = Math(node).add(matmul, node.value(bias));
  Shape result{batch, features};
  result.append(w.out);
  return node.set(0, node.reshape(node.transpose(matmul, {0, 2, 1}), result));
}

const OpRow convRows[] = {
    OpRow{"Conv", "", 1, anyLater, conv}.weighted(0).biased(2),
};

} // namespace

llvm::ArrayRef<OpRow> convOps() { return convRows; }

} // namespace partita::importer
