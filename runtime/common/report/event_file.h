// TensorBoard's event files, as its scalars need them: records framed by TFRecord, protobuf
// messages Event and Summary written by hand, so that programs need no library for it.
//
//     record   length (uint64), masked CRC-32C of the length, message, masked CRC-32C of the
//     Event           1 wall_time (double)  2 step (int64)  3 file_version (string)  5 summary
//                     7 session_log
//     Summary         repeated 1 value { 1 tag (string)  2 simple_value (float)  8 tensor
//                     9 metadata }
//     TensorProto     1 dtype (7: string)  8 string_val; without a shape: a scalar
//     SummaryMetadata 1 plugin_data { 1 plugin_name ("text": TensorBoard's page of texts) }
//     SessionLog      1 status (1: start)
//
// All little-endian. There is one file per run: a resumed run begins a new one, whose session log
// makes TensorBoard discard older files' events from its first step on.

#ifndef PARTITA_RT_COMMON_REPORT_EVENT_FILE_H
#define PARTITA_RT_COMMON_REPORT_EVENT_FILE_H

#include "common/report/growing_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace partita_rt {

class EventFile {
public:
  /// Makes the folder and its missing parents, and in it events.out.tfevents.TIME.HOST.PID.N. If
  /// `firstStep` is above 0, TensorBoard discards other files' events from that step on. Throws
  /// Error.
  EventFile(const std::string &folder, int64_t firstStep);

  /// Adds one event: values by their tags.
  void add(int64_t step, const std::vector<std::pair<std::string, double>> &values);
  /// Adds one event: a text, of any bytes, for TensorBoard's page of texts.
  void addText(int64_t step, const std::string &tag, const std::string &bytes);

private:
  void write(const std::string &event);
  std::optional<GrowingFile> file;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_REPORT_EVENT_FILE_H
