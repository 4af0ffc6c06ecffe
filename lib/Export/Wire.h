//===- Wire.h - walking and writing protobuf's wire format --------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_EXPORT_WIRE_H
#define PARTITA_LIB_EXPORT_WIRE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::wire {

struct Field {
  uint32_t number = 0;
  bool isBytes = false;  ///< length-delimited: `content` is what it holds
  uint64_t value = 0;    ///< of a varint
  llvm::StringRef whole; ///< tag and all
  llvm::StringRef content;
};

/// Calls `visit` for every field of a message, in order, until it returns an error. No length is
/// believed before it was compared with what remains. Returns what went wrong, or nothing.
std::string walk(llvm::StringRef message, llvm::function_ref<std::string(const Field &)> visit);

void putVarint(std::string &out, uint64_t value);
/// The tag of a length-delimited field and its length.
void putHeader(std::string &out, uint32_t number, uint64_t length);
void putBytes(std::string &out, uint32_t number, llvm::StringRef content);
void putInteger(std::string &out, uint32_t number, uint64_t value);
/// Reads one varint off the front of `bytes`; false when there is none.
bool takeVarint(llvm::StringRef &bytes, uint64_t &value);

} // namespace partita::wire

#endif // PARTITA_LIB_EXPORT_WIRE_H
