// What cuDNN's attention supports in 16 bits, without what whyNotFused never asks for (bias, window, dropout, pages,
// ragged rows): the support matrix of cuDNN 9.18.1 in NVIDIA's documentation of cudnn-frontend,
//   https://docs.nvidia.com/deeplearning/cudnn/frontend/latest/operations/Attention.html
// (docs/operations/Attention.md of github.com/NVIDIA/cudnn-frontend at 0512390c9de2, read in November 2026), one row for
// each of its rows. Of all: heads are multiples of 8; queries, keys and values have heads of one size, but for `pairs`; with
// and without a causal mask; both 16-bit types; deterministic.

#ifndef PARTITA_TEST_RUNTIME_CUDA_CUDNN_SUPPORT_H
#define PARTITA_TEST_RUNTIME_CUDA_CUDNN_SUPPORT_H

#include <cstdint>
#include <utility>
#include <vector>

namespace partita_rt::cuda {

/// Decode: a single query; prefill: the other forward passes.
enum class CudnnPass { Prefill, Decode, Backward };

struct CudnnSupport {
  const char *gpus;
  std::vector<int> capabilities; ///< as NVIDIA's table of GPUs has them
  CudnnPass pass;
  int64_t widest;                                 ///< heads of at most so many elements
  std::vector<std::pair<int64_t, int64_t>> pairs; ///< and these: of q and k, of v
};

inline const std::vector<CudnnSupport> &cudnnSupport() {
  static const std::vector<int> kAmpere{80, 86, 87, 89}, kHopper{90}, kBlackwell{100, 103},
      kConsumer{120, 121};
  static const std::vector<CudnnSupport> rows{
      {"Ampere/Ada", kAmpere, CudnnPass::Prefill, 256, {}},
      {"Ampere/Ada", kAmpere, CudnnPass::Decode, 128, {}},
      {"Ampere/Ada", kAmpere, CudnnPass::Backward, 128, {}},
      {"Hopper", kHopper, CudnnPass::Prefill, 256, {{192, 128}}},
      {"Hopper", kHopper, CudnnPass::Decode, 256, {{192, 128}}},
      {"Hopper", kHopper, CudnnPass::Backward, 256, {{192, 128}}},
      {"Blackwell (B200/B300)", kBlackwell, CudnnPass::Prefill, 256, {{192, 128}}},
      {"Blackwell (B200/B300)", kBlackwell, CudnnPass::Decode, 128, {{192, 128}}},
      {"Blackwell (B200/B300)", kBlackwell, CudnnPass::Backward, 128, {{192, 128}, {256, 256}}},
      {"Blackwell (Consumer)", kConsumer, CudnnPass::Prefill, 256, {}},
      {"Blackwell (Consumer)", kConsumer, CudnnPass::Decode, 128, {{192, 128}}},
      {"Blackwell (Consumer)", kConsumer, CudnnPass::Backward, 128, {}},
  };
  return rows;
}

} // namespace partita_rt::cuda

#endif // PARTITA_TEST_RUNTIME_CUDA_CUDNN_SUPPORT_H
