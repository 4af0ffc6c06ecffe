//===- Offload.cpp - offloading to the host ---------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace partita::config;

#define OPTIMIZER "zero_optimization.offload_optimizer"
#define PARAMETERS "zero_optimization.offload_param"

static constexpr Key kOffloadRows[] = {
    {OPTIMIZER, block, "null", Obeyed, "the optimizer's states, which the host updates"},
    {OPTIMIZER ".device", choice("none|cpu|nvme"), "\"none\"", Obeyed,
     "cpu: --offload optimizer, at every stage; nvme is refused (the documentation's default is "
     "cpu, the code's none)",
     "--offload, else none"},
    {OPTIMIZER ".nvme_path", text, "null", NoEffect, "of NVMe, which is not used"},
    {OPTIMIZER ".buffer_count", integer(1), "4", NoEffect, "of NVMe, which is not used"},
    {OPTIMIZER ".pin_memory", boolean, "true", NoEffect,
     "what is copied to and from the host is pinned"},
    {OPTIMIZER ".pipeline_read", boolean, "false", NoEffect, "of NVMe, which is not used"},
    {OPTIMIZER ".pipeline_write", boolean, "false", NoEffect, "of NVMe, which is not used"},
    {OPTIMIZER ".pipeline", boolean, "false", NoEffect, "of NVMe, which is not used"},
    {OPTIMIZER ".fast_init", boolean, "false", NoEffect, "of NVMe, which is not used"},
    {OPTIMIZER ".ratio", number(0, 1), "1.0", Obeyed,
     "the host keeps all states or none: any other value is refused, as DeepSpeed does below stage "
     "3"},
    {OPTIMIZER ".super_offload", boolean, "false", Refused,
     "SuperOffload needs a processor that shares its memory with the device"},
    {OPTIMIZER ".cpuadam_cores_perc", number(0, 1), "0.8", NoEffect,
     "of SuperOffload; the host's threads are those of the run"},
    {PARAMETERS, block, "null", Obeyed, "parameters, fetched where they are used"},
    {PARAMETERS ".device", choice("none|cpu|nvme"), "\"none\"", Obeyed,
     "cpu: --offload parameters, at every stage; nvme is refused (the documentation's default is "
     "cpu, the code's none)",
     "--offload, else none"},
    {PARAMETERS ".nvme_path", text, "null", NoEffect, "of NVMe, which is not used"},
    {PARAMETERS ".buffer_count", integer(1), "5", NoEffect, "of NVMe, which is not used"},
    {PARAMETERS ".buffer_size", number(1), "1e8", NoEffect, "of NVMe, which is not used"},
    {PARAMETERS ".max_in_cpu", number(0), "1e9", NoEffect, "of NVMe, which is not used"},
    {PARAMETERS ".pin_memory", boolean, "true", NoEffect,
     "what is copied to and from the host is pinned"},
    {"aio", checkedBlock, "{}", NoEffect,
     "asynchronous reads and writes of NVMe, which is not used"},
    {"aio.block_size", integer(1), "1048576", NoEffect, "of NVMe, which is not used"},
    {"aio.queue_depth", integer(1), "8", NoEffect, "of NVMe, which is not used"},
    {"aio.intra_op_parallelism", integer(1), "1", NoEffect,
     "of NVMe, which is not used (the documentation's name, thread_count, is read too)"},
    {"aio.single_submit", boolean, "false", NoEffect, "of NVMe, which is not used"},
    {"aio.overlap_events", boolean, "true", NoEffect, "of NVMe, which is not used"},
    {"aio.use_gds", boolean, "false", NoEffect, "of NVMe, which is not used"},
};

Section partita::config::offloadKeys() { return {"Offload", kOffloadRows}; }

static bool saysOffload(const std::string *list, StringRef what) {
  SmallVector<StringRef> words;
  if (list)
    StringRef(*list).split(words, ',');
  return is_contained(words, what);
}

/// Returns the path of the key that offloads `what`, or "". Sets `failed` after an error.
static StringRef asksFor(Resolver &r, StringRef block, ArrayRef<StringRef> older, StringRef what,
                         bool &failed) {
  static constexpr StringLiteral devices[] = {OPTIMIZER ".device", PARAMETERS ".device"};
  StringRef path = block == OPTIMIZER ? devices[0] : devices[1];
  const std::string *said = r.commandLine("offload");
  std::string device = r.word(path);
  if (r.isAuto(path)) {
    bool isOn = saysOffload(said, what);
    r.value(path, isOn ? "\"cpu\"" : "\"none\"", said ? "command line, --offload" : "default");
    return "";
  }
  if (device == "nvme") {
    failed = !r.fail(path, r.name(path) + " is \"nvme\": nothing is kept on NVMe; \"cpu\" keeps it "
                                          "in the host's memory");
    return "";
  }
  StringRef asks = device == "cpu" ? path : StringRef();
  for (StringRef key : older)
    if (r.flag(key) && asks.empty())
      asks = key;
  // A list on the command line is complete.
  if (said && !asks.empty() != saysOffload(said, what) && (!asks.empty() || r.isGiven(path)))
    failed = !r.fail(
        asks.empty() ? path : asks,
        r.name(asks.empty() ? path : asks) + (asks.empty() ? " keeps the " : " asks for the ") +
            what + (asks.empty() ? " on the device" : " on the host") +
            ", but the command line says --offload " + *said + "; leave one of them out");
  return asks;
}

/// Checks that the optimizer has states that the host can update.
static bool checkStates(Resolver &r, StringRef path) {
  std::string optimizer = r.planned("optimizer"), momentum = r.planned("momentum");
  double number = 0;
  StringRef(momentum).getAsDouble(number);
  if (std::optional<OptimizerFacts> facts = factsOfOptimizer(optimizer); facts && facts->hasRatio)
    return r.fail(path, r.name(path) + ": the host cannot update Lamb's states: its trust ratio is "
                                       "computed where the parameter is; leave this out, or use "
                                       "AdamW");
  if (optimizer == "sgd" && number == 0)
    return r.fail(path, r.name(path) + ": SGD without momentum keeps no states that the host could "
                                       "keep; leave this out");
  return true;
}

bool partita::config::resolveOffload(Resolver &r) {
  r.find(OPTIMIZER);
  r.find(PARAMETERS);
  constexpr StringLiteral ratio = OPTIMIZER ".ratio";
  if (double share = r.real(ratio); share != 1)
    return r.fail(ratio, r.name(ratio) + " is " + numberText(share) +
                             (r.stage < 3 ? ", which DeepSpeed allows at stage 3 alone; the host"
                                          : ": the host") +
                             " keeps all of the states or none");
  bool failed = false;
  StringRef states = asksFor(r, OPTIMIZER, {"zero_optimization.cpu_offload"}, "optimizer", failed);
  if (failed)
    return false;
  StringRef parameters =
      asksFor(r, PARAMETERS,
              {"zero_optimization.cpu_offload_params", "zero_optimization.cpu_offload_param"},
              "parameters", failed);
  if (failed)
    return false;
  r.offloadsParameters = !parameters.empty() || saysOffload(r.commandLine("offload"), "parameters");
  if (!states.empty() && !checkStates(r, states))
    return false;
  if (!states.empty())
    r.offload(states, "optimizer");
  if (!parameters.empty())
    r.offload(parameters, "parameters");
  return true;
}
