//===- ScalarText.h - the op table's scalar expressions as C++ in float32 -----------*- C++ -*-===//

#ifndef PARTITA_LOWER_SCALARTEXT_H
#define PARTITA_LOWER_SCALARTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita::rt {

/// Rewrites an expression of the op table (double precision, functions of Scalar.h) for the
/// runtime's math.h: `0.5` becomes `0.5f`, `exp` becomes `expf`, `max` becomes `maximum`. A name
/// that is not a function is replaced with what `name` returns for it.
std::string floatExpression(llvm::StringRef expression,
                            llvm::function_ref<std::string(llvm::StringRef)> name);

} // namespace partita::rt

#endif // PARTITA_LOWER_SCALARTEXT_H
