// Errors of files that may pass while a run waits, such as a full disk.

#ifndef PARTITA_RT_COMMON_STORAGE_ERROR_H
#define PARTITA_RT_COMMON_STORAGE_ERROR_H

#include "partita_rt/types.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace partita_rt {

/// The file system has no room or no inodes, the user's quota is used up, or it is read-only or not mounted now.
class StorageError : public Error {
public:
  using Error::Error;
};

/// Throws Error "WHAT: No such file or directory" for an errno; StorageError if it may pass.
[[noreturn]] inline void failWithErrno(const std::string &what, int error = errno) {
  std::string text = what + ": " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT || error == EROFS || error == ESTALE)
    throw StorageError(text);
  throw Error(text);
}

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_STORAGE_ERROR_H
