// The sources of the rows of a program's inputs. A DATA argument is a token file (data.h) or
//
//     FILE.safetensors   columns: a tensor per input, by the input's name, one row per sample along
//                        its first dimension
//
// The input's role (program.h) determines how inputs without data are filled: a window of a token
// file gives tokens and the tokens after them; positions, ones and zeros are constants unless there
// is a column of that name; labels without a column are the tokens after those of `ids`, with the
// last one ignored, and with Program::documentEnd those behind each document; shifted inputs are the targets shifted by one (in a program without targets:
// the column 'labels').

#ifndef PARTITA_RT_COMMON_DATA_SAMPLES_H
#define PARTITA_RT_COMMON_DATA_SAMPLES_H

#include "common/data/data.h"

#include <memory>

namespace partita_rt {

/// Samples by number; read-only, shared by rank threads.
class Samples {
public:
  virtual ~Samples() = default;
  virtual int64_t count() const = 0;
  /// "100 tokens give 33 samples of 3 + 1 tokens"
  virtual std::string text() const = 0;
  /// Identifies the data, so that a later run recognizes them.
  virtual std::string identity() const = 0;
  /// Returns a warning about parts of the data that nothing reads; "" if there are none.
  virtual std::string warning() const { return ""; }
  /// Lists the inputs that are filled by their role because the data lack them; "" if there are
  /// none. Only files with columns report such inputs: token files alone never have them.
  virtual std::string filled() const { return ""; }
  /// Writes elements first .. first + n - 1 of the sample's row of an input whose value is not
  /// constant, in the input's type.
  virtual void read(const Input &input, int64_t sample, int64_t first, int64_t n,
                    void *out) const = 0;
  /// Does the value come from the data, not from the role alone?
  virtual bool provides(const Input &input) const = 0;
};

/// Opens the data. `option` ("--data") begins the messages. Throws Error if they cannot feed the
/// program.
std::unique_ptr<Samples> openSamples(const std::string &argument, const char *option,
                                     const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_DATA_SAMPLES_H
