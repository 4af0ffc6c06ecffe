// Sums with one bit per element: what a rank sends, sums, errors and updated means are the CPU's bit for bit, over any number of ranks, of
// tensors of all sizes, aligned or not; with numbers that are not finite too.

#include "simulated.h"

#include "cpu/kernels/one_bit.h"
#include "cuda/kernels/one_bit.h"

#include <functional>
#include <utility>

namespace partita_rt::cuda {
namespace {

/// Tensors, with errors, of one rank; `offset` elements behind an aligned address.
struct Held {
  std::vector<Tensor<float>> values, workers, servers;
  std::vector<OneBitTensor> all;
  Held(const std::vector<int64_t> &counts, int rank, int ranks, int64_t offset) {
    for (int64_t n : counts) {
      std::string name = std::to_string(rank) + "/" + std::to_string(values.size());
      values.emplace_back(randomFloats(n, ("x" + name).c_str(), 1.0), offset);
      workers.emplace_back(randomFloats(n, ("w" + name).c_str(), 0.1), offset);
      servers.emplace_back(randomFloats(oneBitChunk(n, ranks), ("s" + name).c_str(), 0.1), offset);
    }
    for (size_t i = 0; i < counts.size(); ++i) // moved no more
      all.push_back({values[i].data(), workers[i].data(), servers[i].data(), counts[i]});
  }
};

/// Bytes at an odd address.
using Bytes = std::vector<uint8_t>;

/// A target's kernels.
struct Kernels {
  uint8_t stale; ///< what memory that is sent holds before
  std::function<void(const OneBitBlocks &, uint8_t *)> pack;
  std::function<void(const OneBitBlocks &, int, const uint8_t *, const uint8_t *, uint8_t *)> serve;
  std::function<void(const OneBitBlocks &, const uint8_t *)> unpack;
};

/// What all ranks have sent, and then served.
struct Wire {
  std::vector<Bytes> sent;
  Bytes served;
};

/// The sum over ranks, which exchange their blocks here.
template <size_t... i>
Wire sum(std::vector<Held> &ranks, const Kernels &kernels, std::index_sequence<i...>) {
  int size = int(ranks.size());
  Wire wire;
  int64_t bytes = 0;
  for (Held &each : ranks) {
    OneBitTensors tensors = {each.all[i]...};
    OneBitBlocks blocks(tensors, size);
    bytes = blocks.bytes;
    Bytes sent(size_t(bytes * size + 1), kernels.stale);
    sent.front() = 0; // only for the address
    kernels.pack(blocks, sent.data() + 1);
    wire.sent.push_back(sent);
  }
  wire.served.assign(size_t(bytes * size + 1), kernels.stale);
  wire.served.front() = 0;
  for (int self = 0; self < size; ++self) {
    Bytes received(size_t(bytes * size + 1));
    for (int from = 0; from < size; ++from)
      std::copy_n(wire.sent[size_t(from)].data() + 1 + self * bytes, bytes,
                  received.data() + 1 + from * bytes);
    OneBitTensors tensors = {ranks[size_t(self)].all[i]...};
    kernels.serve(OneBitBlocks(tensors, size), self, wire.sent[size_t(self)].data() + 1,
                  received.data() + 1, wire.served.data() + 1 + self * bytes);
  }
  for (Held &each : ranks) {
    OneBitTensors tensors = {each.all[i]...};
    kernels.unpack(OneBitBlocks(tensors, size), wire.served.data() + 1);
  }
  return wire;
}

const Kernels kOnCpu{
    0xa5,
    [](const OneBitBlocks &blocks, uint8_t *sent) { partita_rt::packForServers(blocks, sent); },
    [](const OneBitBlocks &blocks, int self, const uint8_t *sent, const uint8_t *received,
       uint8_t *served) { partita_rt::serveSums(blocks, self, sent, received, served); },
    [](const OneBitBlocks &blocks, const uint8_t *received) {
      partita_rt::unpackSums(blocks, received);
    }};

/// On a stream with exactly the announced memory.
Kernels onGpu(const Stream &stream) {
  return {0x5a,
          [&](const OneBitBlocks &blocks, uint8_t *sent) { packForServers(stream, blocks, sent); },
          [&](const OneBitBlocks &blocks, int self, const uint8_t *sent, const uint8_t *received,
              uint8_t *served) { serveSums(stream, blocks, self, sent, received, served); },
          [&](const OneBitBlocks &blocks, const uint8_t *received) {
            unpackSums(stream, blocks, received);
          }};
}

/// Bit for bit; what is no number equals what is none.
void expectSame(const std::vector<Tensor<float>> &found, const std::vector<Tensor<float>> &expected,
                const char *what) {
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i].marginsKept()) << what << " " << i;
    Floats a = found[i].floats(), b = expected[i].floats();
    for (size_t at = 0; at < a.size(); ++at)
      if (std::isnan(a[at]) ? !std::isnan(b[at]) : std::memcmp(&a[at], &b[at], 4) != 0) {
        ADD_FAILURE() << what << " " << i << " at " << at << ": " << a[at] << ", not " << b[at];
        break;
      }
  }
}

using Change = std::function<void(std::vector<Held> &)>;

/// Returns rank 0's tensors after the sum.
template <size_t kCount>
Held checkSum(const std::vector<int64_t> &counts, int ranks, int64_t offset,
              const Change &change = {}, bool sameBytes = true) {
  SCOPED_TRACE(testing::Message() << ranks << " ranks at " << offset);
  EXPECT_EQ(counts.size(), kCount);
  int64_t blocks = 0;
  for (int64_t n : counts)
    blocks += signScaleBlocks(n);
  SimulatedStream stream(oneBitSumScratch(blocks));
  std::vector<Held> expected, found;
  for (std::vector<Held> *each : {&expected, &found}) {
    for (int rank = 0; rank < ranks; ++rank)
      each->emplace_back(counts, rank, ranks, offset);
    if (change)
      change(*each);
  }
  Wire wire = sum(expected, kOnCpu, std::make_index_sequence<kCount>()),
       ours = sum(found, onGpu(stream), std::make_index_sequence<kCount>());
  if (sameBytes) {
    EXPECT_EQ(ours.sent, wire.sent);
    EXPECT_EQ(ours.served, wire.served);
  }
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    expectSame(found[rank].values, expected[rank].values, "values");
    expectSame(found[rank].workers, expected[rank].workers, "worker");
    expectSame(found[rank].servers, expected[rank].servers, "server");
  }
  return std::move(found[0]);
}

TEST(OneBitOnGpu, SumsAreTheCpusBitForBit) {
  inEveryOrder([] {
    for (int ranks : {1, 2, 3, 4})
      for (int64_t offset : {0, 1})
        checkSum<6>({35, 1, 3, 4096, 4097, 20011}, ranks, offset);
  });
  checkSum<2>({7, 2}, 9, 0); // most chunks are empty
}

/// More than 256 blocks of a scale, and more tensors than one launch takes.
TEST(OneBitOnGpu, ManyBlocksAndTensors) {
  checkSum<2>({270 * 4096 + 5, 64}, 2, 0);
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < 130; ++i)
    counts.push_back(1 + i * 37 % 101);
  checkSum<130>(counts, 3, 0);
}

TEST(OneBitOnGpu, ZerosHaveSigns) {
  Held sums = checkSum<2>({40, 4}, 2, 0, [](std::vector<Held> &ranks) {
    for (Held &each : ranks)
      for (std::vector<Tensor<float>> *some : {&each.values, &each.workers, &each.servers})
        for (Tensor<float> &tensor : *some)
          std::fill_n(tensor.data(), tensor.floats().size(), -0.0f);
  });
  for (float each : sums.values[0].floats())
    EXPECT_FALSE(std::signbit(each));
}

/// Makes the tensors' ends padding, which holds `value` on all ranks and has no errors.
void pad(std::vector<Held> &ranks, const std::vector<int64_t> &valid, float value) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (size_t i = 0; i < valid.size(); ++i) {
      OneBitTensor &tensor = ranks[rank].all[i];
      tensor.valid = valid[i];
      std::fill(tensor.values + valid[i], tensor.values + tensor.count, value);
      std::fill(tensor.worker + valid[i], tensor.worker + tensor.count, 0.0f);
      int64_t chunk = oneBitChunk(tensor.count, int64_t(ranks.size()));
      for (int64_t j = 0; j < chunk; ++j)
        if (int64_t(rank) * chunk + j >= valid[i])
          tensor.server[j] = 0;
    }
}

void expectZeros(const Tensor<float> &tensor, int64_t from) {
  Floats values = tensor.floats();
  for (size_t i = size_t(from); i < values.size(); ++i)
    if (std::signbit(values[i]) || values[i] != 0) {
      ADD_FAILURE() << "padding " << i << " is " << values[i];
      return;
    }
}

/// Whatever is in it: nothing of a chunk, one element, all but one, all; chunks that are padding alone.
TEST(OneBitOnGpu, PaddingIsZeroAndHasNoBits) {
  const std::vector<int64_t> counts = {42, 20011, 4097};
  for (std::vector<int64_t> valid : {std::vector<int64_t>{0, 1, 4096},
                                     {1, 0, 4097},
                                     {11, 5003, 1},
                                     {41, 20010, 0},
                                     {21, 12000, 2049},
                                     {42, 20011, 4097}})
    for (int ranks : {2, 3, 4})
      for (int64_t offset : {0, 1}) {
        Held sums = checkSum<3>(counts, ranks, offset,
                                [&](std::vector<Held> &all) { pad(all, valid, NAN); });
        for (size_t i = 0; i < counts.size(); ++i) {
          expectZeros(sums.values[i], valid[i]);
          expectZeros(sums.workers[i], valid[i]);
          expectZeros(sums.servers[i],
                      std::min(valid[i], oneBitChunk(counts[i], ranks))); // rank 0's chunk
        }
      }
  inEveryOrder([&] {
    checkSum<3>(counts, 3, 1, [](std::vector<Held> &all) { pad(all, {30, 9000, 4000}, INFINITY); });
  });
}

/// Padding is 0 where all other values are not finite.
TEST(OneBitOnGpu, PaddingIsNotSpoilt) {
  Held sums = checkSum<2>(
      {5000, 33}, 3, 0,
      [](std::vector<Held> &ranks) {
        pad(ranks, {4000, 12}, 0);
        ranks[2].values[1].data()[7] = NAN;
      },
      /*sameBytes=*/false);
  expectZeros(sums.values[0], 4000);
  expectZeros(sums.values[1], 12);
  EXPECT_TRUE(std::isnan(sums.values[0].floats()[3999]));
  EXPECT_TRUE(std::isnan(sums.values[1].floats()[11]));
}

/// Whatever is not finite on one rank spoils the values of all, and no error.
TEST(OneBitOnGpu, WhatIsNotFiniteSpoilsAllValuesAndNoError) {
  for (float wrong : {float(NAN), float(INFINITY), -float(INFINITY), 3e38f}) {
    SCOPED_TRACE(wrong);
    std::vector<int64_t> counts = {5000, 1, 33};
    Held before(counts, 0, 3, 0),
        sums = checkSum<3>(
            counts, 3, 0, [&](std::vector<Held> &ranks) { ranks[2].values[2].data()[7] = wrong; },
            /*sameBytes=*/std::isfinite(wrong));
    for (const Tensor<float> &each : sums.values)
      for (float value : each.floats())
        EXPECT_EQ(std::isnan(value), !std::isfinite(wrong));
    EXPECT_EQ(sums.workers[0].floats() == before.workers[0].floats(), !std::isfinite(wrong));
    EXPECT_EQ(sums.servers[0].floats() == before.servers[0].floats(), !std::isfinite(wrong));
  }
}

/// A server's own sum may overflow where no rank's value does.
TEST(OneBitOnGpu, ASumThatOverflowsKeepsTheServersErrors) {
  std::vector<int64_t> counts = {8};
  Held before(counts, 0, 2, 0), sums = checkSum<1>(counts, 2, 0, [](std::vector<Held> &ranks) {
                                  for (Held &each : ranks)
                                    for (int64_t i = 0; i < 8; ++i)
                                      each.values[0].data()[i] = 3e38f;
                                });
  for (float value : sums.values[0].floats())
    EXPECT_EQ(value, INFINITY);
  EXPECT_EQ(sums.servers[0].floats(), before.servers[0].floats());
}

TEST(OneBitOnGpu, TermsAndMeansAreTheCpusBitForBit) {
  for (int64_t n : {1, 8, 1003})
    for (int64_t offset : {0, 1})
      for (bool exact : {false, true})
        for (int ranks : {1, 3}) {
          SimulatedStream stream;
          std::unique_ptr<double> beta(new double(0.9));
          std::unique_ptr<float> scale(new float(0.3f));
          Tensor<float> g(randomFloats(n, "g"), offset), m(randomFloats(n, "m"), offset),
              x(n, offset), expected(n, offset);
          partita_rt::oneBitTerm(expected.data(), g.in(), m.in(), n, ranks, 0.9, 0.3f, exact);
          oneBitTerm(stream, x.data(), g.in(), m.in(), n, ranks, beta.get(), scale.get(), exact);
          EXPECT_BITS(x, expected.floats());
          oneBitTerm(stream, g.data(), g.in(), m.in(), n, ranks, 0.9, 0.3f, exact); // in place
          EXPECT_BITS(g, expected.floats());
          Tensor<float> mean(m.floats(), offset);
          partita_rt::oneBitMean(mean.data(), x.in(), n, 0.9, 0.3f, exact);
          oneBitMean(stream, m.data(), x.in(), n, beta.get(), scale.get(), exact);
          EXPECT_BITS(m, mean.floats());
        }
}

TEST(OneBitOnGpu, ClipFactorsAreTheCpus) {
  SimulatedStream stream;
  std::unique_ptr<double> beta(new double(0.9));
  std::unique_ptr<float> sums(new float(0)), gradients(new float(0)), typical(new float(1)),
      factor(new float(0)), t(new float(0));
  float expected[] = {0, 0, 1};
  for (int step = 1; step <= 40; ++step) {
    *t = float(step);
    *factor = 1 / float(1 + step % 5);
    ExactSteps exact{30, 3};
    partita_rt::oneBitClip(&expected[0], &expected[1], &expected[2], *factor, *t, 0.9, exact);
    oneBitClip(stream, sums.get(), gradients.get(), typical.get(), factor.get(), t.get(),
               beta.get(), exact);
    EXPECT_EQ(*sums, expected[0]) << step;
    EXPECT_FLOAT_EQ(*gradients, expected[1]) << step;
    EXPECT_FLOAT_EQ(*typical, expected[2]) << step; // a power, which GPUs round by themselves
  }
}

} // namespace
} // namespace partita_rt::cuda
