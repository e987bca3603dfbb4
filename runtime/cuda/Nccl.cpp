//===- Nccl.cpp - NCCL, opened when needed --------------------------------===//

#include "runtime/cuda/Nccl.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/SharedLibrary.h"

#include <array>

using namespace pipewright::runtime;

/// The first one that keeps several communicators of a GPU in order by itself.
static constexpr int oldestVersion = NCCL_VERSION(2, 26, 0);

/// These have a defect where several ranks are in one process.
static constexpr int firstThatMayHang = NCCL_VERSION(2, 28, 3);
static constexpr int firstThatDoesNot = NCCL_VERSION(2, 28, 9);

std::string pipewright::runtime::ncclVersionText(int version) {
  // Up to 2.8 the minor version had one digit.
  const int scale = version < 10000 ? 1000 : 10000;
  return std::to_string(version / scale) + "." +
         std::to_string(version % scale / 100) + "." +
         std::to_string(version % 100);
}

std::string pipewright::runtime::ncclRemark(int version) {
  if (version < firstThatMayHang || version >= firstThatDoesNot)
    return "";
  return "note: NCCL " + ncclVersionText(version) +
         " may hang where ranks are threads of one process, as all from " +
         ncclVersionText(firstThatMayHang) + " on and before " +
         ncclVersionText(firstThatDoesNot) +
         "; install a newer one, or start a process for each rank";
}

int pipewright::runtime::ncclVersion() {
  int version = 0;
  nccl().ncclGetVersion(&version);
  return version;
}

static Nccl openNccl() {
  const std::string needed =
      "NCCL " + ncclVersionText(oldestVersion) + " or newer";
  const std::string advice =
      "install " + needed +
      ", or let all ranks be threads of one process: --transport cuda-local";
  const SharedLibrary library("NCCL", "libnccl.so.2", advice);
  Nccl nccl;
  library.get(nccl.ncclGetVersion, "ncclGetVersion", needed.c_str());
  int version = 0;
  if (nccl.ncclGetVersion(&version) == ncclSuccess && version < oldestVersion)
    fail("NCCL is too old: libnccl.so.2 is version ", ncclVersionText(version),
         ", but ", needed, " is needed; ", advice);
#define PIPEWRIGHT_NCCL_LOAD(name)                                             \
  library.get(nccl.name, #name, needed.c_str());
  PIPEWRIGHT_NCCL_FUNCTIONS(PIPEWRIGHT_NCCL_LOAD)
#undef PIPEWRIGHT_NCCL_LOAD
  return nccl;
}

const Nccl &pipewright::runtime::nccl() {
  static const Nccl nccl = openNccl();
  return nccl;
}

std::string pipewright::runtime::ncclErrorText(ncclResult_t result) {
  static constexpr std::array<const char *, ncclNumResults> names = {
      "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
      "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
      "ncclRemoteError",   "ncclInProgress"};
  const size_t index = static_cast<size_t>(result);
  return std::string(nccl().ncclGetErrorString(result)) + " (" +
         (index < names.size() ? names[index] : std::to_string(index)) + ")";
}
