//===- Monitors.cpp - what a run prints, logs and measures ------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"

using namespace llvm;
using namespace partita::config;

static constexpr Key kMonitorsRows[] = {
    {"steps_per_print", integer(1), "null", Obeyed,
     "--print-every of a run; absent, ten lines in all (the documentation's default is 10, the "
     "code has none)"},
    {"wall_clock_breakdown", boolean, "false", Obeyed,
     "--breakdown of a run: time per kind of work"},
    {"memory_breakdown", boolean, "false", NoEffect,
     "memory is known at compile time: 'partita explain --memory'"},
    {"dump_state", boolean, "false", NoEffect,
     "'partita config FILE' prints what the file was resolved to"},
    {"log_level", text, "null", NoEffect, "there are no levels of messages"},
    {"tensorboard", checkedBlock, "{}", Obeyed, "--tensorboard of a run"},
    {"tensorboard.enabled", boolean, "false", Obeyed, "--tensorboard DIR"},
    {"tensorboard.output_path", text, "\"\"", Obeyed, "the folder; absent, runs"},
    {"tensorboard.job_name", text, "\"DeepSpeedJobName\"", Obeyed, "--job-name: the folder in it"},
    {"csv_monitor", checkedBlock, "{}", Obeyed, "--log of a run"},
    {"csv_monitor.enabled", boolean, "false", Obeyed,
     "--log FILE.csv: one file with a line per step"},
    {"csv_monitor.output_path", text, "\"\"", Obeyed, "the folder; absent, csv_logs"},
    {"csv_monitor.job_name", text, "\"DeepSpeedJobName\"", Obeyed, "the file's name in it"},
    {"wandb", foreign, "{}", Refused,
     "programs open no connections; read --log or --tensorboard's files into it"},
    {"comet", foreign, "{}", Refused,
     "programs open no connections; read --log or --tensorboard's files into it"},
    {"wandb.enabled", boolean, "false", Part, "of wandb"},
    {"wandb.group", text, "null", Part, "of wandb"},
    {"wandb.team", text, "null", Part, "of wandb"},
    {"wandb.project", text, "\"deepspeed\"", Part, "of wandb"},
    {"comet.enabled", boolean, "false", Part, "of comet"},
    {"comet.samples_log_interval", integer(1), "100", Part, "of comet"},
    {"comet.project", text, "null", Part, "of comet"},
    {"comet.workspace", text, "null", Part, "of comet"},
    {"comet.api_key", text, "null", Part, "of comet"},
    {"comet.experiment_name", text, "null", Part, "of comet"},
    {"comet.experiment_key", text, "null", Part, "of comet"},
    {"comet.online", boolean, "null", Part, "of comet"},
    {"comet.mode", text, "null", Part, "of comet"},
    {"flops_profiler", checkedBlock, "{}", NoEffect,
     "FLOPs are known at compile time, layer by layer: 'partita explain'; wall_clock_breakdown "
     "measures the rest"},
    {"flops_profiler.enabled", boolean, "false", NoEffect,
     "FLOPs are known at compile time: 'partita explain' counts them without a run"},
    {"flops_profiler.recompute_fwd_factor", number(0), "0", NoEffect,
     "what is recomputed is known at compile time"},
    {"flops_profiler.profile_step", integer(1), "1", NoEffect, "every step is the same"},
    {"flops_profiler.module_depth", integer(-1), "-1", NoEffect, "the table has layers"},
    {"flops_profiler.top_modules", integer(1), "1", NoEffect, "the table has layers"},
    {"flops_profiler.detailed", boolean, "true", NoEffect, "the table has layers"},
    {"flops_profiler.output_file", text, "null", NoEffect,
     "'partita explain' writes to the standard output"},
    {"comms_logger", checkedBlock, "{}", NoEffect,
     "every collective of a step, its bytes and its reason are known at compile time: 'partita "
     "explain', run --census"},
    {"comms_logger.enabled", boolean, "false", NoEffect,
     "'partita explain' lists every collective"},
    {"comms_logger.verbose", boolean, "false", NoEffect,
     "'partita explain --all' lists every call"},
    {"comms_logger.prof_all", boolean, "true", NoEffect,
     "'partita explain' lists every collective"},
    {"comms_logger.prof_ops", anything, "[]", NoEffect, "'partita explain' lists every collective"},
    {"comms_logger.debug", boolean, "false", NoEffect,
     "'partita explain' names what each is there for"},
};

Section partita::config::monitorKeys() { return {"Monitoring", kMonitorsRows}; }

/// Checks that a text can be a run option: no control characters.
static bool isPlain(Resolver &r, StringRef path) {
  std::string text = r.word(path);
  for (unsigned char c : text)
    if (c < 0x20 || c == 0x7f)
      return r.fail(path,
                    r.name(path) + " is " + quoted(text) + ", with characters that no path has");
  return true;
}

/// Checks that a text is the name of one folder or file.
static bool isName(Resolver &r, StringRef path) {
  std::string text = r.word(path);
  return isPlain(r, path) &&
         ((text.find('/') == std::string::npos && text != "." && text != "..") ||
          r.fail(path, r.name(path) + " is " + quoted(text) +
                           ", which is not the name of a folder; output_path may have several"));
}

static bool resolveTensorboard(Resolver &r) {
  constexpr StringLiteral on = "tensorboard.enabled", folder = "tensorboard.output_path",
                          job = "tensorboard.job_name";
  r.find("tensorboard");
  if (!isPlain(r, folder) || !isName(r, job))
    return false;
  if (!r.flag(on)) {
    r.idle(folder, "tensorboard is not enabled");
    r.idle(job, "tensorboard is not enabled");
    return true;
  }
  std::string path = r.word(folder);
  r.setRun(on, "tensorboard", path.empty() ? "runs" : path);
  if (std::string name = r.word(job); !name.empty())
    r.setRun(job, "job-name", name);
  return true;
}

static bool resolveCsv(Resolver &r) {
  constexpr StringLiteral on = "csv_monitor.enabled", folder = "csv_monitor.output_path",
                          job = "csv_monitor.job_name";
  r.find("csv_monitor");
  if (!isPlain(r, folder) || !isName(r, job))
    return false;
  if (!r.flag(on)) {
    r.idle(folder, "csv_monitor is not enabled");
    r.idle(job, "csv_monitor is not enabled");
    return true;
  }
  std::string path = r.word(folder), name = r.word(job);
  if (path.empty())
    path = "csv_logs";
  r.setRun(on, "log",
           (StringRef(path).rtrim('/') + "/" + (name.empty() ? "log" : name) + ".csv").str());
  return true;
}

bool partita::config::resolveMonitors(Resolver &r) {
  if (r.has("steps_per_print"))
    r.setRun("steps_per_print", "print-every", std::to_string(r.integer("steps_per_print")));
  if (r.flag("wall_clock_breakdown"))
    r.setRun("wall_clock_breakdown", "breakdown", "true");
  return resolveTensorboard(r) && resolveCsv(r);
}
