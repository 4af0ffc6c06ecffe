// One checkpoint on disk: logical tensors, and the locations of their elements. A reader need not
// know how it was written. In its folder (partita_rt/checkpoint_folder.h: DIR/step-12), either
// checkpoint.safetensors has every tensor in full, or
//
//     checkpoint.safetensors.index.json
//     {"metadata": {"format": "partita sharded checkpoint 3", "crc32c": "0e3f...", "step": "12",
//                   "save": "5b0c", ...},
//      "files": [{"name": "checkpoint-5b0c-00001-of-00002.safetensors", "bytes": 8312,
//                 "header_crc32c": "91ab..."}, ...],
//      "tensors": {
//       "wte": {"dtype": "F32", "shape": [256, 64], "shards": [
//        {"file": 1, "slices": [[0, 256], [0, 32]], "elements": [0, 4096]}, ...]}, ...}}
//
// maps a tensor's elements to files (numbered from 1), under the tensor's name: ranges [begin, end,
// begin, end, ...] per dimension, and of the elements in all of them either all or the range
// "elements" (partita_rt/slices.h). In its file a shard has the shape of its ranges, or [n] if it
// has "elements". Every file's metadata names the save that it belongs to, by the step and what else
// the ranks agree on. The index has the checksum of each file's header, which contains those of the
// data: a file of another save, or under another's name, is refused.
//
// Files are untrusted: the shards of a tensor must cover its elements exactly once; files must be
// in the index's folder and have the recorded size and header. A reader checks the checksums of the
// blocks that it takes elements from (partita_rt/checksum.h), and no others.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_CHECKPOINT_FILES_H
#define PARTITA_RT_COMMON_CHECKPOINT_CHECKPOINT_FILES_H

#include "common/tensors/safetensors.h"
#include "common/tensors/tensor_shards.h"
#include "partita_rt/checkpoint_format.h"

#include <functional>

namespace partita_rt {

/// The metadata key of a file that a program wrote but that is not a checkpoint; its value is
/// "parameters".
constexpr char kHolds[] = "holds";

/// Returns a note for the user about a file whose format lacks checksums; "" for all others. Throws
/// Error if the file's format has checksums and they are missing.
std::string formatNote(const std::map<std::string, std::string> &metadata, bool hasChecksums,
                       const std::string &path);

struct LogicalTensor {
  struct Shard {
    size_t file;
    Slices slices;
  };
  DType dtype;
  Shape shape;
  std::vector<Shard> shards;
};

std::string unshardedPath(const std::string &folder); ///< DIR/checkpoint.safetensors
std::string indexPath(const std::string &folder);     ///< DIR/checkpoint.safetensors.index.json
/// Returns whichever of the two exists in the folder of one checkpoint. If both do, because files
/// were copied, returns the one written last. Throws Error if neither does.
std::string checkpointFile(const std::string &folder);

/// "checkpoint-SAVE-00001-of-00004.safetensors".
std::string shardName(const std::string &save, int number, int count);
/// Returns the names of the shards in a folder, in order.
std::vector<std::string> shardsIn(const std::string &folder);

class CheckpointFiles {
public:
  /// Opens either form: an index if the name ends in ".json". Like all of these, throws Error.
  explicit CheckpointFiles(const std::string &path);
  const std::string &path() const { return name; }
  const std::map<std::string, std::string> &metadata() const { return meta; }
  const std::map<std::string, LogicalTensor> &tensors() const { return table; }
  /// Returns a tensor; throws Error unless it has this type and shape.
  const LogicalTensor &get(const std::string &tensor, DType dtype, const Shape &shape) const;
  /// Calls visit(bytes, run) for the subranges of these runs, which ascend, each within one shard.
  /// Opens only the files that have them, and checks the checksums of what it passes on.
  using Visit = std::function<void(const unsigned char *bytes, const Run &run)>;
  void forParts(const std::string &tensor, const std::vector<Run> &runs, const Visit &visit) const;
  /// Throws Error unless the files with these runs exist and match the index; reads no elements.
  void openParts(const std::string &tensor, const std::vector<Run> &runs) const;
  /// Throws Error unless a shard of the tensor has the bytes that were written; reads all of them.
  void checkShard(const std::string &tensor, const LogicalTensor::Shard &shard) const;
  /// Returns a note for the user about the checkpoint's format; "" if there is none.
  const std::string &note() const { return said; }

private:
  void readIndex();
  void readUnsharded();
  const StoredTensor &open(const std::string &tensor, const LogicalTensor &logical,
                           const LogicalTensor::Shard &shard) const;
  template <typename VisitPart>
  void walk(const std::string &tensor, const std::vector<Run> &runs, VisitPart visit) const;
  struct File {
    std::string path;
    std::string headerChecksum; ///< "": the format has none
    std::unique_ptr<SafetensorsFile> opened;
  };
  void checkFile(const File &file, const SafetensorsFile &opened) const;
  std::string name, said;
  mutable std::vector<File> files;
  std::map<std::string, LogicalTensor> table;
  std::map<std::string, std::string> meta;
};

/// An index's entry for a file.
struct ShardFile {
  std::string name;
  int64_t bytes;
  std::string headerChecksum;
};

/// Returns the text of an index.
std::string indexText(std::map<std::string, std::string> metadata,
                      const std::vector<ShardFile> &files,
                      const std::vector<std::pair<std::string, LogicalTensor>> &tensors);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_CHECKPOINT_FILES_H
