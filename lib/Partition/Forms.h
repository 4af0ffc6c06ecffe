//===- Forms.h - other ops where a size prevents a split ----------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_PARTITION_FORMS_H
#define PARTITA_LIB_PARTITION_FORMS_H

#include "lib/Partition/Propagation.h"

namespace partita {

/// The forms (ShardInterface::splitForm) of ops that keep a family of dimensions from being split
/// only because of a size. They are built while families are tried, without affecting them, and
/// replace the ops afterwards.
class Forms {
public:
  /// Builds the forms of the family's ops that have one for that many parts. Returns true if there
  /// is any.
  bool find(const Attempt &attempt, int64_t parts);
  bool empty() const { return forms.empty(); }
  /// Replaces the ops by their forms. Returns how many.
  unsigned apply();

  /// Returns true if any op of the family has a form for that many parts.
  static bool exist(const Attempt &attempt, int64_t parts);
  /// Returns the numbers of parts, up to 1024, that no size prevents.
  static llvm::SmallVector<int64_t> divisors(const Attempt &attempt);
  /// Describes what prevents that many parts: "is split by its 4 heads, which do not divide", "is
  /// split together with a dimension of size 6, which does not divide".
  static std::string reason(const Attempt &attempt, int64_t parts);

private:
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<mlir::Value>> forms;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_FORMS_H
