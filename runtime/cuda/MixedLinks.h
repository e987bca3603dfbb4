//===- MixedLinks.h - Links of several kinds in one run --------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_MIXEDLINKS_H
#define PIPEWRIGHT_RUNTIME_CUDA_MIXEDLINKS_H

#include "runtime/cuda/DeviceLinks.h"
#include "runtime/cuda/LinkChoice.h"

#include <functional>
#include <memory>

namespace pipewright::runtime {

using MakeLinksOf = std::function<std::unique_ptr<DeviceLinks>(LinkKind kind)>;

/// Links of rank `self`, of the kinds that the choice uses, each made by
/// `make`: what is given to them goes over its peer's kind. Where there is one
/// kind only, these themselves.
std::unique_ptr<DeviceLinks> createLinks(const LinkChoice &choice, int64_t self,
                                         const MakeLinksOf &make);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_MIXEDLINKS_H
