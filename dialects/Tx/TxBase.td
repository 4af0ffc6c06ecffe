//===- TxBase.td - the dialect, and the classes that op definitions are made of -------------------===//

#ifndef PARTITA_TX_BASE
#define PARTITA_TX_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "dialects/Interfaces/Interfaces.td"

def Tx_Dialect : Dialect {
  let name = "tx";
  let cppNamespace = "::partita::tx";
  let summary = "Transformer mathematics on tensors: what an op computes, how it may be split over ranks, its gradient";
  let dependentDialects = ["::partita::par::ParDialect"]; // the mesh, over which an op may be split
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = "void registerBlocks();";
}

/// Shapes are static from import on: a rule's letters have sizes.
class Tx_Static<Type type>
    : ConfinedType<type, [HasStaticShapePred], type.summary # " of static shape", type.cppType>;
def Tx_Tensor : Tx_Static<AnyRankedTensor>;
def Tx_Float : Tx_Static<RankedTensorOf<[AnyFloat]>>;
def Tx_Int : Tx_Static<RankedTensorOf<[AnySignlessInteger]>>;
def Tx_Bool : Tx_Static<RankedTensorOf<[I1]>>;

/// An op of the table. Every entry states its rule; most state a gradient.
///   shardRule  the rule as text (ShardRule.h), or "" when the rule depends on attributes:
///              then TxRules.cpp implements getShardRule
///   precision  what is stored in 16 bits in a 16-bit program: Low, Follow, High or Exact (PrecisionInterface)
///   gradient   C++: a function body over `g` (GradientBuilder.h) and the op's accessors that returns
///              one cotangent per operand; "" when no gradient flows
///   isStep     1: constant except at jumps, so that its gradient is known to be zero
class Tx_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tx_Dialect, mnemonic, traits # [Pure, ShardInterface, DifferentiableInterface, PrecisionInterface]> {
  string shardRule = ?;
  string precision = "Follow";
  code gradient = "";
  bit isStep = 0;
  list<string> matmuls = []; // that the op computes, unless it is one or none (ShardInterface)
  int gradientMatmuls = 0; // of these in the backward pass, if the op fuses both passes
  code inferredDeclarations = "";
  code moreDeclarations = "";
  code moreDefinitions = "";
  let extraClassDeclaration = [{
    ::std::string getShardRule();
    ::partita::Precision getPrecision() { return ::partita::Precision::}] # precision # [{; }
    ::llvm::SmallVector<::mlir::Value> buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange cotangents);
  }] # !if(isStep, "bool isStep() { return true; }\n", "") #
     !if(!empty(matmuls), "", "::llvm::ArrayRef<::llvm::StringLiteral> getMatmuls() { static constexpr ::llvm::StringLiteral list[] = {" #
         !interleave(!foreach(letter, matmuls, "\"" # letter # "\""), ", ") # "}; return list; }\n") #
     !if(gradientMatmuls, "int64_t getGradientMatmuls() { return " # gradientMatmuls # "; }\n", "") # inferredDeclarations # moreDeclarations;
  let extraClassDefinition = !if(!empty(shardRule), "", [{
    ::std::string $cppClass::getShardRule() { return "}] # shardRule # [{"; }
  }]) # [{
    ::llvm::SmallVector<::mlir::Value> $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange cotangents) {
      [[maybe_unused]] ::partita::tx::GradientBuilder g(builder, getOperation(), cotangents);
  }] # !if(!empty(gradient), "return ::llvm::SmallVector<::mlir::Value>(getOperation()->getNumOperands());", gradient) # [{
    }
  }] # moreDefinitions;
}

/// An op whose result types follow from its rule; `elements` are C++ expressions over `operands` for
/// the results' element types.
class Tx_InferredOp<string mnemonic, list<Trait> traits = [],
                    string elements = "::mlir::getElementTypeOrSelf(operands[0])">
    : Tx_Op<mnemonic, traits # [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  code moreInferred = "";
  let inferredDeclarations = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual);
  }];
  let moreDefinitions = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &inferred) {
      return ::partita::par::inferFromRule("}] # shardRule # [{", operands, {}] # elements # [{}, location, inferred);
    }
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::partita::par::sameValues(inferred, actual); // the rule's verifier looks at cotangents
    }
  }] # moreInferred;
}

/// The declarations of a LookupInterface: accessors of two operands and, as C++, the dimension and the label that does not count.
class Tx_Lookup<string indices, string indexed, string dim, string ignored = ""> {
  code declarations = [{
    ::mlir::Value getIndices() { return }] # indices # [{(); }
    ::mlir::Value getIndexed() { return }] # indexed # [{(); }
    int64_t getIndexedDim() { return }] # dim # [{; }
  }] # !if(!empty(ignored), "", "::std::optional<int64_t> getIgnoredIndex() { return " # ignored # "; }\n");
}

/// An elementwise op: one scalar expression, stated once.
class Tx_Elementwise<string mnemonic, list<string> names, string expression,
                     string element = "::mlir::getElementTypeOrSelf(operands[0])", list<Trait> traits = []>
    : Tx_InferredOp<mnemonic, traits # [ScalarInterface, SameOperandsAndResultShape], element> {
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let moreDeclarations = [{
    ::llvm::StringRef getScalarExpression() { return "}] # expression # [{"; }
    ::llvm::SmallVector<::llvm::StringRef> getScalarOperands() { return {"}] # !interleave(names, "\", \"") # [{"}; }
    double evaluateScalar(::llvm::ArrayRef<double> operands);
  }];
  let moreInferred = [{
    double $cppClass::evaluateScalar(::llvm::ArrayRef<double> operands) {
      using namespace ::partita::scalar;
  }] # "[[maybe_unused]] const double " # !interleave(!foreach(i, !range(!size(names)), names[i] # " = operands[" # i # "]"), ", ") # [{;
      return }] # expression # [{;
    }
  }];
}

class Tx_Unary<string mnemonic, string expression> : Tx_Elementwise<mnemonic, ["x"], expression> {
  let arguments = (ins Tx_Float:$x);
  let shardRule = "* -> *";
}

class Tx_Binary<string mnemonic, string expression, list<Trait> traits = []>
    : Tx_Elementwise<mnemonic, ["a", "b"], expression, "::partita::tx::storedElement(operands)", traits> {
  let arguments = (ins Tx_Tensor:$a, Tx_Tensor:$b);
  let shardRule = "*, * -> *";
}

class Tx_Predicate<string mnemonic, string expression, list<Trait> traits = []>
    : Tx_Elementwise<mnemonic, ["a", "b"], expression, "::mlir::IntegerType::get(context, 1)", traits> {
  let arguments = (ins Tx_Tensor:$a, Tx_Tensor:$b);
  let shardRule = "*, * -> *";
}

#endif // PARTITA_TX_BASE
