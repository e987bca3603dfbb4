//===- FileBeneath.cpp - Files that a model names -------------------------===//

#include "support/FileBeneath.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace pipewright {

static llvm::Error failure(const llvm::Twine &message) {
  return llvm::createStringError(message.str());
}

llvm::Expected<std::string> findBeneath(const std::string &folder,
                                        llvm::StringRef location) {
  namespace path = llvm::sys::path;
  auto leaves = [&](const char *how) {
    return failure(llvm::Twine("leads out of the model's folder") + how);
  };
  bool isOutside = path::is_absolute(location) || location.contains('\\') ||
                   location.contains('\0') ||
                   llvm::is_contained(llvm::make_range(path::begin(location),
                                                       path::end(location)),
                                      llvm::StringRef(".."));
  if (isOutside)
    return leaves("");
  llvm::SmallString<128> full(folder), realFolder, real;
  path::append(full, location);
  std::error_code error = llvm::sys::fs::real_path(
      folder.empty() ? llvm::StringRef(".") : llvm::StringRef(folder),
      realFolder);
  if (!error)
    error = llvm::sys::fs::real_path(full, real);
  if (error)
    return failure("cannot be read: " + error.message());
  llvm::StringRef rest(real);
  bool isInside = rest.consume_front(realFolder) &&
                  (rest.starts_with("/") || llvm::StringRef(realFolder) == "/");
  if (!isInside)
    return leaves(" through a link; copy the file into the folder");
  return real.str().str();
}

} // namespace pipewright
