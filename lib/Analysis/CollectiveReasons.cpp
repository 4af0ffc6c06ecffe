//===- CollectiveReasons.cpp - describes why ranks communicate --------------------------------===//
//
// Has two tables: the text for a role of a cause, and the name of a seed and how to undo it. A new
// role takes one row, a case of Par_Role and a row of the table at #par.cause; a new kind of seed
// one row, and a word at #par.seed.
//
//===----------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Collectives.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace partita;
using namespace partita::analysis;

namespace {

/// What all causes of one role have in common. `says` continues "tp splits letter k of tx.matmul
/// ('...')", or is a sentence of its own, for a role whose causes name no op.
struct Role {
  par::Role role;
  StringLiteral text;
  StringLiteral asGather = "", asScatter = "", anew = "", alone = "", choice = "",
                need = "the mean over all samples";
  std::optional<Place> place = {};
  StringLiteral title = "";
  bool scattersOnly = false; ///< `place` and `title` apply to reduce-scatters only
  bool isPaired = false;

  constexpr Role(par::Role role, StringLiteral says) : role(role), text(says) {}
  /// Sets other texts for moves.
  constexpr Role gathers(StringLiteral says) const { return with(&Role::asGather, says); }
  constexpr Role scatters(StringLiteral says) const { return with(&Role::asScatter, says); }
  /// Sets the text to append if the backward pass repeats a gather of the forward pass.
  constexpr Role again(StringLiteral says) const { return with(&Role::anew, says); }
  /// What it says where no op asked for it.
  constexpr Role withoutOp(StringLiteral says) const { return with(&Role::alone, says); }
  /// What would remove it, where it is a choice of the plan that no seed says.
  constexpr Role chosen(StringLiteral says) const { return with(&Role::choice, says); }
  /// Sets the mathematical reason that requires it if the batch is split.
  constexpr Role required(StringLiteral says) const { return with(&Role::need, says); }
  /// Reports it under one name, outside of the layers, since it may run at any time.
  constexpr Role reportedAt(Place at, StringLiteral as) const {
    Role role = with(&Role::title, as);
    role.place = at;
    return role;
  }
  /// Does so for reduce-scatters; other kinds are reported in layers.
  constexpr Role scattersReportedAt(Place at, StringLiteral as) const {
    Role role = reportedAt(at, as);
    role.scattersOnly = true;
    return role;
  }
  /// Marks an all-reduce of a residual stream that sequence parallelism replaces by a pair.
  constexpr Role paired() const {
    Role role = *this;
    role.isPaired = true;
    return role;
  }

private:
  constexpr Role with(StringLiteral Role::*member, StringLiteral value) const {
    Role role = *this;
    role.*member = value;
    return role;
  }
};

constexpr Role kRoles[] = {
    Role(par::Role::Sum, ", which it sums over: each rank has a partial sum")
        .gathers(", which it sums over: the backward half of the reduce-scatter after it")
        .scatters(", which it sums over: each rank has a partial sum, and keeps its shard of "
                  "the total")
        .paired(),
    Role(par::Role::Max, ", over which it takes the max: each rank has its own"),
    Role(par::Role::Share, ", which an operand lacks: each rank has a partial sum of its gradient")
        .paired(),
    Role(par::Role::Parameter,
         ", which parameters lack: each rank has a partial sum of their gradients")
        .gathers(", which parameters lack: each rank has a shard of the sum of their gradients")
        .scatters(
            ", which parameters lack: each rank has a partial sum of their gradients, and keeps the "
            "shard that it updates")
        .required("one reduction per step of each gradient")
        .reportedAt(Gradients, "gradients of parameters"),
    Role(par::Role::Full, " and needs its full input")
        .gathers(", so its input, split along the sequence, is gathered")
        .scatters(
            " and gathers its input: each rank has a partial sum of the input's gradient, and "
            "keeps its shard of the total")
        .again(" again for the backward pass instead of being saved")
        .paired(),
    Role(par::Role::Shard,
         ", of which each rank takes its shard: the shards of the gradient are gathered"),
    Role(par::Role::Block,
         " of one block of a fused weight, of which each rank takes its shard: the shards of "
         "that block's gradient are gathered")
        .reportedAt(Gradients, "gradients of parameters"),
    Role(par::Role::Moved,
         "a pipeline stage sends a shard to each rank of another one; these gather it")
        .chosen("with --mesh pp=1"),
    Role(par::Role::Update,
         ", which parameters lack: each rank updates the shard whose states it keeps, and "
         "the new values are gathered")
        .withoutOp(
            "each rank updates the shard whose states it keeps, and the new values are gathered")
        .chosen(
            "with --zero-stage 0, which uses one all_reduce instead of this and a reduce_scatter")
        .reportedAt(Gradients, "updated parameters"),
    Role(par::Role::Kept, ", which parameters lack: each rank has a partial sum of their gradients")
        .gathers(", which parameters lack: each rank keeps a shard of the parameter, which is "
                 "gathered for its use")
        .scatters(
            ", which parameters lack: each rank has a partial sum of their gradients, and keeps the "
            "shard that it updates")
        .again(", once more for the backward pass")
        .withoutOp("each rank keeps a shard of the parameter, which is gathered for its use")
        .chosen("with --zero-stage 2, which keeps full parameters and gathers each once per step")
        .scattersReportedAt(Gradients, "gradients of parameters"),
    Role(par::Role::Saved,
         "each rank keeps a shard of the layer's input, which is gathered to recompute "
         "the layer")
        .chosen("without --recompute-partition: then every rank keeps the full input"),
    Role(par::Role::Held,
         "several pipeline stages hold the parameter: each has a partial sum of its gradient")
        .chosen("with --mesh pp=1, or weights that are not tied")
        .reportedAt(Gradients, "gradients of shared parameters"),
    Role(par::Role::Norm, "the norm covers all gradients, and each pipeline stage has only its own")
        .chosen("with --mesh pp=1, or without --clip and --loss-scale, which need the norm")
        .reportedAt(Once, "norms of gradients"),
    Role(par::Role::Report, "one pipeline stage computes it, and every rank reports it")
        .chosen("with --mesh pp=1")
        .reportedAt(Once, "values that a step reports"),
    Role(par::Role::Sent, ": each rank has a partial sum, and sends its shard of the total to "
                          "another pipeline stage")
        .gathers(": the backward half of the reduce-scatter after it, whose shards another "
                 "pipeline stage receives")
        .chosen("with --mesh pp=1, where an all_reduce takes the place of a reduce_scatter and an "
                "all_gather"),
    Role(par::Role::Scale,
         "numbers of 8 bits are scaled by the max of a tensor, of which each rank has a shard")
        .chosen("with --precision bfloat16")
        .reportedAt(Once, "maxima of FP8 tensors"),
    Role(par::Role::Passed,
         ": each rank works with the keys and values of every rank in turn, which they pass on")
        .required("the keys of all ranks"),
    Role(par::Role::Dealt,
         ", where all around it is split along the sequence: each rank sends every "
         "other one its part of the sequence, for that rank's heads")
        .required("the keys of all ranks"),
};

/// What all splits of one kind of seed have in common.
struct Seed {
  StringLiteral kind, called;
  StringLiteral request = "";   ///< how to mention its words {0}, if any
  StringLiteral several = ": "; ///< before parameters that are split together
  StringLiteral option = "";    ///< the option that creates it
  StringLiteral instead = "";   ///< what full weights need besides --shard
  bool isRequired = false;      ///< by mathematics, for the role's reason
};

constexpr Seed kSeeds[] = {
    {"batch", "the batch", " (input '{0}')", ": ", "", "", true},
    {"context", "the sequence", " (input '{0}')", ": ", "", "", true},
    {"ring", "the sequence", ", {0}", ": ", "", "", true},
    {"sequence", "--sequence-parallel", "", ": ", "--sequence-parallel"},
    {"analysis", "the model's structure", "", ", which pairs "},
    {"stages", "the cut between pipeline stages"},
    {"user", "--shard", " '{0}'", ": ", "", " in place of --shard '{0}'"},
    {"annotation", "the sharding annotations of the model's file", " ({0})", ": ", "",
     " with --configuration none"},
};

/// Returns true if the rows are in the order of the roles.
constexpr bool areInOrder() {
  for (size_t i = 0; i < std::size(kRoles); ++i)
    if (static_cast<size_t>(kRoles[i].role) != i)
      return false;
  return std::size(kRoles) == par::getMaxEnumValForRole() + 1;
}
static_assert(areInOrder(), "a row for each case of Par_Role, in their order");

/// Returns the role's row; nullptr if no cause is noted.
const Role *roleOf(std::optional<par::Role> role) {
  return role ? &kRoles[static_cast<size_t>(*role)] : nullptr;
}

/// Returns the seed's row; nullptr for a module of another version, or written by hand.
const Seed *seedOf(StringRef kind) {
  const Seed *row = find_if(kSeeds, [&](const Seed &each) { return each.kind == kind; });
  return row == std::end(kSeeds) ? nullptr : row;
}

/// Lists parameters that are split together: "a@1, b@0 and 3 more".
std::string family(ArrayRef<std::string> parameters) {
  constexpr size_t most = 4;
  std::string list = join(parameters.take_front(most), ", ");
  if (parameters.size() > most)
    list += " and " + std::to_string(parameters.size() - most) + " more";
  return list;
}

/// Returns a request that keeps full the first weight, and with it all others, of each family:
/// "a=replicated,b=replicated".
std::string fullWeights(const Collective &c) {
  std::vector<std::string> requests;
  auto keepFull = [&](ArrayRef<std::string> split) {
    if (!split.empty())
      requests.push_back(StringRef(split.front()).rsplit('@').first.str() + "=replicated");
  };
  keepFull(c.parameters);
  for (const std::vector<std::string> &other : c.merged)
    keepFull(other);
  return join(requests, ",");
}

bool isMove(const Collective &c) { return !c.row().inPlace; }

/// Returns true if sequence parallelism can replace the all-reduce by a pair. This requires a sum
/// that a residual stream waits for, in either direction: in a layer, of the embedding before the
/// first one, or of the head's input after the last one. (Later sums belong to the loss.) It must
/// come from a matmul or a table, whose rule has several operands: a sum along a row, or one that a
/// row is scaled by (a norm's factor), is needed wherever the full row is.
bool hasPair(const Collective &c, const Role &role) {
  bool isStream = c.place >= 0 || (c.layers > 0 && c.place == (c.backward ? After : Before));
  bool isOfRow = !StringRef(c.rule).split("->").first.contains(',');
  return c.mayScatter && !isMove(c) && role.isPaired && isStream && !isOfRow;
}

} // namespace

/// Does it leave each rank its shard of a sum? An all-to-all whose ranks sum what they receive does.
static bool scatters(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
}

/// Returns where a kind of collective is reported if not in its layer.
static std::optional<Place> placeOf(const Role *role, CollectiveKind kind) {
  bool isReported = role && (!role->scattersOnly || scatters(kind));
  return isReported ? role->place : std::nullopt;
}

std::optional<Place> partita::analysis::placeOfRole(par::Role role, CollectiveKind kind) {
  return placeOf(roleOf(role), kind);
}

std::string Collective::name() const {
  if (const Role *row = roleOf(role); placeOf(row, kind))
    return row->title.str();
  if (!role)
    return called;
  return node + (backward ? ", backward" : "");
}

std::string Collective::why() const {
  const Role *row = roleOf(role);
  if (!row)
    return "no reason is noted: its op has no par.causes";
  if (op.empty()) // no op asked for it, but the plan
    return (row->alone.empty() ? row->text : row->alone).str();
  std::string text =
      letter.empty()
          ? formatv("{0} splits what {1} works on", axis, op).str()
          : formatv("{0} splits letter {1} of {2} ('{3}')", axis, letter, op, rule).str();
  bool gathers = kind == CollectiveKind::AllGather;
  StringRef says = gathers ? row->asGather : scatters(kind) ? row->asScatter : row->text;
  if (says.empty())
    says = row->text;
  if (steps.part == Steps::Others)
    return text +
           ", which parameters lack: each rank has a term of their momenta, of which it sends "
           "a bit per element and a scale per tensor";
  if (isAlpha(says.front())) // a sentence, of a role that only IR written by hand gives an op
    text += ": ";
  text += says;
  if (kind == CollectiveKind::AllToAll && placeOf(row, kind)) // of gradients: QuantizeChunksOp
    text += "; what it sends of it are 4 bits per element and a scale per block";
  return gathers && backward ? text + row->anew.str() : text;
}

std::string Collective::seedText() const {
  if (seed.empty())
    return "not noted";
  std::string together = family(parameters);
  for (const std::vector<std::string> &other : merged)
    together += "; and, summed with it, " + family(other);
  const Seed *row = seedOf(seed);
  std::string text = row ? row->called.str() : seed;
  if (!words.empty())
    text += formatv(false, row ? row->request.data() : " '{0}'", words).str();
  if (!together.empty())
    text += (row && parameters.size() > 1 ? row->several.str() : ": ") + together;
  if (others > 0)
    text += formatv("; other tensors by {0} other split{1}", others, others > 1 ? "s" : "").str();
  return text;
}

bool Collective::isRequired() const {
  const Role *row = roleOf(role);
  const Seed *from = seedOf(seed);
  return row && row->choice.empty() && from && from->isRequired;
}

std::string Collective::removal() const {
  const Role *row = roleOf(role);
  if (!row)
    return "";
  if (!row->choice.empty())
    return row->choice.str();
  if (isRequired())
    return (seed == "batch" ? "data" : "context") + (" parallelism needs " + row->need).str();
  const Seed *from = seedOf(seed);
  std::string text;
  if (isMove(*this) && row->isPaired)
    text = "without --sequence-parallel, which replaces an all_reduce by a pair of these; ";
  else if (isMove(*this) && !row->place)
    text = "without --sequence-parallel; ";
  else if (from && !from->option.empty() && others == 0)
    text = "without " + from->option.str() + "; ";
  text += "without " + axis;
  if (row->place) // a bucket of many tensors, of which full weights would remove a few
    return text;
  if (std::string full = fullWeights(*this); !full.empty())
    text += ", or with full weights: --shard '" + full + "'";
  if (from && !from->instead.empty())
    text += formatv(false, from->instead.data(), words).str();
  if (hasPair(*this, *row))
    text += "; --sequence-parallel replaces it by a reduce_scatter and an all_gather";
  return text;
}

std::string Collective::shape() const {
  return join(ArrayRef<std::string>{function, this->row().name, axis, backward ? "b" : "f",
                                    std::to_string(bytes), std::to_string(tensors),
                                    role ? par::stringifyRole(*role).str() : "", letter, rule, op,
                                    seed, steps.text()},
              "\n");
}
