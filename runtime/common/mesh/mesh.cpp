// Coordinates on the mesh (mesh.h).

#include "common/mesh/mesh.h"

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

std::string rankText(const Program &program, int number) {
  Rank rank;
  setCoordinates(rank, program, number);
  return "rank " + std::to_string(number) + ofStage(program, rank.stageNumber);
}

std::string slotText(const Slot &slot) {
  if (slot.number < 0)
    return "";
  std::string text = "slot " + std::to_string(slot.number) + " (" + slot.what;
  if (slot.microBatch >= 0)
    text += ", micro-batch " + std::to_string(slot.microBatch);
  return text;
}

void slotEnd(int32_t layer, char *text) {
  const char *words = layer == Slot::kBeforeLayers  ? ", before the layers"
                      : layer == Slot::kAfterLayers ? ", after the layers"
                      : layer >= 0                  ? ", layer "
                                                    : "";
  while (*words)
    *text++ = *words++;
  char digits[12];
  int count = 0;
  for (int32_t rest = layer; layer >= 0 && (count == 0 || rest > 0); rest /= 10)
    digits[count++] = char('0' + rest % 10);
  while (count > 0)
    *text++ = digits[--count];
  *text++ = ')';
  *text = 0;
}

std::string atSlot(const Rank &rank) {
  char end[kSlotEnd];
  slotEnd(rank.slot.layer, end);
  std::string text = slotText(rank.slot);
  return text.empty() ? "" : text + end + ": ";
}

int rankCount(const Program &program) {
  int n = 1;
  for (const Axis &axis : program.mesh)
    n *= axis.size;
  return n;
}

void setCoordinates(Rank &rank, const Program &program, int number) {
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

/// Are both of the group's stages, and equal but for its axes?
static bool together(const Group &group, const Rank &one, const Rank &other) {
  if (!group.stages.contains(one.stageNumber) || !group.stages.contains(other.stageNumber))
    return false;
  for (int axis = 0; axis < int(one.program->mesh.size()); ++axis)
    if (!group.axes.contains(axis) && one.coordinates[axis] != other.coordinates[axis])
      return false;
  return true;
}

std::vector<Membership> membershipsOf(const Rank &rank) {
  std::vector<Membership> memberships;
  const Table<Group> &groups = rank.program->groups;
  for (const Group &group : groups)
    memberships.push_back({int(memberships.size()), group.name, {}});
  for (int number = 0; number < rank.ranks; ++number) {
    Rank other{};
    setCoordinates(other, *rank.program, number);
    for (int64_t row = 0; row < groups.size(); ++row) {
      if (!together(groups[row], rank, other))
        continue;
      Membership &membership = memberships[size_t(row)];
      if (number == rank.rank)
        membership.position = membership.size();
      membership.ranks.push_back(number);
    }
  }
  return memberships;
}

std::vector<ChannelEndpoint> channelsOf(const Rank &rank) {
  const Program &program = *rank.program;
  std::vector<ChannelEndpoint> endpoints;
  int below = 1; // ranks per stage
  for (int64_t axis = program.mesh.size() - 1; axis > program.stageAxis; --axis)
    below *= program.mesh[axis].size;
  for (int row = 0; row < int(program.channels.size()); ++row) {
    const Channel &channel = program.channels[row];
    if (channel.from != rank.stageNumber && channel.to != rank.stageNumber)
      continue;
    bool sends = channel.from == rank.stageNumber;
    int other = sends ? channel.to : channel.from;
    int peer = rank.rank + (other - rank.stageNumber) * below;
    endpoints.push_back({row, channel.name, sends, rank.rank, peer, rankText(program, rank.rank),
                         rankText(program, peer)});
  }
  return endpoints;
}

} // namespace partita_rt
