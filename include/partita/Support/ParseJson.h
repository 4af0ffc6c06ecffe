//===- ParseJson.h - JSON from untrusted files --------------------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_PARSEJSON_H
#define PARTITA_SUPPORT_PARSEJSON_H

#include "llvm/Support/JSON.h"

namespace partita {

/// Parses like llvm::json::parse, which recurses into arrays and objects, but with a limit: text
/// that nests deeper than any of our files is an error rather than a stack overflow. Nor may an object
/// have a key twice. Errors are about "it", the text.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace partita

#endif // PARTITA_SUPPORT_PARSEJSON_H
