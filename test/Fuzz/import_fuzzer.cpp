//===- import_fuzzer.cpp - libFuzzer target: no bytes may crash the importer ------------------===//
//
// Imports each input as a model, and reports its contents. The importer must return a module that
// verifies, or fail with exactly one error (or with several if it is to report all), and never
// allocate memory out of proportion to the file. Anything else is a bug. Mutations usually keep the
// wire format intact (a tree of fields, one of which is changed), so that they reach the operators
// and not only the parser.
//
//===------------------------------------------------------------------------------------------===//

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "partita/Import/Import.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <sanitizer/allocator_interface.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

//===------------------------------------------------------------------------------------------===//
// One input
//===------------------------------------------------------------------------------------------===//

[[noreturn]] static void wrong(const char *what) {
  std::fprintf(stderr, "import_fuzzer: %s\n", what);
  std::abort();
}

/// Max bytes of a single allocation by the importer; 0: unlimited.
static std::atomic<size_t> allowedAllocation;
constexpr size_t kTimesFile = 10;
/// Allowed for the smallest files: 2^14 known integers in a vector that has doubled, or the
/// context's table of the names of 2^12 nodes that calls of functions expand to (Importer.cpp:
/// larger files may have more, in proportion). Binding for files of less than 26 KB.
constexpr size_t kAlwaysAllowed = size_t(256) << 10;

static void checkAllocation(const volatile void *, size_t size) {
  size_t allowed = allowedAllocation;
  if (!allowed || size <= allowed)
    return;
  allowedAllocation = 0; // printing allocates too
  std::fprintf(stderr, "import_fuzzer: an allocation of %zu bytes, %zu are allowed\n", size,
               allowed);
  wrong("it asks for memory out of proportion to the file");
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  if (!__sanitizer_install_malloc_and_free_hooks(checkAllocation, [](const volatile void *) {}))
    wrong("cannot watch allocations");
  return 0;
}

/// A counter of errors during its lifetime.
class Errors {
public:
  explicit Errors(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          count += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
          return mlir::success();
        }) {}
  int count = 0;

private:
  mlir::ScopedDiagnosticHandler handler;
};

/// Returns true if the model was imported.
static bool import(mlir::MLIRContext &context, const std::string &path,
                   const partita::ImportOptions &options) {
  Errors errors(context);
  auto module = partita::importOnnx(path, options, &context);
  if (mlir::failed(module) && (options.keepGoing ? errors.count == 0 : errors.count != 1))
    wrong("it failed without an error, or with several");
  if (mlir::succeeded(module) &&
      ((errors.count != 0 && !options.keepGoing) || mlir::failed(mlir::verify(**module))))
    wrong("it succeeded with a module that is not valid");
  return mlir::succeeded(module);
}

/// Reports as text and as JSON.
static void report(mlir::MLIRContext &context, const std::string &path) {
  Errors errors(context);
  auto report = partita::reportOnnx(path, {}, &context);
  if (errors.count != (mlir::failed(report) ? 1 : 0))
    wrong("its report failed without exactly one error");
  if (mlir::failed(report))
    return;
  std::string text;
  llvm::raw_string_ostream os(text);
  report->print(os);
  os << llvm::json::Value(report->toJson());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED); // its tables grow with use
  int file = memfd_create("model.onnx", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size))
    wrong("cannot write the model");
  std::string path = "/proc/self/fd/" + std::to_string(file);
  partita::ImportOptions options;
  // Bind the names that exported models give their dimensions, except those that this model lacks,
  // which would be an error.
  std::string bytes(data, data + size);
  for (auto [name, extent] : {std::pair("batch", 2), {"sequence", 8}, {"decoder_sequence", 6}})
    if (bytes.find(std::string("\x12") + char(std::strlen(name)) + name) != std::string::npos)
      options.dims.emplace_back(name, extent);
  allowedAllocation = std::max(kTimesFile * size, kAlwaysAllowed);
  if (!import(context, path, options)) {
    options.keepGoing = true; // like a report, which lists all errors
    import(context, path, options);
  }
  report(context, path);
  allowedAllocation = 0;
  close(file);
  return 0;
}

//===------------------------------------------------------------------------------------------===//
// Mutation of a tree of fields
//===------------------------------------------------------------------------------------------===//

namespace {

struct Field {
  uint32_t number = 0, type = 0; // wire type: 0 varint, 1 64 bits, 2 bytes, 5 32 bits
  uint64_t value = 0;
  std::string bytes;
  std::vector<Field> children; // for a length-delimited field that parses as a message
};

bool readVarint(const std::string &data, size_t &at, uint64_t &value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < data.size(); shift += 7) {
    uint8_t byte = static_cast<uint8_t>(data[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

bool parse(const std::string &data, std::vector<Field> &fields, int depth) {
  for (size_t at = 0; at < data.size();) {
    uint64_t tag, length;
    Field field;
    if (!readVarint(data, at, tag) || tag >> 3 == 0 || tag >> 3 > 2000)
      return false;
    field.number = static_cast<uint32_t>(tag >> 3);
    field.type = tag & 7;
    if (field.type == 0) {
      if (!readVarint(data, at, field.value))
        return false;
    } else if (field.type == 1 || field.type == 5) {
      size_t size = field.type == 1 ? 8 : 4;
      if (data.size() - at < size)
        return false;
      field.bytes = data.substr(at, size);
      at += size;
    } else if (field.type == 2) {
      if (!readVarint(data, at, length) || length > data.size() - at)
        return false;
      field.bytes = data.substr(at, length);
      at += length;
      if (depth > 0 && length > 1 && !parse(field.bytes, field.children, depth - 1))
        field.children.clear();
    } else {
      return false;
    }
    fields.push_back(std::move(field));
  }
  return true;
}

void putVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

std::string print(const std::vector<Field> &fields) {
  std::string out;
  for (const Field &field : fields) {
    putVarint(out, field.number << 3 | field.type);
    if (field.type == 0) {
      putVarint(out, field.value);
      continue;
    }
    std::string bytes = field.children.empty() ? field.bytes : print(field.children);
    if (field.type == 2)
      putVarint(out, bytes.size());
    out += bytes;
  }
  return out;
}

/// Collects every list of fields of the tree, the root's first.
void collect(std::vector<Field> &fields, std::vector<std::vector<Field> *> &lists) {
  lists.push_back(&fields);
  for (Field &field : fields)
    if (!field.children.empty())
      collect(field.children, lists);
}

void mutateLeaf(Field &field, std::minstd_rand &random) {
  static const uint64_t special[] = {0,          1,     2,          7,          64,
                                     127,        1000,  1ull << 31, 1ull << 48, 1ull << 62,
                                     1ull << 63, ~0ull, ~1ull,      ~6ull};
  if (field.type == 0) {
    field.value =
        random() % 3 ? special[random() % std::size(special)] : field.value + random() % 5 - 2;
    return;
  }
  field.children.clear();
  size_t size = field.bytes.size();
  size_t room = field.type == 2 ? size + 16 : size;
  std::vector<uint8_t> buffer(field.bytes.begin(), field.bytes.end());
  buffer.resize(room + 1);
  size_t changed = LLVMFuzzerMutate(buffer.data(), size, room);
  if (field.type != 2)
    changed = size;
  field.bytes.assign(buffer.begin(), buffer.begin() + changed);
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned int seed) {
  std::minstd_rand random(seed);
  std::vector<Field> root;
  if (random() % 16 == 0 || !parse(std::string(data, data + size), root, 8) || root.empty())
    return LLVMFuzzerMutate(data, size, maxSize);
  for (int change = 1 + random() % 3; change > 0; --change) {
    std::vector<std::vector<Field> *> lists;
    collect(root, lists);
    std::vector<Field> &list = *lists[random() % lists.size()];
    if (list.empty())
      continue;
    size_t at = random() % list.size();
    switch (random() % 6) {
    case 0:
      list.erase(list.begin() + at);
      break;
    case 1:
      list.insert(list.begin() + random() % list.size(), Field(list[at]));
      break;
    case 2:
      std::swap(list[at], list[random() % list.size()]);
      break;
    case 3: { // a field of the same number from elsewhere: another node's name, type, dims
      std::vector<Field> &other = *lists[random() % lists.size()];
      for (Field &field : other)
        if (field.number == list[at].number && field.type == list[at].type) {
          list[at] = Field(field);
          break;
        }
      break;
    }
    default:
      mutateLeaf(list[at], random);
    }
  }
  std::string out = print(root);
  if (out.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::copy(out.begin(), out.end(), data);
  return out.size();
}
