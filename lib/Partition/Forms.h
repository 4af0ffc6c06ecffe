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

  /// The numbers of parts up to 1024 with which no size is in the way: "1, 2, 4".
  static std::string divisors(const Attempt &attempt);

private:
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<mlir::Value>> forms;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_FORMS_H
