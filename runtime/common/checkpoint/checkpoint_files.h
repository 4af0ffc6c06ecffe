// What a checkpoint is on the disk: logical tensors, and where their elements are. Whoever reads
// one need not know how it was written. Either DIR/checkpoint.safetensors has every tensor whole,
// or
//
//     DIR/checkpoint.safetensors.index.json
//     {"metadata": {"format": "partita sharded checkpoint 2", "crc32c": "0e3f...", "step": "12",
//                   "save": "5b0c", ...},
//      "files": [{"name": "checkpoint-5b0c-00001-of-00002.safetensors", "bytes": 8312}, ...],
//      "tensors": {
//       "wte": {"dtype": "F32", "shape": [256, 64], "pieces": [
//        {"file": 1, "slices": [[0, 256], [0, 32]], "elements": [0, 4096]}, ...]}, ...}}
//
// says which file (from 1) has which of a tensor's elements under its name: per dimension ranges
// [begin, end, begin, end, ...], and of the elements in all of them those that "elements" counts,
// or all (partita_rt/slices.h). In the file a piece has the shape of its ranges, or [n] when it has
// "elements". Every file names in its metadata the save that it is of, so that pieces of two never
// make one checkpoint.
//
// Files are untrusted: pieces must be all elements of their tensor, each once; files lie in the
// index's folder and have the size that it says. Whoever reads elements compares the checksums of
// the blocks that they are in (partita_rt/checksum.h), so nobody reads what others need.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_FILES_H
#define PARTITA_RT_COMMON_CHECKPOINT_FILES_H

#include "common/weights/pieces.h"
#include "common/weights/safetensors.h"

#include <functional>

namespace partita_rt {

constexpr char kWholeFormat[] = "partita checkpoint 2";
constexpr char kShardedFormat[] = "partita sharded checkpoint 2";
/// What a file that a program has written holds, where it is no checkpoint.
constexpr char kHolds[] = "holds";
/// The same without checksums.
constexpr char kOldWholeFormat[] = "partita checkpoint 1";
constexpr char kOldShardedFormat[] = "partita sharded checkpoint 1";

/// Throws Error when a file that says to be of a format with checksums has none. What the user
/// should know of one that says to be of a format without; "" of all others.
std::string formatNote(const std::map<std::string, std::string> &metadata, bool hasChecksums,
                       const std::string &path);

struct LogicalTensor {
  struct Piece {
    size_t file;
    Slices slices;
  };
  DType dtype;
  Shape shape;
  std::vector<Piece> pieces;
};

std::string wholePath(const std::string &folder); ///< DIR/checkpoint.safetensors
std::string indexPath(const std::string &folder); ///< DIR/checkpoint.safetensors.index.json
/// The one of the two that is there. Both are when a save was interrupted or somebody copied files:
/// then the one written last.
std::string findCheckpoint(const std::string &folder);

/// Has a save into the folder ever been completed? Throws Error where that cannot be known, as where
/// there are shards without an index.
bool hasCheckpoint(const std::string &folder);

/// A file of pieces: checkpoint-SAVE-00001-of-00004.safetensors.
std::string shardName(const std::string &save, int number, int count);
/// Removes the folder's files of pieces that are none of these, and what killed runs left.
void removeOtherShards(const std::string &folder, const std::vector<std::string> &names);
/// Those that no index names: of saves that failed or were interrupted.
void removeUnnamedShards(const std::string &folder);

class CheckpointFiles {
public:
  /// Of either form, an index when the name ends in ".json". Throws Error, as all of these.
  explicit CheckpointFiles(const std::string &path);
  const std::string &path() const { return name; }
  const std::map<std::string, std::string> &metadata() const { return meta; }
  const std::map<std::string, LogicalTensor> &tensors() const { return table; }
  /// A tensor that the program needs so.
  const LogicalTensor &get(const std::string &tensor, DType dtype, const Shape &shape) const;
  /// Calls visit(bytes, run) for parts of these runs, which ascend, that lie in one piece; opens
  /// only the files that have them, and compares the checksums of what it passes on.
  using Visit = std::function<void(const unsigned char *bytes, const Run &run)>;
  void forParts(const std::string &tensor, const std::vector<Run> &runs, const Visit &visit) const;
  /// Are their files there and what the index says? Their contents are not read.
  void openParts(const std::string &tensor, const std::vector<Run> &runs) const;
  /// What the user should know of how the checkpoint was written; "" when there is nothing.
  const std::string &note() const { return said; }

private:
  void readIndex();
  void readWhole();
  const StoredTensor &open(const std::string &tensor, const LogicalTensor &logical,
                           const LogicalTensor::Piece &piece) const;
  template <typename VisitPart>
  void walk(const std::string &tensor, const std::vector<Run> &runs, VisitPart visit) const;
  struct File {
    std::string path;
    std::unique_ptr<SafetensorsFile> opened;
  };
  std::string name, said;
  mutable std::vector<File> files;
  std::map<std::string, LogicalTensor> table;
  std::map<std::string, std::string> meta;
};

/// The text of an index.
std::string indexText(std::map<std::string, std::string> metadata,
                      const std::vector<std::pair<std::string, int64_t>> &files,
                      const std::vector<std::pair<std::string, LogicalTensor>> &tensors);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_FILES_H
