// Copies and fills. Cases that CUDA leaves undefined, or silently makes synchronous (a copy of
// pageable memory), are errors here.

#include "simulated/record.h"
#include "simulated/runtime.h"

#include <cstring>

using namespace simulated;

namespace {

/// Rows of bytes; a single row may have any pitch.
struct Rows {
  size_t pitch, width, height;
  size_t extent() const { return height == 0 || width == 0 ? 0 : (height - 1) * pitch + width; }
};

struct Copy {
  char *to;
  const char *from;
  Rows toRows, fromRows;
  cudaMemcpyKind kind;
  bool synchronous;
};

bool isDevice(const void *p) { return memoryOf(p) == Memory::Device; }

const char *nameOf(cudaMemcpyKind kind) {
  switch (kind) {
  case cudaMemcpyHostToHost:
    return "copy from host to host";
  case cudaMemcpyHostToDevice:
    return "copy to the device";
  case cudaMemcpyDeviceToHost:
    return "copy to the host";
  case cudaMemcpyDeviceToDevice:
    return "copy on the device";
  case cudaMemcpyDefault:
    return "copy";
  }
  return "copy of no kind";
}

cudaError_t checkSide(const Copy &copy, const void *p, const Rows &rows, bool device,
                      const char *side) {
  const char *name = nameOf(copy.kind);
  if (copy.kind != cudaMemcpyDefault && isDevice(p) != device)
    return misuse(cudaErrorInvalidValue, "%s: its %s is %s", name, side, describe(p).c_str());
  if (memoryOf(p) == Memory::Pageable) {
    if (copy.synchronous)
      return cudaSuccess;
    return misuse(cudaErrorInvalidValue,
                  "%s: its %s is pageable host memory, which makes an asynchronous copy wait", name,
                  side);
  }
  if (!reachable(p, rows.extent()))
    return misuse(cudaErrorInvalidValue, "%s: its %s, %zu bytes, begins %s", name, side,
                  rows.extent(), describe(p).c_str());
  return cudaSuccess;
}

cudaError_t check(const Copy &copy) {
  if (copy.kind < cudaMemcpyHostToHost || copy.kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  if (copy.toRows.pitch < copy.toRows.width || copy.fromRows.pitch < copy.fromRows.width)
    return cudaErrorInvalidPitchValue;
  bool toDevice = copy.kind == cudaMemcpyHostToDevice || copy.kind == cudaMemcpyDeviceToDevice;
  bool fromDevice = copy.kind == cudaMemcpyDeviceToHost || copy.kind == cudaMemcpyDeviceToDevice;
  if (cudaError_t error = checkSide(copy, copy.to, copy.toRows, toDevice, "destination");
      error != cudaSuccess)
    return error;
  if (cudaError_t error = checkSide(copy, copy.from, copy.fromRows, fromDevice, "source");
      error != cudaSuccess)
    return error;
  bool flat = copy.toRows.height == 1;
  if (flat && copy.from < copy.to + copy.toRows.width && copy.to < copy.from + copy.toRows.width)
    return misuse(cudaErrorInvalidValue, "%s: source and destination overlap", nameOf(copy.kind));
  return cudaSuccess;
}

void perform(const Copy &copy) {
  for (size_t row = 0; row < copy.toRows.height; ++row)
    std::memcpy(copy.to + row * copy.toRows.pitch, copy.from + row * copy.fromRows.pitch,
                copy.toRows.width);
}

/// Starts a copy on a stream, or runs it at once.
cudaError_t begin(const Copy &copy, cudaStream_t stream) {
  return call([&]() -> cudaError_t {
    if (copy.synchronous)
      if (cudaError_t error = unsafeInCapture("a synchronous copy"); error != cudaSuccess)
        return error;
    if (copy.toRows.extent() == 0)
      return cudaSuccess;
    if (cudaError_t error = check(copy); error != cudaSuccess)
      return error;
    if (recording())
      record("{\"copy\": " + std::to_string(copy.toRows.width * copy.toRows.height) + "}");
    return put(stream, std::make_shared<const Work>(
                           Work{nameOf(copy.kind), [copy] { perform(copy); }, {}, false}));
  });
}

Copy flat(void *dst, const void *src, size_t count, cudaMemcpyKind kind, bool synchronous) {
  Rows rows{count, count, 1};
  return {static_cast<char *>(dst), static_cast<const char *>(src), rows, rows, kind, synchronous};
}

cudaError_t fill(void *devPtr, int value, size_t count, cudaStream_t stream, bool synchronous) {
  return call([&]() -> cudaError_t {
    if (synchronous)
      if (cudaError_t error = unsafeInCapture("cudaMemset"); error != cudaSuccess)
        return error;
    if (count == 0)
      return cudaSuccess;
    if (!reachable(devPtr, count))
      return misuse(cudaErrorInvalidValue, "cudaMemset of %zu bytes, which begin %s", count,
                    describe(devPtr).c_str());
    if (recording())
      record("{\"fill\": " + std::to_string(count) + "}");
    return put(stream, std::make_shared<const Work>(
                           Work{"fill", [=] { std::memset(devPtr, value, count); }, {}, false}));
  });
}

} // namespace

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, cudaMemcpyKind kind) {
  return begin(flat(dst, src, count, kind, true), nullptr);
}
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return begin(flat(dst, src, count, kind, false), stream);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  return begin({static_cast<char *>(dst),
                static_cast<const char *>(src),
                {dpitch, width, height},
                {spitch, width, height},
                kind,
                true},
               nullptr);
}
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return begin({static_cast<char *>(dst),
                static_cast<const char *>(src),
                {dpitch, width, height},
                {spitch, width, height},
                kind,
                false},
               stream);
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count) {
  return fill(devPtr, value, count, nullptr, true);
}
cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream) {
  return fill(devPtr, value, count, stream, false);
}
