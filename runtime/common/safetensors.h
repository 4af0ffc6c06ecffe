// safetensors: an 8-byte little-endian header length, a JSON header, then the tensors' bytes.
//
//     {"__metadata__": {"step": "100"}, "wte": {"dtype": "F32", "shape": [256, 64],
//      "data_offsets": [0, 65536]}}
//
// Files are untrusted: the header is at most 100 MB and lies within the file, every tensor's range
// lies within the data, has the size of its shape and type, and overlaps no other.

#ifndef PARTITA_RT_COMMON_SAFETENSORS_H
#define PARTITA_RT_COMMON_SAFETENSORS_H

#include "common/temporary_file.h"
#include "partita_rt/types.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace partita_rt {

/// A file's bytes, mapped read-only.
class MappedFile {
public:
  /// Throws Error "<what> <path>: ..." when it cannot be read or is no regular file.
  MappedFile(const std::string &path, const char *what);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  const unsigned char *data() const { return bytes; }
  int64_t size() const { return length; }
  const std::string &path() const { return name; }

private:
  std::string name;
  const unsigned char *bytes = nullptr;
  int64_t length = 0;
};

struct StoredTensor {
  DType dtype;
  Shape shape;
  const unsigned char *data;
};

class SafetensorsFile {
public:
  explicit SafetensorsFile(const std::string &path);
  const std::string &path() const { return file.path(); }
  const MappedFile &mapped() const { return file; }
  /// null when the file has no such tensor.
  const StoredTensor *find(const std::string &name) const;
  /// Throws Error when it is missing or of another shape or type.
  const StoredTensor &get(const std::string &name, const Shape &shape) const;
  const std::map<std::string, StoredTensor> &tensors() const { return table; }
  const std::map<std::string, std::string> &metadata() const { return meta; }

private:
  MappedFile file;
  std::map<std::string, StoredTensor> table;
  std::map<std::string, std::string> meta;
};

/// Writes a file tensor by tensor, in the order announced, as a TemporaryFile: without commit()
/// nothing is left of it.
class SafetensorsWriter {
public:
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
  };
  SafetensorsWriter(const std::string &path, const std::vector<Entry> &entries,
                    const std::map<std::string, std::string> &metadata);
  /// The next tensor's bytes.
  void write(const void *data, int64_t bytes) { file.write(data, bytes); }
  void commit() { file.commit(); }
  /// Under another name, with other metadata, whose texts are as long as those announced.
  void commitAs(const std::string &path, const std::map<std::string, std::string> &metadata);

private:
  TemporaryFile file;
  std::vector<Entry> entries;
  size_t headerBytes = 0;
};

/// "F32", as safetensors files spell a type, and back; throws Error for a type that is not
/// supported.
const char *typeName(DType dtype);
DType parseType(const std::string &name);

/// n elements of a float type to float32 (the parameters' type).
void convertToFloat(float *out, const unsigned char *in, DType dtype, int64_t n);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_SAFETENSORS_H
