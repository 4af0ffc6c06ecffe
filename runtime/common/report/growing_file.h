// A file to which a run adds while it trains: its log, TensorBoard's events. A file that cannot grow, such
// as on a full disk, is no reason to stop training: what cannot be written is held back, and written when
// it can be.

#ifndef PARTITA_RT_COMMON_REPORT_GROWING_FILE_H
#define PARTITA_RT_COMMON_REPORT_GROWING_FILE_H

#include <string>

namespace partita_rt {

class GrowingFile {
public:
  /// Takes a descriptor that is open for writing at the file's end. `name`: the option and the path,
  /// "--log: run.csv", for messages.
  GrowingFile(int descriptor, std::string name) : descriptor(descriptor), name(std::move(name)) {}
  /// Tries once more to write what is held back, and warns if some of it is lost.
  ~GrowingFile();
  GrowingFile(const GrowingFile &) = delete;
  GrowingFile &operator=(const GrowingFile &) = delete;

  /// Adds these bytes, and what is held back before them. Prints one warning, the first time that they
  /// cannot be written, and a line when they are.
  void add(const std::string &bytes);

private:
  int write();
  int descriptor;
  std::string name;
  std::string held; ///< not written yet
  bool hasWarned = false, hasRecovered = false;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_REPORT_GROWING_FILE_H
