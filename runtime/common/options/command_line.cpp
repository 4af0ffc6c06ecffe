// The table of options: name, argument, help and effect.

#include "common/options/command_line.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/options/lr_schedule_options.h"
#include "common/target.h"
#include "partita_rt/lr_schedule_text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <vector>

namespace partita_rt {

namespace {

struct Option {
  const char *name;
  const char *argument; ///< null: a flag; in brackets: optional
  const char *help;
  std::function<void(RunOptions &, const std::string &)> set;
};

int64_t parseInteger(const char *option, const std::string &text, int64_t least) {
  errno = 0;
  char *end = nullptr;
  long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end || errno || value < least)
    fail("%s: '%s' is not an integer of at least %lld", option, text.c_str(), (long long)least);
  return value;
}

double parseNumber(const char *option, const std::string &text, double least, double below) {
  if (std::string problem = numberProblem(text, least, below); !problem.empty())
    fail("%s: %s", option, problem.c_str());
  return std::strtod(text.c_str(), nullptr);
}

uint64_t parseSeed(const char *option, const std::string &text) {
  errno = 0;
  char *end = nullptr;
  uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || text[0] == '-' || *end || errno)
    fail("%s: '%s' is not an unsigned 64-bit integer", option, text.c_str());
  return value;
}

void parseInit(RunOptions &options, const std::string &text) {
  if (text.compare(0, 5, "seed:") == 0) {
    options.init = InitFrom::Seed;
    options.initSeed = parseSeed("--init", text.substr(5));
    return;
  }
  options.init = InitFrom::Safetensors;
  options.initFile = text;
}

bool parseSwitch(const char *option, const std::string &text) {
  if (text != "on" && text != "off")
    fail("%s: '%s' is neither on nor off", option, text.c_str());
  return text == "on";
}

/// Reads "100", steps, or "30m", minutes.
void parseCheckpointEvery(RunOptions &options, const std::string &text) {
  const char *option = "--checkpoint-every";
  if (text.empty() || text.back() != 'm') {
    if (text.find_first_not_of("0123456789") != std::string::npos)
      fail("%s: '%s' is neither a number of steps, such as 100, nor of minutes, such as 5m or 0.1m",
           option, text.c_str());
    options.checkpointEvery = parseInteger(option, text, 1);
    return;
  }
  std::string minutes = text.substr(0, text.size() - 1);
  if (std::string problem = numberProblem(minutes, 0, 1e6); !problem.empty())
    fail("%s: minutes: %s", option, problem.c_str());
  options.checkpointEverySeconds = 60 * std::strtod(minutes.c_str(), nullptr);
  if (options.checkpointEverySeconds <= 0)
    fail("%s: '%s' is no time", option, text.c_str());
}

void parseResume(RunOptions &options, const std::string &text) {
  if (!text.empty() && text != "auto")
    fail("--resume: expected nothing or 'auto', found '%s'; the folder is --checkpoint's: "
         "--checkpoint '%s' --resume, or --resume auto, which starts anew if there is none",
         text.c_str(), text.c_str());
  options.resume = text.empty();
  options.resumeIfThere = !text.empty();
}

#define PATH(member) [](RunOptions &o, const std::string &text) { o.member = text; }
#define INTEGER(option, member, least)                                                             \
  [](RunOptions &o, const std::string &text) { o.member = parseInteger(option, text, least); }
#define NUMBER(option, member, least, below)                                                       \
  [](RunOptions &o, const std::string &text) { o.member = parseNumber(option, text, least, below); }
#define SWITCH(option, member)                                                                     \
  [](RunOptions &o, const std::string &text) { o.member = parseSwitch(option, text); }
#define FLAG(member) [](RunOptions &o, const std::string &) { o.member = true; }

using Options = std::vector<Option>;

/// Options for a run's starting point.
Options startOptions() {
  return {
      {"-n", "RANKS", "number of ranks; must equal the mesh (default: the mesh)",
       INTEGER("-n", ranks, 1)},
      {"--data", "FILE",
       "training data: tokens (a .bin of nanoGPT or llm.c, uint16:FILE, uint32:FILE, text:FILE: "
       "bytes as tokens), or FILE.safetensors with a column per input, one row per sample",
       PATH(data)},
      {"--steps", "N", "updates to make, counted from the first run (--resume continues to N)",
       INTEGER("--steps", steps, 0)},
      {"--eval-data", "FILE", "validation data; evaluated before and after training",
       PATH(evalData)},
      {"--eval-every", "K", "evaluates every K steps, too", INTEGER("--eval-every", evalEvery, 1)},
      {"--eval-batches", "N", "micro-batches of an evaluation, 0 = all of the file (default 16)",
       INTEGER("--eval-batches", evalBatches, 0)},
      {"--init", "seed:N|FILE",
       "initial parameters: random (matrices and tables normal with deviation 0.02, biases zero, "
       "scales of norms one), or of FILE.safetensors or an index of several "
       "(FILE.safetensors.index.json), or of the checkpoint in a folder "
       "(default: the values in the model's file)",
       parseInit},
      {"--shuffle", "on|off",
       "order of the training data: on: each epoch in a random order of its own, by --seed; off: as "
       "in the file (default on)",
       SWITCH("--shuffle", shuffle)},
      {"--seed", "N", "order of the training data, and what dropout drops (default 1)",
       [](RunOptions &o, const std::string &text) { o.seed = parseSeed("--seed", text); }},
  };
}

/// Options for updates of parameters.
Options updateOptions() {
  return {
      {"--lr", "RATE", "learning rate", NUMBER("--lr", hyper.learningRate, 0, kMostRate)},
      {"--lr-schedule", "NAME[,key=value]...",
       "constant or cosine, after a linear warm-up, or one of DeepSpeed's with its parameters: "
       "WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle, LRRangeTest (default: the program's)",
       [](RunOptions &o, const std::string &text) {
         if (std::string problem = parseLrSchedule(text, o.lrSchedule, o.lrScheduleKeys);
             !problem.empty())
           fail("--lr-schedule: %s", problem.c_str());
       }},
      {"--warmup-steps", "N", "steps of linear warm-up of constant and cosine (default 0)",
       INTEGER("--warmup-steps", warmupSteps, 0)},
      {"--schedule-steps", "N", "length of the cosine (default: --steps)",
       INTEGER("--schedule-steps", scheduleSteps, 1)},
      {"--min-lr-ratio", "R", "end of the cosine, as a share of --lr (default 0.1)",
       NUMBER("--min-lr-ratio", minRateRatio, 0, 1.0001)},
      {"--weight-decay", "W",
       "weight decay of parameters with two or more dimensions (decoupled for adamw and lion)",
       NUMBER("--weight-decay", hyper.weightDecay, 0, kMostRate)},
      {"--beta1", "B", "decay of the first moment", NUMBER("--beta1", hyper.beta1, 0, 1)},
      {"--beta2", "B", "decay of the second moment", NUMBER("--beta2", hyper.beta2, 0, 1)},
      {"--epsilon", "E", "added to the root of the second moment",
       NUMBER("--epsilon", hyper.epsilon, 0, 1e9)},
      {"--momentum", "M", "SGD's momentum", NUMBER("--momentum", hyper.momentum, 0, 1)},
      {"--clip", "NORM", "largest global gradient norm, 0 = no clipping",
       NUMBER("--clip", hyper.gradientClip, 0, 1e30)},
  };
}

/// Options for threads, and for reports during a run.
Options reportOptions() {
  return {
      {"--threads", "N", "BLAS threads of a process (default 1)", INTEGER("--threads", threads, 1)},
      {"--timeout", "SECONDS",
       "end the run with a report if a rank stops, or makes no progress, for that long (default: "
       "PARTITA_RT_TIMEOUT, or 1800)",
       [](RunOptions &o, const std::string &text) { o.timeout = secondsFrom("--timeout ", text); }},
      {"--log", "FILE.csv",
       "one line per step: step, loss, gradient norm (where the program clips it), rate, betas (where "
       "a schedule changes them), tokens/s, validation loss, loss scale, skipped steps, model FLOP/s, "
       "and of a step that was skipped the first parameter whose gradient is not finite",
       PATH(log)},
      {"--flight-recorder", "DIR",
       "where each rank writes its last minute if the run fails (default: flight in --checkpoint's "
       "folder, else FILE.csv.flight)",
       PATH(flightRecorder)},
      {"--tensorboard", "DIR", "the same for TensorBoard: an event file in DIR/NAME, one per run",
       PATH(tensorboard)},
      {"--job-name", "NAME", "name of the TensorBoard folder (default: the program's name)",
       PATH(jobName)},
      {"--breakdown", nullptr,
       "time by kind of work (data, forward, backward, update, collectives, transfers) with every "
       "line of output, in the log and at the end",
       FLAG(breakdown)},
      {"--check-replicas", "K",
       "compare what several ranks hold every K steps, and before each checkpoint: if a bit has "
       "flipped on one of them, the run ends and names rank and tensor (default 0: never)",
       INTEGER("--check-replicas", checkReplicas, 0)},
      {"--stragglers", nullptr,
       "the slowest rank by kind of work, against the median of all, with every line of output, in "
       "the log and at the end",
       FLAG(stragglers)},
      {"--print-every", "K", "steps between lines of output (default: ten lines in all)",
       INTEGER("--print-every", printEvery, 1)},
  };
}

/// Options for a run's results, and for continuing from them.
Options resultOptions() {
  return {
      {"--checkpoint", "DIR",
       "write a checkpoint into DIR at the end, and when a signal ends the run", PATH(checkpoint)},
      {"--checkpoint-every", "K|Tm", "saves every K steps, or every T minutes, too",
       parseCheckpointEvery},
      {"--keep", "K", "keeps the K newest checkpoints (default 2)", INTEGER("--keep", keep, 1)},
      {"--checkpoint-copy", "on|off",
       "on: train on while what is saved is copied, in memory of the host, and written (on GPUs: while "
       "the copy is written); off: write it before the next step (default on)",
       SWITCH("--checkpoint-copy", checkpointCopy)},
      {"--resume", "[auto]",
       "continue from the checkpoint, bit for bit, or by a program of another mesh or --precision; "
       "auto: if there is one, else start as --init says",
       parseResume},
      {"--overwrite", nullptr, "let a run without --resume replace the folder's checkpoint",
       FLAG(overwrite)},
      {"--new-data", nullptr, "let --resume go on with other data than the checkpoint's",
       FLAG(newData)},
      {"--grads", "FILE.safetensors", "write the gradients of the first step", PATH(grads)},
      {"--dump-parameters", "FILE.safetensors", "write the parameters at the end",
       PATH(dumpParameters)},
      {"--forward", "FILE.safetensors",
       "after training, run the model on the first samples of --data, in their order, and write "
       "its outputs",
       PATH(forward)},
  };
}

/// Options for runs that do not train.
Options otherOptions() {
  return {
      {"--tune", nullptr,
       "try the algorithms for every matmul of a step on this GPU, write the fastest to "
       "matmuls.json beside the program, where later runs find them, and end",
       FLAG(tune)},
      {"--census", nullptr, "print every collective of a step and why it is there", FLAG(census)},
      {"--help", nullptr, "print this text", FLAG(help)},
      {"--version", nullptr, "print which compiler wrote the program", FLAG(version)},
  };
}

#undef PATH
#undef INTEGER
#undef NUMBER
#undef SWITCH
#undef FLAG

/// Returns all options, in the order of --help.
const Options &optionTable() {
  static const Options table = [] {
    Options all;
    for (const Options &some :
         {startOptions(), updateOptions(), reportOptions(), resultOptions(), otherOptions()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return table;
}

const Option &findOption(const std::string &name) {
  const Option *nearest = nullptr;
  int best = 1 << 30;
  for (const Option &option : optionTable()) {
    int distance = editDistance(name, option.name);
    if (distance == 0)
      return option;
    if (distance < best) {
      best = distance;
      nearest = &option;
    }
  }
  if (name.compare(0, 1, "-") != 0)
    fail("unexpected argument '%s' (--help lists the options)", name.c_str());
  fail("unknown option '%s', did you mean %s? (--help lists all)", name.c_str(), nearest->name);
}

/// Must ranks that are processes be given it alike?
bool mustAgree(const Option &option) {
  static const std::set<std::string> own = {"--threads", "--log", "--tensorboard", "--job-name",
                                            "--flight-recorder"};
  return own.count(option.name) == 0;
}

/// Does the option's value name a file or folder, which may be another one on each host?
bool isPath(const Option &option, const std::string &value) {
  std::string argument = option.argument ? option.argument : "";
  return argument.compare(0, 4, "FILE") == 0 || argument.compare(0, 3, "DIR") == 0 ||
         (std::string(option.name) == "--init" && value.compare(0, 5, "seed:") != 0);
}

void checkCombinations(const RunOptions &o, const Program &program) {
  auto needs = [](bool present, bool given, const char *option, const char *what) {
    if (given && !present)
      fail("%s needs %s", option, what);
  };
  int ranks = rankCount(program);
  if (o.ranks && *o.ranks != ranks)
    fail("-n: the program was compiled for %d ranks, %lld asked for; compile it with another "
         "--mesh",
         ranks, (long long)*o.ranks);
  needs(o.steps.has_value(), !o.data.empty() && o.forward.empty(), "--data", "--steps N");
  needs(!o.data.empty(), o.steps.value_or(0) > 0, "--steps", "--data FILE");
  needs(!o.data.empty() || program.inputs.empty(), !o.forward.empty(), "--forward", "--data FILE");
  needs(!o.evalData.empty(), o.evalEvery > 0, "--eval-every", "--eval-data FILE");
  needs(!o.evalData.empty(), o.evalBatches.has_value(), "--eval-batches", "--eval-data FILE");
  bool savesAgain = o.checkpointEvery > 0 || o.checkpointEverySeconds > 0;
  needs(!o.checkpoint.empty(), savesAgain, "--checkpoint-every", "--checkpoint DIR");
  needs(!o.checkpoint.empty(), o.keep.has_value(), "--keep", "--checkpoint DIR");
  needs(savesAgain, o.checkpointCopy.has_value(), "--checkpoint-copy", "--checkpoint-every");
  needs(!o.checkpoint.empty(), o.resume || o.resumeIfThere, "--resume", "--checkpoint DIR");
  needs(o.resume || o.resumeIfThere, o.newData, "--new-data", "--resume");
  needs(!o.checkpoint.empty(), o.overwrite, "--overwrite", "--checkpoint DIR");
  if (o.overwrite && (o.resume || o.resumeIfThere))
    fail("--overwrite replaces the checkpoint that --resume continues: leave out one of them");
  needs(!o.tensorboard.empty(), !o.jobName.empty(), "--job-name", "--tensorboard DIR");
  needs(o.steps.value_or(0) > 0, !o.tensorboard.empty(), "--tensorboard", "--steps of at least 1");
  needs(o.steps.value_or(0) > 0, o.checkReplicas > 0, "--check-replicas", "--steps of at least 1");
  needs(o.steps.value_or(0) > 0, o.breakdown, "--breakdown", "--steps of at least 1");
  needs(o.steps.value_or(0) > 0, o.stragglers, "--stragglers", "--steps of at least 1");
  needs(ranks > 1, o.stragglers, "--stragglers", "several ranks to compare");
  if (o.jobName.find('/') != std::string::npos || o.jobName == "." || o.jobName == "..")
    fail("--job-name: '%s' is not the name of a folder", o.jobName.c_str());
  needs(o.steps.value_or(0) > 0, !o.grads.empty(), "--grads", "--steps of at least 1");
  needs(program.exposesGradients, !o.grads.empty(), "--grads",
        "a program that exposes its gradients");
  needs(program.has(&Stage::trainStep), o.steps.value_or(0) > 0, "--steps",
        "a program with a train_step");
  needs(program.has(&Stage::evalStep), !o.evalData.empty(), "--eval-data",
        "a program with an eval_step");
  needs(program.has(&Stage::forward), !o.forward.empty(), "--forward", "a program with a forward");
  if (o.resume && o.init != InitFrom::ModelFile)
    fail("--resume takes the parameters from the checkpoint; leave out --init, or say --resume "
         "auto to start with --init where there is no checkpoint");
  if (o.tune && (!o.data.empty() || !o.evalData.empty() || o.steps || o.resume || o.resumeIfThere ||
                 !o.dumpParameters.empty() || !o.forward.empty()))
    fail("--tune cannot be combined with data, steps or outputs: it computes on made-up data and "
         "writes matmuls.json only");
  needs(program.has(&Stage::trainStep) || program.has(&Stage::forward), o.tune, "--tune",
        "a program with a train_step or a forward");
  bool something = !o.data.empty() || o.tune || !o.evalData.empty() || o.census || o.steps ||
                   !o.dumpParameters.empty() || !o.forward.empty();
  if (!something)
    fail("nothing to do: give --data FILE and --steps N (--help lists the options)");
}

} // namespace

/// Returns why the program would ignore an option; "" if it would not.
static std::string whyNotRead(const std::string &option, const Program &program) {
  if (std::string why = whyNotHere(option); !why.empty())
    return why;
  const HyperReads &reads = program.reads;
  if (option == "--clip" && !reads.gradientClip)
    return "the program was compiled without gradient clipping; compile it with a --clip";
  if (option == "--weight-decay" && !reads.weightDecay)
    return "the program was compiled with decay 0, which leaves none in its update; compile it "
           "with another --weight-decay";
  bool unread = (option == "--beta1" && !reads.beta1) || (option == "--beta2" && !reads.beta2) ||
                (option == "--epsilon" && !reads.epsilon) ||
                (option == "--momentum" && !reads.momentum);
  if (unread)
    return std::string("the program's optimizer, ") + program.optimizer + ", has none";
  return "";
}

/// Applies the program's defaults to options that the command line of a training run leaves out. A
/// default's folder is made, because the user has not typed its name.
static void applyDefaults(RunOptions &options, const std::set<std::string> &given,
                          const Program &program) {
  if (options.steps.value_or(0) == 0)
    return;
  for (const RunDefault &each : program.defaults) {
    if (given.count(each.option) || !whyNotRead(each.option, program).empty())
      continue;
    findOption(each.option).set(options, each.value);
    std::error_code ignored; // an error is reported when the file is opened
    if (each.option == std::string("--log"))
      std::filesystem::create_directories(std::filesystem::path(each.value).parent_path(), ignored);
  }
}

RunOptions parseOptions(int argc, char **argv, const Program &program) {
  RunOptions options;
  options.hyper = program.hyper;
  if (std::string problem = parseLrSchedule(program.lrSchedule, options.lrSchedule);
      !problem.empty())
    fail("the program's schedule '%s': %s", program.lrSchedule, problem.c_str());
  std::string self = argc > 0 ? argv[0] : "";
  size_t slash = self.rfind('/');
  options.programFolder = slash == std::string::npos ? "." : self.substr(0, slash);
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i], value;
    size_t equals = name.find('=');
    bool attached = name.compare(0, 2, "--") == 0 && equals != std::string::npos;
    if (attached) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (name == "-h")
      name = "--help";
    const Option &option = findOption(name);
    if (!option.argument && attached)
      fail("%s takes no argument, '%s' given", option.name, value.c_str());
    bool mayLack = option.argument && option.argument[0] == '[';
    if (mayLack && !attached && i + 1 < argc && argv[i + 1][0] && argv[i + 1][0] != '-') {
      value = argv[++i];
    } else if (option.argument && !mayLack && !attached) {
      if (i + 1 >= argc)
        fail("%s needs an argument: %s", option.name, option.argument);
      value = argv[++i];
    }
    if (option.argument && value.empty() && (attached || !mayLack))
      fail("%s needs an argument: %s", option.name, option.argument);
    if (std::string why = whyNotRead(option.name, program); !why.empty())
      fail("%s: %s", option.name, why.c_str());
    if (!given.insert(option.name).second)
      fail("%s is given twice", option.name);
    option.set(options, value);
    if (mustAgree(option))
      options.given[option.name] = isPath(option, value) ? "" : value;
  }
  if (options.tune) {
    if (given.count("--init"))
      fail(
          "--tune takes no --init: it draws weights itself, because matmuls of zeros would run faster than those of training");
    options.init = InitFrom::Seed; // needs no file
  }
  if (!options.help && !options.version) {
    applyDefaults(options, given, program);
    settleSchedule(options, given, program);
    checkCombinations(options, program);
  }
  return options;
}

std::string helpText(const Program &program) {
  std::string text = std::string("usage: ") + program.name +
                     " --data FILE --steps N [options]\n       " + World::usage(program) +
                     "\n\noptions:\n";
  for (const Option &option : optionTable()) {
    if (!whyNotRead(option.name, program).empty())
      continue;
    std::string left = std::string("  ") + option.name;
    if (option.argument)
      left += std::string(" ") + option.argument;
    left.resize(std::max<size_t>(left.size() + 2, 32), ' ');
    text += left + option.help;
    for (const RunDefault &each : program.defaults)
      if (each.option == std::string(option.name))
        text += std::string(" (here: ") + (option.argument ? each.value : "on") + ")";
    text += "\n";
  }
  return text;
}

} // namespace partita_rt
