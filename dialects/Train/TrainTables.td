//===- TrainTables.td - records of import and analyses for later phases -----------------------------===//

#ifndef PARTITA_TRAIN_TABLES
#define PARTITA_TRAIN_TABLES

include "dialects/Train/TrainBase.td"

def Train_FileAttr : Train_Table<"File", "file"> {
  let summary = "a file with `initial` values, as import found it: its size and the fingerprint of its bytes (partita_rt/fingerprint.h)";
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$bytes, "int64_t":$fingerprint);
}

def Train_Folded : I32EnumAttr<"Folded", "how an exporter's constant folding has made a tensor", [
  I32EnumAttrCase<"No", 0, "no">, I32EnumAttrCase<"Moved", 1, "moved">, I32EnumAttrCase<"Part", 2, "part">,
  I32EnumAttrCase<"Shifted", 3, "shifted">, I32EnumAttrCase<"Computed", 4, "computed">]> {
  let cppNamespace = "::partita::train";
  let genSpecializedAttr = 0;
}

def Train_StoredAttr : Train_Table<"Stored", "stored"> {
  let summary = "a tensor of the model's file that holds a parameter";
  let description = [{
    Exporters fold constants: the file may hold a parameter transposed, sliced or several times, under generated names.

    | member | meaning |
    |---|---|
    | `name` | the tensor's |
    | `transposed` | it is the transpose of the parameter, a matrix, or of the slice |
    | `reshaped` | it has the same elements in another shape |
    | `slice` | dimension, begin, size of the slice of the parameter that it is |
    | `origin` | the model's parameter that it was computed from, unless it is that parameter |
    | `folded` | how the exporter made it from parameters, unless it is one: `moved` their elements, or only a `part` of `origin`'s (trained alike, but scaled by its own norm), `shifted` `origin`, perhaps negated, by a constant (trained alike, but decayed differently), or `computed` something else |
    | `dimensions` | min, max: the number of dimensions of those parameters, as far as known, if it may differ from its own (weight decay depends on the parameters') |

        #train.stored<name = "onnx::MatMul_12", transposed = true>
        #train.stored<name = "w.1", slice = [0, 4, 4], origin = "w", folded = part>
  }];
  let parameters = (ins StringRefParameter<>:$name, Table_Flag<"false", "">:$transposed, Table_Flag<"false", "">:$reshaped,
                        Table_Integers<"">:$slice, Table_Text<"">:$origin,
                        DefaultValuedParameter<"::partita::train::Folded", "::partita::train::Folded::No">:$folded,
                        Table_Integers<"">:$dimensions);
}

def Train_NoteAttr : Train_Table<"Note", "note"> {
  let summary = "a guess that training depends on";
  let description = [{
    `text` is a sentence for the user, about `tensors` (names). `of_parameters`: these are parameters in any case, so --trainable
    makes no difference. `of_forward`: inference depends on the guess, too.
  }];
  let parameters = (ins StringRefParameter<>:$text, Table_List<"of strings">:$tensors, Table_Flag<"false", "">:$of_parameters,
                        Table_Flag<"false", "">:$of_forward);
}

def Train_WorkAttr : Train_Table<"Work", "work"> {
  let summary = "FLOPs of one layer, over all micro-batches of a step and all ranks, and the elements of the parameters that it reads first";
  let description = [{
    `matmuls` counts matmuls of the forward program, `elementwise` one operation per element that elementwise ops and reductions read,
    `backward` matmuls of the backward pass. `place` is the layer (analysis::Place).
  }];
  let parameters = (ins "int64_t":$place, "::mlir::FloatAttr":$matmuls, "::mlir::FloatAttr":$elementwise,
                        "::mlir::FloatAttr":$backward, "int64_t":$parameters);
}

def Train_SpanAttr : Train_Table<"Span", "span"> {
  let summary = "the cost of one micro-batch on a pipeline stage that has the layers `first` to `last`";
  let description = [{
    `costs` has a number for each kind of pass, in the order of PassKind and the unit of analysis::Work. `splits`: the gradients of
    weights have a pass of their own, as zero-bubble schedules give every stage that sends a cotangent.
  }];
  let parameters = (ins "int64_t":$first, "int64_t":$last, "::mlir::DenseI64ArrayAttr":$costs, Table_Flag<"false", "">:$splits);
}

def Train_PassCostAttr : Train_Table<"PassCost", "pass_cost"> {
  let summary = "the cost of one pass of one micro-batch on a pipeline stage";
  let description = [{
    `cost` and `beside` are in the unit of analysis::Work. `beside` is the work of the pass after the start of its first reduction, in
    its last slot; `reduced` is the total size of these reductions in bytes.
  }];
  let parameters = (ins "::partita::train::PassAttr":$pass, "int64_t":$cost, Table_Number<"0", "">:$reduced, Table_Number<"0", "">:$beside);
}

def Train_CostsAttr : Train_Table<"Costs", "costs"> {
  let summary = "the order of a pipeline stage's passes, and the cost of each";
  let description = "`passes` lists #train.pass_cost, one for each pass that `order` names.";
  let parameters = (ins "::partita::train::OrderAttr":$order, "::mlir::ArrayAttr":$passes);
}

def Train_ScheduleAttr : Train_Table<"Schedule", "schedule"> {
  let summary = "the order in which each pipeline stage runs the passes of a step's micro-batches";
  let description = [{
    `orders` lists a #train.order for each stage. `name` is the schedule's, or the path of its file, for messages.

        #train.schedule<name = "gpipe", orders = [#train.order<2 x (forward 0), 2 x (backward 0)>, #train.order<2 x (forward 0), 2 x (backward 0)>]>
  }];
  let parameters = (ins StringRefParameter<>:$name, "::mlir::ArrayAttr":$orders);
}

#endif // PARTITA_TRAIN_TABLES
