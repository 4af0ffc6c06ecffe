// Asks the real cuDNN for attention plans on a GPU that need not be present: DEVICE.json describes
// it, as cuDNN does; CAPABILITY is 90 for sm_90. For each line of standard input,
//
//   forward|inference|backward|unordered BATCH HEADS GROUPS QUERIES KEYS HEADDIM VALUEDIM causal|all
//   packed|plain
//
// ("unordered": a backward pass that need not be deterministic) prints a line with the bytes of workspace that the plan needs, or why there is no plan.

#include "cuda/attention/cudnn_attention.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#ifndef PARTITA_RT_CUDNN
#error "the headers of cuDNN 9.16 or later are needed"
#else

using namespace partita_rt;
using namespace partita_rt::cuda;

namespace {

/// packed: q, k and v side by side in rows of one tensor.
FusedShape shapeOf(std::istream &words) {
  std::string pass, sight, layout;
  FusedShape s{};
  words >> pass >> s.batch >> s.heads >> s.groups >> s.sequence >> s.keySequence >> s.headDim >>
      s.valueDim >> sight >> layout;
  s.dtype = DType::BFloat16;
  s.deterministic = pass != "unordered";
  s.backward = pass == "backward" || pass == "unordered";
  s.causal = sight == "causal";
  s.stats = pass != "inference";
  s.rowsOfBatch = s.heads * s.sequence;
  int64_t keyHeads = s.heads / s.groups, q = s.heads * s.headDim, k = keyHeads * s.headDim,
          v = keyHeads * s.valueDim, out = s.heads * s.valueDim;
  if (layout == "packed")
    q = k = v = q + k + v;
  s.q = s.dq = {s.sequence * q, s.headDim, q};
  s.k = s.dk = {s.keySequence * k, s.headDim, k};
  s.v = s.dv = {s.keySequence * v, s.valueDim, v};
  s.out = s.dout = {s.sequence * out, s.valueDim, out};
  return s;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CAPABILITY DEVICE.json < SHAPES\n", argv[0]);
    return 1;
  }
  try {
    std::ifstream file(argv[2]);
    std::stringstream device;
    device << file.rdbuf();
    CudnnLibrary library;
    if (std::string why; !library.load(why))
      fail("%s", why.c_str());
    CudnnAttention cudnn(library);
    cudnn.useDevice(std::atoi(argv[1]), device.str());
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      try {
        int64_t bytes = cudnn.plan(shapeOf(words))->workspaceBytes;
        std::printf("%s: %lld bytes\n", line.c_str(), (long long)bytes);
      } catch (const Error &error) {
        std::printf("%s: none: %s\n", line.c_str(), error.what());
      }
    }
  } catch (const std::exception &exception) {
    std::fprintf(stderr, "%s: error: %s\n", argv[0], exception.what());
    return 1;
  }
  return 0;
}

#endif
