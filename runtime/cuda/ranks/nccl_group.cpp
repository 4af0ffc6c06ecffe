// Collectives as entries of a queue (nccl_group.h); a group of one rank.

#include "cuda/ranks/nccl_group.h"
#include "cuda/cuda.h"

namespace partita_rt::cuda {

NcclGroup::NcclGroup(const char *axis, std::string key, int rank, int size, ncclComm_t comm,
                     Device &device, std::shared_ptr<Watchdog> watchdog)
    : Communicator(axis, rank, size),
      NcclQueue({std::move(key), "axis", axis, "collective"}, comm, device, std::move(watchdog)),
      word(4, "barriers") {
  checkCuda(cudaMemset(word.base, 0, 4), "cudaMemset");
}

Pending NcclGroup::start(Request request) {
  CollectiveCount &count = counts[int(request.kind)];
  ++count.calls;
  count.bytes += request.bytes(groupSize);
  std::string text = signatureOf(request, ++started, groupSize).text();
  return {this, begin(text, text, [&] { issue(request); })};
}

//===-- A group of one rank -----------------------------------------------------------------===//

Pending LonelyGroup::start(Request request) {
  int64_t width = sizeOf(request.dtype);
  for (const Item &item : request.items)
    if (item.from != item.to && item.count > 0)
      checkCuda(cudaMemcpyAsync(item.to, item.from, size_t(item.count * width),
                                cudaMemcpyDeviceToDevice, device.stream.handle),
                "a copy in a group of one");
  return {};
}

} // namespace partita_rt::cuda
