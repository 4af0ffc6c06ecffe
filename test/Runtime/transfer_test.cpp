// Copies between device and host, and updates that the host makes, against the plain ones.

#include "cpu/transfer.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace partita_rt;

namespace {

std::vector<float> numbers(int64_t n, float scale) {
  std::vector<float> result(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    result[size_t(i)] = scale * float((i * 7919) % 1009 - 504) / 504.0f;
  return result;
}

TEST(Transfer, CopiesInOrderAndCountsBytes) {
  TransferEngine engine;
  Rank rank;
  rank.transfers = &engine;
  std::vector<float> device = numbers(100000, 1), host(100000), back(100000);
  HostCopy there = toHostStart(rank, host.data(), device.data(), 400000);
  HostCopy here = toDeviceStart(rank, back.data(), host.data(), 400000); // behind the other
  EXPECT_EQ(transfersUnderWay(rank), 2);
  wait(rank, here);
  EXPECT_EQ(back, device);
  EXPECT_EQ(transfersUnderWay(rank), 0); // the first with the second
  wait(rank, there);
  toHost(rank, host.data(), back.data() + 1, 4);
  EXPECT_EQ(host[0], device[1]);
  EXPECT_EQ(transferred(rank).toHost, 400004);
  EXPECT_EQ(transferred(rank).toDevice, 400000);
}

/// The same bits as adamwUpdate, whatever the tile, and nothing moved that need not be.
TEST(HostUpdate, AdamWIsThePlainOne) {
  for (Home home : {Home::Device, Home::Host})
    for (int64_t n : {1, 64, 1000, 1025})
      for (int64_t tile : {64, 1000, 4096}) {
        TransferEngine engine;
        Rank rank;
        rank.transfers = &engine;
        std::vector<float> p = numbers(n, 1), m = numbers(n, 0.1f), v(size_t(n), 0.01f),
                           g = numbers(n, 0.3f), staging(size_t(stagingElements(home, tile)));
        std::vector<float> p2 = p, m2 = m, v2 = v;
        AdamW options{0.01f, 0.9f, 0.999f, 1e-8f, 0.1f, 3};
        adamwUpdate(p.data(), m.data(), v.data(), g.data(), n, options);
        adamwUpdateOnHost(rank, home, p2.data(), m2.data(), v2.data(), g.data(), n, options,
                          staging.data(), tile);
        EXPECT_EQ(p, p2);
        EXPECT_EQ(m, m2);
        EXPECT_EQ(v, v2);
        EXPECT_EQ(transferred(rank).toHost, (home == Home::Device ? 8 : 4) * n);
        EXPECT_EQ(transferred(rank).toDevice, home == Home::Device ? 4 * n : 0);
        EXPECT_EQ(transfersUnderWay(rank), 0);
      }
}

TEST(HostUpdate, SgdIsThePlainOne) {
  for (Home home : {Home::Device, Home::Host}) {
    TransferEngine engine;
    Rank rank;
    rank.transfers = &engine;
    std::vector<float> p = numbers(1000, 1), g = numbers(1000, 0.3f),
                       staging(size_t(stagingElements(home, 300))), p2 = p;
    Sgd options{0.01f, 0.0f, 0.1f};
    sgdUpdate(p.data(), nullptr, g.data(), 1000, options);
    sgdUpdateOnHost(rank, home, p2.data(), g.data(), 1000, options, staging.data(), 300);
    EXPECT_EQ(p, p2);
  }
}

} // namespace
