// Names of the kinds of work that time is spent on (partita_rt/work.h).

#include "partita_rt/work.h"

namespace partita_rt {

const char *nameOf(Work work) {
  switch (work) {
  case Work::Data:
    return "data";
  case Work::Forward:
    return "forward";
  case Work::Backward:
    return "backward";
  case Work::Update:
    return "update";
  case Work::Collectives:
    return "collectives";
  case Work::Transfers:
    return "transfers";
  }
  return "unknown";
}

} // namespace partita_rt
