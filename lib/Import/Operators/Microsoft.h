//===- Microsoft.h - checks that onnxruntime's operators share --------------------------------===//
#ifndef PARTITA_LIB_IMPORT_OPERATORS_MICROSOFT_H
#define PARTITA_LIB_IMPORT_OPERATORS_MICROSOFT_H

#include "lib/Import/Operators/Attention.h"
#include "lib/Import/Operators/Lookup.h"

namespace partita::importer {

/// The domain of the operators that onnxruntime's optimizer leaves.
inline constexpr const char *kMicrosoft = "com.microsoft";

/// `count` floats of x's type in one dimension.
mlir::LogicalResult checkRow(Node &node, Tensor *row, const Tensor &x, int64_t count,
                             const char *what);
/// Rows of a table, the ids, of a shape that is given, checked.
mlir::FailureOr<mlir::Value> lookUp(Node &node, Tensor *ids, Tensor *table,
                                    llvm::ArrayRef<int64_t> idsShape);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_OPERATORS_MICROSOFT_H
