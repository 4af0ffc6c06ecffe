//===- Curves.h - numbers over the steps of a run, as SVG ---------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_CURVES_H
#define PARTITA_TOOLS_CURVES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace partita::tool {

struct Curve {
  std::string name, color;
  std::vector<std::pair<double, double>> points; ///< step, value; finite, steps in order
  bool steps = false;                            ///< holds its value until the next one
};

/// Draws the curves into one area with axes, a legend and their data as attributes (the page's
/// script shows the point under the mouse). Of very many points a column shows the least and the
/// largest. `doubling`: the axis of values is logarithmic, of powers of two. Curves without points
/// are left out; without any nothing is drawn, and false returned.
bool drawCurves(llvm::raw_ostream &os, llvm::ArrayRef<Curve> curves, bool doubling = false);

/// Shares of a whole as one bar, with a legend: (name, color, share's size).
struct Share {
  std::string name, color;
  double size;
};
void drawShares(llvm::raw_ostream &os, llvm::ArrayRef<Share> shares, llvm::StringRef unit);

} // namespace partita::tool

#endif // PARTITA_TOOLS_CURVES_H
