//===- OutputFolder.cpp - A folder that appears whole or not --------------===//
//
// The partial folder beside the wanted one has `building`, which is renamed to
// `ready` when it is complete. What is in `building` is ours and may be removed
// at any time; `ready` may hold what is not (after it has changed places with
// the wanted folder, it is the old one), and so may `old`.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/OutputFolder.h"

#include "codegen/package/Interruption.h"
#include "codegen/package/Manifest.h"
#include "codegen/package/UserFiles.h"
#include "support/Message.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace pipewright::codegen {

static llvm::Error failure(const llvm::Twine &message) {
  return llvm::createStringError(message.str());
}

static bool exists(const std::string &path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

//===----------------------------------------------------------------------===//
// Which folder
//===----------------------------------------------------------------------===//

/// The folder that the path stands for, absolute and without links; those above
/// it are made.
static llvm::Expected<std::string> findPlace(const std::string &path) {
  std::error_code error;
  if (exists(path)) {
    if (!fs::exists(path, error))
      return failure("output '" + path +
                     "' is a link that leads nowhere: remove it or choose "
                     "another name");
    if (!fs::is_directory(path, error))
      return failure("output '" + path + "' exists and is not a folder");
    fs::path place = fs::canonical(path, error);
    if (!error)
      return place.string();
  } else {
    fs::path above = fs::absolute(path, error).parent_path();
    fs::create_directories(above, error);
    fs::path place = error ? above : fs::canonical(above, error);
    if (!error)
      return (place / fs::path(path).filename()).string();
  }
  return failure("cannot create output folder '" + path +
                 "': " + error.message());
}

/// A folder that takes the place of another has not those in it that work
/// there.
static llvm::Error checkPlace(const std::string &path,
                              const std::string &place) {
  std::error_code error;
  std::string here = fs::current_path(error).string();
  if (exists(place) &&
      (here == place ||
       llvm::StringRef(here).starts_with(place == "/" ? place : place + "/")))
    return failure("-o " + path +
                   ": this command runs there, but a program needs a folder of "
                   "its own");
  return llvm::Error::success();
}

/// "'a', 'b' and 3 more"
static std::string listed(const std::vector<std::string> &names) {
  constexpr size_t most = 5;
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > most)
    text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

static llvm::Error inTheWayError(const std::string &path,
                                 const std::string &what) {
  return failure("output folder '" + path + "' " + what +
                 "; choose another folder with -o, move them away, or keep "
                 "them beside the new ones, as NAME.kept, with --force");
}

/// Before any work: whether what is in the folder lets us replace it.
static llvm::Error checkContents(const std::string &path,
                                 const std::string &place) {
  std::error_code error;
  if (!exists(place) || fs::is_empty(place, error))
    return llvm::Error::success();
  llvm::Expected<std::optional<Manifest>> manifest = Manifest::read(place);
  if (!manifest)
    return failure("output folder '" + path + "' has a file '" +
                   Manifest::fileName + "' that was not made by pipewright (" +
                   llvm::toString(manifest.takeError()) +
                   "); choose another folder with -o");
  auto files = findUserFiles(place, "");
  if (!files)
    return files.takeError();
  std::vector<std::string> foreign, changed;
  for (const UserFile &file : *files) {
    if (file.isChanged)
      changed.push_back(file.path);
    if (file.path.find('/') == std::string::npos)
      foreign.push_back(file.path);
  }
  if (!*manifest)
    return inTheWayError(path, "exists and was not made by pipewright (it has "
                               "no " +
                                   std::string(Manifest::fileName) +
                                   "); in it are " + listed(foreign));
  if (!changed.empty())
    return inTheWayError(path, "has files that somebody has changed since "
                               "pipewright wrote them: " +
                                   listed(changed));
  return llvm::Error::success();
}

/// What a dead process has left: takes out what is the user's.
static bool rescue(const std::string &partial, const std::string &place) {
  std::string ready = partial + "/ready", old = partial + "/old";
  // It died between the two steps of replaceInTwoSteps.
  if (exists(old) && !exists(place) && rename(old.c_str(), place.c_str()) != 0)
    return false;
  for (const std::string &tree : {ready, old})
    if (exists(tree))
      if (llvm::Error error = moveRest(tree, place)) {
        printMessage("warning", "'" + partial + "' stays: " +
                                    llvm::toString(std::move(error)));
        return false;
      }
  return true;
}

llvm::Expected<OutputFolder> OutputFolder::create(llvm::StringRef path,
                                                  InTheWay inTheWay) {
  while (path.size() > 1 && path.ends_with("/"))
    path = path.drop_back();
  if (path.empty())
    return failure("expects a name for the output folder (-o OUT)");
  llvm::Expected<std::string> place = findPlace(path.str());
  if (!place)
    return place.takeError();
  if (llvm::Error error = checkPlace(path.str(), *place))
    return error;
  std::string prefix = *place + ".partial-";
  PartialFolder::removeDead(prefix, [&](const std::string &partial) {
    return rescue(partial, *place);
  });
  if (inTheWay == InTheWay::Refuse)
    if (llvm::Error error = checkContents(path.str(), *place))
      return error;
  llvm::Expected<PartialFolder> partial = PartialFolder::create(prefix);
  if (!partial)
    return failure("cannot create output folder '" + path +
                   "': " + llvm::toString(partial.takeError()));
  OutputFolder folder(path.str(), std::move(*place), std::move(*partial),
                      inTheWay);
  if (mkdir(folder.temporary().c_str(), 0777) != 0)
    return failure("cannot create output folder '" + path +
                   "': " + std::strerror(errno));
  return folder;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string OutputFolder::pathOf(llvm::StringRef name) const {
  return temporary() + "/" + name.str();
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
    return failure("cannot write '" + name + "' of output folder '" + given +
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
    return failure("cannot copy '" + source + "' to output folder '" + given +
                   "': " + error.message());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The change
//===----------------------------------------------------------------------===//

llvm::Error OutputFolder::placeFailure(int reason) const {
  return failure("cannot put output folder '" + given +
                 "' in its place: " + std::strerror(reason));
}

/// Waits until what was written to the file system of a folder is on the disk.
/// One call for all files: each by itself takes a hundred times as long.
static void synchronize(const std::string &folder, bool whole) {
  int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  whole ? syncfs(descriptor) : fsync(descriptor);
  close(descriptor);
}

/// `building` is complete, and becomes `ready`.
llvm::Error OutputFolder::finish() {
  llvm::Expected<Manifest> manifest = Manifest::of(temporary());
  if (!manifest)
    return manifest.takeError();
  if (llvm::Error error = write(Manifest::fileName, manifest->toText()))
    return error;
  synchronize(temporary(), /*whole=*/true);
  // From here on it holds links to what is not ours.
  if (rename(temporary().c_str(), partial.pathOf("ready").c_str()) != 0)
    return placeFailure(errno);
  return llvm::Error::success();
}

/// For file systems that cannot let two folders change places. In between there
/// is none; the next folder that is made here puts the old one back.
llvm::Error OutputFolder::replaceInTwoSteps() {
  std::string ready = partial.pathOf("ready"), old = partial.pathOf("old");
  if (rename(wanted.c_str(), old.c_str()) != 0)
    return placeFailure(errno);
  if (rename(ready.c_str(), wanted.c_str()) == 0)
    return rename(old.c_str(), ready.c_str()) == 0 ? llvm::Error::success()
                                                   : placeFailure(errno);
  int reason = errno;
  rename(old.c_str(), wanted.c_str());
  return placeFailure(reason);
}

/// `ready` takes the place of the wanted folder; if there is one, that becomes
/// `ready`.
llvm::Error OutputFolder::replace() {
  std::string ready = partial.pathOf("ready");
  if (!exists(wanted)) {
    if (renameat2(AT_FDCWD, ready.c_str(), AT_FDCWD, wanted.c_str(),
                  RENAME_NOREPLACE) == 0 ||
        (errno == EINVAL && rename(ready.c_str(), wanted.c_str()) == 0))
      return llvm::Error::success();
    return placeFailure(errno);
  }
  if (renameat2(AT_FDCWD, ready.c_str(), AT_FDCWD, wanted.c_str(),
                RENAME_EXCHANGE) == 0)
    return llvm::Error::success();
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
    return replaceInTwoSteps();
  return placeFailure(errno);
}

/// Puts what is the user's into `ready` as well, and then that in its place.
llvm::Error OutputFolder::takeOver() {
  std::string ready = partial.pathOf("ready");
  std::set<FileIdentity> linked;
  struct stat status;
  if (stat(wanted.c_str(), &status) == 0) {
    auto files = findUserFiles(wanted, ready);
    if (!files)
      return files.takeError();
    std::vector<std::string> names;
    for (const UserFile &file : *files)
      if (file.isInTheWay())
        names.push_back(file.path);
    if (!names.empty() && inTheWay == InTheWay::Refuse)
      return inTheWayError(given, "has files with names of new ones that "
                                  "pipewright did not write: " +
                                      listed(names));
    auto result = linkUserFiles(*files, wanted, ready);
    if (!result)
      return result.takeError();
    linked = std::move(*result);
    // Who may read it is the user's, too. The owner is, where root compiles.
    chmod(ready.c_str(), status.st_mode & 07777);
    [[maybe_unused]] int ignored =
        lchown(ready.c_str(), status.st_uid, status.st_gid);
  }
  partial.setKept(true);
  llvm::Error error = replace();
  // Also after a failure: `ready` has links to the user's files then.
  if (exists(ready))
    error = llvm::joinErrors(std::move(error), moveRest(ready, wanted, linked));
  synchronize(fs::path(wanted).parent_path().string(), /*whole=*/false);
  if (!exists(ready) && !exists(partial.pathOf("old")))
    partial.setKept(false);
  return error;
}

llvm::Error OutputFolder::commit() {
  if (llvm::Error error = finish())
    return error;
  DeferInterruption untilTheEnd;
  return takeOver();
}

} // namespace pipewright::codegen
