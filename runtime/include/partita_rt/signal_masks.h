// Signals that a thread does not take. The compiler's `partita run` blocks them too, so this header includes no other
// header of the runtime.

#ifndef PARTITA_RT_SIGNAL_MASKS_H
#define PARTITA_RT_SIGNAL_MASKS_H

#include <csignal>

namespace partita_rt {

/// Blocks all signals of the calling thread until the end of the scope, or until they are let in.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalsBlocked() { letIn(); }
  SignalsBlocked(const SignalsBlocked &) = delete;
  SignalsBlocked &operator=(const SignalsBlocked &) = delete;

  void letIn() const { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};

/// Blocks them for good: they are another thread's. Threads that this one starts inherit that.
inline void blockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

} // namespace partita_rt

#endif // PARTITA_RT_SIGNAL_MASKS_H
