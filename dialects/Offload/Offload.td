//===- Offload.td - between the device's memory and the host's ------------------------------------===//
//
// Copies of values to the host and back, and attributes for the values that live and are updated there. See
// README.md in this folder for the design.
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
  let summary = "offloading to host memory, and the copies between host and device";
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// On a parameter or state: it is offloaded; a `train.read` of it is a value in host memory.
    static constexpr ::llvm::StringLiteral kHost = "offload.host";
    /// On an update: it runs on the host, tile by tile. Each result is in-place; operands on the device
    /// move through a tile's staging buffers in pinned memory.
    static constexpr ::llvm::StringLiteral kOnHost = "offload.on_host";
  }];
}

def Offload_Direction : I32EnumAttr<"Direction", "the direction of a copy", [
  I32EnumAttrCase<"ToHost", 0, "to_host">, I32EnumAttrCase<"ToDevice", 1, "to_device">]> {
  let cppNamespace = "::partita::offload";
  let genSpecializedAttr = 0;
}
def Offload_DirectionAttr : EnumAttr<Offload_Dialect, Offload_Direction, "direction"> {
  let description = "The stream of a copy that runs beside the computation (AsyncStartInterface): one per direction.";
  let assemblyFormat = "`<` $value `>`";
}

def CopyInterface : OpInterface<"CopyInterface"> {
  let cppNamespace = "::partita::offload";
  let description = "A copy of the operand between device and host memory, or the start of one.";
  let methods = [InterfaceMethod<"The direction.", "::partita::offload::Direction", "getDirection">];
}

/// A tensor with a size in bytes.
def Offload_Value : StaticShapeTensorOf<[AnyInteger, AnyFloat]>;

class Offload_Op<string mnemonic, list<Trait> traits = []> : Op<Offload_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------------------------------===//

class Offload_Copy<string mnemonic, string direction>
    : Offload_Op<mnemonic, [Pure, ShardInterface, CopyInterface, DeclareOpInterfaceMethods<StartableInterface>,
                            AllTypesMatch<["value", "result"]>]> {
  let results = (outs Offload_Value:$result);
  let extraClassDeclaration = [{
    ::std::string getShardRule() { return "~* -> *"; }
    ::partita::offload::Direction getDirection() { return ::partita::offload::Direction::}] # direction # [{; }
  }];
}

def Offload_ToHostOp : Offload_Copy<"to_host", "ToHost"> {
  let summary = "copies a value to host memory";
  let description = [{
    Every rank copies what it holds, without communication. Only `offload` ops and updates on the host may use values in
    host memory (`offload-verify`).

        %h = offload.to_host %x : tensor<4x6xf32>

    Created by `offload-activations` and `offload-parameters`; split into `to_host_start` and `wait` by `start-transfers`.
  }];
  let arguments = (ins Offload_Value:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Offload_ToDeviceOp : Offload_Copy<"to_device", "ToDevice"> {
  let summary = "copies a value from host to device memory";
  let description = [{
    `for` names the user of a second copy of the same value ("backward", "update"); copies for different users are never
    merged.

        %x = offload.to_device %h for "backward" : tensor<4x6xf32>

    Created by `offload-parameters` and `offload-activations`; moved ahead of its use by `offload-fetch-ahead`; split into
    `to_device_start` and `wait` by `start-transfers`.
  }];
  let arguments = (ins Offload_Value:$value, OptionalAttr<StrAttr>:$purpose);
  let assemblyFormat = "$value (`for` $purpose^)? attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------------------------------===//
// Asynchronous copies
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
  let summary = "begins a copy to the host; its result may be read after its `wait`";
  let description = [{
    `buffer` is complete at the matching `wait`, whose result it becomes; `value` must be neither written nor reused until
    then. Created by `start-transfers`; becomes an `rt` call in the lower phase.
  }];
}

def Offload_ToDeviceStartOp : Offload_Start<"to_device_start", "ToDevice"> {
  let summary = "begins a copy to the device; its result may be read after its `wait`";
  let description = "Like `to_host_start`.";
}

def Offload_WaitOp : Offload_Op<"wait", [Pure, AsyncWaitInterface, AllTypesMatch<["buffer", "result"]>]> {
  let summary = "completes a copy; its result is the filled buffer";
  let arguments = (ins I64:$token, Offload_Value:$buffer);
  let results = (outs Offload_Value:$result);
  let assemblyFormat = "$token `,` $buffer attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

#endif // PARTITA_OFFLOAD
