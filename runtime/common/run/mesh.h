// Which ranks of the mesh are a group, whatever they communicate through.

#ifndef PARTITA_RT_COMMON_MESH_H
#define PARTITA_RT_COMMON_MESH_H

#include "partita_rt/program.h"

#include <string>

namespace partita_rt {

/// "dp=2,tp=2", or "one rank".
std::string meshText(const Program &program);

/// Product of the axes' sizes.
int rankCount(const Program &program);

/// " of stage 1", for messages and reports; nothing of a program with one stage.
std::string ofStage(const Program &program, int stage);

/// Sets rank, ranks, coordinates and stage: the last axis varies fastest.
void placeOnMesh(Rank &rank, const Program &program, int number);

/// Ranks of the same color form one group of `axis`: all coordinates but that one are equal.
int colorOf(const Rank &rank, int axis);

/// `body(place, axis, its number, 0 or 1)` for every communicator that the rank has on an axis.
template <typename Body> void forCommunicators(Rank &rank, Body body) {
  for (int number = 0; number < int(rank.program->mesh.size()); ++number) {
    const Axis &axis = rank.program->mesh[number];
    body(rank.groups[number], axis, number, 0);
    if (axis.gathersAhead)
      body(rank.gatherGroups[number], axis, number, 1);
  }
}

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_H
