//===- Reader.h - the grammar of configurations -------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_DEEPSPEED_READER_H
#define PARTITA_LIB_DEEPSPEED_READER_H

#include "partita/DeepSpeed/Document.h"

namespace partita::config {

/// Reads `text`, part of the document's file, into `value`, a block. Returns false after one error.
bool readDocument(const Document &document, llvm::StringRef text, Value &value);

} // namespace partita::config

#endif // PARTITA_LIB_DEEPSPEED_READER_H
