//===- Plugins.cpp - Shared objects that add to the compiler --------------===//
//
// See Plugins.h.
//
//===----------------------------------------------------------------------===//

#include "tools/common/Plugins.h"

#include "codegen/target/Target.h"
#include "passes/schedules/Policy.h"
#include "support/Text.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/mman.h>
#include <unistd.h>

namespace pipewright::tool {

/// How much MLIR prints of all registered passes. Its registry can be printed
/// to the standard output and asked for single names, but not be counted.
static off_t sizeOfPassList() {
  llvm::outs().flush();
  int output = dup(STDOUT_FILENO), list = memfd_create("passes", MFD_CLOEXEC);
  off_t size = -1;
  if (output >= 0 && list >= 0 && dup2(list, STDOUT_FILENO) >= 0) {
    mlir::printRegisteredPasses();
    llvm::outs().flush();
    size = lseek(list, 0, SEEK_CUR);
    dup2(output, STDOUT_FILENO);
  }
  close(output);
  close(list);
  return size;
}

/// Changes when there is another schedule, target or pass.
static auto countAll() {
  return std::tuple(schedules::allPolicies().size(),
                    codegen::allTargets().size(), sizeOfPassList());
}

static llvm::Error loadPlugin(const std::string &file) {
  std::string shown = text::printable(file);
  // A name without a folder would be looked for among the system's libraries.
  bool isHere =
      !llvm::sys::path::has_parent_path(file) && llvm::sys::fs::exists(file);
  llvm::Expected<mlir::PassPlugin> plugin =
      mlir::PassPlugin::load(isHere ? "./" + file : file);
  if (!plugin)
    return llvm::createStringError("cannot load the plugin '" + shown +
                                   "': " + llvm::toString(plugin.takeError()));
  auto before = countAll();
  plugin->registerPassRegistryCallbacks();
  if (countAll() == before)
    return llvm::createStringError("the plugin '" + shown +
                                   "' brings no schedule, target or pass");
  return llvm::Error::success();
}

llvm::Error loadPlugins(llvm::SmallVectorImpl<const char *> &words,
                        bool removes) {
  std::vector<std::string> names;
  llvm::SmallVector<const char *> rest;
  size_t i = 0;
  for (; i < words.size() && words[i] != llvm::StringRef("--"); ++i) {
    auto [option, value] = llvm::StringRef(words[i]).split('=');
    bool isPlugin = option.consume_front("-") &&
                    (option.consume_front("-"), option == kPluginOption);
    if (!isPlugin)
      rest.push_back(words[i]);
    else if (llvm::StringRef(words[i]).contains('='))
      names.push_back(value.str());
    else if (i + 1 < words.size())
      names.push_back(words[++i]);
  }
  for (const std::string &name : names)
    if (llvm::Error error = loadPlugin(name))
      return error;
  if (removes) {
    rest.append(words.begin() + i, words.end());
    words = std::move(rest);
  }
  return llvm::Error::success();
}

} // namespace pipewright::tool
