//===- ReduceProgram.h - shrinks a failing program ----------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REDUCE_REDUCEPROGRAM_H
#define PARTITA_TOOLS_REDUCE_REDUCEPROGRAM_H

namespace partita {

/// Registers the pass `reduce-program`.
void registerReduceProgramPass();

} // namespace partita

#endif // PARTITA_TOOLS_REDUCE_REDUCEPROGRAM_H
