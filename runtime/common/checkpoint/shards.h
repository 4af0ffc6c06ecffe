// A checkpoint of a program whose ranks have different shards: each rank writes those that no lower
// rank has, then rank 0 writes the index (checkpoint_files.h). Nothing is gathered.
//
// The files of a save are named after its contents, so they never replace those of another save.
// The index replaces the earlier one atomically; only then are the files that it no longer lists
// removed. An interrupted save leaves the earlier checkpoint intact; the next save first removes
// the files that it left.

#ifndef PARTITA_RT_COMMON_SHARDS_H
#define PARTITA_RT_COMMON_SHARDS_H

#include "partita_rt/comm.h"

#include <map>
#include <string>

namespace partita_rt {

/// Writes a checkpoint. All ranks call it; rank 0 has made the folder before. Throws Error.
void writeShards(Rank &rank, const std::string &folder,
                 const std::map<std::string, std::string> &metadata);

/// Mixes a text into a hash that is the same on every machine.
uint64_t mixText(uint64_t hash, const std::string &text);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_SHARDS_H
