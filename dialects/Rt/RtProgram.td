//===- RtProgram.td - the program's tables, between planning, lowering and emission ---------------===//

#ifndef PARTITA_RT_PROGRAM
#define PARTITA_RT_PROGRAM

include "dialects/Interfaces/Tables.td"
include "dialects/Rt/RtBase.td"

class Rt_Table<string name, string mnemonic> : Table<Rt_Dialect, name, mnemonic>;

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
  let parameters = (ins StringRefParameter<>:$name, Table_Text<"train.role">:$role, "::mlir::RankedTensorType":$type,
                        Table_Flag<"true", "">:$batched, Table_Number<"0", "">:$filler, Table_Number<"0", "">:$vocabulary);
}

def Rt_OutputAttr : Rt_Table<"Output", "output"> {
  let summary = "an output of @forward: the type of one rank's shard, and its byte offset in the arena";
  let parameters = (ins StringRefParameter<>:$name, "::mlir::RankedTensorType":$type, "int64_t":$offset);
}

def Rt_CommunicatorAttr : Rt_Table<"Communicator", "communicator"> {
  let summary = "ranks that issue collectives together, in one order";
  let description = [{
    A rank's group is the ranks that have its coordinates except along `axes`. So a row divides all ranks into groups of equal size or,
    with `stages`, those of some pipeline stages. `streams` lists the #par.stream whose collectives begin here; other collectives wait
    where they are issued. Collectives of two rows have no common order, even over the same ranks.

        #rt.communicator<name = "dp", axes = ["dp"], streams = [#par.stream<"dp">]>
        #rt.communicator<name = "dp ahead", axes = ["dp"], streams = [#par.stream<"dp" ahead>]>
        #rt.communicator<name = "stages 0 and 3", axes = ["pp"], stages = [0, 3]>

    README.md in this folder says how an op finds its row.
  }];
  let parameters = (ins StringRefParameter<>:$name, "::mlir::ArrayAttr":$axes, Table_Integers<"of a pipeline; absent: all">:$stages,
                        Table_List<"of #par.stream">:$streams);
  let extraClassDeclaration = [{
    /// The name under which the runtime counts its collectives, together with those of other rows over the same
    /// axes: "dp", "dp,tp".
    ::std::string getCounted() const;
    /// Is it only for collectives that begin ahead of their use?
    bool isAhead() const;
  }];
}

def Rt_ChannelAttr : Rt_Table<"Channel", "channel"> {
  let summary = "pairs of ranks; the first of each pair sends messages to the second";
  let description = [{
    Along `axis`, the rank with coordinate `source` sends to the one with coordinate `target` whose other coordinates are the same.
    Messages of one channel arrive in the order in which they are sent. `number` distinguishes channels between the same ranks.

        #rt.channel<name = "stage 0 to 1", axis = "pp", source = 0, target = 1>
        #rt.channel<name = "stage 1 to 0, value 2", axis = "pp", source = 1, target = 0, number = 2>
  }];
  let parameters = (ins StringRefParameter<>:$name, StringRefParameter<>:$axis, "int64_t":$source, "int64_t":$target,
                        Table_Number<"0", "">:$number);
}

/// Of which steps of training a row is (partita_rt::Steps).
def Rt_Steps : DefaultValuedParameter<"::partita_rt::Steps::Part", "::partita_rt::Steps::All"> {
  let parser = "::partita::rt::parseSteps($_parser)";
  let printer = [{$_printer << ($_self == ::partita_rt::Steps::Exact ? "exact" : "others")}];
}

def Rt_CensusAttr : Rt_Table<"Census", "census"> {
  let summary = "the collectives that one rank issues under one name in one call of a function";
  let description = [{
    An analysis::CensusRow, which the runtime compares with its own counts, and the names of the buffers that the calls work on.
    `bytes` is the sum over all calls. A row is of all `steps` of training, of those in `exact`, or of all others.
  }];
  let parameters = (ins StringRefParameter<>:$function, Rt_Kind:$kind, StringRefParameter<>:$communicator, StringRefParameter<>:$reason,
                        Table_List<"of strings">:$tensors, Table_Number<"0", "">:$calls, Table_Number<"0", "">:$bytes,
                        Rt_Steps:$steps, OptionalParameter<"::partita::par::ExactStepsAttr">:$exact);
}

def Rt_CollectiveAttr : Rt_Table<"Collective", "collective"> {
  let summary = "one collective of the program with its cause";
  let description = "The members of analysis::Collective: they explain the program after its tensor ops are gone.";
  let parameters = (ins
    StringRefParameter<>:$function, Rt_Kind:$kind, StringRefParameter<>:$axis, StringRefParameter<>:$communicator, Table_Text<"of the elements">:$type,
    Table_Text<"its name where no cause is noted">:$called, Table_Flag<"false", "">:$backward, Table_Number<"1", "">:$calls,
    Table_Number<"0", "">:$bytes, Table_Number<"1", "">:$tensors, Table_Number<"1", "">:$micro_batches, "int64_t":$place, Table_Number<"0", "">:$layers,
    Table_Text<"">:$role, Table_Text<"">:$letter, Table_Text<"">:$rule, Table_Text<"">:$op, Table_Text<"">:$node, Table_Text<"">:$seed, Table_Text<"">:$words,
    Table_List<"of strings">:$parameters, Table_List<"of lists of strings">:$merged, Table_Number<"0", "">:$others,
    Table_Flag<"false", "">:$may_scatter, Rt_Steps:$steps, OptionalParameter<"::partita::par::ExactStepsAttr">:$exact);
}

def Rt_MessageAttr : Rt_Table<"Message", "message"> {
  let summary = "the messages that one rank sends or receives over one channel in one call of a function";
  let description = "`bytes` is the sum over all messages. `reason` is that of the first one.";
  let parameters = (ins StringRefParameter<>:$function, StringRefParameter<>:$channel, StringRefParameter<>:$reason, Table_Flag<"false", "">:$backward, Table_Number<"0", "">:$messages,
                        Table_Number<"0", "">:$bytes);
}

def Rt_ProgramAttr : Rt_Table<"Program", "program"> {
  let summary = "inputs, outputs, updates, communicators and collectives of a program, for its tables and its manifest";
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
    | `communicators` | #rt.communicator; each has a row of the census                                            |
    | `channels`      | #rt.channel; each has a message                                                           |
    | `messages`      | #rt.message                                                                               |

    `to_host` and `to_device` are the bytes that one step moves.
  }];
  let parameters = (ins
    Table_List<"">:$inputs, Table_List<"">:$outputs, Table_List<"">:$census, Table_List<"">:$collectives, Table_List<"">:$undecayed,
    Table_List<"">:$communicators, Table_List<"">:$channels, Table_List<"">:$messages, OptionalParameter<"::mlir::DictionaryAttr">:$hyper, Table_Text<"the optimizer's op; none without one">:$optimizer,
    Table_Text<"of the learning rate">:$lr_schedule, Table_Number<"1", "micro-batches of a step">:$accumulate,
    Table_Number<"0", "">:$to_host, Table_Number<"0", "">:$to_device);
  let extraClassDeclaration = [{
    /// The module's, or null.
    static ProgramAttr of(::mlir::ModuleOp module);
    /// By name; null if there is no such row.
    CommunicatorAttr getCommunicator(::llvm::StringRef name) const;
    ChannelAttr getChannel(::llvm::StringRef name) const;
  }];
}

//===----------------------------------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------------------------------===//

/// One case for each row of partita/Memory/Ledger.h, in its order.
def Rt_MemoryKind : I32EnumAttr<"MemoryKind", "what memory is used for", [
  I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"State", 1, "state">, I32EnumAttrCase<"Gathered", 2, "gathered">,
  I32EnumAttrCase<"Secondary", 3, "secondary">, I32EnumAttrCase<"Gradient", 4, "gradient">,
  I32EnumAttrCase<"Activation", 5, "activation">, I32EnumAttrCase<"Communication", 6, "communication">,
  I32EnumAttrCase<"Workspace", 7, "workspace">]> {
  let cppNamespace = "::partita::rt";
  let genSpecializedAttr = 0;
}

def Rt_BufferAttr : Rt_Table<"Buffer", "buffer"> {
  let summary = "a buffer of the arena or of pinned memory: its contents, place and lifetime";
  let description = [{
    `bytes` and `offset` are in bytes. The buffer lives from op `begin` to op `end` of its function, both included. It was made for an op of
    layer `place` (analysis::Place).
  }];
  let parameters = (ins StringRefParameter<>:$name, EnumParameter<Rt_MemoryKind>:$kind, "int64_t":$bytes, "int64_t":$offset,
                        "int64_t":$begin, "int64_t":$end, "int64_t":$place, Table_Flag<"false", "">:$backward);
}

def Rt_LedgerAttr : Rt_Table<"Ledger", "ledger"> {
  let summary = "how one function uses the arena, or pinned memory";
  let description = [{
    `bytes` is the function's need, `peak` the max total of the buffers that live at once, both in bytes. Op number `at` of the
    function's `ops` has the peak: it is called `name`, belongs to layer `place` and comes from the model's node `node`. `buffers`
    lists #rt.buffer.
  }];
  let parameters = (ins StringRefParameter<>:$function, Table_Flag<"false", "">:$pinned, "int64_t":$bytes, "int64_t":$peak, "int64_t":$ops,
                        "int64_t":$at, Table_Text<"">:$name, Table_Text<"">:$node, "int64_t":$place, Table_Flag<"false", "">:$backward,
                        Table_List<"">:$buffers);
}

#endif // PARTITA_RT_PROGRAM
