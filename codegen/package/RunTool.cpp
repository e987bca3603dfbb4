//===- RunTool.cpp - Other programs that we run ---------------------------===//
//
// fork(2) rather than posix_spawn(3): only a child can ask to be told of its
// parent's death.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/RunTool.h"

#include "codegen/package/Interruption.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace pipewright::codegen {

/// Becomes the command, or ends. Between fork and exec nothing may allocate:
/// another thread may have held the allocator's lock.
[[noreturn]] static void become(char *const *arguments, const char *log,
                                const char *folder, pid_t parent,
                                int signalOfDeath) {
  prctl(PR_SET_PDEATHSIG, signalOfDeath);
  // It may have died before that.
  if (getppid() != parent)
    _exit(127);
  if (log) {
    setpgid(0, 0);
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int in = open("/dev/null", O_RDONLY);
    if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(out, 2) < 0 || chdir(folder) != 0)
      _exit(127);
  }
  // What we ignore (SIGXFSZ) a tool need not.
  signal(SIGXFSZ, SIG_DFL);
  execv(arguments[0], arguments);
  _exit(127);
}

static llvm::Expected<pid_t> spawn(llvm::ArrayRef<std::string> command,
                                   const char *log, const char *folder,
                                   int signalOfDeath) {
  std::vector<char *> arguments;
  for (const std::string &word : command)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t parent = getpid();
  pid_t process = fork();
  if (process == 0)
    become(arguments.data(), log, folder, parent, signalOfDeath);
  if (process < 0)
    return llvm::createStringError("cannot run '" + command.front() +
                                   "': " + std::strerror(errno));
  return process;
}

static int waitFor(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR)
      return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

llvm::Expected<Tool> Tool::start(llvm::ArrayRef<std::string> command,
                                 const std::string &log,
                                 const std::string &folder) {
  llvm::Expected<pid_t> process =
      spawn(command, log.c_str(), folder.c_str(), SIGKILL);
  if (!process)
    return process.takeError();
  // The child does the same; whoever comes first.
  setpgid(*process, *process);
  nameTool(*process);
  return Tool(*process);
}

bool Tool::wait() {
  int code = waitFor(process);
  forgetTool(process);
  return code == 0;
}

llvm::Expected<int> runInOurPlace(llvm::ArrayRef<std::string> command) {
  llvm::Expected<pid_t> process = spawn(command, nullptr, nullptr, SIGTERM);
  if (!process)
    return process.takeError();
  PassSignalsOn to(*process);
  return waitFor(*process);
}

} // namespace pipewright::codegen
