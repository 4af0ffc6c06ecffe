// The hash of replicas is the CPU's, at every address and size.

#include "partita_rt/replica_hash.h"
#include "simulated.h"

#include <numeric>

namespace partita_rt::cuda {
namespace {

TEST(ReplicaHash, IsTheHostsAndAddsUp) {
  for (int64_t bytes : {1, 2, 4, 7, 1000, 32'768, 32'770, 100'001})
    for (int64_t offset : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes at offset " << offset);
      std::vector<unsigned char> data(size_t(bytes + offset));
      std::iota(data.begin(), data.end(), static_cast<unsigned char>(3));
      uint64_t first = uint64_t(bytes) * 7,
               expected = replicaHash(data.data() + offset, bytes, first);
      inEveryOrder([&] {
        OnDevice<unsigned char> in(data);
        OnDevice<uint64_t> sum({5});
        addReplicaHash(SimulatedStream(), sum.data, in.data + offset, bytes, first);
        EXPECT_EQ(sum.values()[0], expected + 5);
      });
    }
}

} // namespace
} // namespace partita_rt::cuda
