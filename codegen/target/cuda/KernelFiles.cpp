//===- KernelFiles.cpp - Kernels of a GPU program as files ----------------===//
//
// PTX stays a file of its own, for people and for ptxas; the assembler's
// .incbin makes it part of the executable, which needs no path then.
//
//===----------------------------------------------------------------------===//

#include "codegen/target/cuda/KernelFiles.h"

#include "codegen/kernels/Kernels.h"

using namespace mlir;

namespace pipewright::codegen {

llvm::ArrayRef<int> gpuArchitectures() {
  static constexpr int architectures[] = {80, 90};
  return architectures;
}

/// `kernels.sm_80.ptx`
static std::string ptxName(int architecture) {
  return "kernels.sm_" + std::to_string(architecture) + ".ptx";
}

/// `kernels_sm_80_begin`
static std::string symbolOf(int architecture, StringRef end) {
  return ("kernels_sm_" + Twine(architecture) + "_" + end).str();
}

static std::string writeHeader(ModuleOp kernels) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// The compiled kernels of this model, for `launch`. Buffers of one\n"
        "// call may not overlap. Inputs come first, then results.\n\n"
        "#pragma once\n\n"
        "#include \"runtime/DeviceRuntime.h\"\n\n"
        "using namespace pipewright::runtime;\n\n"
        "// What the runtime is told of them.\n"
        "extern const DeviceProgram deviceProgram;\n";
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    os << "\n";
    writeKernelComment(kernel, os);
    os << "// " << kernelDeclaration(kernel) << "\n"
       << "extern const DeviceKernel " << kernel.getName() << ";\n";
  }
  return text;
}

static void writeKernel(const GpuKernel &kernel, llvm::raw_ostream &os) {
  os << "const DeviceKernel " << kernel.name << " = {\n    .name = \""
     << kernel.name << "\",\n    .launches = {";
  StringRef separator = "";
  for (const GpuLaunch &launch : kernel.launches) {
    os << separator << "{.entry = \"" << launch.entry
       << "\", .grid = " << launch.grid << ", .block = " << launch.block;
    if (launch.sharedBytes)
      os << ", .sharedBytes = " << launch.sharedBytes;
    os << "}";
    separator = ",\n                 ";
  }
  os << "},\n";
  if (kernel.scratchBytes)
    os << "    .scratchBytes = " << kernel.scratchBytes << ",\n";
  os << "};\n\n";
}

static std::string writeTable(const GpuKernels &compiled, bool tf32) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// How each compiled kernel is launched, and the PTX that has them "
        "all.\n\n"
        "#include \"kernels.h\"\n\n";
  for (const GpuKernel &kernel : compiled.kernels)
    writeKernel(kernel, os);
  os << "// kernels.S puts these into the program.\nextern \"C\" {\n";
  for (const PtxText &ptx : compiled.ptx)
    os << "extern const char " << symbolOf(ptx.architecture, "begin")
       << "[];\nextern const char " << symbolOf(ptx.architecture, "end")
       << "[];\n";
  os << "}\n\nconst DeviceProgram deviceProgram = {\n    .images = {";
  StringRef separator = "";
  for (const PtxText &ptx : compiled.ptx) {
    os << separator << "{.architecture = " << ptx.architecture
       << ",\n                .begin = " << symbolOf(ptx.architecture, "begin")
       << ",\n                .end = " << symbolOf(ptx.architecture, "end")
       << "}";
    separator = ",\n               ";
  }
  os << "},\n    .kernels = {";
  separator = "";
  for (const GpuKernel &kernel : compiled.kernels) {
    os << separator << "&" << kernel.name;
    separator = ",\n                ";
  }
  os << "},\n    .float32 = Float32Mode::" << (tf32 ? "Tf32" : "Full")
     << ",\n};\n";
  return text;
}

static std::string writeAssembler(const GpuKernels &compiled) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// The PTX of the compiled kernels as text that ends with a zero.\n\n"
        "    .section .rodata\n";
  for (const PtxText &ptx : compiled.ptx) {
    std::string begin = symbolOf(ptx.architecture, "begin");
    std::string end = symbolOf(ptx.architecture, "end");
    os << "    .globl " << begin << "\n    .globl " << end << "\n"
       << begin << ":\n    .incbin \"" << ptxName(ptx.architecture) << "\"\n"
       << end << ":\n    .byte 0\n";
  }
  // Without this the linker makes the stack executable.
  os << "\n    .section .note.GNU-stack,\"\",%progbits\n";
  return text;
}

std::map<std::string, std::string>
kernelFiles(ModuleOp kernels, const GpuKernels &compiled, bool tf32) {
  std::map<std::string, std::string> files = {
      {"kernels.h", writeHeader(kernels)},
      {"kernels.cpp", writeTable(compiled, tf32)},
      {"kernels.S", writeAssembler(compiled)}};
  for (const PtxText &ptx : compiled.ptx)
    files[ptxName(ptx.architecture)] = ptx.text;
  return files;
}

} // namespace pipewright::codegen
