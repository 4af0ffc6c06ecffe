//===- Blockwise.cpp - kernels of numbers in 8 bits and a scale per block ---------------------===//
//
// The runtime's formulas (partita_rt/int8_blocks.h) in double precision.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Interp/Blockwise.h"
#include "dialects/Zero/Zero.h"
#include "lib/Interp/Execution.h"
#include "runtime/include/partita_rt/int8_blocks.h"
#include <cmath>

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// Calls store(i, stored number, scale) for each element, block by block.
template <typename Store> static void eachStored(const Tensor &x, int64_t block, Store store) {
  for (int64_t first = 0; first < x.size(); first += block) {
    double max = 0;
    for (int64_t i = first; i < first + block; ++i)
      max = partita_rt::int8_blocks::maxWith(max, x.number(i));
    double scale = partita_rt::int8_blocks::scaleOf(max),
           inverse = partita_rt::int8_blocks::inverseOf(max);
    for (int64_t i = first; i < first + block; ++i)
      store(i, std::isnan(scale) ? 0 : std::nearbyint(x.number(i) * inverse), scale);
  }
}

static Tensor roundedInBlocks(const Tensor &x, int64_t block) {
  Tensor rounded = x;
  eachStored(x, block,
             [&](int64_t i, double stored, double scale) { rounded.setNumber(i, stored * scale); });
  return rounded;
}

RankTensors interp::roundedInBlocks(const RankTensors &tensors, int64_t block) {
  RankTensors result;
  for (auto [rank, tensor] : llvm::enumerate(tensors)) {
    const auto *same = llvm::find(ArrayRef(tensors).take_front(rank), tensor);
    size_t first = static_cast<size_t>(same - tensors.begin());
    result.push_back(first < rank
                         ? result[first]
                         : std::make_shared<const Tensor>(::roundedInBlocks(*tensor, block)));
  }
  return result;
}

static LogicalResult quantizeBlocks(zero::QuantizeBlocksOp op, Inputs in, Outputs out) {
  auto block = static_cast<int64_t>(op.getBlock());
  eachStored(*in[0], block, [&](int64_t i, double stored, double scale) {
    out[0].setNumber(i, stored);
    out[1].setNumber(i / block, scale);
  });
  return success();
}

static LogicalResult dequantizeBlocks(zero::DequantizeBlocksOp op, Inputs in, Outputs out) {
  auto block = static_cast<int64_t>(op.getBlock());
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].setNumber(i, in[0]->number(i) * in[1]->number(i / block));
  return success();
}

static LogicalResult roundBlocks(zero::RoundBlocksOp op, Inputs in, Outputs out) {
  out[0] = ::roundedInBlocks(*in[0], static_cast<int64_t>(op.getBlock()));
  return success();
}

void interp::addBlockwiseKernels(KernelTable &table) {
  table.add<zero::QuantizeBlocksOp>(quantizeBlocks);
  table.add<zero::DequantizeBlocksOp>(dequantizeBlocks);
  table.add<zero::RoundBlocksOp>(roundBlocks);
}
