//===- NNOptimizer.cpp - Optimizer updates --------------------------------===//
//
// The attribute that names an optimizer, and the op that it works in. What
// optimizers there are stands in OptimizerTable.cpp alone.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNInference.h"
#include "dialects/nn/NNOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace pipewright::nn;

//===----------------------------------------------------------------------===//
// OptimizerAttr
//===----------------------------------------------------------------------===//

OptimizerAttr OptimizerAttr::get(MLIRContext *context,
                                 const OptimizerChoice &choice) {
  return get(context, StringAttr::get(context, choice.row->name),
             DenseF64ArrayAttr::get(context, choice.values));
}

OptimizerChoice OptimizerAttr::getChoice() const {
  OptimizerChoice choice(*findOptimizer(getName()));
  choice.values.assign(getValues().asArrayRef().begin(),
                       getValues().asArrayRef().end());
  return choice;
}

static std::string unknownOptimizer(StringRef name) {
  return "expects the optimizer to be " + optimizerNames() + ", but got '" +
         name.str() + "'";
}

LogicalResult
OptimizerAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringAttr name, DenseF64ArrayAttr values) {
  const Optimizer *row = findOptimizer(name);
  if (!row)
    return emitError() << unknownOptimizer(name);
  OptimizerChoice choice(*row);
  if (values.size() != static_cast<int64_t>(choice.values.size()))
    return emitError() << "expects " << choice.values.size()
                       << " hyper-parameters of " << row->name << ", but got "
                       << values.size();
  choice.values.assign(values.asArrayRef().begin(), values.asArrayRef().end());
  if (llvm::Error error = choice.check())
    return emitError() << llvm::toString(std::move(error));
  return success();
}

/// One `name = value`.
static ParseResult parseValue(AsmParser &parser, OptimizerChoice &choice) {
  SMLoc at = parser.getCurrentLocation();
  StringRef name;
  double value = 0;
  if (parser.parseKeyword(&name) || parser.parseEqual())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("true")))
    value = 1;
  else if (failed(parser.parseOptionalKeyword("false")) &&
           parser.parseFloat(value))
    return failure();
  if (llvm::Error error = choice.set(name, value))
    return parser.emitError(at, llvm::toString(std::move(error)));
  return success();
}

Attribute OptimizerAttr::parse(AsmParser &parser, Type) {
  SMLoc at = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseLess() || parser.parseKeyword(&name))
    return {};
  const Optimizer *row = findOptimizer(name);
  if (!row) {
    parser.emitError(at, unknownOptimizer(name));
    return {};
  }
  OptimizerChoice choice(*row);
  if (failed(parser.parseOptionalGreater()) &&
      (parser.parseCommaSeparatedList(
           [&] { return parseValue(parser, choice); }) ||
       parser.parseGreater()))
    return {};
  MLIRContext *context = parser.getContext();
  return parser.getChecked<OptimizerAttr>(
      at, context, StringAttr::get(context, row->name),
      DenseF64ArrayAttr::get(context, choice.values));
}

void OptimizerAttr::print(AsmPrinter &printer) const {
  OptimizerChoice choice = getChoice();
  printer << "<" << choice.row->name;
  StringRef separator = " ";
  for (auto [parameter, value] :
       llvm::zip_equal(choice.row->hyperParameters, choice.values)) {
    if (parameter.perStep && value == parameter.defaultValue)
      continue;
    printer << separator << parameter.name << " = ";
    separator = ", ";
    if (parameter.range == HyperRange::Flag)
      printer << (value != 0 ? "true" : "false");
    else
      printer.printFloat(APFloat(value));
  }
  printer << ">";
}

//===----------------------------------------------------------------------===//
// UpdateOp
//===----------------------------------------------------------------------===//

LogicalResult UpdateOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  InferenceSite site{location, getOperationName()};
  auto weightType = cast<RankedTensorType>(adaptor.getW().getType());
  // (C1)
  for (Value operand : adaptor.getOperands().drop_back())
    if (operand.getType() != weightType)
      return site.error("expects buffers of the weights' type ", weightType,
                        ", but got ", operand.getType());
  types.append(1 + adaptor.getStates().size(), weightType);
  return success();
}

LogicalResult UpdateOp::verify() {
  OptimizerChoice choice = getOptimizer().getChoice();
  // (C2)
  auto expected =
      RankedTensorType::get({static_cast<int64_t>(choice.row->scalars.size())},
                            Float32Type::get(getContext()));
  if (getH().getType() != expected)
    return emitOpError("expects ")
           << Type(expected) << " for the step's values, but got "
           << getH().getType();
  // (C3)
  SmallVector<StringRef> states = choice.states();
  if (getStates().size() != states.size())
    return emitOpError("expects ")
           << states.size() << " states for " << choice.row->name
           << ", but got " << getStates().size();
  return success();
}

int64_t UpdateOp::getFlops() {
  // Decay, one to two running averages, a root and a division: about 12
  // operations an element, less without averages.
  int64_t perElement = getStates().size() > 1 ? 12 : 5;
  return perElement * cast<RankedTensorType>(getW().getType()).getNumElements();
}
