// Places on the mesh (mesh.h).

#include "common/run/mesh.h"

namespace partita_rt {

std::string meshText(const Program &program) {
  std::string text;
  for (const Axis &axis : program.mesh)
    text += (text.empty() ? "" : ",") + std::string(axis.name) + "=" + std::to_string(axis.size);
  return text.empty() ? "one rank" : text;
}

std::string ofStage(const Program &program, int stage) {
  return program.stages.size() > 1 ? " of stage " + std::to_string(stage) : "";
}

int rankCount(const Program &program) {
  int n = 1;
  for (const Axis &axis : program.mesh)
    n *= axis.size;
  return n;
}

void placeOnMesh(Rank &rank, const Program &program, int number) {
  rank.program = &program;
  rank.rank = number;
  rank.ranks = rankCount(program);
  for (int64_t axis = program.mesh.size() - 1; axis >= 0; --axis) {
    rank.coordinates[axis] = number % program.mesh[axis].size;
    number /= program.mesh[axis].size;
  }
  rank.stageNumber = program.stageAxis < 0 ? 0 : rank.coordinates[program.stageAxis];
  rank.stage = &program.stages[rank.stageNumber];
}

int colorOf(const Rank &rank, int axis) {
  int color = 0;
  for (int64_t other = 0; other < rank.program->mesh.size(); ++other)
    if (other != axis)
      color = color * rank.program->mesh[other].size + rank.coordinates[other];
  return color;
}

} // namespace partita_rt
