//===- GradientBuilder.cpp - helpers for the gradients of the op table ------------------------===//

#include "dialects/Tx/GradientBuilder.h"
#include "dialects/Interfaces/Floats.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

Value GradientBuilder::splat(Type type, double value) {
  par::Layout placed = par::Layout::of(type);
  if (value != 0)
    placed.partial.clear();
  // Kernels have 32-bit constants, whatever they store.
  return createSplat(builder, loc, inSingleAtLeast(par::withLayout(type, placed)), value);
}

Value GradientBuilder::sumTo(Value value, Type type) {
  RankedTensorType result = par::cotangentType(type);
  auto from = cast<RankedTensorType>(value.getType());
  int64_t added = from.getRank() - result.getRank();
  // A repeated dimension has full size one; a rank's shard of a larger one may have size one, too.
  par::Layout full = par::Layout::of(result), kept;
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (i < added || (full.shape[i - added] == 1 && par::Layout::of(from).shape[i] != 1))
      dims.push_back(i);
  if (dims.empty())
    return value;
  // Drop the summed dimensions, then put those of size one back.
  SmallVector<int64_t> local;
  kept.replicated = full.replicated;
  kept.partial = full.partial;
  for (int64_t i = 0; i < result.getRank(); ++i) {
    if (llvm::is_contained(dims, i + added))
      continue;
    kept.shape.push_back(full.shape[i]);
    kept.splits.push_back(full.splits[i]);
    local.push_back(result.getDimSize(i));
  }
  auto sumType =
      RankedTensorType::get(local, result.getElementType(), kept.encoding(type.getContext()));
  Value sum = ReduceSumOp::create(builder, loc, sumType, value, dims);
  if (sumType == result)
    return sum;
  return ReshapeOp::create(builder, loc, result, sum);
}

Value GradientBuilder::spread(Value value, Type type, ArrayRef<int64_t> dims) {
  // The shards are those of `type`; a partial sum stays partial.
  par::Layout placed = par::Layout::of(type).valueOnly();
  placed.partial = par::Layout::of(value.getType()).partial;
  RankedTensorType result = par::withLayout(type, placed);
  // Put the missing dimensions back with size one, then broadcast.
  par::Layout full = par::Layout::of(result), kept = full;
  SmallVector<int64_t> local(result.getShape());
  for (int64_t dim : dims) {
    kept.shape[dim] = local[dim] = 1;
    kept.splits[dim].clear();
  }
  auto keptType =
      RankedTensorType::get(local, result.getElementType(), kept.encoding(type.getContext()));
  Value reshaped = value;
  if (keptType != value.getType())
    reshaped = ReshapeOp::create(builder, loc, keptType, value);
  return BroadcastOp::create(builder, loc, result, reshaped);
}

bool GradientBuilder::isPower(Value power, Value x) {
  for (auto product = power.getDefiningOp<MulOp>(); power != x && product;
       product = power.getDefiningOp<MulOp>()) {
    if (product.getA() != x && product.getB() != x)
      return false;
    power = product.getA() == x ? product.getB() : product.getA();
  }
  return power == x;
}

Value GradientBuilder::swapLast(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  par::Layout layout = par::Layout::of(type);
  SmallVector<int64_t> shape(type.getShape()), permutation;
  int64_t rank = type.getRank();
  for (int64_t i = 0; i < rank; ++i)
    permutation.push_back(i);
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  std::swap(shape[rank - 1], shape[rank - 2]);
  std::swap(layout.shape[rank - 1], layout.shape[rank - 2]);
  std::swap(layout.splits[rank - 1], layout.splits[rank - 2]);
  auto result =
      RankedTensorType::get(shape, type.getElementType(), layout.encoding(type.getContext()));
  return TransposeOp::create(builder, loc, result, value, permutation);
}
