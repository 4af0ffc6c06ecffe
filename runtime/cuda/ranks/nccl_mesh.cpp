// The communicators of a rank's mesh and of its channels (nccl_group.h).

#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "cuda/ranks/nccl_channel.h"
#include "cuda/ranks/nccl_check.h"
#include "cuda/ranks/nccl_group.h"
#include "cuda/ranks/watchdog.h"
#include "processes/wire.h"

#include <cstdlib>
#include <map>

namespace partita_rt::cuda {

using processes::pack, processes::unpack;

namespace {

/// Returns a text that must be equal on all ranks for their collectives to match.
std::string programText(const Program &program) {
  int version = 0;
  checkNccl(ncclGetVersion(&version), nullptr, "ncclGetVersion");
  std::string stages;
  for (const Stage &stage : program.stages) {
    int64_t bytes = 0;
    for (const CensusEntry &entry : stage.census)
      bytes += entry.calls + entry.bytes;
    stages += (stages.empty() ? "" : "; ") + std::to_string(stage.persistentBytes) + " and " +
              std::to_string(stage.arenaBytes) + " bytes of memory, a census of " +
              std::to_string(bytes);
  }
  for (const Channel &channel : program.channels)
    stages += std::string("; ") + channel.name + " from " + std::to_string(channel.from) + " to " +
              std::to_string(channel.to);
  return std::string(program.name) + " (" + stages + ") with NCCL " + std::to_string(version);
}

void comparePrograms(const Program &program, processes::Rendezvous &rendezvous) {
  std::vector<std::string> texts = rendezvous.allGather(programText(program), "the programs");
  for (size_t r = 1; r < texts.size(); ++r)
    if (texts[r] != texts[0])
      fail("the ranks run different programs: rank 0 %s, rank %zu %s", texts[0].c_str(), r,
           texts[r].c_str());
}

/// Returns "dp/0/3" for the group of row 0, called dp, whose first rank is 3.
std::string keyOf(const Membership &own) {
  return std::string(own.name) + "/" + std::to_string(own.row) + "/" +
         std::to_string(own.ranks.front());
}

/// Returns "channel/2/3" for row 2, from rank 3.
std::string keyOf(const ChannelEndpoint &own) {
  return "channel/" + std::to_string(own.row) + "/" +
         std::to_string(own.sends ? own.self : own.peer);
}

/// Returns the keys of the communicators whose first rank is this one.
std::vector<std::string> keysToMake(const std::vector<Membership> &memberships,
                                    const std::vector<ChannelEndpoint> &channels) {
  std::vector<std::string> keys;
  for (const Membership &own : memberships)
    if (own.size() > 1 && own.position == 0)
      keys.push_back(keyOf(own));
  for (const ChannelEndpoint &own : channels)
    if (own.sends)
      keys.push_back(keyOf(own));
  return keys;
}

/// Returns the unique ids of all communicators by their keys; `keys`: those that this rank makes.
std::map<std::string, ncclUniqueId> exchangeIds(const std::vector<std::string> &keys,
                                                processes::Rendezvous &rendezvous) {
  std::vector<std::string> mine;
  for (const std::string &key : keys) {
    ncclUniqueId id;
    checkNccl(ncclGetUniqueId(&id), nullptr, "ncclGetUniqueId");
    mine.push_back(key);
    mine.push_back(std::string(id.internal, sizeof(id.internal)));
  }
  mine.push_back(std::to_string(mine.size()));
  std::map<std::string, ncclUniqueId> ids;
  std::string count = mine.back();
  mine.pop_back();
  for (const std::string &text :
       rendezvous.allGather(pack({count, pack(mine)}), "the ids of NCCL's communicators")) {
    std::vector<std::string> parts = unpack(text, 2);
    std::vector<std::string> theirs =
        unpack(parts[1], size_t(std::strtoul(parts[0].c_str(), nullptr, 10)));
    for (size_t i = 0; i + 1 < theirs.size(); i += 2) {
      if (theirs[i + 1].size() != sizeof(ncclUniqueId))
        fail("received a malformed message from another rank");
      std::copy(theirs[i + 1].begin(), theirs[i + 1].end(), ids[theirs[i]].internal);
    }
  }
  return ids;
}

/// Joins the communicator with this key as rank `position` of `size`; the other members do too.
ncclComm_t join(const std::map<std::string, ncclUniqueId> &ids, const std::string &key,
                const std::string &where, const char *name, int position, int size,
                Watchdog &watchdog) {
  std::string what = "NCCL's set-up of " + where;
  auto id = ids.find(key);
  if (id == ids.end())
    fail("%s: no rank has made an id", what.c_str());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1; // the watchdog notices hangs
  config.commName = name;
  ncclComm_t comm = nullptr;
  watchdog.expect(what);
  checkNccl(ncclCommInitRankConfig(&comm, size, id->second, position, &config), nullptr,
            what.c_str());
  watchdog.expect("");
  return comm;
}

} // namespace

Communicators makeCommunicators(Rank &rank, const Program &program,
                                processes::Rendezvous &rendezvous, Device &device) {
  Communicators all;
  // In-switch sums (NVLS) have different bits in every call; off unless requested.
  if (!std::getenv("NCCL_ALGO"))
    setenv("NCCL_NVLS_ENABLE", "0", 0);
  // Collectives of several communicators must have the same order on all ranks; the branches of a
  // graph are ordered only by this setting (from NCCL 2.26 on).
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  auto watchdog = Watchdog::start(rendezvous, device, timeoutSeconds());
  comparePrograms(program, rendezvous);
  std::vector<Membership> memberships = membershipsOf(rank);
  std::vector<ChannelEndpoint> channels = channelsOf(rank);
  auto ids = exchangeIds(keysToMake(memberships, channels), rendezvous);
  // Create them by rows, in the same order on all ranks: each waits for the others of its group.
  for (const Membership &own : memberships) {
    if (own.size() == 0)
      continue;
    if (own.size() == 1) {
      all.groups.push_back(std::make_unique<LonelyGroup>(own.name, device));
    } else {
      std::string key = keyOf(own);
      ncclComm_t comm = join(ids, key, "axis " + std::string(own.name), own.name, own.position,
                             own.size(), *watchdog);
      all.groups.push_back(std::make_unique<NcclGroup>(own.name, key, own.position, own.size(),
                                                       comm, device, watchdog));
    }
    rank.groups[own.row] = all.groups.back().get();
  }
  all.channelsByRow.resize(size_t(program.channels.size()));
  ChannelTests tests = channelTests();
  for (const ChannelEndpoint &own : channels) {
    std::string key = keyOf(own);
    ncclComm_t comm = join(ids, key, "channel " + std::string(own.name), own.name,
                           own.sends ? 0 : 1, 2, *watchdog);
    all.channels.push_back(std::make_unique<NcclChannel>(own, key, comm, device, watchdog));
    all.channels.back()->setDelays(delaysOf(tests, rank.rank, own.row));
    all.channelsByRow[size_t(own.row)] = all.channels.back().get();
  }
  rank.channels = all.channelsByRow.data();
  return all;
}

} // namespace partita_rt::cuda
