"""check_meetings.py BIN MPIRUN...: a rank of mpirun stops (SIGSTOP) where MPI alone waits for it: before it joins, in the set-up, and at the end.
The others end within the time-out, and name it if MPI lets them know it."""
import os, re, subprocess, sys, time

bin, mpirun = sys.argv[1], sys.argv[2:]
TIMEOUT = 3
open("stops.c", "w").write("""
#include <signal.h>
#include <stdlib.h>
#include <string.h>
static int stops(const char *where) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *at = getenv("STOPS_AT");
  return rank && strcmp(rank, "1") == 0 && at && strcmp(at, where) == 0;
}
int PMPI_Init_thread(int *, char ***, int, int *);
int PMPI_Allgatherv(const void *, int, void *, void *, const int *, const int *, void *, void *);
int PMPI_Finalize(void);
int MPI_Init_thread(int *argc, char ***argv, int asked, int *given) {
  if (stops("joining"))
    raise(SIGSTOP);
  return PMPI_Init_thread(argc, argv, asked, given);
}
int MPI_Allgatherv(const void *from, int n, void *type, void *to, const int *ns, const int *at, void *types, void *comm) {
  static int gathers;
  int code = PMPI_Allgatherv(from, n, type, to, ns, at, types, comm);
  if (++gathers == 3 && stops("set-up")) /* those of hosts, processes and builds have passed */
    raise(SIGSTOP);
  return code;
}
int MPI_Finalize(void) {
  if (stops("end"))
    raise(SIGSTOP);
  return PMPI_Finalize();
}
""")
subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--unresolved-symbols=ignore-all", "-o", "stops.so", "stops.c"], check=True)
two = f"{bin}/partita_rt_example_dp2"
who = r"rank 0 \(host \S+, process \d+\)"
expected = {"joining": r"a rank \(process \d+\) has waited 3 s in MPI_Init for other ranks \(MPI does not say which\); has one stopped\?",
            "set-up": who + r" has waited 3 s in .+ for rank 1 \(host \S+, process \d+\); has one stopped\?",
            "end": who + r" has waited 3 s in MPI_Finalize for other ranks \(MPI does not say which\); has one stopped\?"}
for where, text in expected.items():
    for transport in ("window", "messages") if where == "set-up" else ("window",):
        since = time.monotonic()
        process = subprocess.Popen([*mpirun, "-x", "LD_PRELOAD=" + os.path.abspath("stops.so"), "-np", "2", two, "--data",
                                    "text:/usr/share/common-licenses/GPL-3", "--init", "seed:3", "--steps", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, "STOPS_AT": where, "PARTITA_RT_TIMEOUT": str(TIMEOUT), "PARTITA_RT_TRANSPORT": transport})
        _, err = process.communicate(timeout=100)
        line = text if transport == "window" else text[:text.index("for rank 1")] + r"ranks of other nodes; has one stopped\?".replace("ranks", "for ranks")
        errors = [each for each in err.splitlines() if each.startswith("example: error: ")]
        assert process.returncode == 3 and len(errors) == 1 and re.fullmatch("example: error: " + line, errors[0]), (where, transport, process.returncode, err)
    print(f"{where}: named" if "rank 1" in text else f"{where}: not without end")
