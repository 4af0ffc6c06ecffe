//===- Tables.td - attributes that are rows of tables ---------------------------------------------===//
//
// A pass records facts for later passes in attributes with named, typed members. A member that has its default value is not printed.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TABLES
#define PARTITA_TABLES

include "mlir/IR/AttrTypeBase.td"

class Table<Dialect dialect, string name, string tableMnemonic> : AttrDef<dialect, name> {
  let mnemonic = tableMnemonic;
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

class Table_Text<string desc> : StringRefParameter<desc, [{""}]>;
class Table_Number<string value, string desc> : DefaultValuedParameter<"int64_t", value, desc>;
class Table_Flag<string value, string desc> : DefaultValuedParameter<"bool", value, desc> {
  let parser = "::partita::parseFlag($_parser)";
  let printer = [{$_printer << ($_self ? "true" : "false")}];
}
/// Absent where the list is empty.
class Table_List<string desc> : OptionalParameter<"::mlir::ArrayAttr", desc>;
/// Integers; absent where there are none.
class Table_Integers<string desc> : OptionalParameter<"::mlir::DenseI64ArrayAttr", desc>;

#endif // PARTITA_TABLES
