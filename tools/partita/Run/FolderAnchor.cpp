//===- FolderAnchor.cpp - whether a folder is still what it was --------------------------===//

#include "tools/partita/Run/FolderAnchor.h"
#include "runtime/include/partita_rt/checkpoint_folder.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/Patience.h"

using namespace llvm;
using namespace partita::tool;

FolderAnchor::FolderAnchor(StringRef folder) : path(folder.str()) {
  while (!partita_rt::inodeOf(path) && path.size() > 1 && path.find('/') != std::string::npos)
    path.resize(std::max<size_t>(path.rfind('/'), 1)); // "/" remains
  if (!partita_rt::inodeOf(path))
    path = ".";
  inode = partita_rt::inodeOf(path);
}

void FolderAnchor::moveTo(StringRef folder, ino_t its) {
  path = folder.str();
  inode = its;
}

bool FolderAnchor::isThere() const { return partita_rt::inodeOf(path) == inode; }

bool FolderAnchor::waitFor() const {
  return waitUntil(secondsOf(Patience::Folder), [this] { return isThere(); });
}
