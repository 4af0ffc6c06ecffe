//===- Expectations.h - --expect: contracts about what ranks communicate ------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_EXPECTATIONS_H
#define PARTITA_TOOLS_EXPECTATIONS_H

#include "partita/Analysis/Contracts.h"
#include "tools/partita/Session.h"

namespace partita::tool {

class Expectations {
public:
  /// Declares --expect, which may be given several times.
  void declare(OptionSet &options);
  bool any() const { return !contracts.empty(); }
  /// Do all hold? The first that does not is an error at the node of its first offender, with a
  /// note per collective that it counts.
  bool hold(llvm::ArrayRef<analysis::Collective> collectives, mlir::Location model,
            llvm::ArrayRef<analysis::LayerRange> ranges) const;

private:
  std::vector<analysis::Contract> contracts;
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_EXPECTATIONS_H
