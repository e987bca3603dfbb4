//===- LinkChoice.h - Which link is of which kind --------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_LINKCHOICE_H
#define PIPEWRIGHT_RUNTIME_CUDA_LINKCHOICE_H

#include "runtime/core/Program.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/LinkKind.h"
#include "runtime/net/Transport.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::runtime {

/// The kind of each link of a program, the same on all ranks.
struct LinkChoice {
  using Link = std::pair<int64_t, int64_t>;

  /// (from, to), and the kind of each.
  std::vector<Link> links;
  std::vector<LinkKind> kinds;
  /// Lists of ranks; all are of one kind.
  std::vector<std::vector<int64_t>> groups;
  LinkKind groupKind = LinkKind::Local;

  std::vector<Link> over(LinkKind kind) const;
  std::vector<std::vector<int64_t>> groupsOver(LinkKind kind) const;
  /// Whether any link, or group of two or more, is of this kind.
  bool uses(LinkKind kind) const;
};

/// Before anything is known but the host of each rank: with Ipc, links between
/// hosts are NCCL's, and so are all groups.
LinkChoice planLinks(const Program &program, LinkKind wanted,
                     const std::vector<int64_t> &hosts);

/// For ranks that are processes, which all call it, each with its GPU current.
/// With Ipc, each link within a host is tried, and is NCCL's where that fails;
/// `remarks` says why, a line each, on the rank that knows. With `mustBeIpc`
/// that is an Error.
LinkChoice chooseLinks(const Program &program, LinkKind wanted, bool mustBeIpc,
                       const Device &device, Transport &transport,
                       std::string &remarks);

/// "links over cuda-ipc: 0 -> 1, 1 -> 0", a line for each kind.
std::string linkLines(const LinkChoice &choice);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_LINKCHOICE_H
