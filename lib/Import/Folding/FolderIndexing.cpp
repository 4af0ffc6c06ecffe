//===- FolderIndexing.cpp - gathers, scatters, triangles and running sums ---------------------===//

#include "lib/Import/Folding/Folder.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::importer {

using llvm::ArrayRef;

/// An index counts from the end when negative.
static int64_t wrap(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

static int64_t product(ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

MaybeHost Folder::gather(const HostTensor &data, const HostTensor &indices, int64_t axis) {
  // Both are shrunk to what differs; the result repeats where data or indices do.
  Shape full(data.shape().take_front(axis));
  full.append(indices.shape().begin(), indices.shape().end());
  full.append(data.shape().begin() + axis + 1, data.shape().end());
  HostTensor picks = indices.withoutRepeats();
  Shape dataShape(data.withoutRepeats().shape());
  dataShape[axis] = data.shape()[axis];
  HostTensor source = data.slice(Shape(data.rank(), 0), dataShape, Shape(data.rank(), 1));
  Shape distinct(ArrayRef<int64_t>(dataShape).take_front(axis));
  distinct.append(picks.shape().begin(), picks.shape().end());
  distinct.append(dataShape.begin() + axis + 1, dataShape.end());

  if (picks.size() == 1) { // one row: a view
    Shape offsets(data.rank(), 0), sizes(dataShape);
    offsets[axis] = wrap(picks.onlyInt(), dataShape[axis]);
    sizes[axis] = 1;
    HostTensor row = source.slice(offsets, sizes, Shape(data.rank(), 1));
    if (MaybeHost view = row.viewAs(distinct))
      return view->broadcast(full);
  }
  if (!admit(distinct))
    return std::nullopt;
  int64_t outer = product(ArrayRef<int64_t>(dataShape).take_front(axis));
  int64_t inner = product(ArrayRef<int64_t>(dataShape).drop_front(axis + 1));
  llvm::SmallVector<int64_t> rows = picks.ints();
  MaybeHost flat = dense(source);
  if (!flat)
    return std::nullopt;
  HostBuffer buffer(data.type(), distinct);
  int64_t next = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t row : rows)
      for (int64_t i = 0; i < inner; ++i)
        buffer.putBytes(
            next++, flat->bytes(flat->origin() +
                                (o * dataShape[axis] + wrap(row, dataShape[axis])) * inner + i));
  return buffer.finish().broadcast(full);
}

MaybeHost Folder::gatherElements(const HostTensor &data, const HostTensor &indices, int64_t axis) {
  if (!admit(indices.shape()))
    return std::nullopt;
  HostBuffer buffer(data.type(), indices.shape());
  // A view of data over the indices' shape in which the axis stands still.
  Shape sizes(indices.shape()), steps(data.rank(), 1);
  steps[axis] = 0;
  HostTensor still = data.slice(Shape(data.rank(), 0), sizes, steps);
  int64_t next = 0;
  forEachElement(sizes, {&indices, &still}, [&](ArrayRef<int64_t> at) {
    int64_t index = wrap(indices.toInt(at[0]), data.shape()[axis]);
    buffer.putBytes(next++, data.bytes(at[1] + index * data.strides()[axis]));
  });
  return buffer.finish();
}

MaybeHost Folder::gatherND(const HostTensor &data, const HostTensor &indices) {
  int64_t depth = indices.shape().back();
  Shape full(indices.shape().drop_back());
  full.append(data.shape().begin() + depth, data.shape().end());
  // The last dimension of the indices is a tuple; the leading ones may repeat.
  Shape shrunk(indices.withoutRepeats().shape());
  shrunk.back() = depth;
  HostTensor picks = indices.slice(Shape(indices.rank(), 0), shrunk, Shape(indices.rank(), 1));
  Shape outer(ArrayRef<int64_t>(shrunk).drop_back());
  Shape tail(data.shape().drop_front(depth));
  Shape distinct(outer);
  distinct.append(tail.begin(), tail.end());
  if (!admit(distinct))
    return std::nullopt;
  Shape corner(data.shape());
  std::fill(corner.begin(), corner.begin() + depth, 1);
  HostTensor slice = data.slice(Shape(data.rank(), 0), corner, Shape(data.rank(), 1));
  Shape tuple(shrunk);
  tuple.back() = 1;
  HostTensor firsts = picks.slice(Shape(picks.rank(), 0), tuple, Shape(picks.rank(), 1));
  HostBuffer buffer(data.type(), distinct);
  int64_t next = 0;
  forEachElement(tuple, {&firsts}, [&](ArrayRef<int64_t> at) {
    int64_t shift = 0;
    for (int64_t k = 0; k < depth; ++k)
      shift += wrap(picks.toInt(at[0] + k * picks.strides().back()), data.shape()[k]) *
               data.strides()[k];
    forEachElement(corner, {&slice}, [&](ArrayRef<int64_t> from) {
      buffer.putBytes(next++, data.bytes(from[0] + shift));
    });
  });
  return buffer.finish().broadcast(full);
}

MaybeHost Folder::scatterND(const HostTensor &data, const HostTensor &indices,
                            const HostTensor &updates) {
  if (!admit(data.shape()) || !admit(indices.shape()))
    return std::nullopt;
  HostBuffer buffer(data.type(), data.shape());
  int64_t next = 0;
  forEachElement(data.shape(), {&data},
                 [&](ArrayRef<int64_t> at) { buffer.putBytes(next++, data.bytes(at[0])); });
  int64_t depth = indices.shape().back();
  int64_t inner = product(data.shape().drop_front(depth));
  llvm::SmallVector<int64_t> tuples = indices.ints();
  next = 0;
  forEachElement(updates.shape(), {&updates}, [&](ArrayRef<int64_t> at) {
    int64_t row = 0;
    for (int64_t k = 0; k < depth; ++k)
      row = row * data.shape()[k] + wrap(tuples[(next / inner) * depth + k], data.shape()[k]);
    buffer.putBytes(row * inner + next % inner, updates.bytes(at[0]));
    ++next;
  });
  return buffer.finish();
}

MaybeHost Folder::trilu(const HostTensor &x, int64_t diagonal, bool upper) {
  int64_t rows = x.shape()[x.rank() - 2], columns = x.shape()[x.rank() - 1];
  // The matrices may repeat over leading dimensions, but not inside.
  Shape distinct(x.withoutRepeats().shape());
  distinct[x.rank() - 2] = rows;
  distinct[x.rank() - 1] = columns;
  if (!admit(distinct))
    return std::nullopt;
  HostTensor source = x.slice(Shape(x.rank(), 0), distinct, Shape(x.rank(), 1));
  HostBuffer buffer(x.type(), distinct); // zero where nothing is put
  int64_t next = 0;
  forEachElement(distinct, {&source}, [&](ArrayRef<int64_t> at) {
    int64_t row = next / columns % rows, column = next % columns;
    int64_t above = column - row; // small: no overflow, whatever `diagonal` is
    if (upper ? above >= diagonal : above <= diagonal)
      buffer.putBytes(next, source.bytes(at[0]));
    ++next;
  });
  return buffer.finish().broadcast(x.shape());
}

MaybeHost Folder::cumSum(const HostTensor &x, int64_t axis, bool exclusive, bool reverse) {
  MaybeHost flat = dense(x);
  if (!flat || !admit(x.shape()))
    return std::nullopt;
  int64_t length = x.shape()[axis];
  int64_t inner = product(x.shape().drop_front(axis + 1));
  int64_t outer = product(x.shape().take_front(axis));
  HostBuffer buffer(x.type(), x.shape());
  bool isReal = isFloat(x.type());
  for (int64_t line = 0; line < outer * inner; ++line) {
    int64_t base = line / inner * length * inner + line % inner;
    double real = 0;
    uint64_t integer = 0;
    for (int64_t step = 0; step < length; ++step) {
      int64_t at = base + (reverse ? length - 1 - step : step) * inner;
      double realBefore = real;
      uint64_t integerBefore = integer;
      if (isReal) {
        real += flat->toDouble(flat->origin() + at);
        buffer.putDouble(at, exclusive ? realBefore : real);
      } else {
        integer += static_cast<uint64_t>(flat->toInt(flat->origin() + at));
        buffer.putInt(at, static_cast<int64_t>(exclusive ? integerBefore : integer));
      }
    }
  }
  return buffer.finish();
}

} // namespace partita::importer
