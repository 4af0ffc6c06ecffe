// cuDNN for attention, loaded on demand so that a program runs without it, and its descriptors.
// Empty without cuDNN's headers, or with those of a version before 9.16.

#ifndef PARTITA_RT_CUDA_ATTENTION_CUDNN_LIBRARY_H
#define PARTITA_RT_CUDA_ATTENTION_CUDNN_LIBRARY_H

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#if CUDNN_VERSION >= 91600 // before, gradients of odd sequences were wrong
#define PARTITA_RT_CUDNN
#endif
#endif

#ifdef PARTITA_RT_CUDNN

#include "partita_rt/types.h"

#include <array>
#include <string>

namespace partita_rt::cuda {

#define PARTITA_RT_CUDNN_FUNCTIONS(F)                                                              \
  F(cudnnGetVersion)                                                                               \
  F(cudnnGetErrorString)                                                                           \
  F(cudnnGetLastErrorString)                                                                       \
  F(cudnnCreate)                                                                                   \
  F(cudnnDestroy)                                                                                  \
  F(cudnnSetStream)                                                                                \
  F(cudnnBackendCreateDescriptor)                                                                  \
  F(cudnnBackendDestroyDescriptor)                                                                 \
  F(cudnnBackendSetAttribute)                                                                      \
  F(cudnnBackendGetAttribute)                                                                      \
  F(cudnnBackendFinalize)                                                                          \
  F(cudnnBackendExecute)

/// cuDNN's functions, under their names.
struct CudnnLibrary {
#define PARTITA_RT_CUDNN_MEMBER(name) decltype(&::name) name;
  PARTITA_RT_CUDNN_FUNCTIONS(PARTITA_RT_CUDNN_MEMBER)
#undef PARTITA_RT_CUDNN_MEMBER

  /// Loads the library. Returns false, with the reason in `why`, if it cannot. It is never
  /// unloaded.
  bool load(std::string &why);
  std::string version() const; ///< "9.19.0"
  /// Throws Error unless the status is success: "cuDNN: cudnnCreate: CUDNN_STATUS_...: reason".
  void check(cudnnStatus_t status, const char *what) const;
};

/// A descriptor of cuDNN's graphs; the destructor destroys it. Everything here throws Error on
/// failure.
class CudnnDescriptor {
public:
  CudnnDescriptor(const CudnnLibrary &library, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor &&from) noexcept;
  CudnnDescriptor &operator=(CudnnDescriptor &&) = delete;

  cudnnBackendDescriptor_t handle() const { return descriptor; }

  CudnnDescriptor &set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t count, const void *values);
  CudnnDescriptor &set(cudnnBackendAttributeName_t name, int64_t value) {
    return set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  CudnnDescriptor &set(cudnnBackendAttributeName_t name, const std::array<int64_t, 4> &values) {
    return set(name, CUDNN_TYPE_INT64, 4, values.data());
  }
  CudnnDescriptor &set(cudnnBackendAttributeName_t name, bool value) {
    return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  CudnnDescriptor &set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  CudnnDescriptor &set(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
  }
  CudnnDescriptor &finalize();
  /// Returns the number of values; writes at most `count` of them.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
              void *values) const;

private:
  const CudnnLibrary *library;
  cudnnBackendDescriptor_t descriptor = nullptr;
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDNN

#endif // PARTITA_RT_CUDA_ATTENTION_CUDNN_LIBRARY_H
