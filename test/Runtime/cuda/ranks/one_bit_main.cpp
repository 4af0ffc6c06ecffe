// What partita_rt_one_bit prints, trained on simulated GPUs: terms, sums with a bit per element and 1-bit LAMB's ratios are kernels, what ranks send
// goes through the simulated NCCL. usage: partita_rt_one_bit_gpus RANKS [zero-one|lamb]

#include "gpu_rank.h"
#include "one_bit_training.h"
#include "partita_rt/cuda/comm.h"
#include "partita_rt/cuda/kernels.h"

#include <cstdlib>
#include <map>

using namespace partita_rt;
using namespace partita_rt::cuda;
using one_bit::Tensor;

namespace {

/// Memory of the device, filled from the host's and read back.
template <typename T> struct Mirror {
  std::unique_ptr<DeviceMemory> memory;
  T *from(const T *values, size_t count) {
    if (!memory)
      memory.reset(new DeviceMemory(int64_t(count * sizeof(T)), "an array"));
    checkCuda(cudaMemcpy(memory->base, values, count * sizeof(T), cudaMemcpyHostToDevice),
              "cudaMemcpy");
    return data();
  }
  T *data() const { return reinterpret_cast<T *>(memory->base); }
  void to(T *values, size_t count) const {
    checkCuda(cudaMemcpy(values, memory->base, count * sizeof(T), cudaMemcpyDeviceToHost),
              "cudaMemcpy");
  }
};

class Gpu {
public:
  explicit Gpu(GpuRank &gpu)
      : gpu(gpu), scratch(1 << 16, "scratch"), blocks(1 << 16, "blocks"),
        stream(gpu.device.stream) {
    stream.scratch = scratch.base;
    stream.scratchBytes = 1 << 16;
  }

  void sum(const std::vector<Tensor *> &tensors, bool exact) {
    for (Tensor *each : tensors) {
      Arrays &arrays = of[each];
      float *x = arrays.x.from(each->x.data(), each->x.size()),
            *m = arrays.m.from(each->m.data(), each->m.size());
      if (!arrays.worker.memory) { // later they are the device's own
        arrays.worker.from(each->worker.data(), each->worker.size());
        arrays.server.from(each->server.data(), each->server.size());
      }
      cuda::oneBitTerm(stream, x, x, m, each->n, gpu.rank.ranks, one_bit::kBeta1, 1.0f, exact);
    }
    cuda::oneBitAllReduce(stream, gpu.rank.group(0), {summed(*tensors[0]), summed(*tensors[1])},
                          !exact, blocks.base, "momenta");
    gpu.synchronize();
    for (Tensor *each : tensors)
      of[each].x.to(each->x.data(), each->x.size());
  }

  void frozenRatio(float *ratio, float *coefficient, float *factor, const double *squares,
                   const double *largest, const float *t, const FrozenRatioOptions &options) {
    float numbers[] = {*ratio, *coefficient, *factor, *t};
    double measured[] = {squares[0], squares[1], squares[2], *largest};
    float *all = scalars.from(numbers, 4);
    double *squaresThere = measures.from(measured, 4);
    cuda::frozenRatio(stream, all, all + 1, all + 2, squaresThere, squaresThere + 3, all + 3,
                      nullptr, options);
    gpu.synchronize();
    scalars.to(numbers, 4);
    *ratio = numbers[0], *coefficient = numbers[1], *factor = numbers[2];
  }

  void errors(Tensor &tensor) {
    Arrays &arrays = of[&tensor];
    std::vector<float> servers(size_t(tensor.chunk * gpu.rank.ranks));
    Mirror<float> gathered;
    float *all = gathered.from(servers.data(), servers.size());
    allReduce(gpu.rank.group(0), {{arrays.worker.data(), tensor.n}}, "workers");
    allGather(gpu.rank.group(0), {{arrays.server.data(), all, tensor.chunk}}, "servers");
    gpu.synchronize();
    arrays.worker.to(tensor.worker.data(), tensor.worker.size());
    gathered.to(servers.data(), servers.size());
    tensor.server = servers;
  }

private:
  struct Arrays {
    Mirror<float> x, m, worker, server;
  };
  OneBitTensor summed(const Tensor &tensor) {
    const Arrays &arrays = of[&tensor];
    return {arrays.x.data(), arrays.worker.data(), arrays.server.data(), tensor.n};
  }
  GpuRank &gpu;
  DeviceMemory scratch, blocks;
  Stream stream;
  std::map<const Tensor *, Arrays> of;
  Mirror<float> scalars;
  Mirror<double> measures;
};

} // namespace

int main(int argc, char **argv) {
  int ranks = argc > 1 ? std::atoi(argv[1]) : 2, port = freePort();
  one_bit::Algorithm algorithm = one_bit::algorithmOf(argc > 2 ? argv[2] : "");
  Axis mesh[] = {{"dp", ranks}};
  Group groups[] = {{"dp", {0}}};
  Program program = programOf(mesh, groups);
  int wrong = 0;
  for (const Ended &each : runRanks(ranks, [&](int number) {
         GpuRank gpu(program, number, port);
         Gpu target(gpu);
         one_bit::train(gpu.rank, algorithm, target);
         std::fflush(stdout);
       })) {
    std::fputs(each.text.c_str(), each.code == 0 ? stdout : stderr);
    wrong |= each.code;
  }
  return wrong;
}
