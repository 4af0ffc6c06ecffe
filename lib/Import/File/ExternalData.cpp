//===- ExternalData.cpp -----------------------------------------------------------------------===//

#include "partita/Import/ExternalData.h"
#include "partita/Import/ModelFile.h"
#include "llvm/ADT/SmallVector.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita::importer {

static std::string forbiddenPath(llvm::StringRef location,
                                 llvm::SmallVectorImpl<llvm::StringRef> &components) {
  if (location.empty())
    return "the location of the external data is empty";
  if (location.contains('\0'))
    return "external data " + quoted(location) + " has a zero byte in its name";
  if (location.starts_with("/"))
    return "external data " + quoted(location) +
           " has an absolute path, it must be relative to the model's folder";
  location.split(components, '/', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef component : components)
    if (component == "..")
      return "external data " + quoted(location) + " leaves the model's folder through '..'";
  llvm::erase(components, ".");
  if (components.empty() || location.ends_with("/"))
    return "external data " + quoted(location) + " is not a file";
  return {};
}

static std::string openError(llvm::StringRef location, llvm::StringRef component, int parent) {
  int reason = errno;
  struct stat status;
  bool link = fstatat(parent, component.str().c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
              S_ISLNK(status.st_mode);
  std::string message = "external data " + quoted(location);
  if (link)
    return message + " leads through a symbolic link, " + quoted(component);
  return message + " cannot be opened: " + std::strerror(reason);
}

OpenedData openExternalData(llvm::StringRef folder, llvm::StringRef location) {
  OpenedData result;
  llvm::SmallVector<llvm::StringRef> components;
  result.error = forbiddenPath(location, components);
  if (!result.error.empty())
    return result;
  std::string root = folder.empty() ? "." : folder.str();
  int at = open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) {
    result.error =
        "the model's folder " + quoted(root) + " cannot be opened: " + std::strerror(errno);
    return result;
  }
  for (size_t i = 0; i < components.size(); ++i) {
    bool last = i + 1 == components.size();
    // O_NONBLOCK: a named pipe must not hang the import.
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
    int next = openat(at, components[i].str().c_str(), flags);
    if (next < 0)
      result.error = openError(location, components[i], at);
    close(at);
    if (next < 0)
      return result;
    at = next;
  }
  struct stat status;
  if (fstat(at, &status) != 0 || !S_ISREG(status.st_mode))
    result.error = "external data " + quoted(location) + " is not a regular file";
  else if (status.st_nlink > 1)
    result.error = "external data " + quoted(location) + " has " + std::to_string(status.st_nlink) +
                   " hard links, it may be a file from elsewhere: copy it";
  if (!result.error.empty()) {
    close(at);
    return result;
  }
  result.descriptor = at;
  result.size = static_cast<uint64_t>(status.st_size);
  return result;
}

} // namespace partita::importer
