//===- BufferValues.h - values that no trained tensor has ---------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_BUFFERVALUES_H
#define PARTITA_LIB_IMPORT_BUFFERVALUES_H

#include "partita/Import/HostTensor.h"

namespace partita::importer {

/// Of zeros and one number of at most -1e4 (both stand there), or triangles of ones with zeros
/// above the diagonal.
bool isMask(const HostTensor &values);

/// Two tables of one shape, dimensions of one aside: the cosines and sines of the same angles, all
/// of them times one number. Ones and zeros are, too, which a new norm's scale and bias have: at
/// least half of the angles must be others, and not all equal.
bool areTurns(const HostTensor &first, const HostTensor &second);

/// One table that holds cosines and sines of the same angles: as its halves in one of its
/// dimensions, or next to one another there.
bool isTurned(const HostTensor &values);

/// Biases of ALiBi, (j - i) x slope or j x slope: every row, but for what is masked in it, lies on
/// a line that rises or falls, or on one that turns at one place, as |j - i| does. At least three
/// elements of half of the rows are not masked.
bool isAlibi(const HostTensor &values);

/// A table of sines and cosines of positions (Vaswani et al., arXiv 1706.03762), a row for each: of
/// one angle they are in halves of the row or next to one another. One row may be zeros, as that of
/// a token which fills up is.
bool isSinusoidal(const HostTensor &values);

/// Positions: every row counts up or down by one.
bool isCounted(const HostTensor &values);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_BUFFERVALUES_H
