// A file's bytes, mapped read-only. A file that becomes shorter while it is mapped ends the process
// with a line that names it, instead of by SIGBUS.

#ifndef PARTITA_RT_COMMON_TENSORS_MAPPED_FILE_H
#define PARTITA_RT_COMMON_TENSORS_MAPPED_FILE_H

#include "partita_rt/types.h"

#include <cstdint>
#include <string>

namespace partita_rt {

/// A file that is there, or may be, but cannot be read now: permissions, too many open files, an
/// error of the file system. Its contents may be in order.
class Unreadable : public Error {
public:
  using Error::Error;
};
/// Throws Unreadable "<what> <path>: ..." for an error of the system, or Error if that says that
/// nothing is there.
[[noreturn]] void failToRead(const std::string &what, const std::string &path, int error);

class MappedFile {
public:
  /// Throws as failToRead does, or Error "<what> <path>: ..." if the file is not a regular one.
  MappedFile(const std::string &path, const char *what);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  const unsigned char *data() const { return bytes; }
  int64_t size() const { return length; }
  const std::string &path() const { return name; }

private:
  std::string name;
  const unsigned char *bytes = nullptr;
  int64_t length = 0;
  int slot = -1; ///< in the table that a fault is looked up in
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_TENSORS_MAPPED_FILE_H
