//===- ExternalData.h - opening data files that a model names ---------------------------------===//
//
// A model is untrusted, and so is the `location` of its external data: it must be a regular file
// below the model's folder. Absolute paths and `..` are rejected by their text. Then each component
// is opened relative to the one before with O_NOFOLLOW, so that no symbolic link can lead out, not
// even one that appears between check and use. A file with several hard links may belong to another
// folder and is rejected, too.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_IMPORT_EXTERNALDATA_H
#define PARTITA_IMPORT_EXTERNALDATA_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace partita::importer {

struct OpenedData {
  int descriptor = -1; // the caller closes it
  uint64_t size = 0;   // bytes
  std::string error;   // lower case, complete; empty when the file is open
};

/// Opens `location` below `folder`, read-only.
OpenedData openExternalData(llvm::StringRef folder, llvm::StringRef location);

} // namespace partita::importer

#endif // PARTITA_IMPORT_EXTERNALDATA_H
