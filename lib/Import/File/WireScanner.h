//===- WireScanner.h - an ONNX file without its tensors' values ------------------------------===//
//
// A protobuf parser copies every byte that it reads: 1.5 GB of weights cost 2 s and 1.6 GB of memory.
// The scanner first walks the wire format of the mapped file and writes the message again without
// the bytes that Import does not need: every payload of a tensor becomes a `Payload` (field, offset,
// length), documentation and unknown fields are dropped. The generated classes then parse what
// remains, a few hundred bytes per node.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FILE_WIRESCANNER_H
#define PARTITA_LIB_IMPORT_FILE_WIRESCANNER_H

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

/// Scans `size` bytes at `data`, an ONNX ModelProto. Checks every length against the bytes that remain
/// before using it; refuses messages nested deeper than 64. Touches only the pages of headers.
ScanResult scanModel(const uint8_t *data, size_t size);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FILE_WIRESCANNER_H
