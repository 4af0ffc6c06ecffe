//===- Resize.cpp - Resize, Upsample ----------------------------------------------------------===//
//
// With known sizes a resize is a constant linear map along each dimension: row `to` of its matrix
// has the share of each old element in the new one. So it is differentiable like any matmul, and an
// interpolated table of positions stays a parameter. Nearest elements are copied, for any type.
//
// What ONNX's text leaves open is done as its reference implementation (onnx.reference) does it.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Operators/Lookup.h"
#include <cmath>

using namespace mlir;

namespace partita::importer {
namespace {

enum class Mode { nearest, linear, cubic };
enum class Coordinates {
  halfPixel,
  halfPixelSymmetric,
  pytorchHalfPixel,
  alignCorners,
  asymmetric,
  halfPixelForNearest, // without the shift back
  cropAndResize
};
enum class Nearest { preferFloor, preferCeil, floor, ceil };

struct Settings {
  Mode mode = Mode::nearest;
  Coordinates coordinates = Coordinates::halfPixel;
  Nearest nearest = Nearest::preferFloor;
  double cubic = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
};

/// One dimension: from `size` to `newSize` elements. `length` is the new size before it was rounded.
struct Axis {
  int64_t axis, size, newSize;
  double scale, length;
  double start = 0, end = 1; // of cropAndResize
};

template <typename Kind>
LogicalResult choose(Node &node, llvm::StringRef key, std::string initial,
                     llvm::ArrayRef<std::pair<llvm::StringLiteral, Kind>> kinds, Kind &kind) {
  std::string text = std::move(initial), known;
  if (failed(node.attribute(key, text)))
    return failure();
  for (auto [name, each] : kinds) {
    if (name == text) {
      kind = each;
      return success();
    }
    known += (known.empty() ? "'" : ", '") + name.str() + "'";
  }
  return node.error() << "attribute '" << key << "' is " << quoted(text) << ", expected one of "
                      << known;
}

LogicalResult readSettings(Node &node, Settings &s) {
  static constexpr std::pair<llvm::StringLiteral, Mode> modes[] = {
      {"nearest", Mode::nearest}, {"linear", Mode::linear}, {"cubic", Mode::cubic}};
  static constexpr std::pair<llvm::StringLiteral, Coordinates> coordinates[] = {
      {"half_pixel", Coordinates::halfPixel},
      {"half_pixel_symmetric", Coordinates::halfPixelSymmetric},
      {"pytorch_half_pixel", Coordinates::pytorchHalfPixel},
      {"align_corners", Coordinates::alignCorners},
      {"asymmetric", Coordinates::asymmetric},
      {"tf_half_pixel_for_nn", Coordinates::halfPixelForNearest},
      {"tf_crop_and_resize", Coordinates::cropAndResize}};
  static constexpr std::pair<llvm::StringLiteral, Nearest> nearest[] = {
      {"round_prefer_floor", Nearest::preferFloor},
      {"round_prefer_ceil", Nearest::preferCeil},
      {"floor", Nearest::floor},
      {"ceil", Nearest::ceil}};
  // Before opset 11 there was one way.
  bool old = node.version < 11;
  int64_t outside = 0, antialias = 0;
  auto cubic = static_cast<float>(s.cubic), extrapolation = 0.0f;
  if (failed(choose<Mode>(node, "mode", "nearest", modes, s.mode)) ||
      failed(choose<Coordinates>(node, "coordinate_transformation_mode",
                                 old ? "asymmetric" : "half_pixel", coordinates, s.coordinates)) ||
      failed(choose<Nearest>(node, "nearest_mode", old ? "floor" : "round_prefer_floor", nearest,
                             s.nearest)) ||
      failed(node.attribute("cubic_coeff_a", cubic)) ||
      failed(node.attribute("extrapolation_value", extrapolation)) ||
      failed(node.attribute("exclude_outside", outside)) ||
      failed(node.attribute("antialias", antialias)))
    return failure();
  s.cubic = asWritten(cubic);
  s.extrapolation = asWritten(extrapolation);
  s.excludeOutside = outside != 0;
  s.antialias = antialias != 0 && s.mode != Mode::nearest;
  return success();
}

/// Numbers that must be known, `count` of them.
LogicalResult knownFloats(Node &node, int64_t input, const char *what, size_t count,
                          llvm::SmallVector<double> &values) {
  Tensor *tensor = node.input(input);
  if (!tensor->host)
    return node.notKnown(what);
  if (!isFloat(tensor->type) || tensor->shape != Shape{static_cast<int64_t>(count)})
    return node.error() << what << " is " << typeText(*tensor) << ", expected " << count
                        << " floats";
  forEachElement(tensor->shape, {&*tensor->host}, [&](llvm::ArrayRef<int64_t> at) {
    values.push_back(tensor->host->toDouble(at[0]));
  });
  return success();
}

LogicalResult setScale(Node &node, Axis &axis, double scale) {
  // In single precision, as exporters compute it: 3 times 7 thirds are 7.
  axis.length = static_cast<float>(scale) * static_cast<float>(axis.size);
  axis.scale = scale;
  if (!(scale > 0) || !(axis.length >= 1) || axis.length > 1e9)
    return node.error() << "scales dimension " << axis.axis << " of size " << axis.size << " by "
                        << scale;
  axis.newSize = static_cast<int64_t>(std::floor(axis.length));
  axis.length = scale * static_cast<double>(axis.size);
  return success();
}

/// New sizes, or the largest or smallest scale of all that they ask for.
LogicalResult setSizes(Node &node, llvm::MutableArrayRef<Axis> axes,
                       llvm::ArrayRef<int64_t> sizes) {
  enum class Policy { stretch, notLarger, notSmaller } policy = Policy::stretch;
  static constexpr std::pair<llvm::StringLiteral, Policy> policies[] = {
      {"stretch", Policy::stretch},
      {"not_larger", Policy::notLarger},
      {"not_smaller", Policy::notSmaller}};
  if (failed(choose<Policy>(node, "keep_aspect_ratio_policy", "stretch", policies, policy)))
    return failure();
  if (sizes.size() != axes.size())
    return node.error() << "has " << sizes.size() << " sizes for " << axes.size() << " dimensions";
  std::optional<double> common;
  for (auto [axis, size] : llvm::zip_equal(axes, sizes)) {
    if (size < 1 || size > int64_t(1) << 30 || axis.size < 1)
      return node.error() << "resizes dimension " << axis.axis << " of size " << axis.size << " to "
                          << size;
    axis.newSize = size;
    axis.length = static_cast<double>(size);
    axis.scale = axis.length / static_cast<double>(axis.size);
    if (!common || (policy == Policy::notLarger ? axis.scale < *common : axis.scale > *common))
      common = axis.scale;
  }
  for (Axis &axis : axes) {
    if (policy == Policy::stretch)
      break;
    axis.scale = *common;
    axis.length = *common * static_cast<double>(axis.size);
    axis.newSize = std::max<int64_t>(1, static_cast<int64_t>(std::floor(axis.length + 0.5)));
  }
  return success();
}

/// The dimensions that are listed, all without a list, with their new sizes.
LogicalResult readAxes(Node &node, const Settings &s, llvm::SmallVector<Axis> &axes) {
  Tensor *x = node.input(0);
  Shape listed;
  if (failed(node.attribute("axes", listed)))
    return failure();
  if (listed.empty())
    llvm::append_range(listed, llvm::seq<int64_t>(0, x->shape.size()));
  for (int64_t axis : listed) {
    if (failed(node.normalizeAxis(axis, x->shape.size())))
      return failure();
    if (llvm::any_of(axes, [&](const Axis &other) { return other.axis == axis; }))
      return node.error() << "axis " << axis << " is listed twice";
    axes.push_back({axis, x->shape[axis], x->shape[axis], 1, static_cast<double>(x->shape[axis])});
  }
  // An exporter that gives sizes leaves the scales out, or gives none.
  auto given = [&](int64_t input) {
    return node.input(input) && elementCount(node.input(input)->shape) != 0;
  };
  int64_t scalesAt = node.version < 11 ? 1 : 2;
  llvm::SmallVector<double> scales, roi;
  if (node.version >= 11 && given(3)) {
    Shape sizes;
    if (failed(node.knownInts(3, "the list of sizes", sizes)) ||
        failed(setSizes(node, axes, sizes)))
      return failure();
  } else if (given(scalesAt)) {
    if (failed(knownFloats(node, scalesAt, "the list of scales", axes.size(), scales)))
      return failure();
    for (auto [axis, scale] : llvm::zip_equal(axes, scales))
      if (failed(setScale(node, axis, scale)))
        return failure();
  } else {
    return node.error() << "has neither scales nor sizes";
  }
  if (s.coordinates != Coordinates::cropAndResize)
    return success();
  if (!given(1))
    return node.error() << "crops, and has no region of interest";
  if (failed(knownFloats(node, 1, "the region of interest", 2 * axes.size(), roi)))
    return failure();
  for (auto [i, axis] : llvm::enumerate(axes)) {
    axis.start = roi[i];
    axis.end = roi[axes.size() + i];
  }
  return success();
}

/// Where the new element `to` lies among the old ones.
double originalPosition(const Axis &axis, Coordinates coordinates, int64_t to) {
  auto x = static_cast<double>(to), size = static_cast<double>(axis.size);
  switch (coordinates) {
  case Coordinates::halfPixel:
    break;
  case Coordinates::halfPixelSymmetric: {
    double adjustment = static_cast<double>(axis.newSize) / axis.length;
    return size / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
  }
  case Coordinates::pytorchHalfPixel:
    if (axis.newSize == 1)
      return 0;
    break;
  case Coordinates::alignCorners:
    return axis.newSize == 1 ? 0 : x * (size - 1) / (axis.length - 1);
  case Coordinates::asymmetric:
    return x / axis.scale;
  case Coordinates::halfPixelForNearest:
    return (x + 0.5) / axis.scale;
  case Coordinates::cropAndResize: {
    double span = (axis.end - axis.start) * (size - 1);
    return axis.start * (size - 1) + (axis.newSize == 1 ? span / 2 : x * span / (axis.length - 1));
  }
  }
  return (x + 0.5) / axis.scale - 0.5;
}

double linearKernel(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

double cubicKernel(double distance, double a) {
  double x = std::abs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// The old element that the new one at `position` is.
int64_t nearestTo(double position, const Axis &axis, Nearest kind) {
  double below = std::floor(position), rest = position - below;
  bool up = rest > 0 && (kind == Nearest::ceil || (kind == Nearest::preferFloor && rest > 0.5) ||
                         (kind == Nearest::preferCeil && rest >= 0.5));
  return static_cast<int64_t>(
      std::clamp<double>(below + up, 0, static_cast<double>(axis.size - 1)));
}

/// Of the element at `position` the share of each old one, which outside are those at the edges.
llvm::SmallVector<double> sharesAt(double position, const Axis &axis, const Settings &s) {
  // With antialiasing, which fewer elements need, the kernel is as wide as what becomes one.
  double narrow = s.antialias ? std::min(axis.scale, 1.0) : 1;
  double reach = s.mode == Mode::cubic ? 2 : 1;
  // Of an element that is met exactly the left neighbors count as the nearer ones.
  double base = std::ceil(position) - 1, ratio = position - base, sum = 0;
  auto first = static_cast<int64_t>(std::floor(-reach / narrow)) + 1;
  llvm::SmallVector<double> shares(axis.size, 0.0);
  for (int64_t i = first; i < 2 - first; ++i) {
    double distance = narrow * (static_cast<double>(i) - ratio);
    double share = s.mode == Mode::cubic ? cubicKernel(distance, s.cubic) : linearKernel(distance);
    double at = base + static_cast<double>(i), last = static_cast<double>(axis.size - 1);
    if (s.excludeOutside && (at < 0 || at > last))
      continue;
    shares[static_cast<int64_t>(std::clamp(at, 0.0, last))] += share;
    sum += share;
  }
  if (s.excludeOutside || s.antialias)
    for (double &share : shares)
      share /= sum;
  return shares;
}

/// x with one dimension resized.
FailureOr<Value> resizeAxis(Node &node, Value x, DType type, const Axis &axis, const Settings &s) {
  Math m(node);
  Type element = getElementTypeOrSelf(x.getType());
  constexpr int64_t mostShares = int64_t(1) << 24;
  if (axis.newSize > mostShares / axis.size)
    return FailureOr<Value>(node.error() << "resizes " << axis.size << " elements to "
                                         << axis.newSize << ", which is too large");
  llvm::SmallVector<int64_t> nearest;
  llvm::SmallVector<double> outside(axis.newSize, 0.0);
  // Only of floats: the type of a nearest element may be any.
  HostBuffer shares(s.mode == Mode::nearest ? DType::f32 : type, {axis.size, axis.newSize});
  bool extrapolates = false;
  for (int64_t to = 0; to < axis.newSize; ++to) {
    double position = originalPosition(axis, s.coordinates, to);
    if (s.coordinates == Coordinates::cropAndResize &&
        !(position >= 0 && position <= static_cast<double>(axis.size - 1))) {
      extrapolates = outside[to] = 1;
      nearest.push_back(0);
      for (int64_t from = 0; from < axis.size; ++from)
        shares.putDouble(from * axis.newSize + to, 0);
      continue;
    }
    nearest.push_back(nearestTo(position, axis, s.nearest));
    if (s.mode != Mode::nearest)
      for (auto [from, share] : llvm::enumerate(sharesAt(position, axis, s)))
        shares.putDouble(from * axis.newSize + to, share);
  }
  Value resized;
  if (s.mode == Mode::nearest) {
    HostTensor positions = HostTensor::vector(nearest);
    if (std::optional<Grid> grid = findGrid(positions))
      resized = takeGrid(node, x, axis.axis, 1, *grid, positions.shape());
    if (!resized)
      resized = takeAlong(node, x, axis.axis, node.value(node.importer.create(positions)));
  } else {
    Value last = m.axisToLast(x, axis.axis);
    Shape shape(shapeOf(last));
    if (shape.size() == 1)
      last = node.reshape(last, {1, axis.size});
    Shape matmul(shapeOf(last));
    matmul.back() = shape.back() = axis.newSize;
    Value matrix = node.value(node.importer.create(shares.finish()));
    resized = tx::MatMulOp::create(node.builder(), node.loc, RankedTensorType::get(matmul, element),
                                   last, matrix);
    resized = m.lastToAxis(node.reshape(resized, shape), axis.axis);
  }
  if (!extrapolates)
    return resized;
  HostBuffer flags(DType::boolean, {axis.newSize});
  for (auto [to, flag] : llvm::enumerate(outside))
    flags.putInt(to, flag != 0);
  Shape along(shapeOf(resized).size(), 1);
  along[axis.axis] = axis.newSize;
  Value isOutside = node.reshape(node.value(node.importer.create(flags.finish())), along);
  return m.select(isOutside, m.like(resized, s.extrapolation), resized);
}

LogicalResult resize(Node &node) {
  Settings s;
  llvm::SmallVector<Axis> axes;
  if (failed(node.arity(1, node.version < 11 ? 2 : 4)) || failed(readSettings(node, s)) ||
      failed(readAxes(node, s, axes)))
    return failure();
  Tensor *x = node.input(0);
  Shape shape(x->shape);
  for (const Axis &axis : axes)
    shape[axis.axis] = axis.newSize;
  if (!elementCount(shape))
    return node.error() << "its result would have shape " << shapeText(shape)
                        << ", which is too large";
  if (s.mode != Mode::nearest && !isFloat(x->type))
    return node.error() << "interpolates " << typeText(*x) << ", expected floats";
  if (failed(node.emittable(x)))
    return failure();
  FailureOr<Value> value = node.value(x);
  for (const Axis &axis : axes)
    if (axis.scale != 1 || s.coordinates == Coordinates::cropAndResize) {
      value = resizeAxis(node, *value, x->type, axis, s);
      if (failed(value))
        return failure();
    }
  return node.set(0, *value);
}

const OpRow resizeRows[] = {
    OpRow{"Resize", "", 10, anyLater, resize}.fixed({1, 2}),
    OpRow{"Upsample", "", 9, 9, resize}.fixed({1, 2}),
};

} // namespace

llvm::ArrayRef<OpRow> resizeOps() { return resizeRows; }

} // namespace partita::importer
