//===- Safetensors.h - reading a checkpoint's tensors -------------------------------*- C++ -*-===//
//
// A safetensors file is an 8-byte little-endian header length, a JSON header, then the tensors'
// bytes. A checkpoint of several ranks is an index of such files that hold pieces
// (runtime/README.md). Files are mapped; what they say is not believed: every range must lie within
// its file and fit its shape, the ranges must be all of the data, pieces all of their tensor, and
// what is read must have the checksums that were written (partita_rt/checksum.h).
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
  struct Piece {
    partita_rt::Slices slices;
    llvm::StringRef bytes;
    const WeightFile *file;
    llvm::StringRef checksums; ///< of the bytes' blocks
  };
  std::string dtype; ///< as the file spells it: "F32"
  llvm::SmallVector<int64_t> shape;
  uint64_t size = 0;         ///< bytes
  llvm::StringRef whole;     ///< these, unless they are
  llvm::StringRef checksums; ///< of the blocks of `whole`
  std::vector<Piece> pieces; ///< in pieces
  /// The bytes: in the file, or put together in `storage`.
  llvm::StringRef read(std::string &storage) const;
};

/// Bytes of an element of a type as files spell it; 0 when there is no such type.
uint64_t widthOf(llvm::StringRef dtype);

class WeightFile {
public:
  /// Opens `path`, a checkpoint's index where it ends in ".json"; null, and `problem` set, when it
  /// is neither that nor a safetensors file.
  static std::unique_ptr<WeightFile> open(llvm::StringRef path, std::string &problem);
  /// Null when the file has no such tensor.
  const WeightTensor *find(llvm::StringRef name) const;
  /// Which bytes of a tensor of this file are not those that were written; "" when all are, or the
  /// file has no checksums.
  std::string damageOf(llvm::StringRef name) const;
  /// What the user should know of how the file was written; "" when there is nothing.
  llvm::StringRef note() const { return said; }

private:
  std::string parse();
  std::string parseHeader(const llvm::json::Object &entries, llvm::StringRef data);
  std::string numberBlocks(llvm::StringRef data);
  std::string checkFormat(const std::string &format, bool hasChecksums);
  std::string parseIndex(llvm::StringRef folder);
  /// Those of an index; with `isChecked` each must have the header that the index records.
  std::string openFiles(const llvm::json::Array &entries, llvm::StringRef folder, bool isChecked);
  std::string parseTensor(const llvm::json::Object &entry, WeightTensor &tensor,
                          llvm::StringRef name) const;
  std::string name;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::string checksums, said;
  int64_t checksumBlock = 0;                      ///< bytes of each block
  std::string save;                               ///< what the metadata say that it is a part of
  std::string headerChecksum;                     ///< as the metadata have it
  std::vector<std::unique_ptr<WeightFile>> files; ///< of an index
  llvm::StringMap<WeightTensor> tensors;
};

} // namespace partita

#endif // PARTITA_LIB_EXPORT_SAFETENSORS_H
