// Processes that torchrun, srun or variables of one's own have started: they meet by the rendezvous
// (processes/rendezvous.h), which also watches and ends them, and send messages over TCP.

#ifndef PARTITA_RT_CPU_LINKS_SOCKETS_SOCKET_LINKS_H
#define PARTITA_RT_CPU_LINKS_SOCKETS_SOCKET_LINKS_H

#include "cpu/links/process_links.h"
#include "processes/launched_rank.h"

namespace partita_rt {

/// Meets the other processes; ends this one if they do not come (LaunchedRank).
std::unique_ptr<ProcessLinks> joinBySockets(const processes::LaunchEnvironment &environment,
                                            const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_CPU_LINKS_SOCKETS_SOCKET_LINKS_H
