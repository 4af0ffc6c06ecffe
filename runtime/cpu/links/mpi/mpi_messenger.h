// Messages over MPI. Its default error handler ends the job with its own message, so return codes
// are not checked.

#ifndef PARTITA_RT_CPU_LINKS_MPI_MPI_MESSENGER_H
#define PARTITA_RT_CPU_LINKS_MPI_MPI_MESSENGER_H

#include "cpu/groups/messenger.h"

#include <mpi.h>

namespace partita_rt {

class MpiMessenger final : public Messenger {
public:
  /// `comm` has the members, in their order, and belongs to this object alone.
  explicit MpiMessenger(MPI_Comm comm) : comm(comm) {}
  std::unique_ptr<Exchange> exchange() override;

private:
  MPI_Comm comm;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_LINKS_MPI_MPI_MESSENGER_H
