// Sums with one bit per element (one_bit.h), between what ranks send.

#include "cpu/kernels/one_bit.h"

#include "cpu/kernels/vector.h"
#include "partita_rt/kernels.h"
#include "partita_rt/one_bit_momentum.h"

#include <cmath>

namespace partita_rt {

//===-- Kernels

namespace {

constexpr IntLanes kLaneBits = {1 << 0,  1 << 1,  1 << 2,  1 << 3, 1 << 4,  1 << 5,
                                1 << 6,  1 << 7,  1 << 8,  1 << 9, 1 << 10, 1 << 11,
                                1 << 12, 1 << 13, 1 << 14, 1 << 15};

/// The signs of sixteen elements, the first one lowest.
uint16_t signsOf(Lanes x) {
#if defined(__AVX512F__)
  return uint16_t(_mm512_cmp_ps_mask(__m512(x), _mm512_setzero_ps(), _CMP_GE_OQ));
#else
  IntLanes bits = IntLanes(x >= Lanes{}) & kLaneBits;
  int32_t all = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    all |= bits[lane];
  return uint16_t(all);
#endif
}

/// Sixteen times `scale`, with the signs.
Lanes signedScale(uint16_t signs, float scale) {
  IntLanes set = (IntLanes{} + int32_t(signs)) & kLaneBits;
  return set != 0 ? Lanes{} + scale : Lanes{} - scale;
}

bool isSet(const uint8_t *bits, int64_t i) { return (bits[i / 8] >> (i % 8) & 1) != 0; }

} // namespace

void packSigns(uint8_t *bits, const float *x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    uint16_t signs = signsOf(load(x + i));
    bits[i / 8] = uint8_t(signs);
    bits[i / 8 + 1] = uint8_t(signs >> 8);
  }
  for (; i < n; i += 8) {
    uint8_t byte = 0;
    for (int64_t j = i; j < std::min(i + 8, n); ++j)
      byte = uint8_t(byte | (x[j] >= 0 ? 1 << (j - i) : 0));
    bits[i / 8] = byte;
  }
}

void addSigns(float *y, const uint8_t *bits, float scale, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    auto signs = uint16_t(bits[i / 8] | bits[i / 8 + 1] << 8);
    store(y + i, load(y + i) + signedScale(signs, scale));
  }
  for (; i < n; ++i)
    y[i] += isSet(bits, i) ? scale : -scale;
}

float signScale(const float *x, int64_t n) {
  double lanes[kSignScaleLanes] = {};
  for (int64_t block = 0; block * kSignScaleBlock < n; ++block)
    lanes[block % kSignScaleLanes] += sumOfSquares(
        x + block * kSignScaleBlock, std::min(kSignScaleBlock, n - block * kSignScaleBlock));
  for (int64_t with = kSignScaleLanes / 2; with > 0; with /= 2)
    for (int64_t lane = 0; lane < with; ++lane)
      lanes[lane] += lanes[lane + with];
  return n == 0 ? 0.0f : float(std::sqrt(lanes[0] / double(n)));
}

//===-- The sum

/// Packs the signs of `n` elements into the place of a chunk of `chunk`, and zeroes the rest, so that no stale memory is sent.
static void packChunk(uint8_t *bits, const float *x, int64_t n, int64_t chunk) {
  packSigns(bits, x, n);
  std::fill(bits + (n + 7) / 8, bits + (chunk + 7) / 8, uint8_t(0));
}

void packForServers(const OneBitBlocks &blocks, uint8_t *sent) {
  blocks.forTensors([&](const OneBitTensor &tensor, size_t number, int64_t offset) {
    for (int64_t i = 0; i < tensor.valid; ++i)
      tensor.values[i] += tensor.worker[i];
    float scale = signScale(tensor.values, tensor.valid);
    for (int rank = 0; rank < blocks.ranks; ++rank) {
      uint8_t *block = sent + rank * blocks.bytes;
      OneBitBlocks::setScale(block, number, scale);
      packChunk(block + offset, tensor.values + blocks.first(tensor, rank),
                blocks.size(tensor, rank), oneBitChunk(tensor.count, blocks.ranks));
    }
  });
}

static bool allScalesFinite(const OneBitBlocks &blocks, const uint8_t *received) {
  bool finite = true;
  for (int rank = 0; rank < blocks.ranks; ++rank)
    for (size_t number = 0; number < blocks.tensors.size(); ++number)
      finite &= std::isfinite(OneBitBlocks::scaleAt(received + rank * blocks.bytes, number));
  return finite;
}

void serveSums(const OneBitBlocks &blocks, int self, const uint8_t *sent, const uint8_t *received,
               uint8_t *served) {
  if (!allScalesFinite(blocks, received))
    return void(std::fill_n(served, blocks.bytes, uint8_t(0xff)));
  blocks.forTensors([&](const OneBitTensor &tensor, size_t number, int64_t offset) {
    float scale = OneBitBlocks::scaleAt(sent, number);
    for (int64_t i = 0; i < tensor.valid; ++i)
      tensor.worker[i] = tensor.values[i] - (tensor.values[i] >= 0 ? scale : -scale);
    int64_t n = blocks.size(tensor, self);
    float *y = tensor.values + blocks.first(tensor, self);
    std::copy_n(tensor.server, n, y);
    for (int rank = 0; rank < blocks.ranks; ++rank) {
      const uint8_t *block = received + rank * blocks.bytes;
      addSigns(y, block + offset, OneBitBlocks::scaleAt(block, number), n);
    }
    float total = signScale(y, n);
    OneBitBlocks::setScale(served, number, total);
    packChunk(served + offset, y, n, oneBitChunk(tensor.count, blocks.ranks));
    if (std::isfinite(total))
      for (int64_t i = 0; i < n; ++i)
        tensor.server[i] = y[i] - (y[i] >= 0 ? total : -total);
  });
}

void unpackSums(const OneBitBlocks &blocks, const uint8_t *received) {
  blocks.forTensors([&](const OneBitTensor &tensor, size_t number, int64_t offset) {
    std::fill_n(tensor.values, tensor.count, 0.0f); // padding too
    for (int rank = 0; rank < blocks.ranks; ++rank) {
      const uint8_t *block = received + rank * blocks.bytes;
      float scale = OneBitBlocks::scaleAt(block, number);
      float *values = tensor.values + blocks.first(tensor, rank);
      int64_t n = blocks.size(tensor, rank);
      if (std::isnan(scale))
        std::fill_n(values, n, NAN);
      else
        addSigns(values, block + offset, scale, n);
    }
  });
}

/// A product that is rounded by itself.
static Lanes roundedTimes(Lanes a, Lanes b) { return rounded(a * b); }

void oneBitTerm(float *x, const float *g, const float *m, int64_t n, int ranks, double beta,
                float scale, bool exact) {
  if (exact) {
    if (x != g)
      std::copy_n(g, n, x);
    return;
  }
  Lanes count = splat(float(ranks)), change = splat(float(1 - beta)), factor = splat(scale);
  auto term = [&](Lanes gradient, Lanes mean) {
    return termOfMean(mean, count, gradient, change, factor, roundedTimes);
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(x + i, term(load(g + i), load(m + i)));
  if (int64_t rest = n - i)
    storePart(x + i, term(loadPart(g + i, rest, 0), loadPart(m + i, rest, 0)), rest);
}

void oneBitMean(float *m, const float *sum, int64_t n, double beta, float scale, bool exact) {
  if (!exact)
    return void(std::copy_n(sum, n, m));
  Lanes change = splat(float(1 - beta)), factor = splat(scale);
  auto mean = [&](Lanes old, Lanes gradient) {
    return nextMean(old, gradient, change, factor, roundedTimes);
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(m + i, mean(load(m + i), load(sum + i)));
  if (int64_t rest = n - i)
    storePart(m + i, mean(loadPart(m + i, rest, 0), loadPart(sum + i, rest, 0)), rest);
}

} // namespace partita_rt
