// Separate stacks to run functions on, taking turns.

#ifndef PARTITA_TEST_SIMT_FIBER_H
#define PARTITA_TEST_SIMT_FIBER_H

#include <cstddef>

#if !defined(__x86_64__) && !defined(PARTITA_SIMT_UCONTEXT)
#define PARTITA_SIMT_UCONTEXT
#endif
#ifdef PARTITA_SIMT_UCONTEXT
#include <ucontext.h>
#endif

namespace simt {

/// A place to switch back to.
struct Context {
#ifdef PARTITA_SIMT_UCONTEXT
  ucontext_t context;
#else
  void *stackPointer = nullptr;
#endif
  void *fakeStack = nullptr; ///< AddressSanitizer's
  const void *bottom = nullptr;
  size_t size = 0;
};

/// Switches from one context to another; returns when another fiber switches back to `from`.
void switchTo(Context &from, Context &to);
/// Must be the first call of a fiber.
void entered();

/// A stack with a guard page below it. Cannot be copied or moved: contexts may point into
/// themselves.
class Fiber {
public:
  /// The first switch to `context` calls entry(), which begins with entered() and never returns.
  explicit Fiber(void (*entry)());
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  Context context;

private:
  char *memory;
};

} // namespace simt

#endif // PARTITA_TEST_SIMT_FIBER_H
