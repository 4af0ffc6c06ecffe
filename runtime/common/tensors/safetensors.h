// safetensors: an 8-byte little-endian header length, a JSON header, then the tensors' bytes.
//
//     {"__metadata__": {"step": "100"}, "wte": {"dtype": "F32", "shape": [256, 64],
//      "data_offsets": [0, 65536]}}
//
// Files are untrusted: the header is at most 100 MB and lies within the file, every tensor's range
// has the size of its shape and type, and the ranges cover the data without overlap or gap. Files
// that a run writes have checksums (partita_rt/checksum.h): the header's is compared when the file is
// opened, those of the data by their reader (StoredTensor::check).

#ifndef PARTITA_RT_COMMON_TENSORS_SAFETENSORS_H
#define PARTITA_RT_COMMON_TENSORS_SAFETENSORS_H

#include "common/temporary_file.h"
#include "common/tensors/mapped_file.h"
#include "partita_rt/types.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace partita_rt {

class SafetensorsFile;

struct StoredTensor {
  DType dtype;
  Shape shape;
  const unsigned char *data;
  const SafetensorsFile *file = nullptr;
  int64_t firstBlock = 0; ///< index into the checksums, if the file has any

  /// Checks the blocks with bytes begin ... end - 1 against their checksums, each block once.
  /// Throws Error on a mismatch.
  void check(const std::string &name, int64_t begin, int64_t end) const;
};

class SafetensorsFile {
public:
  explicit SafetensorsFile(const std::string &path);
  SafetensorsFile(const SafetensorsFile &) = delete; // its tensors name it
  const std::string &path() const { return file.path(); }
  const MappedFile &mapped() const { return file; }
  /// Returns null if the file has no such tensor.
  const StoredTensor *find(const std::string &name) const;
  /// Returns the tensor, of any type; throws Error if it is missing or has another shape.
  const StoredTensor &get(const std::string &name, const Shape &shape) const;
  const std::map<std::string, StoredTensor> &tensors() const { return table; }
  const std::map<std::string, std::string> &metadata() const { return meta; }
  bool hasChecksums() const { return isChecked; }

private:
  friend struct StoredTensor;
  void parse(const std::string &header, const unsigned char *data, int64_t dataBytes);
  void checkRanges(std::vector<std::pair<int64_t, int64_t>> ranges, int64_t dataBytes) const;
  void numberBlocks(int64_t dataBytes);
  MappedFile file;
  bool isChecked = false;            ///< only files that a run wrote have checksums
  std::string checksums;             ///< of all blocks
  int64_t block = 0;                 ///< bytes per block
  mutable std::vector<bool> checked; ///< blocks
  std::map<std::string, StoredTensor> table;
  std::map<std::string, std::string> meta;
};

/// A file that is written tensor by tensor, in the order announced, as a TemporaryFile: without
/// commit() it disappears.
class SafetensorsWriter {
public:
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
  };
  SafetensorsWriter(const std::string &path, const std::vector<Entry> &entries,
                    const std::map<std::string, std::string> &metadata);
  /// Writes the next tensor's bytes, or some of them.
  void write(const void *data, int64_t bytes);
  /// Completes the file; returns the header's checksum.
  uint32_t commit();

private:
  uint32_t writeHeader(const std::map<std::string, std::string> &metadata);
  std::string path;
  TemporaryFile file;
  std::vector<Entry> entries;
  std::map<std::string, std::string> announced; ///< the metadata
  size_t headerBytes = 0;
  // Checksums of complete blocks, and the state of the next one.
  std::string checksums;
  int64_t blockBytes = 0;
  size_t entry = 0;
  int64_t written = 0; ///< bytes of `entry`
  uint32_t block = 0;
};

/// Converts a type to its spelling in safetensors files ("F32") and back; throws Error for a type
/// that is not supported.
const char *typeName(DType dtype);
DType parseType(const std::string &name);

/// Converts n elements of a float type to float32 (the parameters' type).
void convertToFloat(float *out, const unsigned char *in, DType dtype, int64_t n);
/// Does a type convert to float32 without a rounding, so that a program may store it?
constexpr bool isFloat(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float64 || isShortFloat(dtype);
}
constexpr bool isStoredFloat(DType dtype) { return dtype == DType::Float32 || isShortFloat(dtype); }
/// Converts n elements between such types, `out` aligned: widens exactly, or rounds once, to the
/// nearest, ties to even, as kernels round. Returns how many have become infinite.
int64_t convertFloats(void *out, DType to, const unsigned char *in, DType from, int64_t n);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_TENSORS_SAFETENSORS_H
