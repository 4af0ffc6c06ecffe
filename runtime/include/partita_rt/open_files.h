// How many files a process may have open, for whoever needs one for each of many connections or folders. The compiler includes
// this header, so it includes no other header of the runtime.

#ifndef PARTITA_RT_OPEN_FILES_H
#define PARTITA_RT_OPEN_FILES_H

#include <sys/resource.h>

namespace partita_rt {

/// Allows this process, and those that it starts, as many open files as it may allow itself (the hard limit).
inline void allowManyFiles() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

} // namespace partita_rt

#endif // PARTITA_RT_OPEN_FILES_H
