// Meets the other ranks (launched_rank.h).

#include "processes/launched_rank.h"
#include "common/mesh/mesh.h"
#include "partita_rt/printable.h"
#include "partita_rt/timeout.h"
#include "processes/host_speaker.h"
#include "processes/hub.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace partita_rt::processes {

/// Ignores an invalid time-out, which is reported once the ranks have met.
static double secondsToMeet() {
  try {
    return timeoutSeconds();
  } catch (const std::exception &) {
    return kMostToJoin;
  }
}

LaunchedRank::LaunchedRank(const LaunchEnvironment &environment, const Program &program)
    : rendezvous(environment, program.name, secondsToMeet(),
                 [&](int rank) { return rankText(program, rank); }) {
  position.phase = Phase::SetUp;
  rendezvous.setPosition(position);
  rendezvous.setRecord(
      [this, name = nameOf(rendezvous.peers(), rendezvous.rank())](const auto &reason) {
        writeFlight(flight, rendezvous.rank(), name.c_str(), reason.c_str());
      });
}

LaunchEnvironment environmentOrExit(const Launched &launched, const char *program) {
  try {
    return readEnvironment(launched);
  } catch (const std::exception &exception) {
    HostSpeaker speaker(launchName() + " of " + std::to_string(getppid()) + ": " + program + ": " +
                        exception.what());
    if (speaker.speaks())
      std::fprintf(stderr, "%s: error: %s\n", program, printable(exception.what()).c_str());
    speaker.linger();
    std::exit(1);
  }
}

} // namespace partita_rt::processes
