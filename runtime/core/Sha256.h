//===- Sha256.h - SHA-256 and HMAC-SHA-256 ---------------------*- C++ -*-===//
//
// FIPS 180-4 and RFC 2104, small and portable: for the few hundred bytes by
// which ranks prove to each other that they belong together, and for names of
// programs. Not for gigabytes.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_SHA256_H
#define PIPEWRIGHT_RUNTIME_CORE_SHA256_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pipewright::runtime {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
public:
  Sha256 &add(std::string_view bytes);
  /// Ends it; add no more.
  Digest finish();

private:
  void block(const uint8_t *bytes);

  std::array<uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                   0xa54ff53a, 0x510e527f, 0x9b05688c,
                                   0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> buffer = {};
  size_t buffered = 0;
  uint64_t length = 0;
};

Digest sha256(std::string_view bytes);
Digest hmacSha256(std::string_view key, std::string_view message);

inline std::string_view bytesOf(const Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

/// In a time that does not tell where they differ.
bool areEqual(const Digest &a, const Digest &b);

/// The first bytes in hexadecimal.
std::string hexText(const Digest &digest, size_t bytes = 32);

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_SHA256_H
