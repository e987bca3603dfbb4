//===- TcpFrameTests.cpp - Frames from bytes, and proofs of ranks ---------===//

#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/core/Sha256.h"
#include "runtime/net/TcpHandshake.h"
#include "runtime/net/TcpPeer.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace pipewright::runtime;
using namespace pipewright::runtime::tcp;

// --- SHA-256, HMAC: the examples of FIPS 180-2 and RFC 4231 ------------------

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(hexText(sha256("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hexText(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hexText(sha256(
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 million;
  for (int i = 0; i < 1000; ++i)
    million.add(std::string(1000, 'a'));
  EXPECT_EQ(hexText(million.finish()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PublishedExamplesOfHmac) {
  EXPECT_EQ(hexText(hmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hexText(hmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hexText(hmacSha256(
                std::string(131, '\xaa'),
                "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// --- Proofs ------------------------------------------------------------------

namespace {
struct Conversation {
  JobKey key;
  Challenge challenge = challengeWith(freshNonce());
  Introduction introduction;

  Conversation() {
    key.key = sha256("key");
    introduction.rank = 2;
    introduction.size = 4;
    introduction.to = 1;
    prove(introduction, challenge, key);
  }
};
} // namespace

TEST(TcpHandshake, EachWordIsInTheProof) {
  const Conversation c;
  EXPECT_TRUE(holds(c.introduction, c.challenge, 1, c.key));
  EXPECT_FALSE(holds(c.introduction, c.challenge, 0, c.key)) << "to another";
  EXPECT_FALSE(holds(c.introduction, challengeWith(freshNonce()), 1, c.key));
  for (size_t i = 0; i < sizeof(Introduction); ++i) {
    Introduction changed = c.introduction;
    reinterpret_cast<char *>(&changed)[i] ^= 1;
    EXPECT_FALSE(holds(changed, c.challenge, 1, c.key)) << "byte " << i;
  }
}

TEST(TcpHandshake, NeitherSidesProofFitsTheOther) {
  const Conversation c;
  const Answer answer = answerTo(c.introduction, c.challenge, 1, true, c.key);
  EXPECT_TRUE(holds(answer, c.introduction, c.challenge, c.key));
  Answer reflected = answer;
  reflected.proof = c.introduction.proof;
  EXPECT_FALSE(holds(reflected, c.introduction, c.challenge, c.key));
  Introduction other = c.introduction;
  other.proof = answer.proof;
  EXPECT_FALSE(holds(other, c.challenge, 1, c.key));
  Answer elsewhere = answer;
  elsewhere.rank = 0;
  EXPECT_FALSE(holds(elsewhere, c.introduction, c.challenge, c.key));
}

// --- Frames ------------------------------------------------------------------

namespace {
/// The bytes of frames, as they travel.
class Stream {
public:
  Stream &add(int32_t kind, int64_t bytes, const std::string &payload = "",
              Lane lane = Lane::Transfers) {
    const Header header = {kind, bytes, lane};
    text.append(reinterpret_cast<const char *>(&header), sizeof header);
    text += payload;
    return *this;
  }
  std::string text;
};
} // namespace

TEST(TcpFrames, MayBeCutAnywhere) {
  Stream stream;
  stream.add(Header::Ready, 5).add(Header::Data, 3, "abc");
  // Lanes do not wait for each other.
  stream.add(Header::Data, 4, "sum!", Lane::Control);
  stream.add(Header::Data, 2, "de");
  stream.add(Header::Failed, 6, "it\nwas").add(Header::Bye, 0);
  for (size_t part = 1; part <= stream.text.size(); part += 7) {
    Peer peer;
    char received[5] = {}, sum[4] = {};
    peer.at(Lane::Transfers).receives.push_back({received, 5});
    peer.at(Lane::Control).receives.push_back({sum, 4});
    for (size_t at = 0; at < stream.text.size(); at += part)
      peer.feed(stream.text.data() + at,
                std::min(part, stream.text.size() - at));
    EXPECT_EQ(std::string(received, 5), "abcde");
    EXPECT_TRUE(peer.at(Lane::Transfers).receives[0].done);
    EXPECT_EQ(std::string(sum, 4), "sum!");
    EXPECT_TRUE(peer.at(Lane::Control).receives[0].done);
    EXPECT_EQ(peer.failure, "it was") << "nothing that a terminal obeys";
    EXPECT_TRUE(peer.saidBye);
  }
}

TEST(TcpFrames, PromisesTakeNoMemory) {
  Peer peer;
  Stream stream;
  stream.add(Header::Failed, maxFailedBytes, std::string(100, 'x'));
  peer.feed(stream.text.data(), stream.text.size());
  EXPECT_FALSE(peer.failure);
  stream.text.clear();
  stream.add(Header::Failed, maxFailedBytes + 1);
  Peer other;
  EXPECT_THROW(other.feed(stream.text.data(), stream.text.size()), Error);
}

TEST(TcpFrames, ALaneThatIsNoneIsRefused) {
  for (const int32_t lane : {-1, static_cast<int>(laneCount), 1 << 30}) {
    Peer peer;
    Stream stream;
    stream.add(Header::Ready, 8, "", static_cast<Lane>(lane));
    EXPECT_THROW(peer.feed(stream.text.data(), stream.text.size()), Error);
  }
}

TEST(TcpFrames, NoBytesWriteBesideAReceive) {
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    Peer peer;
    std::vector<char> memory(96, '\x7e');
    const auto sizes = philox(seed, 0, 0, 0, 1);
    auto &receives = peer.at(allLanes[sizes[1] % laneCount]).receives;
    receives.push_back({memory.data() + 16, sizes[0] % 64});
    Stream stream;
    for (uint32_t frame = 0; frame < 6; ++frame) {
      const auto word = philox(seed, 0, frame, 0, 2);
      const int64_t edges[] = {word[2] % 80,     -1,
                               INT64_MAX,        INT64_MIN,
                               int64_t(1) << 40, sizeof(Sign)};
      const int64_t bytes = edges[word[1] % 12 < 6 ? word[1] % 6 : 0];
      stream.add(word[0] % 8, bytes, std::string(word[3] % 150, 'y'),
                 static_cast<Lane>(word[0] / 8 % (laneCount + 1)));
    }
    try {
      peer.feed(stream.text.data(), stream.text.size());
    } catch (const Error &) {
    }
    const int64_t end = 16 + receives[0].bytes;
    for (int64_t i = 0; i < 96; ++i)
      if (i < 16 || i >= end) {
        ASSERT_EQ(memory[i], '\x7e') << "seed " << seed << " byte " << i;
      }
  }
}
