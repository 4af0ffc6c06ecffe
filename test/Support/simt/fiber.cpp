// Switches stacks: eleven instructions on x86-64, ucontext elsewhere (which calls the kernel: 13
// times slower). AddressSanitizer is told of every switch.

#include "simt/fiber.h"

#include <cstdint>
#include <new>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define PARTITA_SIMT_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PARTITA_SIMT_ASAN
#endif
#endif
#ifdef PARTITA_SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef PARTITA_SIMT_UCONTEXT
// void simt_switch(void **save, void *to): saves the callee-saved registers.
asm(R"(
.text
.globl simt_switch
.type simt_switch, @function
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch, . - simt_switch
)");
extern "C" void simt_switch(void **save, void *to);
#endif

namespace simt {

namespace {

#ifdef PARTITA_SIMT_ASAN
constexpr size_t kStack = 256 * 1024;
#else
constexpr size_t kStack = 128 * 1024;
#endif
constexpr size_t kGuard = 4096;

/// The context that the current switch leaves.
thread_local Context *leaving = nullptr;

} // namespace

void switchTo(Context &from, Context &to) {
  leaving = &from;
#ifdef PARTITA_SIMT_ASAN
  __sanitizer_start_switch_fiber(&from.fakeStack, to.bottom, to.size);
#endif
#ifdef PARTITA_SIMT_UCONTEXT
  swapcontext(&from.context, &to.context);
#else
  simt_switch(&from.stackPointer, to.stackPointer);
#endif
#ifdef PARTITA_SIMT_ASAN
  __sanitizer_finish_switch_fiber(from.fakeStack, &leaving->bottom, &leaving->size);
#endif
}

void entered() {
#ifdef PARTITA_SIMT_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &leaving->bottom, &leaving->size);
#endif
}

Fiber::Fiber(void (*entry)()) {
  void *mapped = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::bad_alloc();
  memory = static_cast<char *>(mapped);
  mprotect(memory, kGuard, PROT_NONE);
  context.bottom = memory + kGuard;
  context.size = kStack;
#ifdef PARTITA_SIMT_UCONTEXT
  getcontext(&context.context);
  context.context.uc_stack.ss_sp = memory + kGuard;
  context.context.uc_stack.ss_size = kStack;
  context.context.uc_link = nullptr;
  makecontext(&context.context, entry, 0);
#else
  // Begin stacks at different offsets within a page, or they would compete for one cache set.
  static thread_local size_t count = 0;
  auto **top = reinterpret_cast<void **>(memory + kGuard + kStack - count++ % 15 * 256);
  *--top = nullptr; // entry's return address: the stack is as after a call
  *--top = reinterpret_cast<void *>(entry);
  for (int i = 0; i < 6; ++i)
    *--top = nullptr;
  context.stackPointer = top;
#endif
}

Fiber::~Fiber() {
#ifdef PARTITA_SIMT_ASAN
  __asan_unpoison_memory_region(memory + kGuard, kStack); // poison that an abandoned fiber leaves
#endif
  munmap(memory, kGuard + kStack);
}

} // namespace simt
