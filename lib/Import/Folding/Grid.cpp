//===- Grid.cpp -------------------------------------------------------------------------------===//

#include "lib/Import/Folding/Grid.h"
#include "dialects/Tx/Tx.h"
#include "lib/Import/Folding/Bounds.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::importer {
namespace {

using Dims = llvm::SmallVector<Grid::Dim, 6>;

/// Offsets and spans stay below this, so that sums of them do not overflow.
constexpr int64_t mostSpan = int64_t(1) << 52;

bool isSmall(const Grid &grid) {
  double span = std::abs(static_cast<double>(grid.offset));
  for (Grid::Dim dim : grid.dims)
    span += std::abs(static_cast<double>(dim.stride)) * static_cast<double>(dim.size);
  return span < static_cast<double>(mostSpan);
}

/// Puts a boundary of `dims` before the last `inner` elements; a dimension that it cuts becomes two.
/// False if it cannot be cut there.
bool cut(Dims &dims, int64_t inner) {
  int64_t behind = 1;
  for (size_t i = dims.size(); i-- > 0 && behind < inner; behind *= dims[i].size) {
    Grid::Dim dim = dims[i];
    if (behind * dim.size <= inner)
      continue;
    int64_t part = inner / behind;
    if (inner % behind != 0 || dim.size % part != 0)
      return false;
    dims[i] = {dim.size / part, dim.stride * part};
    dims.insert(dims.begin() + i + 1, {part, dim.stride});
    return true;
  }
  return behind == inner;
}

/// For each dimension of `shape` the dimensions of `dims` that it consists of.
std::optional<llvm::SmallVector<Dims>> align(Dims dims, llvm::ArrayRef<int64_t> shape) {
  int64_t inner = 1;
  for (int64_t size : llvm::reverse(shape))
    if (!cut(dims, inner *= size))
      return std::nullopt;
  llvm::SmallVector<Dims> groups(shape.size());
  const Grid::Dim *next = dims.begin();
  for (auto [group, size] : llvm::zip_equal(groups, shape))
    for (int64_t count = 1; count < size; ++next) {
      group.push_back(*next);
      count *= next->size;
    }
  return groups;
}

Dims flatten(llvm::ArrayRef<Dims> groups) {
  Dims all;
  for (const Dims &group : groups)
    for (Grid::Dim dim : group)
      if (dim.size > 1)
        all.push_back(dim);
  return all;
}

/// Cuts both until they have the same dimensions.
bool cutAlike(Dims &a, Dims &b) {
  auto cutAs = [](Dims &dims, const Dims &other) {
    int64_t inner = 1;
    for (Grid::Dim dim : llvm::reverse(other))
      if (!cut(dims, inner *= dim.size))
        return false;
    return true;
  };
  return cutAs(a, b) && cutAs(b, a) && a.size() == b.size();
}

std::optional<Grid> add(Grid a, Grid b, int64_t factor) {
  if (!cutAlike(a.dims, b.dims))
    return std::nullopt;
  a.offset += factor * b.offset;
  for (auto [dim, other] : llvm::zip_equal(a.dims, b.dims))
    dim.stride += factor * other.stride;
  return isSmall(a) ? std::optional(a) : std::nullopt;
}

std::optional<Grid> scale(Grid grid, int64_t factor) {
  double span = std::abs(static_cast<double>(factor));
  if (span * std::max(std::abs(static_cast<double>(grid.low())),
                      std::abs(static_cast<double>(grid.high()))) >=
      static_cast<double>(mostSpan))
    return std::nullopt;
  grid.offset *= factor;
  for (Grid::Dim &dim : grid.dims)
    dim.stride *= factor;
  return isSmall(grid) ? std::optional(grid) : std::nullopt;
}

/// A sequence as a few nested progressions: 0 0 1 1 2 2 is 3 of stride 1 around 2 of stride 0.
std::optional<Dims> nest(llvm::SmallVector<int64_t> sequence) {
  constexpr size_t mostDims = 8;
  Dims dims;
  while (sequence.size() > 1) {
    size_t run = 1;
    int64_t stride = 0, step = 0; // of any constants
    if (llvm::SubOverflow(sequence[1], sequence[0], stride))
      return std::nullopt;
    while (run < sequence.size() && !llvm::SubOverflow(sequence[run], sequence[run - 1], step) &&
           step == stride)
      ++run;
    if (sequence.size() % run != 0 || dims.size() == mostDims)
      return std::nullopt;
    dims.insert(dims.begin(), {static_cast<int64_t>(run), stride});
    llvm::SmallVector<int64_t> firsts;
    for (size_t i = 0; i < sequence.size(); i += run)
      firsts.push_back(sequence[i]);
    sequence = std::move(firsts);
  }
  return dims;
}

/// Follows a value of the program through the ops that spell positions.
class GridFinder {
public:
  std::optional<Grid> find(Value value) {
    Operation *op = value.getDefiningOp();
    auto element = dyn_cast<IntegerType>(getElementTypeOrSelf(value.getType()));
    if (!op || !element || element.getWidth() < 32 || ++visited > mostVisited)
      return std::nullopt;
    std::optional<Grid> grid =
        llvm::TypeSwitch<Operation *, std::optional<Grid>>(op)
            .Case<tx::ConstantOp, tx::IotaOp, tx::BroadcastOp, tx::TransposeOp, tx::SliceOp,
                  tx::SelectOp>([&](auto typed) { return of(typed); })
            .Case([&](tx::ReshapeOp reshape) { return find(reshape.getX()); })
            .Case([&](tx::CastOp cast) { return keepsIntegers(cast) ? find(cast.getX()) : none(); })
            .Case([&](tx::AddOp add) { return sum(add.getA(), add.getB(), 1); })
            .Case([&](tx::SubOp sub) { return sum(sub.getA(), sub.getB(), -1); })
            .Case([&](tx::MulOp mul) { return product(mul.getA(), mul.getB()); })
            .Default([&](Operation *) { return none(); });
    if (grid)
      llvm::erase_if(grid->dims, [](Grid::Dim dim) { return dim.size == 1; });
    // What wraps around in 32 bits is no grid.
    constexpr int64_t most32 = INT32_MAX;
    if (grid && element.getWidth() == 32 && (grid->low() < -most32 || grid->high() > most32))
      return none();
    return grid;
  }

private:
  // A limit, because a model can be made to be searched forever.
  static constexpr int mostVisited = 256;
  static std::optional<Grid> none() { return std::nullopt; }
  static llvm::ArrayRef<int64_t> shapeOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  }

  static std::optional<Grid> of(tx::ConstantOp constant) {
    auto dense = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!dense || dense.empty())
      return std::nullopt;
    if (dense.isSplat()) {
      Grid grid{dense.getSplatValue<APInt>().getSExtValue(), {{dense.getNumElements(), 0}}};
      return isSmall(grid) ? std::optional(grid) : std::nullopt;
    }
    HostBuffer buffer(DType::i64, dense.getType().getShape());
    for (auto [i, value] : llvm::enumerate(dense.getValues<APInt>()))
      buffer.putInt(i, value.getSExtValue());
    return findGrid(buffer.finish());
  }
  static std::optional<Grid> of(tx::IotaOp iota) {
    double start = iota.getStart().convertToDouble(), step = iota.getStep().convertToDouble();
    if (start != std::trunc(start) || step != std::trunc(step) || std::abs(start) >= mostSpan ||
        std::abs(step) >= mostSpan)
      return std::nullopt;
    Grid grid{static_cast<int64_t>(start),
              {{iota.getType().getDimSize(0), static_cast<int64_t>(step)}}};
    return isSmall(grid) ? std::optional(grid) : std::nullopt;
  }
  /// A value's grid, and for each dimension of the value those of the grid that it consists of.
  struct Aligned {
    int64_t offset;
    llvm::SmallVector<Dims> groups;
  };
  std::optional<Aligned> findAligned(Value value) {
    std::optional<Grid> grid = find(value);
    auto groups = grid ? align(grid->dims, shapeOf(value)) : std::nullopt;
    return groups ? std::optional(Aligned{grid->offset, std::move(*groups)}) : std::nullopt;
  }
  std::optional<Grid> of(tx::BroadcastOp op) {
    std::optional<Aligned> x = findAligned(op.getX());
    llvm::ArrayRef<int64_t> from = shapeOf(op.getX()), to = shapeOf(op);
    if (!x)
      return std::nullopt;
    size_t added = to.size() - from.size();
    x->groups.insert(x->groups.begin(), added, Dims());
    for (auto [i, group] : llvm::enumerate(x->groups))
      if (i < added || from[i - added] != to[i])
        group.push_back({to[i], 0});
    return Grid{x->offset, flatten(x->groups)};
  }
  std::optional<Grid> of(tx::TransposeOp op) {
    std::optional<Aligned> x = findAligned(op.getX());
    if (!x)
      return std::nullopt;
    llvm::SmallVector<Dims> permuted;
    for (int64_t from : op.getPermutation())
      permuted.push_back(x->groups[from]);
    return Grid{x->offset, flatten(permuted)};
  }
  std::optional<Grid> of(tx::SliceOp op) {
    std::optional<Aligned> x = findAligned(op.getX());
    llvm::ArrayRef<int64_t> from = shapeOf(op.getX()), to = shapeOf(op);
    if (!x)
      return std::nullopt;
    for (auto [i, group] : llvm::enumerate(x->groups)) {
      if (from[i] == to[i])
        continue;
      if (group.size() != 1)
        return std::nullopt;
      x->offset += op.getOffsets()[i] * group[0].stride;
      group[0] = {to[i], group[0].stride * op.getStrides()[i]};
    }
    return Grid{x->offset, flatten(x->groups)};
  }
  /// index < 0 ? index + size : index, where one of the two holds for all.
  std::optional<Grid> of(tx::SelectOp op) {
    auto less = op.getC().getDefiningOp<tx::LessOp>();
    std::optional<Grid> a = less ? find(less.getA()) : none(), b = a ? find(less.getB()) : none();
    if (!b || (a->high() >= b->low() && a->low() < b->high()))
      return std::nullopt;
    return find(a->high() < b->low() ? op.getA() : op.getB());
  }
  std::optional<Grid> sum(Value a, Value b, int64_t factor) {
    std::optional<Grid> first = find(a), second = first ? find(b) : none();
    return second ? add(*first, *second, factor) : none();
  }
  std::optional<Grid> product(Value a, Value b) {
    std::optional<Grid> first = find(a), second = first ? find(b) : none();
    if (!second)
      return std::nullopt;
    if (first->low() == first->high())
      std::swap(first, second);
    return second->low() == second->high() ? scale(*first, second->offset) : none();
  }

  int visited = 0;
};

/// A box whose dimensions have these strides, the largest first and 1 the last.
std::optional<Box> boxOf(const Grid &grid, int64_t count, llvm::ArrayRef<int64_t> strides) {
  Box box;
  int64_t left = grid.offset, full = count;
  for (int64_t stride : strides) {
    if (full % stride != 0)
      return std::nullopt;
    box.sizes.push_back(full / stride);
    box.offsets.push_back(left / stride);
    left %= stride;
    full = stride;
    box.extents.push_back(1);
    box.steps.push_back(1);
    box.gridDims.push_back(-1);
    for (auto [i, dim] : llvm::enumerate(grid.dims)) {
      if (dim.stride != stride || dim.size == 1)
        continue;
      if (box.gridDims.back() >= 0)
        return std::nullopt; // two count through the same, as on a diagonal of a table
      box.gridDims.back() = i;
      box.extents.back() = dim.size;
    }
    if (box.offsets.back() + box.extents.back() > box.sizes.back())
      return std::nullopt;
  }
  return box;
}

} // namespace

int64_t Grid::low() const {
  int64_t value = offset;
  for (Dim dim : dims)
    value += std::min<int64_t>(0, dim.stride * (dim.size - 1));
  return value;
}

int64_t Grid::high() const {
  int64_t value = offset;
  for (Dim dim : dims)
    value += std::max<int64_t>(0, dim.stride * (dim.size - 1));
  return value;
}

std::optional<Grid> findGrid(const HostTensor &indices) {
  if (indices.size() == 0)
    return std::nullopt;
  HostTensor distinct = indices.withoutRepeats();
  Grid grid{distinct.onlyInt(), {}};
  llvm::SmallVector<Dims> groups;
  for (auto [dim, size] : llvm::enumerate(distinct.shape())) {
    Shape line(distinct.rank(), 1);
    line[dim] = size;
    std::optional<Dims> nested =
        nest(distinct.slice(Shape(distinct.rank(), 0), line, Shape(distinct.rank(), 1)).ints());
    if (!nested)
      return std::nullopt;
    groups.push_back(*nested);
  }
  grid.dims = flatten(groups);
  if (!isSmall(grid))
    return std::nullopt;
  bool fits = true;
  int64_t next = 0;
  forEachElement(distinct.shape(), {&distinct}, [&](llvm::ArrayRef<int64_t> at) {
    int64_t rest = next++, expected = grid.offset;
    for (Grid::Dim dim : llvm::reverse(grid.dims)) {
      expected += rest % dim.size * dim.stride;
      rest /= dim.size;
    }
    fits = fits && distinct.toInt(at[0]) == expected;
  });
  if (!fits)
    return std::nullopt;
  for (auto [group, size, shrunk] : llvm::zip_equal(groups, indices.shape(), distinct.shape()))
    if (size != shrunk)
      group.push_back({size, 0});
  grid.dims = flatten(groups);
  return grid;
}

std::optional<Grid> findGrid(Value indices) { return GridFinder().find(indices); }

std::optional<Grid> within(Grid grid, int64_t size) {
  if (grid.high() < 0)
    grid.offset += size;
  return grid.low() >= 0 && grid.high() < size ? std::optional(grid) : std::nullopt;
}

std::optional<Grid> combine(llvm::ArrayRef<Grid> grids, llvm::ArrayRef<int64_t> strides) {
  std::optional<Grid> all;
  for (auto [grid, stride] : llvm::zip_equal(grids, strides)) {
    std::optional<Grid> scaled = scale(grid, stride);
    if (!scaled)
      return std::nullopt;
    all = all ? add(*all, *scaled, 1) : scaled;
    if (!all)
      return std::nullopt;
  }
  return all;
}

std::optional<Box> findBox(const Grid &grid, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> counted{1}, all{1};
  int64_t moving = -1, count = 1;
  for (auto [i, dim] : llvm::enumerate(grid.dims)) {
    if (dim.size == 1 || dim.stride == 0)
      continue;
    if (dim.stride < 0)
      return std::nullopt;
    moving = counted.size() == 1 ? static_cast<int64_t>(i) : -1;
    counted.push_back(dim.stride);
  }
  bool single = counted.size() == 2;
  for (int64_t size : llvm::reverse(shape)) {
    all.push_back(count);
    count *= size;
  }
  all.append(counted);
  // By the dimensions that were indexed, if these fit; else by those of the grid alone.
  for (llvm::SmallVector<int64_t> &strides : {std::ref(all), std::ref(counted)}) {
    llvm::sort(strides, std::greater<int64_t>());
    strides.erase(llvm::unique(strides), strides.end());
    if (std::optional<Box> box = boxOf(grid, count, strides))
      return box;
  }
  if (!single)
    return std::nullopt;
  Grid::Dim dim = grid.dims[moving];
  return Box{{count}, {grid.offset}, {dim.size}, {dim.stride}, {moving}};
}

} // namespace partita::importer
