//===- Version.cpp - which Partita this is ----------------------------------------------------===//

#include "partita/Support/Version.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

static constexpr char kRevision[] =
#include "partita/Support/Revision.inc"
    ;

std::string partita::versionText() {
  std::string text = "Partita " PARTITA_VERSION;
  if (*kRevision)
    text += " (" + std::string(kRevision) + ")";
  return text + ", LLVM " LLVM_VERSION_STRING;
}

void partita::setVersionPrinter(const char *tool) {
  llvm::cl::SetVersionPrinter(
      [tool](llvm::raw_ostream &os) { os << tool << ": " << versionText() << '\n'; });
}
