//===- Kernels.cpp - compile kernels to a static library ------------------===//

#include "codegen/kernels/Kernels.h"

#include "codegen/kernels/Passes.h"
#include "dialects/nn/NNAttributeNames.h"
#include "dialects/nn/NNOps.h"
#include "support/Text.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace pipewright::codegen {

LogicalResult compileKernels(ModuleOp kernels, StringRef path,
                             const KernelOptions &options) {
  OwningOpRef<ModuleOp> module(kernels.clone());
  // Nested modules carry a symbol name that the LLVM translation has no use
  // for.
  module->setSymNameAttr({});
  PassManager pm(module->getContext(), ModuleOp::getOperationName());
  buildKernelLoweringPipeline(pm);
  if (failed(pm.run(*module)))
    return failure();
  return emitLibrary(*module, path, options);
}

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

static StringRef cType(Type element) {
  if (element.isF32())
    return "float";
  if (element.isBF16())
    return "uint16_t";
  if (element.isInteger(64))
    return "int64_t";
  // A truth value takes a byte.
  return element.isInteger(1) ? "uint8_t" : "int8_t";
}

static void printType(Type type, llvm::raw_ostream &os) {
  auto tensor = cast<RankedTensorType>(type);
  llvm::interleave(tensor.getShape(), os, "x");
  os << (tensor.getRank() ? "x" : "") << tensor.getElementType();
}

/// The results that have a pointer of their own, and the arguments that other
/// results overwrite.
static SmallVector<unsigned> ownResults(func::FuncOp kernel,
                                        llvm::SmallDenseSet<int64_t> &written) {
  SmallVector<unsigned> own;
  for (unsigned i = 0; i < kernel.getNumResults(); ++i) {
    auto argument = kernel.getResultAttrOfType<IntegerAttr>(i, nn::kInPlace);
    if (argument)
      written.insert(argument.getInt());
    else
      own.push_back(i);
  }
  return own;
}

/// Names of the parameters: nn.name if there, else x0, x1 ... and y0, y1 ...
static std::string parameterName(DictionaryAttr attributes, char letter,
                                 unsigned number) {
  if (attributes)
    if (auto name = attributes.getAs<StringAttr>(nn::kName))
      return text::identifier(name);
  return letter + std::to_string(number);
}

std::string kernelDeclaration(func::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::SmallDenseSet<int64_t> written;
  SmallVector<unsigned> own = ownResults(kernel, written);
  os << "void " << kernel.getName() << "(";
  StringRef separator = "";
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    os << separator << (written.contains(i) ? "" : "const ")
       << cType(cast<RankedTensorType>(type).getElementType()) << " *"
       << parameterName(kernel.getArgAttrDict(i), 'x', i);
    separator = ", ";
  }
  for (unsigned i : own) {
    Type type = kernel.getResultTypes()[i];
    os << separator << cType(cast<RankedTensorType>(type).getElementType())
       << " *" << parameterName(kernel.getResultAttrDict(i), 'y', i);
    separator = ", ";
  }
  os << ")";
  return text;
}

void writeKernelComment(func::FuncOp kernel, llvm::raw_ostream &os) {
  os << "// (";
  llvm::interleaveComma(kernel.getArgumentTypes(), os,
                        [&](Type type) { printType(type, os); });
  os << ") -> (";
  llvm::interleaveComma(kernel.getResultTypes(), os,
                        [&](Type type) { printType(type, os); });
  os << ")\n//";
  if (!kernel.isExternal())
    for (Operation &op : kernel.getBody().front().without_terminator()) {
      if (auto update = dyn_cast<nn::UpdateOp>(op))
        os << ' ' << update.getOptimizer().getName().getValue();
      else if (!op.hasTrait<OpTrait::ConstantLike>())
        os << ' ' << op.getName().stripDialect();
    }
  for (unsigned i = 0; i < kernel.getNumResults(); ++i)
    if (kernel.getResultAttr(i, nn::kAdded))
      os << ", += " << parameterName(kernel.getResultAttrDict(i), 'y', i);
  os << "\n";
}

void writeKernelHeader(ModuleOp kernels, llvm::raw_ostream &os) {
  os << "// The compiled kernels of this model. Pointers of one call may not\n"
        "// overlap. Inputs come first, then results.\n\n"
        "#pragma once\n\n#include <cstdint>\n\nextern \"C\" {\n";
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    os << "\n";
    writeKernelComment(kernel, os);
    os << kernelDeclaration(kernel) << ";\n";
  }
  os << "\n} // extern \"C\"\n";
}

} // namespace pipewright::codegen
