// A process's search for rank 0 (joining.h), and what rank 0 needs of it.

#ifndef PARTITA_RT_PROCESSES_ARRIVAL_H
#define PARTITA_RT_PROCESSES_ARRIVAL_H

#include "processes/joining.h"

namespace partita_rt::processes {

/// "host gpu-3, process 4711".
std::string textOf(const Peer &peer);
/// Why ranks cannot meet anywhere.
std::string nowhereText(const Greeting &own, const std::string &problem);
/// Fails silently if another rank of this host has given up.
void checkNobodyGaveUp(const LaunchEnvironment &environment);
/// Greets whoever listens where the others look for rank 0. Throws JoiningFailed if that is another
/// rank 0 of this run, which then reports both.
void askWhoListens(const LaunchEnvironment &environment, const Greeting &own, int port);

} // namespace partita_rt::processes

#endif // PARTITA_RT_PROCESSES_ARRIVAL_H
