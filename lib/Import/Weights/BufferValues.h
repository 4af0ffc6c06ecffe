//===- BufferValues.h - values that no trained tensor has ---------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_BUFFERVALUES_H
#define PARTITA_LIB_IMPORT_WEIGHTS_BUFFERVALUES_H

#include "partita/Import/HostTensor.h"

namespace partita::importer {

/// Zeros and one number of at most -1e4, both present; or lower triangles of ones, with zeros above
/// the diagonal.
bool isMask(const HostTensor &values);

/// Two tables of one shape, ignoring dimensions of size 1, that hold cosines and sines of the same
/// angles, all times one number. Ones and zeros, the initial scale and bias of a norm, would satisfy
/// this: at least half of the angles must have neither part 0, and not all may be equal.
bool areTurns(const HostTensor &first, const HostTensor &second);

/// One table that holds cosines and sines of the same angles, as halves of one dimension or
/// interleaved in it.
bool isTurned(const HostTensor &values);

/// Biases of ALiBi, (j - i) x slope or j x slope: the unmasked elements of every row lie on a rising or
/// falling line, or on one with a single turn, as |j - i| does. At least half of the rows have three
/// unmasked elements.
bool isAlibi(const HostTensor &values);

/// A table of sines and cosines of positions (Vaswani et al., arXiv 1706.03762), one row per position,
/// in halves of the row or interleaved. One row may be zeros: that of the padding token.
bool isSinusoidal(const HostTensor &values);

/// What positions are multiplied with before a sine: numbers that are not negative and neither rise
/// and fall; or a table of angles, in two dimensions or more. One number may be either.
bool areFrequencies(const HostTensor &values);

/// The slopes of ALiBi (Press et al., arXiv 2108.12409), one per head: powers of two whose exponents
/// are different multiples, at most two for each head, of one number; all of one sign. One number may be
/// a slope.
bool areSlopes(const HostTensor &values);

/// Positions: every row counts up or down by one.
bool isCounted(const HostTensor &values);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_BUFFERVALUES_H
