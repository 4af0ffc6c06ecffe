// Launches ranks on GPUs (common/mesh/launch.h): each rank is a process with its own GPU.

#include "common/mesh/launch.h"

#include "common/grouped.h"
#include "common/mesh/mesh.h"
#include "common/mesh/node_order.h"
#include "common/run_options.h"
#include "common/target.h"
#include "cuda/attention/fused_attention.h"
#include "cuda/cuda.h"
#include "cuda/gpu/gpu.h"
#include "cuda/ranks/nccl_group.h"
#include "processes/host_group.h"
#include "processes/launched_rank.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace partita_rt {

using cuda::checkCuda;

//===-- Choice of the GPU -------------------------------------------------------------------===//

namespace {

/// A rank's description of its GPU.
struct GpuName {
  std::string kind;      ///< "NVIDIA H200, compute capability 9.0"
  std::string address;   ///< on its host's bus
  std::string attention; ///< the kernels that compute attention there
};

/// May ranks share a GPU? For correctness tests: NCCL must take them for ranks on several hosts
/// (NCCL_HOSTID), and nothing is fast.
bool sharesGpu() {
  const char *text = std::getenv("PARTITA_RT_SHARE_GPU");
  std::string value = text ? text : "";
  if (!value.empty() && value != "0" && value != "1")
    fail("PARTITA_RT_SHARE_GPU=%.40s: 0 or 1 is expected", value.c_str());
  return value == "1";
}

/// Checks what the program's kernels need, and the architecture that it was built for, as nvcc.mk
/// names it ("sm_90"): its machine code runs on GPUs of that major version, from that minor version
/// on; on that one alone if it ends in "a".
void checkArchitecture(const cudaDeviceProp &gpu, const Program &program) {
  if (program.leastCapability > gpu.major * 10 + gpu.minor)
    fail("the program needs a GPU of compute capability %d.%d or later, for its matmuls in 8 bits "
         "(--precision fp8); %s has %d.%d; compile it with --precision bfloat16",
         program.leastCapability / 10, program.leastCapability % 10, gpu.name, gpu.major,
         gpu.minor);
#ifdef PARTITA_RT_ARCH
  int built = std::atoi(PARTITA_RT_ARCH + 3), has = gpu.major * 10 + gpu.minor;
  bool exact = std::strchr(PARTITA_RT_ARCH, 'a') != nullptr;
  if (exact ? built != has : built / 10 != gpu.major || built > has)
    fail("the program was built for " PARTITA_RT_ARCH
         ", %s is sm_%d; build it for this GPU: make -B ARCH=sm_%d",
         gpu.name, has, has);
#endif
}

/// Selects the rank's GPU: among those that the process sees, the one with the rank's number on its
/// host; the only one, if the launcher shows each process its own.
GpuName takeGpu(const processes::Rendezvous &rendezvous, const Program &program) {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    int driver = 0; // remains 0 without one, which CUDA reports as a driver that is too old
    bool has = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
    fail("no GPU can be used on %s: %s", rendezvous.peers()[size_t(rendezvous.rank())].host.c_str(),
         !has                   ? "there is no NVIDIA driver"
         : error != cudaSuccess ? cudaGetErrorString(error)
                                : "there is none");
  }
  const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
  bool own = count == 1 && visible && *visible;
  int number = rendezvous.localRank();
  if (number >= count && !own && !sharesGpu())
    fail("%s has %d GPU%s and at least %d ranks, each of which needs one of its own; start fewer "
         "there, or compile with another --mesh",
         rendezvous.peers()[size_t(rendezvous.rank())].host.c_str(), count, count == 1 ? "" : "s",
         number + 1);
  checkCuda(cudaSetDevice(own ? 0 : number % count), "cudaSetDevice");
  int device = 0;
  cudaDeviceProp properties;
  checkCuda(cudaGetDevice(&device), "cudaGetDevice");
  checkCuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  checkArchitecture(properties, program);
  char bus[32] = {};
  checkCuda(cudaDeviceGetPCIBusId(bus, sizeof(bus), device), "cudaDeviceGetPCIBusId");
  return {std::string(properties.name) + ", compute capability " +
              std::to_string(properties.major) + "." + std::to_string(properties.minor),
          bus, cuda::attentionMakers()};
}

/// All ranks must have GPUs of one kind, because they must compute the same bits; and each its own.
void compareGpus(processes::Rendezvous &rendezvous, const GpuName &mine) {
  const std::vector<processes::Peer> &peers = rendezvous.peers();
  std::vector<std::string> kinds = rendezvous.allGather(mine.kind, "kinds of GPUs");
  std::vector<std::string> addresses = rendezvous.allGather(mine.address, "addresses of GPUs");
  for (size_t r = 1; r < kinds.size(); ++r)
    if (kinds[r] != kinds[0])
      fail("ranks have different GPUs: rank 0 on %s has %s, rank %zu on %s has %s; a "
           "program runs on one kind",
           peers[0].host.c_str(), kinds[0].c_str(), r, peers[r].host.c_str(), kinds[r].c_str());
  std::vector<std::string> makers = rendezvous.allGather(mine.attention, "kernels of attention");
  for (size_t r = 1; r < makers.size(); ++r)
    if (makers[r] != makers[0])
      fail("ranks compute attention with different kernels: rank 0 on %s with %s, rank %zu on %s "
           "with %s; set "
           "PARTITA_RT_ATTENTION=own, or the same variables and libraries everywhere",
           peers[0].host.c_str(), makers[0].c_str(), r, peers[r].host.c_str(), makers[r].c_str());
  for (size_t r = 0; r < addresses.size() && !sharesGpu(); ++r)
    for (size_t other = 0; other < r; ++other)
      if (peers[r].host == peers[other].host && addresses[r] == addresses[other])
        fail("ranks %zu and %zu are both on GPU %s of %s: each rank needs one of its own", other, r,
             addresses[r].c_str(), peers[r].host.c_str());
}

/// Throws Error if less than this is free on the current device: "the program needs 81,234,567,890
/// bytes of its GPU's memory (2,123,456 persistent, ...); NVIDIA H100 has ...".
void checkFits(const std::vector<MemoryPart> &needs) {
  size_t free = 0, total = 0;
  checkCuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  int64_t sum = 0;
  std::string parts;
  for (const MemoryPart &need : needs) {
    sum += need.bytes;
    if (need.bytes > 0)
      parts += (parts.empty() ? "" : ", ") + grouped(need.bytes) + " " + need.what;
  }
  if (sum <= int64_t(free))
    return;
  int device = 0;
  cudaDeviceProp properties;
  checkCuda(cudaGetDevice(&device), "cudaGetDevice");
  checkCuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  fail("the program needs %s bytes of its GPU's memory (%s); %s has %s, of which %s are free "
       "(CUDA's context, NCCL and other programs have the rest); free it, or compile with a "
       "smaller batch, "
       "--recompute, a higher --zero-stage or more ranks",
       grouped(sum).c_str(), parts.c_str(), properties.name, grouped(int64_t(total)).c_str(),
       grouped(int64_t(free)).c_str());
}

/// All ranks use rank 0's choices for matmuls, so that equal matmuls have equal bits. Without
/// choices for its GPU, in a file with those for others, the ranks run untuned.
void shareChoices(const Rank &rank, processes::Rendezvous &rendezvous) {
  cuda::Gpu &gpu = cuda::Gpu::of(rank);
  std::string path = matmulsPath(*rank.options), text, error;
  if (rank.rank == 0 && !rank.options->tune)
    try {
      if (gpu.matmuls().readChoices(path))
        text = gpu.matmuls().choicesText();
      else if (const std::string &why = gpu.matmuls().whyUntuned(); !why.empty())
        std::printf("%-14s %s; '%s --tune' adds choices for it\n", "untuned", why.c_str(),
                    rank.program->name);
    } catch (const std::exception &exception) {
      error = exception.what();
    }
  if (error = rendezvous.agree(error); !error.empty())
    throw Error(error);
  text = rendezvous.broadcast(text, "the choices for matmuls");
  if (rank.rank != 0 && !text.empty() && !gpu.matmuls().useChoices(text, "rank 0's " + path))
    fail("%s; all ranks need one kind of GPU and one version of cuBLASLt",
         gpu.matmuls().whyUntuned().c_str());
}

/// Says goodbye on all communicators, so that a rank waiting in a surplus collective learns of it.
void endCollectives(Rank &rank) {
  rank.forGroups([](Communicator &group) { barrier(group, "the end of the program"); });
  cuda::Gpu::of(rank).finish();
  cuda::Gpu::of(rank).dropGraphs();
  barrier(*rank.world, "the end of the program");
}

} // namespace

//===-- World -------------------------------------------------------------------------------===//

/// Absent if the number of processes is not the program's number of ranks.
struct World::Launch : processes::LaunchedRank {
  using LaunchedRank::LaunchedRank;
};

/// If the number of processes is not that of ranks, they do not wait for each other to learn it.
World::World(const Program &program) {
  processes::LaunchEnvironment environment =
      processes::environmentOrExit(whoLaunched(/*asksMpi=*/false), program.name);
  processRank = environment.rank;
  processCount = environment.ranks;
  if (processCount != rankCount(program))
    return;
  launch = std::make_unique<Launch>(environment, program);
  processRank = launch->rendezvous.rank();
  renumberedLine = renumberedText(launch->rendezvous.launcherNumbers());
}

World::~World() = default;

bool World::isFirstStarted(const Program &) { return whoLaunched(/*asksMpi=*/false).rank == 0; }

std::string World::usage(const Program &program) {
  return std::string("torchrun --no-python --nproc-per-node GPUS ") + program.name +
         " ... (or partita run, mpirun, srun)";
}

void World::check(const Program &program) const {
  int ranks = rankCount(program);
  if (processCount != ranks)
    fail("the program was compiled for %d ranks (%s), %d %s; start %d, as `partita run` does, or "
         "compile it with another --mesh",
         ranks, meshText(program).c_str(), processCount,
         processCount == 1 ? "process was started" : "processes were started", ranks);
}

std::vector<std::string> World::gather(const std::string &mine, const char *what) {
  return launch ? launch->rendezvous.allGather(mine, what) : std::vector<std::string>{mine};
}

std::string World::run(const Program &program, const RunOptions *options,
                       const std::function<void(Rank &)> &body) {
  processes::Rendezvous &rendezvous = launch->rendezvous;
  rendezvous.setTimeout(timeoutSeconds());
  Rank rank;
  setCoordinates(rank, program, processRank);
  rank.position = &launch->position;
  rank.flight = &launch->flight;
  rank.options = options;
  rank.hyper = program.hyper;
  rank.learningRate = program.hyper.learningRate;
  // Until all ranks have memory, every rank learns of an error, and one prints it.
  GpuName name;
  std::unique_ptr<cuda::Gpu> gpu;
  auto together = [&](const std::function<void()> &stage) {
    std::string error;
    try {
      stage();
    } catch (const std::exception &exception) {
      error = rankText(program, rank.rank) + ": " + exception.what();
    }
    return rendezvous.agree(error);
  };
  std::string error = together([&] { name = takeGpu(rendezvous, program); });
  if (error.empty())
    error = together([&] {
      compareGpus(rendezvous, name);
      checkFits(deviceParts(program, *rank.stage, options));
      gpu = std::make_unique<cuda::Gpu>(rank);
    });
  if (!error.empty())
    return error;
  try {
    processes::HostGroup world(rendezvous);
    cuda::Communicators communicators = cuda::makeCommunicators(rank, program, rendezvous, *gpu);
    rank.world = &world;
    shareChoices(rank, rendezvous);
    body(rank);
    endCollectives(rank);
  } catch (const std::exception &exception) {
    std::fflush(stdout);
    rendezvous.fail(atSlot(rank) + exception.what()); // ends all ranks
  }
  return "";
}

} // namespace partita_rt
