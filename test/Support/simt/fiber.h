// A stack of its own to run a function on, in turns with the one that resumes it.

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

/// Has a guard page below its stack. Not copied or moved: contexts may point into themselves.
class Fiber {
public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// The next resume calls entry(), which never returns: it ends by finish().
  void start(void (*entry)());
  /// Runs it until it suspends or finishes. `from` is the resumer.
  void resume(Context &from);
  /// Goes back to the resumer.
  void suspend(Context &to) { leave(to, false); }
  [[noreturn]] void finish(Context &to);
  /// The first thing that entry does.
  void entered(Context &from);

private:
  void leave(Context &to, bool forGood);
  char *memory;
  Context own;
};

} // namespace simt

#endif // PARTITA_TEST_SIMT_FIBER_H
