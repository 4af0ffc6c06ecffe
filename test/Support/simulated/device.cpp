// Devices, as the environment describes them, and errors.

#include "simulated/launch.h"
#include "simulated/runtime.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace simulated;

namespace {

struct Gpu {
  std::string name;
  int major, minor;
};

[[noreturn]] void malformed(const char *text) {
  std::fprintf(stderr,
               "simulated CUDA: PARTITA_SIMULATED_DEVICES=%s is neither a number nor "
               "NAME:MAJOR.MINOR,...\n",
               text);
  std::exit(2);
}

/// Parses PARTITA_SIMULATED_DEVICES: "8", or "A:9.0,B:8.0".
std::vector<Gpu> listDevices() {
  const char *text = std::getenv("PARTITA_SIMULATED_DEVICES");
  if (!text)
    return {{"Simulated GPU", 9, 0}};
  char *end;
  long count = std::strtol(text, &end, 10);
  if (*text && !*end && count >= 0)
    return std::vector<Gpu>(size_t(count), {"Simulated GPU", 9, 0});
  std::vector<Gpu> list;
  for (std::string rest = text; !rest.empty();) {
    std::string one = rest.substr(0, rest.find(','));
    rest.erase(0, one.size() + 1);
    Gpu gpu;
    int used = 0;
    size_t colon = one.find(':');
    if (colon == std::string::npos ||
        std::sscanf(one.c_str() + colon, ":%d.%d%n", &gpu.major, &gpu.minor, &used) != 2 ||
        colon + size_t(used) != one.size())
      malformed(text);
    gpu.name = one.substr(0, colon);
    list.push_back(gpu);
  }
  return list;
}

const std::vector<Gpu> &devices() {
  static const auto *list = new std::vector<Gpu>(listDevices());
  return *list;
}

thread_local int currentDevice = 0;
thread_local cudaError_t lastError = cudaSuccess;

int driverVersion() { return int(environmentNumber("PARTITA_SIMULATED_DRIVER", CUDART_VERSION)); }

bool isDevice(int device) { return device >= 0 && device < int(devices().size()); }

struct Text {
  cudaError_t error;
  const char *name, *text;
};
#define TEXT(error, text) {error, #error, text}
constexpr Text kTexts[] = {
    TEXT(cudaSuccess, "no error"),
    TEXT(cudaErrorInvalidValue, "invalid argument"),
    TEXT(cudaErrorMemoryAllocation, "out of memory"),
    TEXT(cudaErrorInitializationError, "initialization error"),
    TEXT(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    TEXT(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    TEXT(cudaErrorInvalidHostPointer, "invalid host pointer"),
    TEXT(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    TEXT(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    TEXT(cudaErrorInsufficientDriver,
         "CUDA driver version is insufficient for CUDA runtime version"),
    TEXT(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    TEXT(cudaErrorInvalidDeviceFunction, "invalid device function"),
    TEXT(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    TEXT(cudaErrorInvalidDevice, "invalid device ordinal"),
    TEXT(cudaErrorDeviceUninitialized, "invalid device context"),
    TEXT(cudaErrorNoKernelImageForDevice,
         "no kernel image is available for execution on the device"),
    TEXT(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    TEXT(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    TEXT(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    TEXT(cudaErrorNotReady, "device not ready"),
    TEXT(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    TEXT(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    TEXT(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    TEXT(cudaErrorHostMemoryAlreadyRegistered,
         "part or all of the requested memory range is already mapped"),
    TEXT(cudaErrorHostMemoryNotRegistered,
         "pointer does not correspond to a registered memory region"),
    TEXT(cudaErrorLaunchFailure, "unspecified launch failure"),
    TEXT(cudaErrorNotPermitted, "operation not permitted"),
    TEXT(cudaErrorNotSupported, "operation not supported"),
    TEXT(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    TEXT(cudaErrorStreamCaptureInvalidated,
         "operation failed due to a previous error during capture"),
    TEXT(cudaErrorStreamCaptureMerge,
         "operation would result in a merge of separate capture sequences"),
    TEXT(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    TEXT(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    TEXT(cudaErrorStreamCaptureIsolation,
         "dependency created on uncaptured work in another stream"),
    TEXT(cudaErrorStreamCaptureImplicit,
         "operation would make the legacy stream depend on a capturing blocking stream"),
    TEXT(cudaErrorCapturedEvent,
         "operation not permitted on an event last recorded in a capturing stream"),
    TEXT(cudaErrorStreamCaptureWrongThread,
         "attempt to terminate a thread-local capture sequence from another thread"),
    TEXT(cudaErrorTimeout, "wait operation timed out"),
    TEXT(cudaErrorUnknown, "unknown error"),
};
#undef TEXT

const Text *find(cudaError_t error) {
  for (const Text &each : kTexts)
    if (each.error == error)
      return &each;
  return nullptr;
}

} // namespace

namespace simulated {

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess)
    lastError = error;
  return error;
}

cudaError_t misuse(cudaError_t error, const char *format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "simulated CUDA: %s\n", message);
  return note(error);
}

cudaError_t unable() {
  if (runningEntry)
    return misuse(cudaErrorNotPermitted, "\"%s\" calls CUDA while it runs", runningEntry);
  if (runtime().failure != cudaSuccess)
    return runtime().failure;
  if (driverVersion() < CUDART_VERSION)
    return cudaErrorInsufficientDriver;
  return devices().empty() ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t bindDevice() {
  int &bound = runtime().boundDevice;
  if (bound < 0)
    bound = currentDevice;
  if (bound == currentDevice)
    return cudaSuccess;
  return misuse(cudaErrorInvalidDevice,
                "a thread whose device is %d makes something in a process that uses device %d",
                currentDevice, bound);
}

} // namespace simulated

const char *cudaGetErrorName(cudaError_t error) {
  const Text *text = find(error);
  return text ? text->name : "unrecognized error code";
}
const char *cudaGetErrorString(cudaError_t error) {
  const Text *text = find(error);
  return text ? text->text : "unrecognized error code";
}

cudaError_t cudaPeekAtLastError() {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  return runtime().failure != cudaSuccess ? runtime().failure : lastError;
}
cudaError_t cudaGetLastError() {
  cudaError_t error = cudaPeekAtLastError();
  lastError = cudaSuccess;
  return error;
}

cudaError_t cudaDriverGetVersion(int *version) {
  *version = driverVersion();
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 0;
  return call([&] {
    *count = int(devices().size());
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call([&] {
    if (!isDevice(device))
      return cudaErrorInvalidDevice;
    currentDevice = device;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDevice(int *device) {
  return call([&] {
    *device = currentDevice;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device) {
  return call([&] {
    if (!isDevice(device))
      return cudaErrorInvalidDevice;
    const Gpu &gpu = devices()[size_t(device)];
    *prop = {};
    std::snprintf(prop->name, sizeof(prop->name), "%s", gpu.name.c_str());
    prop->uuid.bytes[15] = char(device + 1);
    prop->totalGlobalMem = size_t(environmentNumber("PARTITA_SIMULATED_MEMORY", kDefaultMemory));
    prop->sharedMemPerBlock = 48 * 1024;
    prop->regsPerBlock = 65536;
    prop->warpSize = 32;
    prop->maxThreadsPerBlock = 1024;
    prop->major = gpu.major;
    prop->minor = gpu.minor;
    prop->multiProcessorCount = 132;
    prop->canMapHostMemory = 1;
    prop->ECCEnabled = 1;
    prop->pciBusID = device + 1;
    prop->unifiedAddressing = 1;
    prop->memoryBusWidth = 6144;
    prop->l2CacheSize = 60 << 20;
    prop->sharedMemPerMultiprocessor = 228 * 1024;
    prop->sharedMemPerBlockOptin = 227 * 1024;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device) {
  cudaDeviceProp prop;
  if (cudaError_t error = cudaGetDeviceProperties(&prop, device); error != cudaSuccess)
    return error;
  switch (attr) {
  case cudaDevAttrClockRate:
    return *value = 1980000, cudaSuccess;
  case cudaDevAttrMultiProcessorCount:
    return *value = prop.multiProcessorCount, cudaSuccess;
  case cudaDevAttrPciBusId:
    return *value = prop.pciBusID, cudaSuccess;
  case cudaDevAttrPciDeviceId:
  case cudaDevAttrPciDomainId:
    return *value = 0, cudaSuccess;
  case cudaDevAttrComputeCapabilityMajor:
    return *value = prop.major, cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor:
    return *value = prop.minor, cudaSuccess;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    return *value = int(prop.sharedMemPerBlockOptin), cudaSuccess;
  }
  return note(cudaErrorInvalidValue);
}

cudaError_t cudaFuncSetAttribute(const void *func, cudaFuncAttribute attr, int value) {
  return call([&] {
    cudaDeviceProp prop;
    if (cudaError_t error = cudaGetDeviceProperties(&prop, 0); error != cudaSuccess)
      return error;
    if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        size_t(value) > prop.sharedMemPerBlockOptin)
      return misuse(cudaErrorInvalidValue, "%d bytes of dynamic shared memory for a kernel", value);
    runtime().dynamicShared[func] = size_t(value);
    return cudaSuccess;
  });
}

cudaError_t simulated::checkShared(const char *kernel, const void *func, size_t bytes) {
  constexpr size_t kWithoutAsking = 48 * 1024;
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  auto allowed = runtime().dynamicShared.find(func);
  if (bytes <= kWithoutAsking ||
      (allowed != runtime().dynamicShared.end() && bytes <= allowed->second))
    return cudaSuccess;
  return misuse(cudaErrorInvalidValue,
                "%s: %zu bytes of dynamic shared memory without cudaFuncSetAttribute", kernel,
                bytes);
}

cudaError_t cudaFuncGetName(const char **name, const void *) {
  *name = nullptr;
  return cudaErrorNotSupported;
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device) {
  return call([&] {
    if (!isDevice(device))
      return cudaErrorInvalidDevice;
    std::snprintf(pciBusId, size_t(len), "0000:%02X:00.0", unsigned(device + 1));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
  return call([&] {
    *leastPriority = 0;
    *greatestPriority = simulated::kGreatestPriority;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceReset() {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  if (runningEntry)
    return unable();
  Runtime &r = runtime();
  cudaError_t error = r.failure == cudaSuccess ? waitForAll("cudaDeviceReset") : r.failure;
  for (cudaStream_t stream : r.streams)
    delete stream;
  for (cudaEvent_t event : r.events)
    delete event;
  for (cudaGraph_t graph : r.graphs)
    delete graph;
  for (cudaGraphExec_t executable : r.executables)
    delete executable;
  r.streams.clear();
  r.events.clear();
  r.graphs.clear();
  r.executables.clear();
  r.captures.clear();
  r.heads.clear();
  r.pending = 0;
  r.boundDevice = -1;
  freeAllMemory();
  return error;
}
