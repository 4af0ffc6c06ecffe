// Switching stacks: eleven instructions on x86-64, ucontext elsewhere (which calls the kernel: 13
// times slower). AddressSanitizer is told of every switch.

#include "simt/fiber.h"

#include <cstdint>
#include <cstdlib>
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
// void simt_switch(void **save, void *to): keeps what a called function must keep.
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

void beforeSwitch([[maybe_unused]] Context &from, [[maybe_unused]] const Context &to,
                  [[maybe_unused]] bool forGood) {
#ifdef PARTITA_SIMT_ASAN
  __sanitizer_start_switch_fiber(forGood ? nullptr : &from.fakeStack, to.bottom, to.size);
#endif
}
/// On the stack of `now`, coming from `before`.
void afterSwitch([[maybe_unused]] void *fakeStack, [[maybe_unused]] Context &before) {
#ifdef PARTITA_SIMT_ASAN
  __sanitizer_finish_switch_fiber(fakeStack, &before.bottom, &before.size);
#endif
}

void switchTo(Context &from, Context &to) {
#ifdef PARTITA_SIMT_UCONTEXT
  swapcontext(&from.context, &to.context);
#else
  simt_switch(&from.stackPointer, to.stackPointer);
#endif
}

} // namespace

Fiber::Fiber() {
  void *mapped = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::bad_alloc();
  memory = static_cast<char *>(mapped);
  mprotect(memory, kGuard, PROT_NONE);
}

Fiber::~Fiber() { munmap(memory, kGuard + kStack); }

void Fiber::start(void (*entry)()) {
  own = Context();
  own.bottom = memory + kGuard;
  own.size = kStack;
#ifdef PARTITA_SIMT_ASAN
  __asan_unpoison_memory_region(memory + kGuard, kStack); // what an abandoned fiber left
#endif
#ifdef PARTITA_SIMT_UCONTEXT
  getcontext(&own.context);
  own.context.uc_stack.ss_sp = memory + kGuard;
  own.context.uc_stack.ss_size = kStack;
  own.context.uc_link = nullptr;
  makecontext(&own.context, entry, 0);
#else
  auto **top = reinterpret_cast<void **>(memory + kGuard + kStack);
  *--top = nullptr; // where entry would return to: the stack is as after a call
  *--top = reinterpret_cast<void *>(entry);
  for (int i = 0; i < 6; ++i)
    *--top = nullptr;
  own.stackPointer = top;
#endif
}

void Fiber::resume(Context &from) {
  beforeSwitch(from, own, false);
  switchTo(from, own);
  Context ignored;
  afterSwitch(from.fakeStack, ignored);
}

void Fiber::entered(Context &from) { afterSwitch(nullptr, from); }

void Fiber::leave(Context &to, bool forGood) {
  beforeSwitch(own, to, forGood);
  switchTo(own, to);
  afterSwitch(own.fakeStack, to);
}

void Fiber::finish(Context &to) {
  leave(to, true);
  std::abort(); // nobody resumes it
}

} // namespace simt
