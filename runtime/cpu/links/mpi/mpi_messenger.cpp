// Messages over MPI (mpi_messenger.h).

#include "cpu/links/mpi/mpi_messenger.h"

#include <algorithm>
#include <vector>

namespace partita_rt {

namespace {

constexpr int64_t kMostBytes = int64_t(1) << 30; ///< MPI counts in int

class MpiExchange final : public Exchange {
public:
  explicit MpiExchange(MPI_Comm comm) : comm(comm) {}

  void send(const void *data, int64_t bytes, int to, int tag, Sending how) override {
    auto begin = how == Sending::Synchronous ? MPI_Issend : MPI_Isend;
    inParts(bytes, to, [&](int64_t at, int n, MPI_Request *request) {
      begin(static_cast<const char *>(data) + at, n, MPI_BYTE, to, tag, comm, request);
    });
  }
  void receive(void *data, int64_t bytes, int from, int tag) override {
    inParts(bytes, from, [&](int64_t at, int n, MPI_Request *request) {
      MPI_Irecv(static_cast<char *>(data) + at, n, MPI_BYTE, from, tag, comm, request);
    });
  }
  bool test() override {
    int done = 0;
    MPI_Testall(int(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done) {
      requests.clear();
      peerOf.clear();
    }
    return done != 0;
  }
  void addPeers(std::set<int> &peers) const override {
    for (size_t i = 0; i < requests.size(); ++i) {
      int done = 0;
      MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE);
      if (!done)
        peers.insert(peerOf[i]);
    }
  }

private:
  template <typename Begin> void inParts(int64_t bytes, int peer, const Begin &begin) {
    int64_t at = 0;
    do {
      int64_t n = std::min(kMostBytes, bytes - at);
      requests.emplace_back();
      peerOf.push_back(peer);
      begin(at, int(n), &requests.back());
      at += n;
    } while (at < bytes);
  }

  MPI_Comm comm;
  std::vector<MPI_Request> requests;
  std::vector<int> peerOf; ///< by request
};

} // namespace

std::unique_ptr<Exchange> MpiMessenger::exchange() { return std::make_unique<MpiExchange>(comm); }

} // namespace partita_rt
