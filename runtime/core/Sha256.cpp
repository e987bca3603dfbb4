//===- Sha256.cpp - SHA-256 and HMAC-SHA-256 ------------------------------===//

#include "runtime/core/Sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace pipewright::runtime;

/// The first 32 bits of the fractional parts of the cube roots of the first 64
/// primes.
static constexpr uint32_t roundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t wordAt(const uint8_t *bytes) {
  return uint32_t(bytes[0]) << 24 | uint32_t(bytes[1]) << 16 |
         uint32_t(bytes[2]) << 8 | bytes[3];
}

void Sha256::block(const uint8_t *bytes) {
  uint32_t words[64];
  for (int i = 0; i < 16; ++i)
    words[i] = wordAt(bytes + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + words[i - 7] +
               (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    const uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
        ((e & f) ^ (~e & g)) + roundConstants[i] + words[i];
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
        ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  const uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i)
    state[i] += mixed[i];
}

Sha256 &Sha256::add(std::string_view bytes) {
  length += bytes.size();
  while (!bytes.empty()) {
    const size_t part = std::min(bytes.size(), buffer.size() - buffered);
    std::memcpy(buffer.data() + buffered, bytes.data(), part);
    buffered += part;
    bytes.remove_prefix(part);
    if (buffered == buffer.size()) {
      block(buffer.data());
      buffered = 0;
    }
  }
  return *this;
}

Digest Sha256::finish() {
  const uint64_t bits = 8 * length;
  add(std::string_view("\x80", 1));
  while (buffered != 56)
    add(std::string_view("", 1));
  char tail[8];
  for (int i = 0; i < 8; ++i)
    tail[i] = static_cast<char>(bits >> (56 - 8 * i));
  add({tail, sizeof tail});
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest pipewright::runtime::sha256(std::string_view bytes) {
  return Sha256().add(bytes).finish();
}

Digest pipewright::runtime::hmacSha256(std::string_view key,
                                       std::string_view message) {
  std::string inner(64, '\0');
  if (key.size() > inner.size()) {
    const Digest shorter = sha256(key);
    std::memcpy(inner.data(), shorter.data(), shorter.size());
  } else {
    std::copy(key.begin(), key.end(), inner.begin());
  }
  std::string outer = inner;
  for (char &c : inner)
    c ^= 0x36;
  for (char &c : outer)
    c ^= 0x5c;
  const Digest once = Sha256().add(inner).add(message).finish();
  return Sha256().add(outer).add(bytesOf(once)).finish();
}

bool pipewright::runtime::areEqual(const Digest &a, const Digest &b) {
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = difference | (a[i] ^ b[i]);
  return difference == 0;
}

std::string pipewright::runtime::hexText(const Digest &digest, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < std::min(bytes, digest.size()); ++i)
    for (const int digit : {digest[i] >> 4, digest[i] & 15})
      text += "0123456789abcdef"[digit];
  return text;
}
