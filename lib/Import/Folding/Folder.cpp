//===- Folder.cpp -----------------------------------------------------------------------------===//

#include "lib/Import/Folding/Folder.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace partita::importer {

using llvm::ArrayRef;

bool Folder::admit(ArrayRef<int64_t> shape) {
  std::optional<int64_t> count = elementCount(shape);
  if (!count || *count > limit || *count > left)
    return false;
  left -= *count;
  return true;
}

/// `shape` with 1 where all of `operands` (which have that shape) repeat.
static Shape distinctShape(ArrayRef<int64_t> shape, ArrayRef<HostTensor> operands) {
  Shape distinct(shape);
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (shape[dim] > 1 &&
        llvm::all_of(operands, [&](const HostTensor &x) { return x.strides()[dim] == 0; }))
      distinct[dim] = 1;
  return distinct;
}

/// The part of a view that `distinct` (its shape with some repeated dimensions at 1) covers.
static HostTensor shrink(const HostTensor &x, ArrayRef<int64_t> distinct) {
  Shape zeros(x.rank(), 0), ones(x.rank(), 1);
  return x.slice(zeros, distinct, ones);
}

MaybeHost Folder::elementwise(DType type, ArrayRef<int64_t> shape, ArrayRef<HostTensor> operands,
                              const ScalarFunction &function) {
  llvm::SmallVector<HostTensor, 4> views;
  for (const HostTensor &operand : operands)
    views.push_back(operand.broadcast(shape));
  Shape distinct = distinctShape(shape, views);
  if (!admit(distinct))
    return std::nullopt;
  llvm::SmallVector<const HostTensor *, 4> pointers;
  bool anyFloat = false;
  for (HostTensor &view : views) {
    view = shrink(view, distinct);
    pointers.push_back(&view);
    anyFloat |= isFloat(view.type());
  }
  HostBuffer buffer(type, distinct);
  int64_t next = 0;
  if (function.onDouble && (anyFloat || !function.onInt)) {
    llvm::SmallVector<double, 4> values(views.size());
    forEachElement(distinct, pointers, [&](ArrayRef<int64_t> at) {
      for (size_t i = 0; i < views.size(); ++i)
        values[i] = views[i].toDouble(at[i]);
      buffer.putDouble(next++, function.onDouble(values.data()));
    });
  } else {
    llvm::SmallVector<int64_t, 4> values(views.size());
    forEachElement(distinct, pointers, [&](ArrayRef<int64_t> at) {
      for (size_t i = 0; i < views.size(); ++i)
        values[i] = views[i].toInt(at[i]);
      buffer.putInt(next++, function.onInt(values.data()));
    });
  }
  return buffer.finish().broadcast(shape);
}

MaybeHost Folder::select(ArrayRef<int64_t> shape, HostTensor condition, HostTensor a,
                         HostTensor b) {
  HostTensor views[] = {condition.broadcast(shape), a.broadcast(shape), b.broadcast(shape)};
  Shape distinct = distinctShape(shape, views);
  if (!admit(distinct))
    return std::nullopt;
  for (HostTensor &view : views)
    view = shrink(view, distinct);
  HostBuffer buffer(a.type(), distinct);
  int64_t next = 0;
  forEachElement(distinct, {&views[0], &views[1], &views[2]}, [&](ArrayRef<int64_t> at) {
    buffer.putBytes(next++, views[0].toInt(at[0]) ? views[1].bytes(at[1]) : views[2].bytes(at[2]));
  });
  return buffer.finish().broadcast(shape);
}

MaybeHost Folder::cast(const HostTensor &x, DType type) {
  if (x.type() == type)
    return x;
  static const ScalarFunction viaDouble{[](const double *v) { return v[0]; }, nullptr};
  static const ScalarFunction viaInt{nullptr, [](const int64_t *v) { return v[0]; }};
  // A float becomes `true` unless it is zero: 0.5 must not pass through an integer.
  bool throughDouble = isFloat(x.type()) || x.type() == DType::u64;
  return elementwise(type, x.shape(), x, throughDouble ? viaDouble : viaInt);
}

MaybeHost Folder::dense(const HostTensor &x) {
  if (x.isDense())
    return x;
  if (!admit(x.shape()))
    return std::nullopt;
  HostBuffer buffer(x.type(), x.shape());
  int64_t next = 0;
  forEachElement(x.shape(), {&x},
                 [&](ArrayRef<int64_t> at) { buffer.putBytes(next++, x.bytes(at[0])); });
  return buffer.finish();
}

MaybeHost Folder::reshape(const HostTensor &x, ArrayRef<int64_t> shape) {
  if (MaybeHost view = x.viewAs(shape))
    return view;
  MaybeHost flat = dense(x);
  if (!flat)
    return std::nullopt;
  return flat->reinterpret(shape);
}

MaybeHost Folder::concat(ArrayRef<HostTensor> parts, int64_t axis) {
  Shape shape(parts.front().shape());
  shape[axis] = 0;
  for (const HostTensor &part : parts)
    shape[axis] += part.shape()[axis];
  if (parts.size() == 1)
    return parts.front();
  if (!admit(shape))
    return std::nullopt;
  HostBuffer buffer(parts.front().type(), shape);
  int64_t inner = 1;
  for (int64_t dim : ArrayRef<int64_t>(shape).drop_front(axis + 1))
    inner *= dim;
  int64_t base = 0;
  for (const HostTensor &part : parts) {
    int64_t run = part.shape()[axis] * inner, seen = 0;
    forEachElement(part.shape(), {&part}, [&](ArrayRef<int64_t> at) {
      int64_t outer = seen / run, rest = seen % run;
      buffer.putBytes(outer * shape[axis] * inner + base + rest, part.bytes(at[0]));
      ++seen;
    });
    base += run;
  }
  return buffer.finish();
}

MaybeHost Folder::range(DType type, double start, double step, int64_t count) {
  if (!admit({count}))
    return std::nullopt;
  HostBuffer buffer(type, {count});
  for (int64_t i = 0; i < count; ++i)
    buffer.putDouble(i, start + step * static_cast<double>(i));
  return buffer.finish();
}

MaybeHost Folder::rangeInt(DType type, int64_t start, int64_t step, int64_t count) {
  if (!admit({count}))
    return std::nullopt;
  HostBuffer buffer(type, {count});
  for (int64_t i = 0; i < count; ++i)
    buffer.putInt(i, static_cast<int64_t>(static_cast<uint64_t>(start) +
                                          static_cast<uint64_t>(step) * static_cast<uint64_t>(i)));
  return buffer.finish();
}

/// The reduction of an empty set.
static double ofNothing(Folder::Reduction kind) {
  switch (kind) {
  case Folder::Reduction::max:
    return -std::numeric_limits<double>::infinity();
  case Folder::Reduction::min:
    return std::numeric_limits<double>::infinity();
  case Folder::Reduction::prod:
    return 1;
  default:
    return 0;
  }
}

MaybeHost Folder::reduce(const HostTensor &x, ArrayRef<int64_t> axes, Reduction kind) {
  Shape kept(x.shape()), reduced(x.rank(), 1);
  for (int64_t axis : axes) {
    reduced[axis] = kept[axis];
    kept[axis] = 1;
  }
  int64_t each = *elementCount(reduced);
  bool isExtreme = kind == Reduction::max || kind == Reduction::min;
  if ((each == 0 && isExtreme && !isFloat(x.type())) || !admit(x.shape()) || !admit(kept))
    return std::nullopt;
  HostBuffer buffer(x.type(), kept);
  int64_t next = 0;
  Shape ones(x.rank(), 1);
  bool isReal = isFloat(x.type());
  // Walks the kept dimensions; for each, the view of what is reduced starts at that element.
  HostTensor corners = x.slice(Shape(x.rank(), 0), kept, ones);
  forEachElement(kept, {&corners}, [&](ArrayRef<int64_t> corner) {
    double real = ofNothing(kind);
    uint64_t integer = kind == Reduction::prod ? 1 : 0;
    bool first = true;
    HostTensor window = corners.slice(Shape(x.rank(), 0), reduced, ones);
    int64_t shift = corner[0] - corners.origin();
    forEachElement(reduced, {&window}, [&](ArrayRef<int64_t> at) {
      double r = isReal ? x.toDouble(at[0] + shift) : 0;
      int64_t w = isReal ? 0 : x.toInt(at[0] + shift);
      switch (kind) {
      case Reduction::sum:
      case Reduction::mean:
        real += r, integer += static_cast<uint64_t>(w);
        break;
      case Reduction::prod:
        real *= r, integer *= static_cast<uint64_t>(w);
        break;
      case Reduction::max:
        real = first ? r : std::fmax(real, r);
        integer = first ? w : std::max(static_cast<int64_t>(integer), w);
        break;
      case Reduction::min:
        real = first ? r : std::fmin(real, r);
        integer = first ? w : std::min(static_cast<int64_t>(integer), w);
        break;
      }
      first = false;
    });
    if (kind == Reduction::mean) {
      real /= static_cast<double>(each);
      integer = each == 0 ? 0 : static_cast<uint64_t>(static_cast<int64_t>(integer) / each);
    }
    if (isReal)
      buffer.putDouble(next++, real);
    else
      buffer.putInt(next++, static_cast<int64_t>(integer));
  });
  return buffer.finish();
}

} // namespace partita::importer
