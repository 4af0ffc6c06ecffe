//===- WireScanner.h - an ONNX file without its tensors' values ------------------------------===//
//
// A protobuf parser copies every byte that it reads: 1.5 GB of weights cost 2 s and 1.6 GB of
// memory. The scanner walks the wire format of the mapped file first and writes the same message
// again without the bytes that Import does not want: every payload of a tensor becomes a
// `Payload` (field, offset, length), documentation and unknown fields are dropped. What remains
// is a few hundred bytes per node; the generated classes parse that.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WIRESCANNER_H
#define PARTITA_LIB_IMPORT_WIRESCANNER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace partita::importer {

struct ScanResult {
  /// The serialized partita.onnx.ModelProto.
  std::string skeleton;
  /// Empty when the scan went well; else what is wrong, lower case, without the file's name.
  std::string error;
};

/// Scans `size` bytes at `data`, an ONNX ModelProto. Believes no length before checking it against
/// the bytes that remain; refuses messages nested deeper than 64. Reads the pages of headers only.
ScanResult scanModel(const uint8_t *data, size_t size);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WIRESCANNER_H
