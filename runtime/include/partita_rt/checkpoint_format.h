// The formats of checkpoints, by the name under "format" in their metadata. The compiler reads
// checkpoints too, so this header includes no other header of the runtime.

#ifndef PARTITA_RT_CHECKPOINT_FORMAT_H
#define PARTITA_RT_CHECKPOINT_FORMAT_H

#include <string>

namespace partita_rt {

/// Formats that programs write: one file with all tensors, or an index of files with shards.
constexpr char kUnshardedFormat[] = "partita checkpoint 2";
constexpr char kShardedFormat[] = "partita sharded checkpoint 3";
/// Older formats that programs still read.
constexpr char kUnshardedFormat1[] = "partita checkpoint 1";
constexpr char kShardedFormat1[] = "partita sharded checkpoint 1";
constexpr char kShardedFormat2[] = "partita sharded checkpoint 2";

inline bool isUnshardedFormat(const std::string &format) {
  return format == kUnshardedFormat || format == kUnshardedFormat1;
}

inline bool isShardedFormat(const std::string &format) {
  return format == kShardedFormat || format == kShardedFormat2 || format == kShardedFormat1;
}

/// Returns true if a file of this format that lacks checksums is damaged.
inline bool hasChecksumsAlways(const std::string &format) {
  return format == kUnshardedFormat || format == kShardedFormat || format == kShardedFormat2;
}

/// Describes the damage that this format cannot detect: "which has no checksums: ..."; "" for the
/// formats written today.
inline std::string weaknessOfFormat(const std::string &format) {
  if (format == kUnshardedFormat1 || format == kShardedFormat1)
    return "which has no checksums: damage would go unnoticed";
  if (format == kShardedFormat2)
    return "whose index has no checksums of its files: shards that lie under each other's names would "
           "go unnoticed";
  return "";
}

} // namespace partita_rt

#endif // PARTITA_RT_CHECKPOINT_FORMAT_H
