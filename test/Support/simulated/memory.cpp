// Device memory and pinned memory: separate address ranges, in which every allocation lies between
// inaccessible pages, with its end as near to the second one as CUDA's alignment (256 bytes)
// allows. No address is used twice.
//
// Device memory is inaccessible while the host runs. The handler of SIGSEGV reports whose mistake
// an access is. The bytes between an allocation and the ends of its pages hold a pattern that is
// checked after every entry; under AddressSanitizer they are poisoned instead.

#include "simulated/record.h"
#include "simulated/runtime.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define PARTITA_SIMULATED_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace simulated {

namespace {

constexpr size_t kPage = 4096, kAlignment = 256;
constexpr size_t kHugePage = size_t(2) << 20; // protected and unprotected 512 times faster
constexpr unsigned char kMargin = 0xa5;

size_t roundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

struct Allocation {
  size_t size;
  char *pages; ///< between the two inaccessible ones
  size_t pageBytes;
  bool freed = false;
};
using Allocations = std::map<char *, Allocation>;

/// The addresses of one kind of memory, allocated from the lowest up.
struct Range {
  const char *kind;
  char *begin = nullptr, *next = nullptr, *end = nullptr;
  Allocations allocations{};
  size_t bytes = 0; ///< allocated now

  bool has(const void *p) const { return begin <= p && p < end; }
  void reserve();
  char *allocate(size_t size);
  void free(Allocations::iterator at);
  void protect(int protection);
  /// Returns the allocation that begins at or before p, if any.
  Allocations::iterator before(const void *p) {
    auto at = allocations.upper_bound(static_cast<char *>(const_cast<void *>(p)));
    return at == allocations.begin() ? allocations.end() : --at;
  }
};

struct Space {
  Range device{"device memory"}, pinned{"pinned memory"};
  std::map<char *, size_t> registered;
  int users = 0; ///< DeviceAccess and the scheduler
  bool held = false;
};
Space &space() {
  static Space *space = new Space;
  return *space;
}

struct sigaction previousAction;

/// Runs on the thread that made the access; it may be within malloc, and the process ends here.
void onSegmentationFault(int number, siginfo_t *info, void *) {
  const void *at = info->si_addr;
  if (info->si_code <= 0 || (!space().device.has(at) && !space().pinned.has(at))) {
    sigaction(number, &previousAction, nullptr); // the access repeats, for the previous handler
    if (info->si_code <= 0)
      raise(number); // a signal sent by another process does not repeat by itself
    return;
  }
  std::string who = runningEntry ? "entry \"" + std::string(runningEntry) + "\"" : "host code";
  std::fprintf(stderr, "simulated CUDA: %s reads or writes %s at %p, %s\n", who.c_str(),
               space().device.has(at) ? "device memory" : "pinned memory", at,
               describe(at).c_str());
  void *frames[32];
  backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
  std::abort();
}

void Range::reserve() {
  if (begin)
    return;
  for (size_t size = size_t(1) << 40; size >= size_t(1) << 32; size /= 2) {
    void *mapped =
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
      continue;
    begin = static_cast<char *>(mapped);
    end = begin + size;
    begin = next = begin + (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage);
    break;
  }
  static bool handled = false;
  if (handled)
    return;
  handled = true;
  struct sigaction action{};
  action.sa_sigaction = onSegmentationFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &previousAction);
}

char *Range::allocate(size_t size) {
  reserve();
  size_t pageBytes = roundUp(roundUp(size, kAlignment), kPage);
  size_t guard = kPage;
  if (pageBytes >= kHugePage)
    guard += roundUp(size_t(next + kPage - begin), kHugePage) - size_t(next + kPage - begin);
  if (pageBytes < size || size_t(end - next) < pageBytes + guard + kPage)
    return nullptr;
  char *pages = next + guard;
  if (mprotect(pages, pageBytes, PROT_READ | PROT_WRITE) != 0)
    return nullptr;
  if (pageBytes >= kHugePage)
    madvise(pages, pageBytes, MADV_HUGEPAGE);
  next = pages + pageBytes;
  char *at = pages + pageBytes - roundUp(size, kAlignment);
  allocations[at] = {size, pages, pageBytes};
  bytes += size;
  if (recording()) // zeros, whose pages exist only once they are used
    return at;
  std::memset(pages, kMargin, size_t(at - pages));
  std::memset(at, 0xff, size); // NaN in every format
  std::memset(at + size, kMargin, size_t(next - at) - size);
#ifdef PARTITA_SIMULATED_ASAN
  __asan_poison_memory_region(pages, size_t(at - pages));
  __asan_poison_memory_region(at + size, size_t(next - at) - size);
#endif
  return at;
}

void Range::free(Allocations::iterator at) {
  Allocation &allocation = at->second;
  allocation.freed = true;
  bytes -= allocation.size;
#ifdef PARTITA_SIMULATED_ASAN
  __asan_unpoison_memory_region(allocation.pages, allocation.pageBytes);
#endif
  madvise(allocation.pages, allocation.pageBytes, MADV_DONTNEED);
  mprotect(allocation.pages, allocation.pageBytes, PROT_NONE);
}

void Range::protect(int protection) {
  for (auto &[at, allocation] : allocations)
    if (!allocation.freed)
      mprotect(allocation.pages, allocation.pageBytes, protection);
}

void use(int change) {
  int before = space().users;
  space().users += change;
  if (before == 0 || space().users == 0)
    space().device.protect(space().users > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/// Returns the registration that contains all of [p, p + bytes).
std::map<char *, size_t>::iterator registration(const void *address, size_t bytes) {
  char *p = static_cast<char *>(const_cast<void *>(address));
  auto at = space().registered.upper_bound(p);
  if (at == space().registered.begin())
    return space().registered.end();
  --at;
  return p + bytes <= at->first + at->second ? at : space().registered.end();
}

#ifndef PARTITA_SIMULATED_ASAN
bool holds(const char *from, const char *to) {
  return std::all_of(from, to, [](char c) { return static_cast<unsigned char>(c) == kMargin; });
}
#endif

} // namespace

uint64_t environmentNumber(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  if (!text)
    return otherwise;
  char *end;
  uint64_t value = std::strtoull(text, &end, 10);
  if (*text && !*end)
    return value;
  std::fprintf(stderr, "simulated CUDA: %s=%s is no number\n", name, text);
  std::exit(2);
}

//===-- Queries of libraries and tests ------------------------------------------------------===//

Memory memoryOf(const void *address) {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  if (space().device.has(address))
    return Memory::Device;
  if (space().pinned.has(address) || registration(address, 1) != space().registered.end())
    return Memory::Pinned;
  return Memory::Pageable;
}

bool reachable(const void *address, size_t bytes) {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  for (Range *range : {&space().device, &space().pinned}) {
    if (!range->has(address))
      continue;
    auto at = range->before(address);
    size_t offset =
        at == range->allocations.end() ? 0 : size_t(static_cast<const char *>(address) - at->first);
    return at != range->allocations.end() && !at->second.freed && offset <= at->second.size &&
           bytes <= at->second.size - offset;
  }
  return registration(address, bytes) != space().registered.end();
}

std::string describe(const void *address) {
  for (Range *range : {&space().device, &space().pinned}) {
    if (!range->has(address))
      continue;
    auto at = range->before(address);
    if (at == range->allocations.end())
      return std::string("before all ") + range->kind;
    const Allocation &allocation = at->second;
    auto offset = size_t(static_cast<const char *>(address) - at->first);
    std::string full = std::string(allocation.freed ? "a freed" : "an") + " allocation of " +
                       std::to_string(allocation.size) + " bytes of " + range->kind;
    if (offset < allocation.size)
      return std::to_string(offset) + " bytes into " + full;
    return std::to_string(offset - allocation.size) + " bytes behind " + full;
  }
  return registration(address, 1) != space().registered.end() ? "registered host memory"
                                                              : "pageable host memory";
}

DeviceAccess::DeviceAccess() {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  use(1);
}
DeviceAccess::~DeviceAccess() {
  std::lock_guard<std::recursive_mutex> lock(runtime().mutex);
  use(-1);
}

void holdOpen(bool open) {
  if (open != space().held)
    use(open ? 1 : -1);
  space().held = open;
}

void checkMargins([[maybe_unused]] const char *entry) {
#ifndef PARTITA_SIMULATED_ASAN
  if (recording())
    return;
  for (Range *range : {&space().device, &space().pinned})
    for (auto &[begin, allocation] : range->allocations) {
      if (allocation.freed || (range == &space().device && space().users == 0))
        continue;
      char *end = begin + allocation.size, *last = allocation.pages + allocation.pageBytes;
      if (holds(allocation.pages, begin) && holds(end, last))
        continue;
      failDevice(cudaErrorIllegalAddress,
                 "\"" + std::string(entry) + "\" has written beside an allocation of " +
                     std::to_string(allocation.size) + " bytes of " + range->kind);
      std::memset(allocation.pages, kMargin, size_t(begin - allocation.pages));
      std::memset(end, kMargin, size_t(last - end));
    }
#endif
}

void freeAllMemory() {
  for (Range *range : {&space().device, &space().pinned})
    for (auto at = range->allocations.begin(); at != range->allocations.end(); ++at)
      if (!at->second.freed)
        range->free(at);
}

} // namespace simulated

//===-- The API -----------------------------------------------------------------------------===//

using namespace simulated;

namespace {

size_t totalMemory() { return environmentNumber("PARTITA_SIMULATED_MEMORY", kDefaultMemory); }

cudaError_t allocate(Range &range, void **result, size_t size, const char *function) {
  if (!result)
    return cudaErrorInvalidValue;
  if (cudaError_t error = unsafeInCapture(function); error != cudaSuccess)
    return error;
  if (cudaError_t error = bindDevice(); error != cudaSuccess)
    return error;
  *result = nullptr;
  if (size == 0)
    return cudaSuccess;
  if (&range == &space().device && size > totalMemory() - std::min(totalMemory(), range.bytes))
    return cudaErrorMemoryAllocation;
  *result = range.allocate(size);
  if (*result && &range == &space().device && space().users == 0)
    range.protect(PROT_NONE);
  return *result ? cudaSuccess : cudaErrorMemoryAllocation;
}

/// Returns the device's copy of a __device__ array, which otherwise is the host's. Made on the
/// first request, as CUDA loads a module.
cudaError_t symbolAddress(void **result, const void *symbol, size_t size) {
  static std::map<const void *, char *> copies;
  if (!result)
    return cudaErrorInvalidValue;
  if (cudaError_t error = bindDevice(); error != cudaSuccess)
    return error;
  char *&copy = copies[symbol];
  if (!copy) {
    copy = space().device.allocate(size);
    if (!copy)
      return cudaErrorMemoryAllocation;
    simulated::DeviceAccess access;
    std::memcpy(copy, symbol, size);
  }
  *result = copy;
  return cudaSuccess;
}

cudaError_t release(Range &range, void *pointer, const char *function) {
  if (cudaError_t error = unsafeInCapture(function); error != cudaSuccess)
    return error;
  if (!pointer)
    return cudaSuccess;
  auto at = range.allocations.find(static_cast<char *>(pointer));
  if (at == range.allocations.end() || at->second.freed)
    return misuse(cudaErrorInvalidValue, "%s of %p, which is no allocation: %s", function, pointer,
                  describe(pointer).c_str());
  if (cudaError_t error = waitForAll(function); error != cudaSuccess)
    return error;
  range.free(at);
  return cudaSuccess;
}

} // namespace

cudaError_t cudaMalloc(void **devPtr, size_t size) {
  return call([&] { return allocate(space().device, devPtr, size, "cudaMalloc"); });
}
cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol, size_t size) {
  return call([&] { return symbolAddress(devPtr, symbol, size); });
}
cudaError_t cudaFree(void *devPtr) {
  return call([&] { return release(space().device, devPtr, "cudaFree"); });
}
cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned) {
  return call([&] { return allocate(space().pinned, pHost, size, "cudaHostAlloc"); });
}
cudaError_t cudaFreeHost(void *ptr) {
  return call([&] { return release(space().pinned, ptr, "cudaFreeHost"); });
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned) {
  return call([&] {
    if (memoryOf(pHost) != Memory::Pinned)
      return misuse(cudaErrorInvalidValue, "cudaHostGetDevicePointer of %s",
                    describe(pHost).c_str());
    *pDevice = pHost;
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned) {
  return call([&] {
    if (!ptr || size == 0 || memoryOf(ptr) == Memory::Device)
      return cudaErrorInvalidValue;
    auto *begin = static_cast<char *>(ptr);
    auto after = space().registered.lower_bound(begin);
    bool overlaps = memoryOf(ptr) == Memory::Pinned ||
                    (after != space().registered.end() && after->first < begin + size);
    if (overlaps)
      return cudaErrorHostMemoryAlreadyRegistered;
    space().registered[begin] = size;
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void *ptr) {
  return call([&] {
    auto at = space().registered.find(static_cast<char *>(ptr));
    if (at == space().registered.end())
      return cudaErrorHostMemoryNotRegistered;
    if (cudaError_t error = waitForAll("cudaHostUnregister"); error != cudaSuccess)
      return error;
    space().registered.erase(at);
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *ptr) {
  return call([&] {
    Memory memory = memoryOf(ptr);
    void *pointer = const_cast<void *>(ptr);
    int device = runtime().boundDevice;
    if (memory == Memory::Device)
      *attributes = {cudaMemoryTypeDevice, device, pointer, nullptr};
    else if (memory == Memory::Pinned)
      *attributes = {cudaMemoryTypeHost, device, pointer, pointer};
    else
      *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, pointer};
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  return call([&] {
    *total = totalMemory();
    *free = *total - std::min(*total, space().device.bytes);
    return cudaSuccess;
  });
}
