//===- Forms.h - other ops where a size is in the way of a split --------------------*- C++ -*-===//

#ifndef PARTITA_LIB_PARTITION_FORMS_H
#define PARTITA_LIB_PARTITION_FORMS_H

#include "lib/Partition/Propagation.h"

namespace partita {

/// The forms (ShardInterface::splitForm) of ops that keep a family of dimensions from being split
/// by a size alone. They are built while families are tried, which know nothing of them, and take
/// the ops' places afterwards.
class Forms {
public:
  /// Builds the forms of a family's ops that have one for so many parts; is there any?
  bool find(const Attempt &attempt, int64_t parts);
  bool empty() const { return forms.empty(); }
  /// Puts them in the ops' places; how many?
  unsigned apply();

  /// Has any op of the family a form for so many parts?
  static bool exist(const Attempt &attempt, int64_t parts);
  /// The numbers of parts up to 1024 with which no size is in the way.
  static llvm::SmallVector<int64_t> divisors(const Attempt &attempt);
  /// What is in the way of so many parts: "is split by its 4 heads, which do not divide", "is split
  /// together with a dimension of size 6, which does not divide".
  static std::string reason(const Attempt &attempt, int64_t parts);

private:
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<mlir::Value>> forms;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_FORMS_H
