// Which calls cuDNN is asked for, against NVIDIA's support matrix (cudnn_support.h): never for one that it does not
// have, and for all others but those listed here.

#if !defined(PARTITA_TEST_ON_GPU) // nvcc may find no headers of cuDNN

#include "cuda/attention/cudnn_attention.h"
#include "cudnn_support.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace partita_rt::cuda {
namespace {

FusedShape shapeOf(CudnnPass pass, std::pair<int64_t, int64_t> heads, DType dtype, bool causal,
                   bool deterministic) {
  FusedShape shape{};
  shape.dtype = dtype;
  shape.backward = pass == CudnnPass::Backward;
  shape.causal = causal;
  shape.deterministic = deterministic;
  shape.batch = shape.heads = shape.groups = 1;
  shape.sequence = pass == CudnnPass::Decode ? 1 : 64;
  shape.keySequence = 64;
  shape.headDim = heads.first;
  shape.valueDim = heads.second;
  return shape;
}

/// Why own kernels compute what cuDNN could: the reason that whyNotCudnn has to give, or "".
std::string leftOut(const CudnnSupport &row, std::pair<int64_t, int64_t> heads, int capability,
                    bool deterministic) {
  bool isWide = std::max(heads.first, heads.second) > 128;
  // Deterministic gradients are an engine of their own there, which heuristics do not propose.
  if (row.pass == CudnnPass::Backward && capability >= 100 && deterministic)
    return "cuDNN's heuristics propose no deterministic gradients from compute capability 10.0 on";
  // cudnn-frontend has kernels of its own for these.
  if (row.pass == CudnnPass::Backward && capability >= 100 && isWide)
    return "cuDNN is asked for gradients of heads of more than 128 elements on compute capability 9.0 only";
  // No training step has a single query with wide heads.
  if (row.pass == CudnnPass::Decode && capability >= 100 && isWide)
    return "cuDNN is asked for a single query with heads of more than 128 elements on compute capability 9.0 only";
  return "";
}

TEST(CudnnSupport, IsAskedFor) {
  for (const CudnnSupport &row : cudnnSupport()) {
    std::vector<std::pair<int64_t, int64_t>> sizes = row.pairs;
    for (int64_t dim = 8; dim <= 256; dim += 8)
      sizes.emplace_back(dim, dim);
    for (auto heads : sizes)
      for (int capability : row.capabilities)
        for (DType dtype : {DType::Float16, DType::BFloat16})
          for (bool causal : {false, true})
            for (bool deterministic : {false, true}) {
              bool has = (heads.first == heads.second && heads.first <= row.widest) ||
                         std::count(row.pairs.begin(), row.pairs.end(), heads);
              const char *why =
                  whyNotCudnn(shapeOf(row.pass, heads, dtype, causal, deterministic), capability);
              std::string given = why ? why : "",
                          left = leftOut(row, heads, capability, deterministic);
              SCOPED_TRACE(testing::Message()
                           << row.gpus << ", " << capability << ", pass " << int(row.pass)
                           << ", heads of " << heads.first << " and " << heads.second);
              if (has)
                EXPECT_EQ(given, left);
              else
                EXPECT_NE(given, "");
            }
  }
}

TEST(CudnnSupport, BeginsWithAmpere) {
  for (CudnnPass pass : {CudnnPass::Prefill, CudnnPass::Decode, CudnnPass::Backward})
    EXPECT_STREQ(whyNotCudnn(shapeOf(pass, {64, 64}, DType::BFloat16, true, false), 75),
                 "compute capability 8.0 is needed");
}

} // namespace
} // namespace partita_rt::cuda

#endif
