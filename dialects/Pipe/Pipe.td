//===- Pipe.td - between pipeline stages ----------------------------------------------------------===//
//
// Stages are modules in a module; values go from one to another over channels. README.md in this
// folder says why it is as it is.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PIPE
#define PARTITA_PIPE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::partita::pipe";
  let summary = "pipeline stages, and what they send to each other";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// On a module within the program's: the number of the stage that it is, an i64.
    static constexpr ::llvm::StringLiteral kStage = "pipe.stage";
  }];
}

def Pipe_ChannelAttr : AttrDef<Pipe_Dialect, "Channel"> {
  let mnemonic = "channel";
  let summary = "one direction between two stages";
  let description = [{
    Each rank of stage `from` sends to the rank of stage `to` that has its other coordinates. Values arrive in the order
    in which they were sent: the n-th receive gets what the n-th send sent. `number` tells apart channels between the
    same stages, whose orders do not depend on each other.

        #pipe.channel<0 to 1>
        #pipe.channel<1 to 0, number 1>
  }];
  let parameters = (ins "int64_t":$from, "int64_t":$to, DefaultValuedParameter<"int64_t", "0">:$number);
  let assemblyFormat = "`<` $from `to` $to (`,` `number` $number^)? `>`";
  let genVerifyDecl = 1;
}

/// What has a size in bytes.
def Pipe_Value : StaticShapeTensorOf<[AnyInteger, AnyFloat]>;

class Pipe_Op<string mnemonic, list<Trait> traits = []> : Op<Pipe_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
}

def Pipe_SendOp : Pipe_Op<"send", [MemoryEffects<[MemWrite]>]> {
  let summary = "sends a value to another stage";
  let description = [{
    Every rank of the stage sends what it has of the value. Whether it goes on before the value is received is the
    transport's business: a program must not depend on it.

        pipe.send %x over <0 to 1> : tensor<2x8xf32>
  }];
  let arguments = (ins Pipe_Value:$value, Pipe_ChannelAttr:$channel);
  let assemblyFormat = "$value `over` $channel attr-dict `:` type($value)";
}

def Pipe_RecvOp : Pipe_Op<"recv", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a value that another stage sends";
  let description = [{
    Has the type of what was sent, placement included.

        %x = pipe.recv over <0 to 1> : tensor<2x8xf32>
  }];
  let arguments = (ins Pipe_ChannelAttr:$channel);
  let results = (outs Pipe_Value:$value);
  let assemblyFormat = "`over` $channel attr-dict `:` type($value)";
}

#endif // PARTITA_PIPE
