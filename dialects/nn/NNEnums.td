//===- NNEnums.td - Enums of the nn dialect ----------------*- tablegen -*-===//
//
// Each enum is one list: its words, parser and printer come from here.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_DIALECTS_NN_NNENUMS_TD
#define PIPEWRIGHT_DIALECTS_NN_NNENUMS_TD

include "dialects/nn/NNBase.td"
include "mlir/IR/EnumAttr.td"

def NN_WeightRole : I32Enum<"WeightRole", "what a weight is for", [
    I32EnumCase<"Parameter", 0, "parameter">,
    I32EnumCase<"State", 1, "state">,
    I32EnumCase<"Constant", 2, "constant">,
    I32EnumCase<"Frozen", 3, "frozen">
  ]> {
  let cppNamespace = "::pipewright::nn";
}
def NN_WeightRoleAttr : EnumAttr<NN_Dialect, NN_WeightRole, "role">;

def NN_MatrixOutputs
    : I32Enum<"MatrixOutputs", "where a matrix has its outputs", [
    I32EnumCase<"Rows", 0, "rows">,
    I32EnumCase<"Columns", 1, "columns">
  ]> {
  let cppNamespace = "::pipewright::nn";
}
def NN_MatrixOutputsAttr : EnumAttr<NN_Dialect, NN_MatrixOutputs, "outputs">;

def NN_GeluApproximation
    : I32Enum<"GeluApproximation", "which formula gelu uses", [
    I32EnumCase<"None", 0, "none">,
    I32EnumCase<"Tanh", 1, "tanh">
  ]> {
  let cppNamespace = "::pipewright::nn";
}
def NN_GeluApproximationAttr
    : EnumAttr<NN_Dialect, NN_GeluApproximation, "gelu">;

/// Of ONNX: E exponent and M mantissa bits; FN has no infinities, UZ no negative
/// zero.
def NN_FloatFormat
    : I32Enum<"FloatFormat", "a format of floats of 8 bits", [
    I32EnumCase<"E4M3FN", 0, "f8E4M3FN">,
    I32EnumCase<"E4M3FNUZ", 1, "f8E4M3FNUZ">,
    I32EnumCase<"E5M2", 2, "f8E5M2">,
    I32EnumCase<"E5M2FNUZ", 3, "f8E5M2FNUZ">
  ]> {
  let cppNamespace = "::pipewright::nn";
}
def NN_FloatFormatAttr : EnumAttr<NN_Dialect, NN_FloatFormat, "format">;

def NN_ComparePredicate
    : I32Enum<"ComparePredicate", "which relation compare tests", [
    I32EnumCase<"Eq", 0, "eq">,
    I32EnumCase<"Ne", 1, "ne">,
    I32EnumCase<"Lt", 2, "lt">,
    I32EnumCase<"Le", 3, "le">,
    I32EnumCase<"Gt", 4, "gt">,
    I32EnumCase<"Ge", 5, "ge">
  ]> {
  let cppNamespace = "::pipewright::nn";
}
def NN_ComparePredicateAttr
    : EnumAttr<NN_Dialect, NN_ComparePredicate, "predicate">;

#endif // PIPEWRIGHT_DIALECTS_NN_NNENUMS_TD
