//===- TcpHandshake.h - Ranks prove that they belong together ---*- C++ -*-===//
//
// Whoever connects has to prove that it knows the job's key before anything it
// says is believed, and whoever accepts proves it in turn:
//
//   accepts   -> connects   Challenge      a fresh nonce
//   connects  -> accepts    Introduction   its own nonce, who it is, to whom it
//                                          comes, and the proof
//   accepts   -> connects   Answer         who it is, and its proof
//
// A proof is an HMAC-SHA-256 over both nonces, both ends' ranks and the side
// that speaks: nothing that was said in another conversation, or to the other
// side of this one, fits. Afterwards bytes travel as they are: neither secret
// nor protected against somebody who sits on the wire.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_NET_TCPHANDSHAKE_H
#define PIPEWRIGHT_RUNTIME_NET_TCPHANDSHAKE_H

#include "runtime/core/Sha256.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace pipewright::runtime::tcp {

/// What the ranks of a run share, and others do not know.
struct JobKey {
  Digest key = {};
  /// What may be told to anyone: it names the program, and no more.
  std::array<uint8_t, 8> program = {};

  /// From PIPEWRIGHT_JOB_KEY if that is set, else from the launcher's job id,
  /// if there is one, and the program. `program` is whatever only copies of
  /// the same program have in common.
  static JobKey fromEnvironment(std::string_view program);
};

/// The 16 digits by which users tell programs apart.
std::string programText(const std::array<uint8_t, 8> &program);

using Nonce = std::array<uint8_t, 32>;
/// Random bytes from the kernel. Throws an Error if it has none.
Nonce freshNonce();

constexpr char magic[8] = {'p', 'w', 't', 'c', 'p', '0', '0', '2'};

struct Challenge {
  char magic[8] = {};
  Nonce nonce = {};
};

struct Introduction {
  char magic[8] = {};
  Nonce nonce = {};
  int64_t rank = -1;
  int64_t size = 0;
  /// The rank that it wants to talk to.
  int64_t to = -1;
  /// The port at which it listens itself.
  int64_t port = 0;
  std::array<uint8_t, 8> program = {};
  Digest proof = {};
};

struct Answer {
  /// 1: taken in; 0: the proof is wrong.
  int64_t welcome = 0;
  int64_t rank = -1;
  std::array<uint8_t, 8> program = {};
  Digest proof = {};
};

Challenge challengeWith(const Nonce &nonce);
bool isOurs(const Challenge &challenge);
bool isOurs(const Introduction &introduction);

/// Fills in magic, nonce, program and proof.
void prove(Introduction &introduction, const Challenge &challenge,
           const JobKey &key);
/// Whether it comes from one who knows the key, for this rank, after this
/// challenge.
bool holds(const Introduction &introduction, const Challenge &challenge,
           int64_t self, const JobKey &key);

Answer answerTo(const Introduction &introduction, const Challenge &challenge,
                int64_t self, bool welcome, const JobKey &key);
bool holds(const Answer &answer, const Introduction &introduction,
           const Challenge &challenge, const JobKey &key);

} // namespace pipewright::runtime::tcp

#endif // PIPEWRIGHT_RUNTIME_NET_TCPHANDSHAKE_H
