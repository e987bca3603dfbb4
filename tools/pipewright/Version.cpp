//===- Version.cpp - Which Pipewright this is -----------------------------===//

#include "tools/pipewright/Version.h"

#include "codegen/target/Target.h"

#include "llvm/Config/llvm-config.h"

#include <oneapi/dnnl/dnnl_version.h>

#include "Commit.inc"

using namespace pipewright;

std::string tool::versionText() {
  auto dnnl = std::to_string(DNNL_VERSION_MAJOR) + "." +
              std::to_string(DNNL_VERSION_MINOR) + "." +
              std::to_string(DNNL_VERSION_PATCH);
  std::string names;
  for (const codegen::Target *target : codegen::allTargets())
    names += (names.empty() ? "" : ", ") + target->name().str();
  return "pipewright " PIPEWRIGHT_VERSION " (" PIPEWRIGHT_COMMIT ")\n"
         "targets: " +
         names +
         "\nbuilt with LLVM " LLVM_VERSION_STRING
         ", ONNX " PIPEWRIGHT_ONNX_VERSION
         ", protobuf " PIPEWRIGHT_PROTOBUF_VERSION ", oneDNN " +
         dnnl + "\n";
}
