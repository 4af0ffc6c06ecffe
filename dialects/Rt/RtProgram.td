//===- RtProgram.td - the program's tables, between lowering and emission ---------------------===//

#ifndef PARTITA_RT_PROGRAM
#define PARTITA_RT_PROGRAM

include "dialects/Rt/RtBase.td"

class Rt_Table<string name, string tableMnemonic> : AttrDef<Rt_Dialect, name> {
  let mnemonic = tableMnemonic;
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

class Rt_Text<string desc> : StringRefParameter<desc, [{""}]>;
class Rt_Number<string value, string desc> : DefaultValuedParameter<"int64_t", value, desc>;
class Rt_Flag<string value, string desc> : DefaultValuedParameter<"bool", value, desc> {
  let parser = "::partita::rt::parseFlag($_parser)";
  let printer = [{$_printer << ($_self ? "true" : "false")}];
}
/// Absent where the list is empty.
class Rt_List<string desc> : OptionalParameter<"::mlir::ArrayAttr", desc>;
/// By its name in partita_rt/collectives.h.
def Rt_Kind : AttrOrTypeParameter<"::partita_rt::CollectiveKind", "the kind of collective"> {
  let parser = "::partita::rt::parseCollectiveKind($_parser)";
  let printer = "$_printer << ::partita_rt::rowOf($_self).name";
}

def Rt_InputAttr : Rt_Table<"Input", "input"> {
  let summary = "an input of the program: what fills it, and its type for one micro-batch of one rank";
  let description = [{
    `type` is that of one micro-batch of one rank, with its placement. `vocabulary` is the number of rows that the input indexes, 0 if it
    indexes none; `filler` pads it. Without `batched`, all ranks have the same values.
  }];
  let parameters = (ins StringRefParameter<>:$name, Rt_Text<"train.role">:$role, "::mlir::RankedTensorType":$type,
                        Rt_Flag<"true", "">:$batched, Rt_Number<"0", "">:$filler, Rt_Number<"0", "">:$vocabulary);
}

def Rt_OutputAttr : Rt_Table<"Output", "output"> {
  let summary = "an output of @forward: the type of one rank's shard, and its byte offset in the arena";
  let parameters = (ins StringRefParameter<>:$name, "::mlir::RankedTensorType":$type, "int64_t":$offset);
}

def Rt_CensusAttr : Rt_Table<"Census", "census"> {
  let summary = "the collectives that one rank issues under one name in one call of a function";
  let description = [{
    An analysis::CensusRow, which the runtime compares with what it counts, and the names of the buffers that the calls work on.
    `bytes` is the sum over all calls.
  }];
  let parameters = (ins StringRefParameter<>:$function, Rt_Kind:$kind, StringRefParameter<>:$axis, StringRefParameter<>:$reason,
                        Rt_List<"of strings">:$tensors, Rt_Number<"0", "">:$calls, Rt_Number<"0", "">:$bytes);
}

def Rt_CollectiveAttr : Rt_Table<"Collective", "collective"> {
  let summary = "one collective of the program with its cause";
  let description = "The members of analysis::Collective, so that a program can be explained when its tensor ops are gone.";
  let parameters = (ins
    StringRefParameter<>:$function, Rt_Kind:$kind, StringRefParameter<>:$axis, Rt_Text<"of the elements">:$type,
    Rt_Text<"its name where no cause is noted">:$called, Rt_Flag<"false", "">:$backward, Rt_Number<"1", "">:$calls,
    Rt_Number<"0", "">:$bytes, Rt_Number<"1", "">:$tensors, Rt_Number<"1", "">:$micro_batches, "int64_t":$place, Rt_Number<"0", "">:$layers,
    Rt_Text<"">:$role, Rt_Text<"">:$letter, Rt_Text<"">:$rule, Rt_Text<"">:$op, Rt_Text<"">:$node, Rt_Text<"">:$seed, Rt_Text<"">:$words,
    Rt_List<"of strings">:$parameters, Rt_List<"of lists of strings">:$merged, Rt_Number<"0", "">:$others,
    Rt_Flag<"false", "">:$may_scatter);
}

def Rt_MessageAttr : Rt_Table<"Message", "message"> {
  let summary = "what one rank sends over one channel, or receives, in one call of a function";
  let description = "`bytes` is the sum over all messages. `reason` is that of the first one.";
  let parameters = (ins StringRefParameter<>:$function, "int64_t":$source, "int64_t":$target, Rt_Number<"0", "">:$number,
                        StringRefParameter<>:$reason, Rt_Flag<"false", "">:$backward, Rt_Number<"0", "">:$messages,
                        Rt_Number<"0", "">:$bytes);
}

def Rt_ProgramAttr : Rt_Table<"Program", "program"> {
  let summary = "inputs, outputs, updates and collectives of a program, for its tables and its manifest";
  let description = [{
    The attribute `rt.program` of a module, created by `lower-to-rt`.

    | member          | what it lists                                                                             |
    |-----------------|-------------------------------------------------------------------------------------------|
    | `inputs`        | #rt.input, of all functions; one name, one input                                          |
    | `outputs`       | #rt.output                                                                                |
    | `census`        | #rt.census, in order of first use                                                         |
    | `collectives`   | #rt.collective                                                                            |
    | `undecayed`     | symbols of parameters without weight decay                                                |
    | `hyper`         | fields of the runtime's Hyper that updates read, with their values                        |
    | `gathers_ahead` | axes over which gathers begin ahead of their use: these have one more communicator        |
    | `stage_sums`    | lists of some of the stages that sum something: each has a communicator                    |
    | `messages`      | #rt.message                                                                               |

    `to_host` and `to_device` are the bytes that one step moves.
  }];
  let parameters = (ins
    Rt_List<"">:$inputs, Rt_List<"">:$outputs, Rt_List<"">:$census, Rt_List<"">:$collectives, Rt_List<"">:$undecayed,
    Rt_List<"">:$gathers_ahead, Rt_List<"">:$stage_sums, Rt_List<"">:$messages, OptionalParameter<"::mlir::DictionaryAttr">:$hyper, Rt_Text<"the optimizer's op; none without one">:$optimizer,
    Rt_Text<"of the learning rate">:$schedule, Rt_Number<"1", "micro-batches of a step">:$accumulate,
    Rt_Number<"0", "">:$to_host, Rt_Number<"0", "">:$to_device);
  let extraClassDeclaration = [{
    /// The module's, or null.
    static ProgramAttr of(::mlir::ModuleOp module);
    /// Do gathers over the axis begin ahead of their use?
    bool gathersAheadOver(::mlir::StringAttr axis) const {
      return getGathersAhead() && ::llvm::is_contained(getGathersAhead().getValue(), axis);
    }
  }];
}

#endif // PARTITA_RT_PROGRAM
