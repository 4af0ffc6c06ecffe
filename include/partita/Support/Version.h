//===- Version.h - Partita's version ------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_SUPPORT_VERSION_H
#define PARTITA_SUPPORT_VERSION_H

#include <string>

namespace partita {

/// Returns "Partita 0.1.0 (f6409ea01234), LLVM 22.1.7"; without the git revision if it is unknown.
std::string versionText();

/// Makes `--version` of LLVM's command line print that, for a tool of this name.
void setVersionPrinter(const char *tool);

} // namespace partita

#endif // PARTITA_SUPPORT_VERSION_H
