// Opens data, checkpoints and the model's files (session.h).

#include "common/run/session.h"
#include "common/checkpoint/checkpoint_files.h"
#include "common/checkpoint/folder.h"
#include "common/data/data.h"
#include "common/run/outputs.h"
#include "common/tensors/mapped_file.h"
#include "partita_rt/fingerprint.h"

namespace partita_rt {

namespace {

/// Fails if the files with initial values have changed since the program was compiled.
void checkModelFiles(const Program &program, const RunOptions &options) {
  for (const ModelFile &known : program.modelFiles) {
    std::string path = modelPath(program, options, known.path);
    MappedFile file(path, "model file");
    uint64_t now = fingerprint(file.data(), file.size(), kModelFingerprintBytes);
    if (file.size() != known.bytes || now != known.fingerprint)
      fail("model file %s: the program was compiled against one of %lld bytes with fingerprint %s, "
           "this one has %lld bytes with fingerprint %s; compile the program again, or take other "
           "initial values with --init",
           path.c_str(), (long long)known.bytes, fingerprintText(known.fingerprint).c_str(),
           (long long)file.size(), fingerprintText(now).c_str());
  }
}

/// A step's samples are a function of its number and of the data, so with other data it is another
/// run.
void checkSameData(const Session &session, const CheckpointInfo &info) {
  const RunOptions &options = session.options;
  if (info.data != session.dataIdentity && !options.newData)
    fail("--resume: the checkpoint was trained on %s, %s has %s; give the same data, or --new-data "
         "to go on with these",
         info.data.empty() ? "data that it does not name" : info.data.c_str(), options.data.c_str(),
         session.dataIdentity.c_str());
}

/// Finds the checkpoints from which the run can go on, if the newest should be damaged: those of its
/// own order of the data. One that is damaged at first sight is skipped here.
void findResumePoints(Session &session, const std::string &folder) {
  std::string first;
  int damaged = 0;
  for (const CheckpointEntry &entry : checkpointsIn(folder)) {
    try {
      ResumePoint point{entry.path, readCheckpointInfo(entry.path)};
      auto isOfTheRun = [](const CheckpointInfo &a, const CheckpointInfo &b) {
        return a.seed == b.seed && a.shuffle == b.shuffle && a.data == b.data;
      };
      if (session.resumePoints.empty() || isOfTheRun(session.resumePoints[0].info, point.info))
        session.resumePoints.push_back(point);
    } catch (const Unreadable &) {
      if (session.resumePoints.empty())
        throw; // it may be in order: to go on from an older one would replace it
    } catch (const Error &error) {
      if (session.resumePoints.empty())
        session.warnings.push_back(skippedText(entry.path, error.what()));
      if (damaged++ == 0)
        first = error.what();
    }
  }
  if (session.resumePoints.empty() && damaged > 1)
    fail("%s", allDamagedText(folder, first).c_str());
  if (!session.resumePoints.empty())
    return;
  if (damaged)
    fail(
        "%s; there is no other checkpoint to go on from: remove this one to begin anew with --resume auto",
        first.c_str());
  try {
    newestCheckpoint(folder); // says why there is none
  } catch (const Error &error) {
    bool isEmpty = shardsIn(folder).empty();
    fail("%s%s", error.what(),
         isEmpty ? "; give the folder of a run that has saved, or --resume auto to begin one there"
                 : "");
  }
}

/// Checks the options against the checkpoint to resume from, and takes its order of the data.
void takeResumePoint(Session &session, const Program &program) {
  const RunOptions &options = session.options;
  findResumePoints(session, options.checkpoint);
  checkSameModel(program, session.resumePoints[0].folder);
  const CheckpointInfo &info = session.resumePoints[0].info;
  if (options.seed && *options.seed != info.seed)
    fail(
        "--seed: the checkpoint's data order has seed %llu, %llu asked for; leave the option out to "
        "go on with its order, or give a new run another folder in --checkpoint",
        (unsigned long long)info.seed, (unsigned long long)*options.seed);
  if (options.shuffle && *options.shuffle != info.shuffle)
    fail("--shuffle: the checkpoint's run took the samples %s, %s asked for; its order goes on "
         "without the option",
         info.shuffle ? "in a random order (on)" : "in the file's order (off)",
         *options.shuffle ? "on" : "off");
  session.seed = info.seed;
  session.shuffle = info.shuffle;
  if (options.steps && *options.steps < info.step)
    fail(
        "--steps: the checkpoint has done %lld steps, %lld asked for; it counts from the beginning of the run, so give %lld or more",
        (long long)info.step, (long long)*options.steps, (long long)info.step);
}

} // namespace

void openSession(Session &session, const World &world, const Program &program) {
  RunOptions &options = session.options;
  world.check(program);
  session.seed = options.seed.value_or(1);
  session.shuffle = options.shuffle.value_or(true);
  bool saves = !options.checkpoint.empty() && options.steps.value_or(0) > 0;
  if (saves)
    session.checkpoints = contentsOf(options.checkpoint);
  if (options.resumeIfThere)
    options.resume = hasCheckpoint(options.checkpoint);
  if (saves && !options.resume && !options.overwrite)
    checkNoCheckpoint(program, options.checkpoint); // in each process, before any can save
  if (options.resume)
    takeResumePoint(session, program);
  if (!options.data.empty()) {
    session.dataFile = openSamples(options.data, "--data", program);
    if (options.steps)
      session.data = std::make_unique<Batches>(*session.dataFile, "--data", program, session.seed,
                                               session.shuffle, program.accumulate);
    if (!options.forward.empty())
      session.first = std::make_unique<Batches>(*session.dataFile, "--data", program, 0, false, 1);
    session.dataIdentity = session.dataFile->identity();
    if (options.resume)
      checkSameData(session, session.resumePoints[0].info);
  }
  if (!options.evalData.empty()) {
    session.evalFile = openSamples(options.evalData, "--eval-data", program);
    session.eval =
        std::make_unique<Batches>(*session.evalFile, "--eval-data", program, 0, false, 1);
  }
  checkOutputs(program, options, world.speaks());
  if (options.init == InitFrom::ModelFile && !options.resume)
    checkModelFiles(program, options);
}

} // namespace partita_rt
