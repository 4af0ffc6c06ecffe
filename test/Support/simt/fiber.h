// Stacks of their own to run functions on, in turns.

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

/// A place to come back to.
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

/// Leaves one place for another; returns when somebody comes back to `from`.
void switchTo(Context &from, Context &to);
/// The first thing that a fiber does.
void entered();

/// Has a guard page below its stack. Not copied or moved: contexts may point into themselves.
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
