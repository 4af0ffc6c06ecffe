//===- Wire.h - reads and writes protobuf's wire format -----------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_EXPORT_WIRE_H
#define PARTITA_LIB_EXPORT_WIRE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::wire {

struct Field {
  uint32_t number = 0;
  bool isBytes = false;    ///< length-delimited: `content` has the bytes
  uint64_t value = 0;      ///< of a varint
  llvm::StringRef encoded; ///< including the tag
  llvm::StringRef content;
};

/// Calls `visit` for every field of a message, in order, until it returns an error. Lengths are
/// checked against the remaining bytes. Returns what went wrong, or "".
std::string walk(llvm::StringRef message, llvm::function_ref<std::string(const Field &)> visit);

void putVarint(std::string &out, uint64_t value);
/// Writes the tag and length of a length-delimited field.
void putHeader(std::string &out, uint32_t number, uint64_t length);
void putBytes(std::string &out, uint32_t number, llvm::StringRef content);
void putInteger(std::string &out, uint32_t number, uint64_t value);
/// Reads one varint from the front of `bytes`. Returns false if there is none.
bool takeVarint(llvm::StringRef &bytes, uint64_t &value);

} // namespace partita::wire

#endif // PARTITA_LIB_EXPORT_WIRE_H
