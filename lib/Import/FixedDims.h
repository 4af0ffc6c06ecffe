//===- FixedDims.h - dimensions that an export has fixed --------------------------------------===//
//
// Tracing turns a number that Python computes from a shape into a constant. The model is then valid
// only for the sizes of its example inputs, although the file declares a dimension dynamic, and the
// error is about shapes somewhere in the middle. Which dimension it was, and at what size, is proven
// by importing the model with that size: that works, and with one more or one less it fails.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FIXEDDIMS_H
#define PARTITA_LIB_IMPORT_FIXEDDIMS_H

#include "lib/Import/Importer.h"

namespace partita::importer {

/// Text to append to the error of a failed import: which dimensions are fixed in the model and how to
/// export it. "" if that is not the cause.
std::string explainFixedDims(ModelFile &file, const ImportOptions &options,
                             mlir::MLIRContext *context, const Importer::Failure &failure,
                             Weights &weights);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FIXEDDIMS_H
