// kernel<<<grid, block, shared, stream>>>(arguments...) without nvcc: queues an entry on the stream
// that runs the kernel through simt.

#ifndef PARTITA_TEST_SIMULATED_LAUNCH_H
#define PARTITA_TEST_SIMULATED_LAUNCH_H

#include "simt/simt.h"
#include "simulated/queue.h"
#include "simulated/record.h"

#include <tuple>
#include <type_traits>

namespace simulated {

/// Reports a pointer that the device cannot follow, as argument number `i` of the kernel.
cudaError_t checkPointer(const char *kernel, int i, const void *pointer);
/// Reports more dynamic shared memory than the kernel may have.
cudaError_t checkShared(const char *kernel, const void *func, size_t bytes);

/// Copies arguments at the call. Without a stream (null) the kernel runs at once, its exceptions
/// are passed on, and its pointers may refer to any memory. Errors are cudaGetLastError's.
template <typename... P, typename... A>
void launch(const simt::Launch &shape, cudaStream_t stream, void (*kernel)(P...),
            A &&...arguments) {
  if (checkShared(shape.kernel, reinterpret_cast<const void *>(kernel), shape.shared) !=
      cudaSuccess)
    return;
  if (!stream) {
    DeviceAccess open;
    return simt::launch(shape, kernel, static_cast<A &&>(arguments)...);
  }
  std::tuple<P...> values(static_cast<A &&>(arguments)...);
  int number = 0;
  bool wrong = false;
  auto check = [&](const auto &value) {
    ++number;
    if constexpr (std::is_pointer_v<std::decay_t<decltype(value)>>)
      wrong |= checkPointer(shape.kernel, number, static_cast<const void *>(value)) != cudaSuccess;
  };
  std::apply([&](const auto &...each) { (check(each), ...); }, values);
  if (std::string why = simt::refusal(shape); !why.empty())
    wrong |= misuse(cudaErrorInvalidConfiguration, "%s: %s", shape.kernel, why.c_str());
  if (wrong)
    return;
  if (recording()) {
    LaunchLine line(shape, reinterpret_cast<const void *>(kernel));
    std::apply([&](const auto &...each) { (line.add(each), ...); }, values);
    return line.write();
  }
  enqueue(stream, shape.kernel,
          [shape, kernel, values] { simt::runGrid(shape, [&] { std::apply(kernel, values); }); });
}

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_LAUNCH_H
