// What a run does with its folder of checkpoints (partita_rt/checkpoint_folder.h): it finds the
// newest, completes one that it has written, and removes those that it no longer keeps.
//
// One run at a time writes into a folder (PathLock; one per host over NFS, where folder locks are local), so whatever is
// unfinished when a run begins was left by one that was killed. A checkpoint appears, and disappears, by one rename of its
// folder. Only rank 0 holds the lock, and another rank may outlive it; so the names of what ranks write
// carry the number of their start, and a late rank of an earlier start reaches nothing of a later one.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_FOLDER_H
#define PARTITA_RT_COMMON_CHECKPOINT_FOLDER_H

#include "partita_rt/checkpoint_folder.h"

#include <map>
#include <set>
#include <string>

namespace partita_rt {

/// Returns the file of the newest checkpoint in a folder for checkpoints, or of the one in the
/// folder of a single checkpoint. Throws Error if there is none.
std::string newestCheckpoint(const std::string &folder);

/// Returns why the folder of one checkpoint has not the name of the step that it records, "its folder's name
/// says step 500, ..."; "" if it has, or has none of a step.
std::string otherStep(const std::string &folder, int64_t recorded);

/// The checkpoints in a folder for checkpoints, by path: their folders' inodes.
using FolderContents = std::map<std::string, ino_t>;
FolderContents contentsOf(const std::string &folder);

/// Is there a checkpoint, readable or not? Throws Error if that cannot be known.
bool hasCheckpoint(const std::string &folder);

/// A random number, never 0, that the ranks of one start share.
using StartNumber = uint64_t;
StartNumber drawStartNumber();

/// "DIR/step-12.0123456789abcdef.tmp", in which a start writes step 12's checkpoint.
std::string unfinishedFolder(const std::string &folder, int64_t step, StartNumber start);

/// Returns a path's parents and itself, the outermost first.
std::vector<std::string> pathAndParents(const std::string &path);

/// Makes the folder and its missing parents; returns those that did not exist before, the outermost
/// first. Throws Error.
std::vector<std::string> makeFolders(const std::string &path);

/// Gives a checkpoint in unfinishedFolder() its name, durably. One that already has it is removed.
/// Throws Error.
void completeCheckpoint(const std::string &folder, int64_t step, StartNumber start);

/// Returns the names of checkpoints and of unfinished ones that something other than a folder has, in order; a link
/// may be to one.
std::vector<std::string> namesOfNoFolders(const std::string &folder);
/// Throws Error if something that is no folder, such as a user's file, has the name of a checkpoint or of an
/// unfinished one: a run would put its own in its place, or remove it.
void checkNames(const std::string &folder);

/// Removes unfinished checkpoints. Errors are ignored, here and below: the next run tries again.
void removeUnfinished(const std::string &folder);
/// Removes this start's of these steps; returns the steps of which something is left.
std::set<int64_t> removeUnfinished(const std::string &folder, const std::set<int64_t> &steps,
                                   StartNumber start);
/// Removes all checkpoints but those after these numbers of steps, and undamaged ones of another step than
/// their name says, which somebody has renamed.
void keepOnly(const std::string &folder, const std::set<int64_t> &steps);
/// Removes these; -1 is the one in the folder itself.
void removeSteps(const std::string &folder, const std::set<int64_t> &steps);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_FOLDER_H
