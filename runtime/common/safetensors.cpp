// Reading and writing safetensors (safetensors.h).

#include "common/safetensors.h"

#include "common/json.h"
#include "partita_rt/half.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita_rt {

//===-- Mapped files ------------------------------------------------------------------------===//

MappedFile::MappedFile(const std::string &path, const char *what) : name(path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail("%s %s: %s", what, path.c_str(), std::strerror(errno));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    fail("%s %s: not a regular file", what, path.c_str());
  }
  length = status.st_size;
  if (length > 0) {
    void *memory = mmap(nullptr, size_t(length), PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED) {
      int error = errno;
      close(descriptor);
      fail("%s %s: %s", what, path.c_str(), std::strerror(error));
    }
    bytes = static_cast<const unsigned char *>(memory);
  }
  close(descriptor);
}

MappedFile::~MappedFile() {
  if (bytes)
    munmap(const_cast<unsigned char *>(bytes), size_t(length));
}

//===-- Reading -----------------------------------------------------------------------------===//

namespace {

struct TypeName {
  DType dtype;
  const char *name;
};
constexpr TypeName kTypeNames[] = {{DType::Float32, "F32"}, {DType::Float64, "F64"},
                                   {DType::Float16, "F16"}, {DType::BFloat16, "BF16"},
                                   {DType::Int32, "I32"},   {DType::Int64, "I64"},
                                   {DType::UInt8, "U8"},    {DType::UInt16, "U16"},
                                   {DType::UInt32, "U32"},  {DType::Bool, "BOOL"}};

} // namespace

const char *typeName(DType dtype) {
  for (const TypeName &candidate : kTypeNames)
    if (candidate.dtype == dtype)
      return candidate.name;
  return "";
}

DType parseType(const std::string &name) {
  for (const TypeName &candidate : kTypeNames)
    if (name == candidate.name)
      return candidate.dtype;
  fail("its type '%s' is not supported", name.c_str());
}

namespace {

constexpr int64_t kLargestHeader = 100'000'000;

const Json &member(const Json &object, const char *key, Json::Kind kind) {
  const Json *value = object.kind == Json::Object ? object.find(key) : nullptr;
  if (!value || value->kind != kind)
    fail("its entry has no valid %s", key);
  return *value;
}

/// Reads one entry of the header; `bytes` is the size of the file's data.
StoredTensor parseEntry(const Json &entry, const unsigned char *data, int64_t bytes,
                        std::pair<int64_t, int64_t> &range) {
  StoredTensor tensor{DType::Float32, {}, nullptr};
  tensor.dtype = parseType(member(entry, "dtype", Json::String).string);

  const Json &shape = member(entry, "shape", Json::Array);
  if (shape.items.size() > size_t(kMaxDims))
    fail("its shape has %zu dimensions, at most %d are possible", shape.items.size(), kMaxDims);
  int64_t size = sizeOf(tensor.dtype);
  for (const Json &dim : shape.items) {
    if (dim.kind != Json::Integer || dim.integer < 0)
      fail("its shape is not a list of sizes");
    if (dim.integer > 0 && size > bytes / dim.integer && size > 0)
      fail("its shape needs more bytes than the file has");
    size *= dim.integer;
    tensor.shape.dims[tensor.shape.rank++] = dim.integer;
  }

  const Json &offsets = member(entry, "data_offsets", Json::Array);
  if (offsets.items.size() != 2 || offsets.items[0].kind != Json::Integer ||
      offsets.items[1].kind != Json::Integer)
    fail("its data_offsets are not two integers");
  int64_t begin = offsets.items[0].integer, end = offsets.items[1].integer;
  if (begin < 0 || end < begin || end > bytes)
    fail("its bytes %lld .. %lld lie outside the %lld bytes of data", (long long)begin,
         (long long)end, (long long)bytes);
  if (end - begin != size)
    fail("its shape %s of %s needs %lld bytes, the file gives it %lld",
         toString(tensor.shape).c_str(), nameOf(tensor.dtype), (long long)size,
         (long long)(end - begin));
  tensor.data = data + begin;
  range = {begin, end};
  return tensor;
}

} // namespace

SafetensorsFile::SafetensorsFile(const std::string &path) : file(path, "safetensors file") {
  if (file.size() < 8)
    fail("safetensors file %s: %lld bytes are too few for a header", path.c_str(),
         (long long)file.size());
  uint64_t headerBytes = 0;
  std::memcpy(&headerBytes, file.data(), 8);
  if (headerBytes > uint64_t(kLargestHeader) || int64_t(headerBytes) > file.size() - 8)
    fail("safetensors file %s: its header of %llu bytes does not fit into a file of %lld bytes",
         path.c_str(), (unsigned long long)headerBytes, (long long)file.size());
  const unsigned char *data = file.data() + 8 + headerBytes;
  int64_t dataBytes = file.size() - 8 - int64_t(headerBytes);
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::string where = "header";
  try {
    Json header = parseJson(
        std::string(reinterpret_cast<const char *>(file.data() + 8), size_t(headerBytes)));
    if (header.kind != Json::Object)
      fail("it is not an object");
    for (const auto &[name, entry] : header.members) {
      where = name == "__metadata__" ? "metadata" : "tensor '" + name + "'";
      if (name == "__metadata__") {
        for (const auto &[key, value] : entry.members)
          if (value.kind == Json::String)
            meta[key] = value.string;
        continue;
      }
      ranges.emplace_back();
      table.emplace(name, parseEntry(entry, data, dataBytes, ranges.back()));
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i)
      if (ranges[i].first < ranges[i - 1].second) {
        where = "header";
        fail("two tensors overlap at byte %lld", (long long)ranges[i].first);
      }
  } catch (const Error &error) {
    fail("safetensors file %s, %s: %s", path.c_str(), where.c_str(), error.what());
  }
}

const StoredTensor *SafetensorsFile::find(const std::string &name) const {
  auto entry = table.find(name);
  return entry == table.end() ? nullptr : &entry->second;
}

const StoredTensor &SafetensorsFile::get(const std::string &name, const Shape &shape) const {
  const StoredTensor *tensor = find(name);
  if (!tensor)
    fail("safetensors file %s has no tensor '%s'", path().c_str(), name.c_str());
  if (tensor->shape != shape)
    fail("safetensors file %s: tensor '%s' is %s, the program needs %s", path().c_str(),
         name.c_str(), toString(tensor->shape).c_str(), toString(shape).c_str());
  return *tensor;
}

//===-- Writing -----------------------------------------------------------------------------===//

static std::string headerOf(const std::vector<SafetensorsWriter::Entry> &entries,
                            const std::map<std::string, std::string> &metadata) {
  std::string header = "{\"__metadata__\":{";
  bool first = true;
  for (const auto &[key, value] : metadata) {
    header += (first ? "" : ",") + quoteJson(key) + ":" + quoteJson(value);
    first = false;
  }
  header += "}";
  int64_t offset = 0;
  for (const SafetensorsWriter::Entry &entry : entries) {
    header +=
        "," + quoteJson(entry.name) + ":{\"dtype\":\"" + typeName(entry.dtype) + "\",\"shape\":[";
    for (int d = 0; d < entry.shape.rank; ++d)
      header += (d ? "," : "") + std::to_string(entry.shape[d]);
    int64_t end = offset + entry.shape.elements() * sizeOf(entry.dtype);
    header += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' '); // tensors start aligned
  return header;
}

SafetensorsWriter::SafetensorsWriter(const std::string &path, const std::vector<Entry> &entries,
                                     const std::map<std::string, std::string> &metadata)
    : file(path), entries(entries) {
  std::string header = headerOf(entries, metadata);
  headerBytes = header.size();
  uint64_t length = headerBytes;
  file.write(&length, 8);
  file.write(header.data(), int64_t(header.size()));
}

void SafetensorsWriter::commitAs(const std::string &path,
                                 const std::map<std::string, std::string> &metadata) {
  std::string header = headerOf(entries, metadata);
  if (header.size() != headerBytes)
    fail("%s: its metadata are not as long as those announced", path.c_str());
  file.rewrite(8, header.data(), int64_t(header.size()));
  file.commitAs(path);
}

//===-- Conversion --------------------------------------------------------------------------===//

void convertToFloat(float *out, const unsigned char *in, DType dtype, int64_t n) {
  switch (dtype) {
  case DType::Float32:
    std::memcpy(out, in, size_t(n) * 4);
    return;
  case DType::Float64:
    for (int64_t i = 0; i < n; ++i) {
      double value;
      std::memcpy(&value, in + 8 * i, 8);
      out[i] = float(value);
    }
    return;
  case DType::Float16:
    for (int64_t i = 0; i < n; ++i) {
      uint16_t bits;
      std::memcpy(&bits, in + 2 * i, 2);
      out[i] = half::widen(bits);
    }
    return;
  case DType::BFloat16:
    for (int64_t i = 0; i < n; ++i) {
      uint16_t half;
      std::memcpy(&half, in + 2 * i, 2);
      uint32_t bits = uint32_t(half) << 16;
      std::memcpy(out + i, &bits, 4);
    }
    return;
  default:
    fail("a parameter cannot be read from %s", nameOf(dtype));
  }
}

} // namespace partita_rt
