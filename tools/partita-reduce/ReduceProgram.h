//===- ReduceProgram.h - less of a program that still fails -------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REDUCE_REDUCEPROGRAM_H
#define PARTITA_TOOLS_REDUCE_REDUCEPROGRAM_H

namespace partita {

/// Registers the pass `reduce-program`.
void registerReduceProgramPass();

} // namespace partita

#endif // PARTITA_TOOLS_REDUCE_REDUCEPROGRAM_H
