//===- ElementType.h - What tensors are made of ----------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_ELEMENTTYPE_H
#define PIPEWRIGHT_RUNTIME_CORE_ELEMENTTYPE_H

#include <cstdint>

namespace pipewright::runtime {

enum class ElementType { F32, I64, I1, I8, BF16 };

/// Bytes of one element (booleans take a byte).
constexpr int64_t byteWidth(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return 4;
  case ElementType::I64:
    return 8;
  case ElementType::BF16:
    return 2;
  case ElementType::I1:
  case ElementType::I8:
    return 1;
  }
  return 0;
}

/// What messages call it.
constexpr const char *typeText(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "f32";
  case ElementType::I64:
    return "i64";
  case ElementType::I1:
    return "bool";
  case ElementType::I8:
    return "i8";
  case ElementType::BF16:
    return "bf16";
  }
  return "?";
}

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_ELEMENTTYPE_H
