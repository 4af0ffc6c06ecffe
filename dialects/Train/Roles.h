//===- Roles.h - what fills an input of a program ---------------------------------*- C++ -*-===//
//
// The roles of `train.role`: one table, which --input, the objective, emission and verifiers read.
//
//===----------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_TRAIN_ROLES_H
#define PARTITA_DIALECTS_TRAIN_ROLES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace partita::train {

struct Role {
  llvm::StringLiteral name;    ///< in `train.role` and --input
  llvm::StringLiteral runtime; ///< of partita_rt::InputRole, which says what each means
  bool isFixed;                ///< the role alone says what the input holds; no data do
};

llvm::ArrayRef<Role> roles();
/// The role of that name; null where there is none.
const Role *findRole(llvm::StringRef name);
/// Does the role of that name say all that an input holds? Not where there is none.
bool isFixedRole(llvm::StringRef name);
/// The names of all roles, for a message.
std::string roleNames();

/// Of an input that import leaves to the objective; no program has it.
constexpr llvm::StringLiteral kUndecidedRole = "input";

} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_ROLES_H
