//===- Roles.cpp - what fills a program's inputs ----------------------------------------------===//

#include "dialects/Train/Roles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace partita;
using namespace partita::train;

static constexpr Role kRoles[] = {
    {"ids", "TokenIds", false},         {"labels", "Labels", false}, {"targets", "Targets", false},
    {"positions", "PositionIds", true}, {"ones", "Ones", true},      {"zeros", "Zeros", true},
    {"shifted", "Shifted", false},      {"data", "Data", false},
};

llvm::ArrayRef<Role> train::roles() { return kRoles; }

const Role *train::findRole(llvm::StringRef name) {
  const auto *found = llvm::find_if(kRoles, [&](const Role &role) { return role.name == name; });
  return found == std::end(kRoles) ? nullptr : found;
}

bool train::isFixedRole(llvm::StringRef name) {
  const Role *role = findRole(name);
  return role && role->isFixed;
}

std::string train::roleNames() {
  return llvm::join(llvm::map_range(kRoles, [](const Role &role) { return role.name.str(); }),
                    ", ");
}

StringRef train::usualRole(StringRef name, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isSignlessInteger())
    return name.contains("mask") ? "ones" : "data";
  int64_t rank = tensor.getRank();
  if (name.contains("position") && rank > 0 && !tensor.getElementType().isInteger(1))
    return "positions";
  if (name.contains("mask"))
    return "ones";
  if (name.contains("token_type") || name.contains("segment"))
    return "zeros";
  if (name.starts_with("decoder_") && name.ends_with("ids") && rank == 2)
    return "shifted";
  if (name.ends_with("labels") || name.ends_with("targets"))
    return "targets";
  return "data";
}
