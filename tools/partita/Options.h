//===- Options.h - a command's options: declared, parsed, explained -----------------*- C++ -*-===//
//
//     OptionSet options("import", "MODEL.onnx -o model.mlir", "Turns an ONNX file into tx.");
//     options.positional("MODEL.onnx", model, "the model");
//     options.group("Shapes");
//     options.list("dim", "NAME=SIZE", dims, "binds a symbolic dimension; once per dimension");
//     options.group("Output");
//     options.text("o", "FILE", output, "where the module goes; - is the standard output");
//     options.flag("report", report, "says what the file holds and stops");
//     if (std::optional<int> done = options.parse(arguments)) return *done;
//
// A name of one letter is written -o, a longer one --dim; "--dim x" and "--dim=x" are the same. The
// value that a variable has when it is declared is the default that --help shows. Unknown options
// name the nearest known one; only a list may be given twice. --help is every command's.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_OPTIONS_H
#define PARTITA_TOOLS_OPTIONS_H

#include "tools/partita/Commands/Commands.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace partita::tool {

/// A message as a terminal can take it, whatever names and values it quotes: but for the ends of
/// its lines, control characters and bytes that are no text in UTF-8 as \xNN.
std::string printableLines(const llvm::Twine &text);

/// Prints "partita COMMAND: error: MESSAGE" and returns 1, the exit code.
int fail(llvm::StringRef command, const llvm::Twine &message);

/// "1.5 GiB", "320 KiB".
std::string formatBytes(uint64_t bytes);

class OptionSet {
public:
  /// Takes a value; returns what is wrong with it, or nothing.
  using Setter = std::function<std::string(llvm::StringRef)>;

  OptionSet(llvm::StringRef command, llvm::StringRef usage, llvm::StringRef description)
      : command(command), usage(usage), description(description) {}

  /// The options declared from here on stand under this title in --help.
  void group(llvm::StringRef title) { currentGroup = title.str(); }
  void flag(llvm::StringRef name, bool &target, llvm::StringRef help);
  void text(llvm::StringRef name, llvm::StringRef value, std::string &target, llvm::StringRef help);
  /// May be given several times.
  void list(llvm::StringRef name, llvm::StringRef value, std::vector<std::string> &target,
            llvm::StringRef help);
  /// The same, each value checked.
  void repeated(llvm::StringRef name, llvm::StringRef value, llvm::StringRef help, Setter setter);
  void integer(llvm::StringRef name, llvm::StringRef value, int64_t &target, int64_t low,
               int64_t high, llvm::StringRef help);
  /// Without the name of a value it takes none.
  void custom(llvm::StringRef name, llvm::StringRef value, llvm::StringRef initial,
              llvm::StringRef help, Setter setter);
  /// The next word without a dash; required.
  void positional(llvm::StringRef value, std::string &target, llvm::StringRef help);
  /// The same, but it may be missing; behind those that may not.
  void optional(llvm::StringRef value, std::string &target, llvm::StringRef help);
  /// All options that are not declared go to `target`, with their values, as they came; `about`
  /// says in --help whose they are.
  void passOn(std::vector<std::string> &target, llvm::StringRef about);
  /// A paragraph at the end of --help.
  void epilogue(llvm::StringRef text) { ending = text.str(); }

  /// The exit code when nothing is left to do: 0 after --help, 1 after an error; else nothing.
  std::optional<int> parse(Arguments arguments);
  void printHelp(llvm::raw_ostream &os) const;

private:
  struct Option {
    std::string name, value, initial, help, group;
    bool takesValue;
    Setter set;
    bool repeats = false;
    std::string spelled() const { return (name.size() == 1 ? "-" : "--") + name; }
  };
  struct Positional {
    std::string value, help;
    std::string *target;
    bool required = true;
  };
  const Option *find(llvm::StringRef name) const;
  std::string unknown(llvm::StringRef word) const;
  void add(llvm::StringRef name, llvm::StringRef value, llvm::StringRef initial,
           llvm::StringRef help, bool takesValue, Setter setter);

  std::string command, usage, description, currentGroup = "Options", ending, passOnAbout;
  std::vector<Option> options;
  std::vector<Positional> positionals;
  std::vector<std::string> *passOnTarget = nullptr;
};

/// On a terminal, says what is being done, in place of what it said before; empty: nothing more.
void showProgress(llvm::StringRef what);

} // namespace partita::tool

#endif // PARTITA_TOOLS_OPTIONS_H
