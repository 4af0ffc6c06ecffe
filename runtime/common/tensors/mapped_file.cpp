// Maps files, and explains faults in them (mapped_file.h).

#include "common/tensors/mapped_file.h"

#include "common/signal_table.h"
#include "common/temporary_file.h"
#include "partita_rt/types.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace partita_rt {

namespace {

struct Mapping {
  const unsigned char *begin, *end;
  const char *name;
};
SignalTable<Mapping, 256>
    mappings; // enough for a checkpoint's shards; faults in further files stay plain faults

/// Several ranks may be threads of this process, and read the same file: the first one reports, in one write.
void reportShorterFile(const char *name) {
  static std::atomic_flag reported = ATOMIC_FLAG_INIT;
  while (reported.test_and_set())
    pause();
  auto part = [](const char *text) { return iovec{const_cast<char *>(text), std::strlen(text)}; };
  iovec parts[] = {part(program_invocation_short_name), part(": error: "), part(name),
                   part(": the file became shorter while it was read, or its disk failed\n")};
  [[maybe_unused]] ssize_t written = writev(STDERR_FILENO, parts, 4); // nowhere to report an error
}

extern "C" void takeFault(int signal, siginfo_t *info, void *) {
  const auto *at = static_cast<const unsigned char *>(info->si_addr);
  mappings.forEach([&](const Mapping &each) {
    if (at < each.begin || each.end <= at)
      return;
    reportShorterFile(each.name);
    removeTemporaryFiles();
    _exit(1);
  });
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr); // the access repeats, and ends the process
}

/// Installs the handler, unless another one, such as a sanitizer's, handles these faults.
void handleFaults() {
  struct sigaction action;
  if (sigaction(SIGBUS, nullptr, &action) != 0 || action.sa_handler != SIG_DFL)
    return;
  action = {};
  action.sa_sigaction = takeFault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

} // namespace

void failToRead(const std::string &what, const std::string &path, int error) {
  std::string text = what + " " + path + ": " + std::strerror(error);
  if (error == ENOENT || error == ENOTDIR)
    throw Error(text);
  throw Unreadable(text);
}

MappedFile::MappedFile(const std::string &path, const char *what) : name(path) {
  // Without O_NONBLOCK, opening a pipe, which is refused below, would wait for its writer.
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    failToRead(what, path, errno);
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    fail("%s %s: not a regular file", what, path.c_str());
  }
  length = status.st_size;
  if (length > 0) {
    void *memory = mmap(nullptr, size_t(length), PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED) {
      int error = errno;
      close(descriptor);
      failToRead(what, path, error);
    }
    bytes = static_cast<const unsigned char *>(memory);
    static std::once_flag handled;
    std::call_once(handled, handleFaults);
    slot = mappings.add([&](Mapping &each) { each = {bytes, bytes + length, name.c_str()}; });
  }
  close(descriptor);
}

MappedFile::~MappedFile() {
  mappings.remove(slot);
  if (bytes)
    munmap(const_cast<unsigned char *>(bytes), size_t(length));
}

} // namespace partita_rt
