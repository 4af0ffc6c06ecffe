//===- AtenOperations.cpp ---------------------------------------------------------------------===//

#include "lib/Import/File/AtenOperations.h"
#include "lib/Import/File/ExporterNames.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::importer {

using Op = AtenOperation;

// name, what it does to elements, whether it keeps the order of its arguments, readers of parameters
// in its decomposition, the node that takes ones and zeros
static constexpr AtenOperation operations[] = {
    {"_native_batch_norm_legit_no_training", Op::Computes, true, {}, "BatchNormalization"},
    Op{"_to_copy", Op::Moves}.casting(),
    Op{"_unsafe_view", Op::Moves}.dropping(-mostDimensions, mostDimensions),
    {"add", Op::Shifts},
    {"alias", Op::Moves},
    {"arange", Op::Creates},
    {"batch_norm", Op::Computes, true, {}, "BatchNormalization"},
    {"bilinear", Op::Computes, false, {{"MatMul", 1, Decomposed::Moved}}},
    {"cat", Op::Joins},
    {"chunk", Op::Moves},
    {"clone", Op::Copies},
    {"contiguous", Op::Moves},
    {"conv1d", Op::Computes, true},
    {"conv2d", Op::Computes, true},
    {"conv3d", Op::Computes, true},
    {"convolution", Op::Computes, true},
    {"detach", Op::Moves},
    {"div", Op::Scales},
    {"embedding", Op::LooksUp},
    {"eye", Op::Creates},
    Op{"flatten", Op::Moves}.dropping(0, mostDimensions),
    {"flip", Op::Moves},
    {"full", Op::Creates},
    {"full_like", Op::Creates},
    Op{"getitem", Op::Moves}.dropping(0, 1), // of split, or of unbind
    {"group_norm",
     Op::Computes,
     false,
     {{"Mul", -1, Decomposed::Vector}, {"Add", -1, Decomposed::Vector}},
     "InstanceNormalization"},
    {"index", Op::Computes, false, {{"GatherND", 0, Decomposed::Moved}}},
    {"layer_norm", Op::Computes, true, {}, "LayerNormalization"},
    {"lift_fresh_copy", Op::Copies},
    {"linear", Op::Computes, true, {{"MatMul", 1, Decomposed::Transposed}}},
    {"mT", Op::Moves},
    {"movedim", Op::Moves},
    {"mul", Op::Scales},
    {"narrow", Op::Moves},
    {"new_full", Op::Creates},
    {"new_ones", Op::Creates},
    {"new_zeros", Op::Creates},
    {"numpy_t", Op::Moves},
    {"ones", Op::Creates},
    {"ones_like", Op::Creates},
    {"permute", Op::Moves},
    {"prelu", Op::Computes, true, {{"PRelu", 1, Decomposed::Vector}}},
    {"repeat", Op::Computes, false, {{"Tile", 0, Decomposed::Padded}}},
    Op{"reshape", Op::Moves}.dropping(-mostDimensions, mostDimensions),
    {"rms_norm", Op::Computes, true},
    {"scalar_tensor", Op::Creates},
    Op{"select", Op::Moves}.dropping(1, 1),
    {"slice", Op::Moves},
    {"split", Op::Moves},
    {"split_with_sizes", Op::Moves},
    Op{"squeeze", Op::Moves}.dropping(0, mostDimensions),
    Op{"stack", Op::Joins}.dropping(-1, -1),
    {"sub", Op::Shifts},
    {"swapaxes", Op::Moves},
    {"t", Op::Moves},
    Op{"to", Op::Moves}.casting(),
    {"transpose", Op::Moves},
    Op{"unbind", Op::Moves}.dropping(1, 1),
    Op{"unflatten", Op::Moves}.dropping(-mostDimensions, 0),
    Op{"unsqueeze", Op::Moves}.dropping(-1, -1),
    Op{"view", Op::Moves}.dropping(-mostDimensions, mostDimensions),
    {"zeros", Op::Creates},
    {"zeros_like", Op::Creates},
};

const AtenOperation &atenOperation(llvm::StringRef name) {
  static constexpr AtenOperation unknown;
  const AtenOperation *found =
      llvm::find_if(operations, [&](const AtenOperation &each) { return each.name == name; });
  return found == std::end(operations) ? unknown : *found;
}

const AtenOperation &operationMaking(llvm::StringRef value) {
  return atenOperation(operationOf(value));
}

} // namespace partita::importer
