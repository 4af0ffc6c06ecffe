//===- Offload.td - between the device's memory and the host's ------------------------------------===//
//
// Copies of values to the host and back, and the marks of what lives and is updated there.
// README.md in this folder says why it is as it is.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_OFFLOAD
#define PARTITA_OFFLOAD

include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Interfaces/Interfaces.td"

def Offload_Dialect : Dialect {
  let name = "offload";
  let cppNamespace = "::partita::offload";
  let summary = "what is kept in the host's memory, and what moves between it and the device's";
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// On a parameter or state: it lives in the host's memory; a `train.read` of it is a value there.
    static constexpr ::llvm::StringLiteral kHost = "offload.host";
    /// On an update: the host makes it, tile by tile. Each result stands where its operand does;
    /// what stands on the device moves through a tile's staging memory, in pinned memory.
    static constexpr ::llvm::StringLiteral kOnHost = "offload.on_host";
  }];
}

def Offload_Direction : I32EnumAttr<"Direction", "where a copy leads", [
  I32EnumAttrCase<"ToHost", 0, "to_host">, I32EnumAttrCase<"ToDevice", 1, "to_device">]> {
  let cppNamespace = "::partita::offload";
  let genSpecializedAttr = 0;
}
def Offload_DirectionAttr : EnumAttr<Offload_Dialect, Offload_Direction, "direction"> {
  let description = "The stream of a copy that runs beside the computation (AsyncStartInterface): each direction has one.";
  let assemblyFormat = "`<` $value `>`";
}

def CopyInterface : OpInterface<"CopyInterface"> {
  let cppNamespace = "::partita::offload";
  let description = "A copy of its operand between the device's memory and the host's, or the start of one.";
  let methods = [InterfaceMethod<"Where it leads.", "::partita::offload::Direction", "getDirection">];
}

/// What has a size in bytes.
def Offload_Value : StaticShapeTensorOf<[AnyInteger, AnyFloat]>;

class Offload_Op<string mnemonic, list<Trait> traits = []> : Op<Offload_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------------------------------===//

class Offload_Copy<string mnemonic, string direction>
    : Offload_Op<mnemonic, [Pure, ShardInterface, CopyInterface, AllTypesMatch<["value", "result"]>]> {
  let results = (outs Offload_Value:$result);
  let extraClassDeclaration = [{
    ::std::string getShardRule() { return "~* -> *"; }
    ::partita::offload::Direction getDirection() { return ::partita::offload::Direction::}] # direction # [{; }
  }];
}

def Offload_ToHostOp : Offload_Copy<"to_host", "ToHost"> {
  let summary = "a copy of a value in the host's memory";
  let description = [{
    Every rank copies what it has; no communication. What stands on the host only `offload` ops and updates that the
    host makes may take (`offload-verify`).

        %h = offload.to_host %x : tensor<4x6xf32>

    Created by `offload-activations` and `offload-parameters`; split into `to_host_start` and `wait` by `start-transfers`.
  }];
  let arguments = (ins Offload_Value:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Offload_ToDeviceOp : Offload_Copy<"to_device", "ToDevice"> {
  let summary = "a copy in the device's memory of a value on the host";
  let description = [{
    `for`: who fetches for itself what others have had already ("backward", "update"); nothing merges copies for different
    ones.

        %x = offload.to_device %h for "backward" : tensor<4x6xf32>

    Created by `offload-parameters` and `offload-activations`; moved ahead of its use by `offload-fetch-ahead`; split into
    `to_device_start` and `wait` by `start-transfers`.
  }];
  let arguments = (ins Offload_Value:$value, OptionalAttr<StrAttr>:$purpose);
  let assemblyFormat = "$value (`for` $purpose^)? attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------------------------------===//
// Under way
//===----------------------------------------------------------------------------------------------===//

class Offload_Start<string mnemonic, string direction>
    : Offload_Op<mnemonic, [Pure, CopyInterface, AsyncStartInterface, AllTypesMatch<["value", "buffer"]>]> {
  let arguments = (ins Offload_Value:$value);
  let results = (outs I64:$token, Offload_Value:$buffer);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let extraClassDeclaration = [{
    ::partita::offload::Direction getDirection() { return ::partita::offload::Direction::}] # direction # [{; }
    ::mlir::Attribute getStream() { return ::partita::offload::DirectionAttr::get(getContext(), getDirection()); }
  }];
}

def Offload_ToHostStartOp : Offload_Start<"to_host_start", "ToHost"> {
  let summary = "begins a copy to the host; what it fills may be looked at after its `wait`";
  let description = [{
    `buffer` is filled until the matching `wait`, whose result it becomes; `value` may be neither written nor reused
    until then. Created by `start-transfers`; becomes an `rt` call in the lower phase.
  }];
}

def Offload_ToDeviceStartOp : Offload_Start<"to_device_start", "ToDevice"> {
  let summary = "begins a copy to the device; what it fills may be looked at after its `wait`";
  let description = "As `to_host_start`.";
}

def Offload_WaitOp : Offload_Op<"wait", [Pure, AsyncWaitInterface, AllTypesMatch<["buffer", "result"]>]> {
  let summary = "completes a copy; its result is what the buffer holds now";
  let arguments = (ins I64:$token, Offload_Value:$buffer);
  let results = (outs Offload_Value:$result);
  let assemblyFormat = "$token `,` $buffer attr-dict `:` type($buffer)";
}

#endif // PARTITA_OFFLOAD
