//===- OutputFolder.cpp - A folder that appears whole or not --------------===//
//
// Renames within one parent folder, so that the change is one step of the file
// system.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/OutputFolder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <filesystem>

namespace fs = std::filesystem;

namespace pipewright::codegen {

static llvm::Error failure(const llvm::Twine &message) {
  return llvm::createStringError(message.str());
}

llvm::Expected<OutputFolder> OutputFolder::create(llvm::StringRef path) {
  while (path.size() > 1 && path.ends_with("/"))
    path = path.drop_back();
  if (path.empty())
    return failure("expects a name for the output folder (-o OUT)");
  std::string wanted = path.str();
  std::error_code error;
  fs::file_status status = fs::symlink_status(wanted, error);
  if (fs::exists(status)) {
    if (!fs::is_directory(fs::status(wanted, error)))
      return failure("output '" + path + "' exists and is not a folder");
    bool ours = fs::exists(fs::path(wanted) / "plan.json", error);
    if (!ours && !fs::is_empty(wanted, error))
      return failure("output folder '" + path +
                     "' exists and was not made by pipewright (it has no "
                     "plan.json); remove it or choose another name");
  }
  std::string work =
      wanted + ".partial-" + std::to_string(llvm::sys::Process::getProcessId());
  fs::create_directories(work, error);
  if (error)
    return failure("cannot create output folder '" + path +
                   "': " + error.message());
  return OutputFolder(std::move(wanted), std::move(work));
}

OutputFolder::OutputFolder(OutputFolder &&other)
    : wanted(std::move(other.wanted)), work(std::move(other.work)) {
  other.work.clear();
}

OutputFolder::~OutputFolder() {
  if (work.empty())
    return;
  std::error_code ignored;
  fs::remove_all(work, ignored);
}

std::string OutputFolder::pathOf(llvm::StringRef name) const {
  return (fs::path(work) / name.str()).string();
}

llvm::Error OutputFolder::write(llvm::StringRef name, llvm::StringRef text) {
  return write(name, [&](llvm::raw_ostream &os) { os << text; });
}

llvm::Error OutputFolder::write(
    llvm::StringRef name,
    llvm::function_ref<void(llvm::raw_ostream &)> writeContents) {
  std::error_code error;
  fs::create_directories(fs::path(pathOf(name)).parent_path(), error);
  if (!error) {
    llvm::raw_fd_ostream os(pathOf(name), error);
    if (!error) {
      writeContents(os);
      os.close();
      error = os.error();
      os.clear_error();
    }
  }
  if (error)
    return failure("cannot write '" + name + "' of output folder '" + wanted +
                   "': " + error.message());
  return llvm::Error::success();
}

llvm::Error
OutputFolder::copyFolder(llvm::StringRef source, llvm::StringRef name,
                         llvm::function_ref<bool(llvm::StringRef)> accept) {
  std::error_code error;
  fs::recursive_directory_iterator it(source.str(), error), end;
  for (; !error && it != end; it.increment(error)) {
    std::string file = it->path().string();
    if (!it->is_regular_file() || !accept(file))
      continue;
    fs::path relative = fs::relative(it->path(), source.str(), error);
    fs::path target = fs::path(pathOf(name)) / relative;
    fs::create_directories(target.parent_path(), error);
    if (!error)
      fs::copy_file(it->path(), target, error);
    if (error)
      break;
  }
  if (error)
    return failure("cannot copy '" + source + "' to output folder '" + wanted +
                   "': " + error.message());
  return llvm::Error::success();
}

llvm::Error OutputFolder::commit() {
  std::error_code error, ignored;
  std::string old =
      wanted + ".old-" + std::to_string(llvm::sys::Process::getProcessId());
  bool replaces = fs::exists(wanted, error);
  if (replaces)
    fs::rename(wanted, old, error);
  if (!error) {
    fs::rename(work, wanted, error);
    if (error && replaces)
      fs::rename(old, wanted, ignored);
  }
  if (error)
    return failure("cannot put output folder '" + wanted +
                   "' in its place: " + error.message());
  work.clear();
  if (replaces)
    fs::remove_all(old, ignored);
  return llvm::Error::success();
}

} // namespace pipewright::codegen
