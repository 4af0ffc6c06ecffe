// Loads cuDNN; its errors and descriptors (cudnn_library.h).

#include "cuda/attention/cudnn_library.h"

#include "cuda/attention/fused_library.h"

#ifdef PARTITA_RT_CUDNN

#include <dlfcn.h>

#include <utility>

namespace partita_rt::cuda {

/// Programs built by nvcc may run without cuDNN. Other builds link one: the simulated one, or a
/// test's real one.
bool CudnnLibrary::load(std::string &why) {
#ifdef __NVCC__
  std::string file = "libcudnn.so." + std::to_string(CUDNN_MAJOR);
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    why = reason ? reason : file + " cannot be loaded";
    return false;
  }
#define PARTITA_RT_CUDNN_LOAD(name)                                                                \
  if (name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); !name) {                     \
    why = file + " has no " #name;                                                                 \
    return false;                                                                                  \
  }
#else
#define PARTITA_RT_CUDNN_LOAD(name) name = &::name;
#endif
  PARTITA_RT_CUDNN_FUNCTIONS(PARTITA_RT_CUDNN_LOAD)
#undef PARTITA_RT_CUDNN_LOAD
  if (cudnnGetVersion() >= 91600)
    return true;
  why = "cuDNN " + version() + " is there, 9.16 or later is needed";
  return false;
}

std::string CudnnLibrary::version() const {
  size_t number = cudnnGetVersion();
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

void CudnnLibrary::check(cudnnStatus_t status, const char *what) const {
  if (status == CUDNN_STATUS_SUCCESS)
    return;
  char last[512] = {};
  cudnnGetLastErrorString(last, sizeof(last));
  std::string reason = last;
  reason = reason.substr(0, reason.find('\n'));
  fail("cuDNN: %s: %s%s%s", what, cudnnGetErrorString(status), reason.empty() ? "" : ": ",
       reason.c_str());
}

CudnnDescriptor::CudnnDescriptor(const CudnnLibrary &library, cudnnBackendDescriptorType_t type)
    : library(&library) {
  library.check(library.cudnnBackendCreateDescriptor(type, &descriptor),
                "cudnnBackendCreateDescriptor");
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor &&from) noexcept
    : library(from.library), descriptor(std::exchange(from.descriptor, nullptr)) {}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor)
    library->cudnnBackendDestroyDescriptor(descriptor);
}

CudnnDescriptor &CudnnDescriptor::set(cudnnBackendAttributeName_t name,
                                      cudnnBackendAttributeType_t type, int64_t count,
                                      const void *values) {
  library->check(library->cudnnBackendSetAttribute(descriptor, name, type, count, values),
                 "cudnnBackendSetAttribute");
  return *this;
}

CudnnDescriptor &CudnnDescriptor::finalize() {
  library->check(library->cudnnBackendFinalize(descriptor), "cudnnBackendFinalize");
  return *this;
}

int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             int64_t count, void *values) const {
  int64_t there = 0;
  library->check(library->cudnnBackendGetAttribute(descriptor, name, type, count, &there, values),
                 "cudnnBackendGetAttribute");
  return there;
}

std::string findCudnn(std::string &why) {
  CudnnLibrary library;
  return library.load(why) ? "cuDNN " + library.version() : "";
}

} // namespace partita_rt::cuda

#else // without its headers

#pragma message(                                                                                   \
    "built without cuDNN, with Partita's attention kernels only: there is no cudnn_graph.h of version 9.16 or later")

namespace partita_rt::cuda {

std::string findCudnn(std::string &why) {
  why = "this program was built without the headers of cuDNN 9.16 or later";
  return "";
}
std::unique_ptr<FusedLibrary> openCudnn(std::string &why) {
  findCudnn(why);
  return nullptr;
}

} // namespace partita_rt::cuda

#endif
