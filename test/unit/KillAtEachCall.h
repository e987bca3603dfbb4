//===- KillAtEachCall.h - A process killed at each of its calls -*- C++ -*-===//
//
// What is left on the disk when a process is killed depends on the system call
// before which it was. So a test tries all of them: the child is traced, and
// killed at its first call, at its second, and so on, until one comes to its
// end. Needs neither hooks in what is tested nor luck.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_UNIT_KILLATEACHCALL_H
#define PIPEWRIGHT_TEST_UNIT_KILLATEACHCALL_H

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace pipewright::test {

/// Whether a system call can change what is on the disk. Of others it makes no
/// difference whether a process was killed before or after it.
inline bool changesFiles(unsigned long number) {
  static constexpr long calls[] = {
#ifdef SYS_rename
      SYS_open,      SYS_creat,    SYS_rename,   SYS_link,
      SYS_unlink,    SYS_mkdir,    SYS_rmdir,    SYS_symlink,
      SYS_chmod,
#endif
      SYS_openat,    SYS_write,    SYS_writev,   SYS_pwrite64,
      SYS_renameat2, SYS_linkat,   SYS_unlinkat, SYS_mkdirat,
      SYS_symlinkat, SYS_fchmodat, SYS_fchmod,   SYS_ftruncate,
      SYS_flock,     SYS_fsync,    SYS_syncfs,   SYS_copy_file_range,
      SYS_sendfile};
  for (const long call : calls)
    if (static_cast<unsigned long>(call) == number)
      return true;
  return false;
}

/// Forks a child that runs `body` and kills it at the call of this number that
/// changes files. True if it came to its end before. `isTraced` becomes false
/// where tracing is not allowed.
template <class Body>
bool runUntilCall(const Body &body, int call, bool &isTraced) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0)
      _exit(99);
    raise(SIGSTOP);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) {
    isTraced = false;
    return true;
  }
  ptrace(PTRACE_SETOPTIONS, child, nullptr,
         PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
  for (int seen = 0;;) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) || WIFSIGNALED(status))
      return true;
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80))
      continue;
    __ptrace_syscall_info info = {};
    ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY && changesFiles(info.entry.nr) &&
        seen++ == call) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return false;
    }
  }
}

/// Runs prepare(), `body` in a child that is killed at each call in turn, and
/// check(call). Returns the number of kills, -1 where tracing is not allowed.
template <class Prepare, class Body, class Check>
int killAtEachCall(const Prepare &prepare, const Body &body,
                   const Check &check) {
  for (int call = 0;; ++call) {
    prepare();
    bool isTraced = true;
    const bool isDone = runUntilCall(body, call, isTraced);
    if (!isTraced)
      return -1;
    check(call);
    if (isDone)
      return call;
  }
}

/// From now on this process gets `error` for a system call, if its argument
/// number `argument` is `value` (`argument` -1: always).
inline void refuseCall(long number, int error, int argument = -1,
                       unsigned value = 0) {
  std::vector<sock_filter> filter;
  const unsigned refuse = SECCOMP_RET_ERRNO | static_cast<unsigned>(error);
  filter.push_back(
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  if (argument < 0) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                              static_cast<unsigned>(number), 0, 1));
  } else {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                              static_cast<unsigned>(number), 0, 3));
    filter.push_back(
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 static_cast<unsigned>(offsetof(seccomp_data, args) +
                                       8 * static_cast<size_t>(argument))));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, refuse));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program = {static_cast<unsigned short>(filter.size()),
                        filter.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

} // namespace pipewright::test

#endif // PIPEWRIGHT_TEST_UNIT_KILLATEACHCALL_H
