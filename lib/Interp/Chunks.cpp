//===- Chunks.cpp - sums of numbers in 4 bits -------------------------------------------------===//
//
// The runtime's formulas (partita_rt/int4_chunks.h) in double precision, but for a scale, which is the float32 that is sent. Twice: a
// reduce-scatter rounds without packing anything, so that the two check one another.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Interp/Chunks.h"
#include "dialects/Zero/Zero.h"
#include "runtime/include/partita_rt/int4_chunks.h"
#include "runtime/include/partita_rt/int8_blocks.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace partita;
using namespace partita::interp;
namespace int4 = partita_rt::int4_chunks;

namespace {

/// A block as it is stored.
struct StoredBlock {
  float scale;
  SmallVector<int> numbers;

  /// Of elements [first, first + count) of x; what is behind its end is zero.
  StoredBlock(const Tensor &x, int64_t first, int64_t count) {
    auto element = [&](int64_t i) { return first + i < x.size() ? x.number(first + i) : 0.0; };
    double max = 0;
    for (int64_t i = 0; i < count; ++i)
      max = partita_rt::int8_blocks::maxWith(max, element(i));
    bool isFinite = !std::isnan(max);
    scale = isFinite ? static_cast<float>(int4::scaleOf(max)) : NAN;
    for (int64_t i = 0; i < count; ++i)
      numbers.push_back(
          isFinite ? static_cast<int>(std::nearbyint(element(i) * int4::inverseOf(max))) : 0);
  }
};

/// The bytes of a tensor, one per element.
void putWord(Tensor &bytes, int64_t at, uint32_t word) {
  for (int64_t i = 0; i < 4; ++i)
    bytes.ints[at + i] = static_cast<int8_t>(word >> (8 * i));
}
uint32_t wordAt(const Tensor &bytes, int64_t at) {
  uint32_t word = 0;
  for (int64_t i = 0; i < 4; ++i)
    word |= static_cast<uint32_t>(static_cast<uint8_t>(bytes.ints[at + i])) << (8 * i);
  return word;
}

/// Writes the chunk of elements [first, first + size) of x.
void putChunk(Tensor &bytes, int64_t at, const Tensor &x, int64_t first, int64_t size,
              int64_t block) {
  int64_t numbers = at + int4::scaleBytes(size, block);
  for (int64_t begin = 0; begin < size; begin += block) {
    StoredBlock stored(x, first + begin, std::min(block, size - begin));
    putWord(bytes, at + 4 * (begin / block), llvm::bit_cast<uint32_t>(stored.scale));
    for (auto [i, number] : llvm::enumerate(stored.numbers)) {
      int64_t element = begin + static_cast<int64_t>(i),
              word = numbers + 4 * (element / int4::kWord);
      putWord(bytes, word,
              wordAt(bytes, word) | (static_cast<uint32_t>(number) & 15)
                                        << (4 * (element % int4::kWord)));
    }
  }
}

double numberIn(const Tensor &bytes, int64_t at, int64_t size, int64_t block, int64_t i) {
  auto scale = llvm::bit_cast<float>(wordAt(bytes, at + 4 * (i / block)));
  uint32_t word = wordAt(bytes, at + int4::scaleBytes(size, block) + 4 * (i / int4::kWord));
  int number = static_cast<int>(word >> (4 * (i % int4::kWord)) & 15);
  return double(number < 8 ? number : number - 16) * double(scale);
}

LogicalResult quantizeChunks(zero::QuantizeChunksOp op, Inputs in, Outputs out) {
  auto block = static_cast<int64_t>(op.getBlock());
  auto mesh = par::MeshAttr::of(op);
  int64_t ranks = mesh.sizeOf(op.getAxisAttr()), row = out[0].size() / ranks, offset = 0;
  for (auto [x, value] : llvm::zip_equal(in, op.getValues())) {
    int64_t size = zero::shardType(value.getType(), op.getAxisAttr(), mesh).getNumElements();
    for (int64_t rank = 0; rank < ranks; ++rank)
      putChunk(out[0], rank * row + offset, *x, rank * size, size, block);
    offset += int4::chunkBytes(size, block);
  }
  return success();
}

LogicalResult sumChunks(zero::SumChunksOp op, Inputs in, Outputs out) {
  auto block = static_cast<int64_t>(op.getBlock());
  int64_t ranks = par::MeshAttr::of(op).sizeOf(op.getAxisAttr()), row = in[0]->size() / ranks,
          offset = 0;
  for (Tensor &shard : out) {
    for (int64_t i = 0; i < shard.size(); ++i) {
      double sum = 0;
      for (int64_t rank = 0; rank < ranks; ++rank)
        sum += numberIn(*in[0], rank * row + offset, shard.size(), block, i);
      shard.setNumber(i, sum);
    }
    offset += int4::chunkBytes(shard.size(), block);
  }
  return success();
}

template <typename Op>
LogicalResult exchangeChunks(Execution &execution, Op op, ArrayRef<RankTensors> in,
                             MutableArrayRef<RankTensors> out) {
  RankTensors &received = out[op->getNumResults() - 1];
  auto type = cast<RankedTensorType>(op->getResult(op->getNumResults() - 1).getType());
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    SmallVector<int64_t> group = execution.mesh().group(rank, op.getAxis());
    int64_t own = execution.mesh().coordinate(rank, op.getAxis());
    Tensor rows(type);
    int64_t row = rows.size() / static_cast<int64_t>(group.size());
    for (auto [sender, member] : llvm::enumerate(group))
      for (int64_t i = 0; i < row; ++i)
        rows.copyElement(static_cast<int64_t>(sender) * row + i, *in[0][member], own * row + i);
    received.push_back(std::make_shared<Tensor>(std::move(rows)));
  }
  return success();
}

} // namespace

RankTensors interp::scatteredInBlocks(Execution &execution, StringRef axis,
                                      const RankTensors &values, RankedTensorType shard,
                                      int64_t block) {
  RankTensors shards;
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor sum(shard);
    int64_t first = execution.mesh().coordinate(rank, axis) * sum.size();
    for (int64_t sender : execution.mesh().group(rank, axis))
      for (int64_t begin = 0; begin < sum.size(); begin += block) {
        StoredBlock stored(*values[sender], first + begin, std::min(block, sum.size() - begin));
        for (auto [i, number] : llvm::enumerate(stored.numbers))
          sum.reals[begin + static_cast<int64_t>(i)] += double(number) * double(stored.scale);
      }
    shards.push_back(std::make_shared<Tensor>(std::move(sum)));
  }
  return shards;
}

void interp::addChunkKernels(KernelTable &table) {
  table.add<zero::QuantizeChunksOp>(quantizeChunks);
  table.add<zero::SumChunksOp>(sumChunks);
  table.addRanks<zero::ExchangeChunksOp>(exchangeChunks<zero::ExchangeChunksOp>);
  table.addRanks<zero::ExchangeChunksStartOp>(exchangeChunks<zero::ExchangeChunksStartOp>);
}
