//===- Safetensors.h - reads a checkpoint's tensors ---------------------------------*- C++ -*-===//
//
// A safetensors file is an 8-byte little-endian header length, a JSON header, then the tensors'
// bytes. A checkpoint of several ranks is an index of such files that hold shards
// (runtime/common/checkpoint/README.md). Files are mapped and not trusted: every range must lie within its file and
// fit its shape, the ranges must cover all data, the shards their full tensor, and the bytes must
// have the checksums that were written (partita_rt/checksum.h).
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_EXPORT_SAFETENSORS_H
#define PARTITA_LIB_EXPORT_SAFETENSORS_H

#include "runtime/include/partita_rt/slices.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>
#include <vector>

namespace partita {

class WeightFile;

struct WeightTensor {
  struct Shard {
    partita_rt::Slices slices;
    llvm::StringRef bytes;
    const WeightFile *file;
    llvm::StringRef checksums; ///< of the bytes' blocks
  };
  std::string dtype; ///< as the file spells it: "F32"
  llvm::SmallVector<int64_t> shape;
  uint64_t size = 0;         ///< bytes
  llvm::StringRef bytes;     ///< these, unless the tensor is in shards
  llvm::StringRef checksums; ///< of the blocks of `bytes`
  std::vector<Shard> shards; ///< the shards, if there are any
  /// Returns the bytes: in the file, or assembled in `storage`.
  llvm::StringRef read(std::string &storage) const;
};

/// Returns the bytes per element of a type as files spell it; 0 if the type is unknown.
uint64_t widthOf(llvm::StringRef dtype);

class WeightFile {
public:
  /// Opens `path`, a safetensors file, or a checkpoint's index if it ends in ".json". On failure
  /// returns null and sets `problem`.
  static std::unique_ptr<WeightFile> open(llvm::StringRef path, std::string &problem);
  /// Returns null if the file has no such tensor.
  const WeightTensor *find(llvm::StringRef name) const;
  /// Returns which bytes of a tensor in this file are damaged; "" if none are, or if the file has
  /// no checksums.
  std::string damageOf(llvm::StringRef name) const;
  /// Returns what the user should know about how the file was written, or "".
  llvm::StringRef note() const { return said; }

private:
  std::string parse();
  std::string parseHeader(const llvm::json::Object &entries, llvm::StringRef data);
  std::string numberBlocks(llvm::StringRef data);
  std::string checkFormat(const std::string &format, bool hasChecksums);
  std::string parseIndex(llvm::StringRef folder);
  /// Opens the files of an index. With `isChecked` each must have the header that the index
  /// records.
  std::string openFiles(const llvm::json::Array &entries, llvm::StringRef folder, bool isChecked);
  std::string parseTensor(const llvm::json::Object &entry, WeightTensor &tensor,
                          llvm::StringRef name) const;
  std::string name;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::string checksums, said;
  int64_t checksumBlock = 0;                      ///< bytes of each block
  std::string save;                               ///< the save it belongs to, by the metadata
  std::string headerChecksum;                     ///< by its metadata
  std::vector<std::unique_ptr<WeightFile>> files; ///< of an index
  llvm::StringMap<WeightTensor> tensors;
};

} // namespace partita

#endif // PARTITA_LIB_EXPORT_SAFETENSORS_H
