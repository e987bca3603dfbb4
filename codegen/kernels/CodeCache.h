//===- CodeCache.h - Code that LLVM need not make twice ---------*- C++ -*-===//
//
// Most kernels of a model stay as they are when its schedule, ranks or
// optimizer change, and LLVM takes most of the time of a compilation. What it
// makes of a module is kept as a file whose name is a hash of all that decides
// it: the module's text, the target, and the code of this process.
//
// The folder is `kernels` in that of support/CacheFolder.h. At most 256 MiB are
// kept there, and nothing unused for a week. One that cannot be written to is
// no error.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_CODEGEN_KERNELS_CODECACHE_H
#define PIPEWRIGHT_CODEGEN_KERNELS_CODECACHE_H

#include "mlir/Support/LLVM.h"

#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace pipewright::codegen {

/// What `compile` makes of the module, which it may change; kept from before
/// where the same was compiled already. `level` is LLVM's optimization level,
/// `isCode` whether bytes can be what `compile` makes: a file that has others
/// is removed, and its code compiled again.
mlir::FailureOr<std::string>
cachedCode(llvm::Module &module, const llvm::TargetMachine &machine,
           unsigned level, llvm::function_ref<bool(llvm::StringRef)> isCode,
           llvm::function_ref<mlir::FailureOr<std::string>()> compile);

} // namespace pipewright::codegen

#endif // PIPEWRIGHT_CODEGEN_KERNELS_CODECACHE_H
