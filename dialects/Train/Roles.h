//===- Roles.h - what fills a program's inputs ------------------------------------*- C++ -*-===//
//
// The table of roles (`train.role`), which --input, the objective, emission and verifiers read.
//
//===----------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_TRAIN_ROLES_H
#define PARTITA_DIALECTS_TRAIN_ROLES_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace partita::train {

struct Role {
  llvm::StringLiteral name;    ///< in `train.role` and --input
  llvm::StringLiteral runtime; ///< of partita_rt::InputRole, which says what each means
  bool isFixed;                ///< the role alone determines what the input holds
};

llvm::ArrayRef<Role> roles();
/// Returns the role with that name, or null.
const Role *findRole(llvm::StringRef name);
/// Returns true if the role with that name determines all that an input holds; false if there is
/// none.
bool isFixedRole(llvm::StringRef name);
/// Returns the role of an input of that name and type in most models, for inputs that --input does not mention.
/// Tokens are recognized by their use.
llvm::StringRef usualRole(llvm::StringRef name, mlir::Type type);
/// Returns the names of all roles, for a message.
std::string roleNames();

/// The role of an input that import leaves to the objective; no program has it.
constexpr llvm::StringLiteral kUndecidedRole = "input";

} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_ROLES_H
