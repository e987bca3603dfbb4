//===- TcpHandshake.cpp - Ranks prove that they belong together -----------===//

#include "runtime/net/TcpHandshake.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/random.h>

using namespace pipewright::runtime;
using namespace pipewright::runtime::tcp;

//===----------------------------------------------------------------------===//
// The key
//===----------------------------------------------------------------------===//

/// What the launcher calls this run; "" if it says nothing. Not the step of a
/// Slurm job: scripts start each rank by an srun of its own.
static std::string launcherJob() {
  for (const char *name :
       {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"})
    if (const char *id = std::getenv(name); id && *id)
      return std::string(name) + "=" + id;
  return "";
}

JobKey JobKey::fromEnvironment(std::string_view program) {
  const Digest digest =
      Sha256().add("pipewright program\n").add(program).finish();
  JobKey key;
  const Digest name =
      Sha256().add("pipewright name\n").add(bytesOf(digest)).finish();
  std::copy_n(name.begin(), key.program.size(), key.program.begin());
  if (const char *secret = std::getenv("PIPEWRIGHT_JOB_KEY"); secret && *secret)
    // The key is not of the program, so that ranks of another one can say so.
    key.key = hmacSha256(secret, "pipewright job key");
  else
    key.key = hmacSha256(bytesOf(digest), "pipewright job\n" + launcherJob());
  return key;
}

std::string
pipewright::runtime::tcp::programText(const std::array<uint8_t, 8> &program) {
  Digest digest = {};
  std::copy(program.begin(), program.end(), digest.begin());
  return hexText(digest, program.size());
}

Nonce pipewright::runtime::tcp::freshNonce() {
  Nonce nonce;
  for (size_t done = 0; done < nonce.size();) {
    const ssize_t got = getrandom(nonce.data() + done, nonce.size() - done, 0);
    if (got < 0 && errno != EINTR)
      fail("the kernel gives no random numbers: ", std::strerror(errno));
    done += std::max<ssize_t>(got, 0);
  }
  return nonce;
}

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

template <class T>
static void append(std::string &text, const T &value) {
  text.append(reinterpret_cast<const char *>(&value), sizeof value);
}

static Digest proofOf(const char *side, const Introduction &introduction,
                      const Challenge &challenge, const JobKey &key) {
  std::string said = side;
  append(said, challenge.nonce);
  append(said, introduction.nonce);
  append(said, introduction.rank);
  append(said, introduction.size);
  append(said, introduction.to);
  append(said, introduction.port);
  append(said, introduction.program);
  return hmacSha256(bytesOf(key.key), said);
}

static Digest proofOf(const Answer &answer, const Introduction &introduction,
                      const Challenge &challenge, const JobKey &key) {
  const Digest first =
      proofOf("pipewright accepts\n", introduction, challenge, key);
  std::string said(bytesOf(first));
  append(said, answer.welcome);
  append(said, answer.rank);
  append(said, answer.program);
  return hmacSha256(bytesOf(key.key), said);
}

Challenge pipewright::runtime::tcp::challengeWith(const Nonce &nonce) {
  Challenge challenge;
  std::memcpy(challenge.magic, magic, sizeof magic);
  challenge.nonce = nonce;
  return challenge;
}

bool pipewright::runtime::tcp::isOurs(const Challenge &challenge) {
  return std::memcmp(challenge.magic, magic, sizeof magic) == 0;
}

bool pipewright::runtime::tcp::isOurs(const Introduction &introduction) {
  return std::memcmp(introduction.magic, magic, sizeof magic) == 0;
}

static constexpr const char *connects = "pipewright connects\n";

void pipewright::runtime::tcp::prove(Introduction &introduction,
                                     const Challenge &challenge,
                                     const JobKey &key) {
  std::memcpy(introduction.magic, magic, sizeof magic);
  introduction.nonce = freshNonce();
  introduction.program = key.program;
  introduction.proof = proofOf(connects, introduction, challenge, key);
}

bool pipewright::runtime::tcp::holds(const Introduction &introduction,
                                     const Challenge &challenge, int64_t self,
                                     const JobKey &key) {
  return isOurs(introduction) && introduction.to == self &&
         areEqual(introduction.proof,
                  proofOf(connects, introduction, challenge, key));
}

Answer pipewright::runtime::tcp::answerTo(const Introduction &introduction,
                                          const Challenge &challenge,
                                          int64_t self, bool welcome,
                                          const JobKey &key) {
  Answer answer;
  answer.welcome = welcome;
  answer.rank = self;
  answer.program = key.program;
  if (welcome)
    answer.proof = proofOf(answer, introduction, challenge, key);
  return answer;
}

bool pipewright::runtime::tcp::holds(const Answer &answer,
                                     const Introduction &introduction,
                                     const Challenge &challenge,
                                     const JobKey &key) {
  return answer.welcome == 1 && answer.rank == introduction.to &&
         areEqual(answer.proof, proofOf(answer, introduction, challenge, key));
}
