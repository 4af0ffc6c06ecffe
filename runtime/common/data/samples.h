// Where the rows of a program's inputs come from. A DATA argument is a token file (data.h) or
//
//     FILE.safetensors   columns: a tensor per input, by the input's name, one row per sample along
//                        its first dimension
//
// What the data do not have is filled by the input's role (program.h): a window of a token file
// gives tokens and the ones after them; positions, ones and zeros are constants unless there is a
// column of that name; labels without a column are the tokens after those of `ids`, the last one
// ignored; shifted inputs are the targets moved by one (in a program without targets: the column
// 'labels').

#ifndef PARTITA_RT_COMMON_SAMPLES_H
#define PARTITA_RT_COMMON_SAMPLES_H

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
  /// By what the data are known again.
  virtual std::string identity() const = 0;
  /// What the user should know of the data: parts that nothing reads; "" if there is nothing.
  virtual std::string warning() const { return ""; }
  /// Which inputs are filled by their role because the data lack them; "" if there are none. Tokens alone never
  /// have such inputs, so only files with columns report them.
  virtual std::string filled() const { return ""; }
  /// Elements first .. first + n - 1 of the sample's row of an input whose value is not constant,
  /// in the input's type.
  virtual void read(const Input &input, int64_t sample, int64_t first, int64_t n,
                    void *out) const = 0;
  /// Does the value come from here, and not from the role alone?
  virtual bool provides(const Input &input) const = 0;
};

/// `option` ("--data") begins the messages. Throws Error when the data cannot feed the program.
std::unique_ptr<Samples> openSamples(const std::string &argument, const char *option,
                                     const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_SAMPLES_H
