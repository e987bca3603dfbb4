//===- LinkKind.h - The kinds of links between GPUs -------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_LINKKIND_H
#define PIPEWRIGHT_RUNTIME_CUDA_LINKKIND_H

#include <optional>
#include <string>
#include <string_view>

namespace pipewright::runtime {

/// How two ranks reach each other: as threads of a process, as processes of a
/// host whose GPUs reach each other's memory, or anywhere.
enum class LinkKind { Local, Ipc, Nccl };

struct LinkKindFacts {
  LinkKind kind;
  /// As users write it behind --transport.
  const char *name;
  /// What a link of it takes, for --dry-run.
  const char *text;
};

/// The one list of them.
inline constexpr LinkKindFacts allLinkKinds[] = {
    {LinkKind::Local, "cuda-local",
     "copies within the process, no communicators"},
    {LinkKind::Ipc, "cuda-ipc",
     "copies between processes of a host, no communicators"},
    {LinkKind::Nccl, "nccl", ""}};

constexpr const LinkKindFacts &factsOf(LinkKind kind) {
  return allLinkKinds[static_cast<size_t>(kind)];
}

inline std::optional<LinkKind> findLinkKind(std::string_view name) {
  for (const LinkKindFacts &facts : allLinkKinds)
    if (name == facts.name)
      return facts.kind;
  return std::nullopt;
}

/// "cuda-local, cuda-ipc or nccl".
inline std::string linkKindNames() {
  std::string text;
  for (const LinkKindFacts &facts : allLinkKinds)
    text += (text.empty()                   ? ""
             : facts.kind == LinkKind::Nccl ? " or "
                                            : ", ") +
            std::string(facts.name);
  return text;
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_LINKKIND_H
