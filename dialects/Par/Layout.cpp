//===- Layout.cpp - editable placements -------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "runtime/include/partita_rt/shards.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

StringRef partita::par::toString(Kind kind) {
  switch (kind) {
  case Kind::Invariant:
    return "invariant";
  case Kind::Replicated:
    return "replicated";
  case Kind::Sharded:
    return "sharded";
  case Kind::Partial:
    return "partial";
  case Kind::Max:
    return "max";
  case Kind::Flat:
    return "flat";
  }
  return "";
}

Layout Layout::of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return Layout();
  auto placement = dyn_cast_or_null<PlacementAttr>(tensor.getEncoding());
  return placement ? of(placement) : Layout(tensor.getShape());
}

Layout Layout::of(PlacementAttr placement) {
  Layout layout(placement.getShape());
  for (auto [axes, list] : llvm::zip(placement.getSplits(), layout.splits)) {
    Blocks blocks = 1;
    for (Attribute entry : cast<ArrayAttr>(axes))
      if (auto number = dyn_cast<IntegerAttr>(entry))
        blocks = number.getInt();
      else if (auto sizes = dyn_cast<DenseI64ArrayAttr>(entry))
        blocks = Blocks::of(sizes);
      else if (isa<UnitAttr>(entry))
        list.back().blocks.mirrored = true;
      else
        list.push_back({cast<StringAttr>(entry), blocks});
  }
  layout.replicated.assign(placement.getReplicated().begin(), placement.getReplicated().end());
  layout.partial.assign(placement.getPartial().begin(), placement.getPartial().end());
  layout.max.assign(placement.getMax().begin(), placement.getMax().end());
  layout.flat.assign(placement.getFlat().begin(), placement.getFlat().end());
  return layout;
}

int Layout::dimOf(StringAttr axis) const {
  for (auto [i, axes] : llvm::enumerate(splits))
    if (llvm::any_of(axes, [&](const AxisSplit &split) { return split.axis == axis; }))
      return static_cast<int>(i);
  return -1;
}

Blocks Blocks::of(ArrayRef<int64_t> sizes) {
  Blocks blocks(static_cast<int64_t>(sizes.size()));
  if (!llvm::all_equal(sizes))
    blocks.sizes.assign(sizes.begin(), sizes.end());
  return blocks;
}

Blocks Blocks::equal(int64_t count, bool mirrored) {
  Blocks blocks(count);
  blocks.mirrored = mirrored;
  return blocks;
}

SmallVector<int64_t> Blocks::sizesIn(int64_t size) const {
  if (!sizes.empty())
    return SmallVector<int64_t>(sizes.begin(), sizes.end());
  return SmallVector<int64_t>(count, size / count);
}

/// The first dimension that an axis splits in such blocks, or -1.
static int firstDimIn(ArrayRef<DimSplit> splits, function_ref<bool(const Blocks &)> isSuch) {
  const auto *found = llvm::find_if(splits, [&](const DimSplit &axes) {
    return llvm::any_of(axes, [&](const AxisSplit &split) { return isSuch(split.blocks); });
  });
  return found == splits.end() ? -1 : static_cast<int>(found - splits.begin());
}

int Layout::unequalDim() const {
  return firstDimIn(splits, [](const Blocks &blocks) { return !blocks.sizes.empty(); });
}

int Layout::mirroredDim() const {
  return firstDimIn(splits, [](const Blocks &blocks) { return blocks.mirrored; });
}

Blocks Layout::blocksOf(StringAttr axis) const {
  for (const DimSplit &axes : splits)
    for (const AxisSplit &split : axes)
      if (split.axis == axis)
        return split.blocks;
  return 0;
}

Kind Layout::kind(StringAttr axis) const {
  if (llvm::is_contained(replicated, axis))
    return Kind::Replicated;
  if (llvm::is_contained(partial, axis))
    return Kind::Partial;
  if (llvm::is_contained(max, axis))
    return Kind::Max;
  if (llvm::is_contained(flat, axis))
    return Kind::Flat;
  return dimOf(axis) >= 0 ? Kind::Sharded : Kind::Invariant;
}

void Layout::set(StringAttr axis, Kind kind) {
  llvm::erase(replicated, axis);
  llvm::erase(partial, axis);
  llvm::erase(max, axis);
  llvm::erase(flat, axis);
  for (DimSplit &axes : splits)
    llvm::erase_if(axes, [&](const AxisSplit &split) { return split.axis == axis; });
  auto add = [&](SmallVector<StringAttr> &list) {
    list.push_back(axis);
    llvm::sort(list, [](StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); });
  };
  if (kind == Kind::Replicated)
    add(replicated);
  else if (kind == Kind::Partial)
    add(partial);
  else if (kind == Kind::Max)
    add(max);
  else if (kind == Kind::Flat)
    flat.push_back(axis);
}

/// Does this split stand inside the new one? The order does not depend on which was requested first: ulysses splits
/// what cp leaves of a sequence, and tp what both leave.
static bool standsInside(const AxisSplit &split, StringAttr axis, const Blocks &blocks) {
  if (split.blocks.count != blocks.count)
    return split.blocks.count > blocks.count;
  if (const AxisRow *row = findAxis(split.axis);
      row && !row->within.empty() && row->within == axis.getValue())
    return true;
  return par::splits(axis, Splits::Context) && par::splits(split.axis, Splits::Weights);
}

void Layout::shard(StringAttr axis, unsigned dim, Blocks blocks) {
  clear(axis);
  auto *at = llvm::find_if(
      splits[dim], [&](const AxisSplit &split) { return standsInside(split, axis, blocks); });
  splits[dim].insert(at, {axis, blocks});
}

void Layout::axes(llvm::SetVector<StringAttr> &result) const {
  for (const DimSplit &list : splits)
    for (const AxisSplit &split : list)
      result.insert(split.axis);
  for (const auto *list : {&replicated, &partial, &max, &flat})
    result.insert(list->begin(), list->end());
}

SmallVector<StringAttr> par::splittingAxes(Type type) {
  Layout layout = Layout::of(type);
  SmallVector<StringAttr> result(layout.flat);
  for (const DimSplit &list : layout.splits)
    for (const AxisSplit &split : list)
      result.push_back(split.axis);
  llvm::sort(result, [](StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); });
  return result;
}

Layout Layout::factored() const {
  Layout result;
  result.replicated = replicated;
  result.partial = partial;
  result.max = max;
  result.flat = flat;
  for (auto [size, list] : llvm::zip(shape, splits)) {
    int64_t begin = 1;
    result.shape.push_back(size);
    result.splits.emplace_back();
    for (const AxisSplit &split : list) {
      if (split.blocks.count != begin) {
        int64_t front = split.blocks.count / begin;
        result.shape.back() /= front;
        result.shape.insert(result.shape.end() - 1, front);
        result.splits.emplace_back();
        begin = split.blocks.count;
      }
      result.splits.back().push_back({split.axis, 1});
    }
  }
  return result;
}

Layout Layout::withoutFlat() const {
  Layout result = *this;
  result.flat.clear();
  return result;
}

Layout Layout::dual() const {
  Layout result = *this;
  std::swap(result.replicated, result.partial);
  result.replicated.clear();
  result.max.clear();
  return result;
}

Layout Layout::valueOnly() const {
  Layout result = *this;
  result.replicated.clear();
  return result;
}

bool Layout::operator==(const Layout &other) const {
  return shape == other.shape && splits == other.splits && replicated == other.replicated &&
         partial == other.partial && max == other.max && flat == other.flat;
}

Attribute Layout::encoding(MLIRContext *context) const {
  if (replicated.empty() && partial.empty() && max.empty() && flat.empty() &&
      llvm::all_of(splits, [](const DimSplit &axes) { return axes.empty(); }))
    return {};
  Builder builder(context);
  SmallVector<Attribute> lists;
  for (const DimSplit &axes : splits) {
    SmallVector<Attribute> entries;
    int64_t blocks = 1;
    for (const AxisSplit &split : axes) {
      if (!split.blocks.sizes.empty())
        entries.push_back(builder.getDenseI64ArrayAttr(split.blocks.sizes));
      else if (split.blocks.count != blocks)
        entries.push_back(builder.getI64IntegerAttr(blocks = split.blocks.count));
      entries.push_back(split.axis);
      if (split.blocks.mirrored)
        entries.push_back(builder.getUnitAttr());
    }
    lists.push_back(builder.getArrayAttr(entries));
  }
  return PlacementAttr::get(context, shape, builder.getArrayAttr(lists), replicated, partial, max,
                            flat);
}

std::optional<int64_t> partita::par::shardSize(int64_t size, int64_t parts) {
  int64_t shard = partita_rt::shardSize(size, parts);
  if (shard * parts == size || shard * (parts - 1) < size)
    return shard;
  return std::nullopt;
}

FailureOr<RankedTensorType> Layout::localType(Type element, MeshAttr mesh,
                                              function_ref<void(const Twine &)> error) const {
  SmallVector<int64_t> local(shape);
  for (auto [i, axes] : llvm::enumerate(splits)) {
    int64_t left = shape[i]; // of the factor that the axis splits
    for (const AxisSplit &split : axes) {
      int64_t size = mesh.sizeOf(split.axis.getValue());
      if (!split.blocks.sizes.empty()) {
        for (int64_t block : split.blocks.sizes)
          if (block % size != 0) {
            error(llvm::formatv("a block of size {1} of dimension {0} does not divide over mesh "
                                "axis {2} of size {3}",
                                i, block, split.axis.getValue(), size)
                      .str());
            return failure();
          }
        local[i] /= size;
        continue;
      }
      if (&split == axes.begin() || split.blocks.count != (&split)[-1].blocks.count) {
        const AxisSplit *next = std::find_if(&split, axes.end(), [&](const AxisSplit &other) {
          return other.blocks.count != split.blocks.count;
        });
        left = (next == axes.end() ? shape[i] : next->blocks.count) / split.blocks.count;
      }
      if (auto shard = shardSize(left, size); axes.size() == 1 && split.blocks == 1 && shard) {
        local[i] = *shard;
        continue;
      }
      if (left % size != 0) {
        error(llvm::formatv(
                  "dimension {0} of size {1} does not divide over mesh axis {2} of size {3}", i,
                  left, split.axis.getValue(), size)
                  .str());
        return failure();
      }
      left /= size;
      local[i] /= size;
    }
  }
  if (!flat.empty()) {
    int64_t ranks = 1, elements = ShapedType::getNumElements(local);
    for (StringAttr axis : flat)
      ranks *= mesh.sizeOf(axis.getValue());
    local.assign({partita_rt::flatShardSize(elements, ranks)});
  }
  return RankedTensorType::get(local, element, encoding(element.getContext()));
}

RankedTensorType partita::par::fullType(Type type) {
  return RankedTensorType::get(Layout::of(type).shape,
                               cast<RankedTensorType>(type).getElementType());
}

bool partita::par::holdsWholeBlocks(Type type, int64_t block, MeshAttr mesh) {
  Layout layout = Layout::of(type).withoutFlat();
  int last = static_cast<int>(layout.shape.size()) - 1;
  if (last < 0 || layout.unequalDim() == last || layout.mirroredDim() == last)
    return false;
  layout = layout.factored();
  int64_t size = layout.shape.back();
  for (const AxisSplit &split : layout.splits.back()) {
    int64_t ranks = mesh.sizeOf(split.axis.getValue());
    if (size % ranks != 0)
      return false;
    size /= ranks;
  }
  return size % block == 0;
}

RankedTensorType partita::par::withLayout(Type type, const Layout &layout) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(),
                               layout.encoding(type.getContext()));
}

RankedTensorType partita::par::cotangentType(Type type) {
  return withLayout(type, Layout::of(type).dual());
}

bool partita::par::sameValues(TypeRange a, TypeRange b) {
  auto value = [](Type type) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? withLayout(tensor, Layout::of(tensor).valueOnly()) : type;
  };
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [&](auto pair) {
           return value(std::get<0>(pair)) == value(std::get<1>(pair));
         });
}

bool partita::par::isDifferentiable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}
