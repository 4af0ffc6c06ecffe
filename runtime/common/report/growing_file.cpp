// Files that hold back what a full disk has no room for (growing_file.h).

#include "common/report/growing_file.h"

#include "common/grouped.h"
#include "partita_rt/printable.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace partita_rt {

/// Writes what it can; returns the error that has stopped it, or 0.
int GrowingFile::write() {
  size_t at = 0;
  int error = 0;
  while (at < held.size() && error == 0) {
    ssize_t n = ::write(descriptor, held.data() + at, held.size() - at);
    if (n >= 0)
      at += size_t(n);
    else if (errno != EINTR)
      error = errno;
  }
  held.erase(0, at);
  return error;
}

void GrowingFile::add(const std::string &bytes) {
  held += bytes;
  int error = write();
  if (error && !hasWarned) {
    hasWarned = true;
    std::fprintf(stderr,
                 "warning: %s: cannot be written: %s; training goes on, and what is missing is "
                 "written when it can be\n",
                 printable(name).c_str(), std::strerror(error));
  } else if (!error && hasWarned && !hasRecovered) {
    hasRecovered = true;
    std::fprintf(stderr, "%s: is written again, and nothing is missing\n", printable(name).c_str());
  }
}

GrowingFile::~GrowingFile() {
  if (int error = write())
    std::fprintf(stderr, "warning: %s: its last %s bytes are lost: %s\n", printable(name).c_str(),
                 grouped(int64_t(held.size())).c_str(), std::strerror(error));
  close(descriptor);
}

} // namespace partita_rt
