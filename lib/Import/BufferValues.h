//===- BufferValues.h - values that no trained tensor has ---------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_BUFFERVALUES_H
#define PARTITA_LIB_IMPORT_BUFFERVALUES_H

#include "HostTensor.h"

namespace partita::importer {

/// Of zeros and one number of at most -1e4 (both stand there), or triangles of ones with zeros
/// above the diagonal.
bool isMask(const HostTensor &values);

/// Two tables of one shape: the cosines and sines of the same angles. Ones and zeros are, too,
/// which a new norm's scale and bias have: at least half of the angles must be others.
bool areTurns(const HostTensor &first, const HostTensor &second);

/// One table whose halves, in the last dimension, are cosines and sines of the same angles.
bool isTurned(const HostTensor &values);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_BUFFERVALUES_H
