//===- ParseJson.h - JSON from untrusted files --------------------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_PARSEJSON_H
#define PARTITA_SUPPORT_PARSEJSON_H

#include "llvm/Support/JSON.h"

namespace partita {

/// llvm::json::parse, which recurses into arrays and objects, with a limit: text that nests deeper
/// than any file of ours is an error instead of the end of the stack.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace partita

#endif // PARTITA_SUPPORT_PARSEJSON_H
