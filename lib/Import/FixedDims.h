//===- FixedDims.h - dimensions that an export has fixed --------------------------------------===//
//
// Tracing keeps a number that Python has computed of a shape, and the model then holds for the sizes
// of its example inputs alone, though its file says that a dimension is dynamic. The error is about
// shapes somewhere in the middle. Which dimension it was, and at what size, is proven by importing
// the model with that size: that works, and with one more or one less it does not.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FIXEDDIMS_H
#define PARTITA_LIB_IMPORT_FIXEDDIMS_H

#include "lib/Import/Importer.h"

namespace partita::importer {

/// For the error of an import that has failed: which of its dimensions are fixed in the model and
/// how to export it. "" if the error is not about such.
std::string explainFixedDims(ModelFile &file, const ImportOptions &options,
                             mlir::MLIRContext *context, const Importer::Failure &failure,
                             Weights &weights);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FIXEDDIMS_H
