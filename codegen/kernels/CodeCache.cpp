//===- CodeCache.cpp - Code that LLVM need not make twice -----------------===//

#include "codegen/kernels/CodeCache.h"

#include "support/CacheFolder.h"
#include "support/InputFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <algorithm>
#include <array>
#include <link.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace pipewright::codegen {

using Hash = std::array<uint8_t, 32>;

/// Adds the build ID of an executable or a shared object, which linkers make
/// from its content, to the hash that `data` is.
static int addBuildId(dl_phdr_info *object, size_t, void *data) {
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    auto *at =
        reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr);
    const char *end = at + segment.p_memsz;
    while (end - at >= static_cast<ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
      auto *note = reinterpret_cast<const ElfW(Nhdr) *>(at);
      const char *name = at + sizeof(*note);
      const char *content = name + ((note->n_namesz + 3) & ~3u);
      at = content + ((note->n_descsz + 3) & ~3u);
      if (note->n_type != NT_GNU_BUILD_ID || at > end)
        continue;
      static_cast<llvm::SHA256 *>(data)->update(
          llvm::StringRef(content, note->n_descsz));
    }
  }
  // Zero: go on with the next one.
  return 0;
}

/// A hash of the code of this process: a compiler that was changed finds none
/// of what it has made before.
static const Hash &hashOfThisCompiler() {
  static const Hash hash = [] {
    llvm::SHA256 hasher;
    dl_iterate_phdr(addBuildId, &hasher);
    return hasher.final();
  }();
  return hash;
}

/// Of the code and of what it was made from, which names the file: neither a
/// file that a crash has cut short nor one of another name is taken.
static Hash hashOf(llvm::StringRef path, llvm::StringRef code) {
  llvm::SHA256 hasher;
  hasher.update(llvm::sys::path::filename(path));
  hasher.update(code);
  return hasher.final();
}

/// The code that a file keeps. What is no such file is removed.
static std::optional<std::string>
read(const std::string &path,
     llvm::function_ref<bool(llvm::StringRef)> isCode) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0)
    return std::nullopt;
  llvm::Expected<FileBuffer> file =
      readRegularFile(path, {.followsLinks = false, .isOurs = true});
  if (file) {
    llvm::StringRef content = (*file)->getBuffer();
    llvm::StringRef code =
        content.drop_front(std::min(content.size(), sizeof(Hash)));
    if (llvm::toStringRef(hashOf(path, code)) ==
            content.take_front(sizeof(Hash)) &&
        isCode(code))
      return code.str();
  }
  llvm::consumeError(file.takeError());
  unlink(path.c_str());
  return std::nullopt;
}

/// LLVM removes the oldest files here, and writes down when it did.
static void prune(const std::string &folder) {
  std::string stamp = folder + "/llvmcache.timestamp";
  struct stat status;
  // It would wait for somebody to read a pipe.
  if (lstat(stamp.c_str(), &status) == 0 && !S_ISREG(status.st_mode) &&
      unlink(stamp.c_str()) != 0)
    return;
  llvm::CachePruningPolicy policy;
  policy.MaxSizeBytes = 256 << 20;
  llvm::pruneCache(folder, policy);
}

/// What cannot be kept is compiled again the next time.
static void write(const std::string &folder, const std::string &path,
                  llvm::StringRef code) {
  // LLVM prunes what is named so, also what we leave when we are killed here.
  auto file = llvm::sys::fs::TempFile::create(folder + "/llvmcache-%%%%%%%%");
  if (!file) {
    llvm::consumeError(file.takeError());
    return;
  }
  Hash hash = hashOf(path, code);
  bool isWritten = false;
  {
    llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
    os << llvm::toStringRef(hash) << code;
    os.flush();
    isWritten = !os.has_error();
    os.clear_error();
  }
  llvm::consumeError(isWritten ? file->keep(path) : file->discard());
  prune(folder);
}

mlir::FailureOr<std::string>
cachedCode(llvm::Module &module, const llvm::TargetMachine &machine,
           unsigned level, llvm::function_ref<bool(llvm::StringRef)> isCode,
           llvm::function_ref<mlir::FailureOr<std::string>()> compile) {
  const std::string folder = cacheFolder("kernels");
  if (folder.empty())
    return compile();
  std::string source;
  llvm::raw_string_ostream os(source);
  os << machine.getTargetTriple().str() << '\n'
     << machine.getTargetCPU() << '\n'
     << machine.getTargetFeatureString() << '\n'
     << level << '\n';
  module.print(os, /*AAW=*/nullptr);
  llvm::SHA256 hasher;
  hasher.update(hashOfThisCompiler());
  hasher.update(source);
  std::string path =
      folder + "/llvmcache-" + llvm::toHex(hasher.final(), /*LowerCase=*/true);
  if (std::optional<std::string> code = read(path, isCode))
    return std::move(*code);
  mlir::FailureOr<std::string> code = compile();
  if (mlir::succeeded(code))
    write(folder, path, *code);
  return code;
}

} // namespace pipewright::codegen
