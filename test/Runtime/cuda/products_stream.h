// A stream for the tests of matrix products and of what is made of them.

#ifndef PARTITA_TEST_RUNTIME_CUDA_PRODUCTS_STREAM_H
#define PARTITA_TEST_RUNTIME_CUDA_PRODUCTS_STREAM_H

#include "simulated.h"

#include "cuda/products/products.h"

namespace partita_rt::cuda {

/// A stream with products and a workspace of its own.
struct ProductsStream : SimulatedStream {
  explicit ProductsStream(int64_t scratchBytes = 1 << 20,
                          int64_t workspaceBytes = kProductsWorkspace)
      : SimulatedStream(scratchBytes), space(new Line[size_t(workspaceBytes) / sizeof(Line)]),
        made(space.get(), workspaceBytes) {
    products = &made;
  }
  struct alignas(256) Line {
    unsigned char bytes[256];
  };
  std::unique_ptr<Line[]> space; // never written: no time for its pages
  Products made;
};

} // namespace partita_rt::cuda

#endif // PARTITA_TEST_RUNTIME_CUDA_PRODUCTS_STREAM_H
