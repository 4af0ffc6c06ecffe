// Copies between device and host, and updates by the host, against plain ones.

#include "cpu/ranks/transfer.h"

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
  HostCopy here = toDeviceStart(rank, back.data(), host.data(), 400000); // after the other
  EXPECT_EQ(transfersUnderWay(rank), 2);
  wait(rank, here);
  EXPECT_EQ(back, device);
  EXPECT_EQ(transfersUnderWay(rank), 0); // the first completed with the second
  wait(rank, there);
  toHost(rank, host.data(), back.data() + 1, 4);
  EXPECT_EQ(host[0], device[1]);
  EXPECT_EQ(transferred(rank).toHost, 400004);
  EXPECT_EQ(transferred(rank).toDevice, 400000);
}

/// Tiles do not change the bits, whatever their size, and only the necessary bytes are moved.
TEST(HostUpdate, IsThePlainOne) {
  auto update = [](float *p, float *m, const float *g, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      p[i] -= m[i] = 0.9f * m[i] + g[i] * p[i];
  };
  for (Home home : {Home::Device, Home::Host})
    for (int64_t n : {1, 64, 1000, 1025})
      for (int64_t tile : {64, 1000, 4096}) {
        TransferEngine engine;
        Rank rank;
        rank.transfers = &engine;
        std::vector<float> p = numbers(n, 1), m = numbers(n, 0.1f), g = numbers(n, 0.3f),
                           staging(size_t(stagingElements(home, tile)));
        std::vector<float> p2 = p, m2 = m;
        update(p.data(), m.data(), g.data(), n);
        updateOnHost(rank, home, p2.data(), g.data(), n, staging.data(), tile,
                     [&](float *tileP, const float *tileG, int64_t from, int64_t count) {
                       update(tileP, m2.data() + from, tileG, count);
                     });
        EXPECT_EQ(p, p2);
        EXPECT_EQ(m, m2);
        EXPECT_EQ(transferred(rank).toHost, (home == Home::Device ? 8 : 4) * n);
        EXPECT_EQ(transferred(rank).toDevice, home == Home::Device ? 4 * n : 0);
        EXPECT_EQ(transfersUnderWay(rank), 0);
      }
}

} // namespace
