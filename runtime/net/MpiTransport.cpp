//===- MpiTransport.cpp - Ranks as MPI processes --------------------------===//

#include "runtime/net/MpiTransport.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"
#include "runtime/core/Text.h"
#include "runtime/net/Heartbeat.h"
#include "runtime/net/Liveness.h"

#include <cstdlib>

using namespace pipewright::runtime;

bool pipewright::runtime::startedByMpi() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char *size = std::getenv(name))
      return std::atoi(size) > 1;
  // srun --mpi=pmix says the number only in its own words.
  const char *tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return std::getenv("PMIX_RANK") && tasks && std::atoi(tasks) > 1;
}

#ifndef PIPEWRIGHT_HAS_MPI

std::unique_ptr<Transport> pipewright::runtime::createMpiTransport() {
  fail("this program was built without MPI: start it without mpirun, and its "
       "ranks run as threads");
}

#else

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <sched.h>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// Signs of life have a communicator of their own, each lane has two tags.
constexpr int signTag = 1;
int dataTag(Lane lane) { return 2 * static_cast<int>(lane) + 1; }
int noticeTag(Lane lane) { return 2 * static_cast<int>(lane) + 2; }

/// Throws with the call's text and the library's own words.
void check(int code, const char *call) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(call, ": ", std::string(text, length));
}
#define PIPEWRIGHT_MPI_CHECK(call) check(call, #call)

/// A posted send or receive: the data, and the notice that goes the other way.
struct Post {
  int64_t bytes;
  int64_t notice;
  MPI_Request requests[2];
};

/// Signs of life, on a communicator of their own. Without MPI_THREAD_MULTIPLE
/// they go out only while the rank is inside of a wait or of a poll.
class MpiBeats {
public:
  MpiBeats(MPI_Comm world, bool hasThreads);
  ~MpiBeats();

  /// Tells the others what `sign` says, hears them, and judges. Returns what is
  /// wrong, or "".
  std::string beat(const Sign &sign, double silence, bool judgesWaits);
  bool hasThreads() const { return threads; }

private:
  void send(const Sign &sign);
  /// How many have not said that they end.
  int receive();

  struct Link {
    Sign in, out;
    MPI_Request receiving = MPI_REQUEST_NULL, sending = MPI_REQUEST_NULL;
    bool ended = false;
  };

  const bool threads;
  MPI_Comm comm = MPI_COMM_NULL;
  int self = 0;
  Sign last;
  std::vector<Link> links;
  std::unique_ptr<Liveness> liveness;
};

class MpiTransport : public Transport {
public:
  MpiTransport();
  ~MpiTransport() override;

  int64_t rank() const override { return self; }
  int64_t size() const override { return ranks; }
  void postSend(Line to, const void *data, int64_t bytes) override;
  void postReceive(Line from, void *data, int64_t bytes) override;
  void waitSend(Line to) override;
  void waitReceive(Line from) override;
  bool isOver(Line line, bool isSend) override;
  void poll() override;
  void abort(const std::string &message) override;

private:
  void waitFor(Sign::WaitReason what, int64_t peer, int64_t bytes,
               const std::function<bool()> &test);
  void beat();
  void failIfBroken();
  int checkedCount(int64_t bytes) const;

  MPI_Comm comm = MPI_COMM_NULL;
  int self = 0;
  int ranks = 1;
  /// The posts of each line, oldest first.
  std::vector<std::deque<Post>> sends, receives;
  Clock::time_point lastPoll = Clock::now(), lastBeat = Clock::now();

  /// Guards what follows.
  std::mutex mutex;
  Sign::WaitReason waitsFor = Sign::None;
  int64_t waitsForPeer = -1, waitsForBytes = 0;
  int64_t steps = 0;
  /// What this rank has found to be wrong with others.
  std::string problem;
  std::unique_ptr<MpiBeats> beats;
  Heartbeat heartbeat;
};

} // namespace

//===----------------------------------------------------------------------===//
// Signs of life
//===----------------------------------------------------------------------===//

MpiBeats::MpiBeats(MPI_Comm world, bool hasThreads) : threads(hasThreads) {
  int ranks = 1;
  PIPEWRIGHT_MPI_CHECK(MPI_Comm_dup(world, &comm));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &self);
  MPI_Comm_size(comm, &ranks);
  links.resize(ranks);
  liveness = std::make_unique<Liveness>(self, ranks, Clock::now());
  for (int r = 0; r < ranks; ++r)
    if (r != self)
      PIPEWRIGHT_MPI_CHECK(MPI_Irecv(&links[r].in, sizeof(Sign), MPI_BYTE, r,
                                     signTag, comm, &links[r].receiving));
}

/// All ranks end together: none leaves before it has heard so from all.
MpiBeats::~MpiBeats() {
  last.reason = Sign::Finished;
  const auto start = Clock::now();
  auto isLate = [&] { return Clock::now() - start > std::chrono::seconds(5); };
  send(last);
  while (receive() > 0 && !isLate())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (Link &link : links)
    if (link.receiving != MPI_REQUEST_NULL) {
      MPI_Cancel(&link.receiving);
      MPI_Request_free(&link.receiving);
    }
  MPI_Comm_free(&comm);
}

void MpiBeats::send(const Sign &sign) {
  for (int r = 0; r < static_cast<int>(links.size()); ++r) {
    Link &link = links[r];
    int done = 1;
    if (link.sending != MPI_REQUEST_NULL)
      MPI_Test(&link.sending, &done, MPI_STATUS_IGNORE);
    if (sign.reason == Sign::Finished && !done)
      MPI_Wait(&link.sending, MPI_STATUS_IGNORE);
    else if (!done || r == self)
      continue;
    link.out = sign;
    MPI_Isend(&link.out, sizeof(Sign), MPI_BYTE, r, signTag, comm,
              &link.sending);
  }
}

int MpiBeats::receive() {
  int expected = 0;
  for (int r = 0; r < static_cast<int>(links.size()); ++r) {
    Link &link = links[r];
    int done = 1;
    while (done && r != self && !link.ended) {
      MPI_Test(&link.receiving, &done, MPI_STATUS_IGNORE);
      if (!done)
        break;
      liveness->hear(r, link.in, Clock::now());
      link.ended = link.in.reason == Sign::Finished;
      if (link.ended)
        liveness->end(r);
      else
        MPI_Irecv(&link.in, sizeof(Sign), MPI_BYTE, r, signTag, comm,
                  &link.receiving);
    }
    expected += r != self && !link.ended;
  }
  return expected;
}

std::string MpiBeats::beat(const Sign &sign, double silence, bool judgesWaits) {
  last = sign;
  liveness->hear(self, sign, Clock::now());
  send(sign);
  receive();
  const auto now = Clock::now();
  if (const int64_t silent = liveness->findSilent(silence, now); silent >= 0)
    return silentText(self, silent, silence, liveness->describeAll(now));
  if (judgesWaits && sign.waits() && liveness->isStuck(silence))
    return stuckText(silence, liveness->describeAll(now));
  return "";
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

MpiTransport::MpiTransport() {
  int provided = 0;
  PIPEWRIGHT_MPI_CHECK(
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  PIPEWRIGHT_MPI_CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &self);
  MPI_Comm_size(comm, &ranks);
  sends.resize(ranks * laneCount);
  receives.resize(ranks * laneCount);
  if (ranks == 1)
    return;
  beats = std::make_unique<MpiBeats>(MPI_COMM_WORLD,
                                     provided >= MPI_THREAD_MULTIPLE);
  if (beats->hasThreads())
    heartbeat.start([this] { beat(); },
                    [this] { return beatSeconds(silence()); });
}

MpiTransport::~MpiTransport() {
  heartbeat.stop();
  beats.reset();
  MPI_Comm_free(&comm);
  MPI_Finalize();
}

void MpiTransport::beat() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!problem.empty())
    return;
  // A kernel may keep a rank from saying that it lives.
  const double seconds =
      beats->hasThreads() ? silence() : std::max(silence(), 300.0);
  problem = beats->beat(makeSign(waitsFor, waitsForPeer, waitsForBytes, steps),
                        seconds, !hasDeadline());
}

void MpiTransport::failIfBroken() {
  if (beats && !beats->hasThreads()) {
    const std::chrono::duration<double> since = Clock::now() - lastBeat;
    if (since.count() >= beatSeconds(silence())) {
      beat();
      lastBeat = Clock::now();
    }
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (!problem.empty())
    fail(problem);
}

int MpiTransport::checkedCount(int64_t bytes) const {
  if (bytes > std::numeric_limits<int>::max())
    fail(processName(self), ": a transfer of ", bytes,
         " bytes is more than one MPI message can carry (2 GiB)");
  return static_cast<int>(bytes);
}

void MpiTransport::postSend(Line to, const void *data, int64_t bytes) {
  const int peer = static_cast<int>(to.peer);
  Post &post = sends[to.index()].emplace_back(Post{bytes, -1, {}});
  PIPEWRIGHT_MPI_CHECK(MPI_Irecv(&post.notice, 1, MPI_INT64_T, peer,
                                 noticeTag(to.lane), comm, &post.requests[1]));
  PIPEWRIGHT_MPI_CHECK(MPI_Isend(data, checkedCount(bytes), MPI_BYTE, peer,
                                 dataTag(to.lane), comm, &post.requests[0]));
}

void MpiTransport::postReceive(Line from, void *data, int64_t bytes) {
  const int peer = static_cast<int>(from.peer);
  Post &post = receives[from.index()].emplace_back(Post{bytes, bytes, {}});
  PIPEWRIGHT_MPI_CHECK(MPI_Irecv(data, checkedCount(bytes), MPI_BYTE, peer,
                                 dataTag(from.lane), comm, &post.requests[0]));
  PIPEWRIGHT_MPI_CHECK(MPI_Isend(&post.notice, 1, MPI_INT64_T, peer,
                                 noticeTag(from.lane), comm,
                                 &post.requests[1]));
}

/// Spins while a hand-over is likely, then leaves the core to others: there
/// may be more ranks than cores.
void MpiTransport::waitFor(Sign::WaitReason what, int64_t peer, int64_t bytes,
                           const std::function<bool()> &test) {
  const auto start = Clock::now();
  bool told = false;
  auto tell = [&](Sign::WaitReason now) {
    std::lock_guard<std::mutex> lock(mutex);
    waitsFor = now;
    waitsForPeer = peer;
    waitsForBytes = bytes;
    ++steps;
  };
  while (!test()) {
    const double waited =
        std::chrono::duration<double>(Clock::now() - start).count();
    if (waited > deadline())
      failDeadline(peer, waitText(what, bytes));
    if (waited > 1e-3) {
      if (!std::exchange(told, true))
        tell(what);
      failIfBroken();
      advanceErrands();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    } else if (waited > 50e-6) {
      sched_yield();
    }
  }
  if (told)
    tell(Sign::None);
}

/// Does not free the request, so that the wait still finds it, and tells what
/// is wrong with it.
static bool hasEnded(MPI_Request request) {
  int done = 0;
  const int code = MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
  return done != 0 || code != MPI_SUCCESS;
}

bool MpiTransport::isOver(Line line, bool isSend) {
  const std::deque<Post> &posts = (isSend ? sends : receives)[line.index()];
  if (posts.empty())
    return true;
  // A send of another size may never leave, but its notice comes.
  const Post &post = posts.front();
  return hasEnded(post.requests[1]) &&
         ((isSend && post.notice != post.bytes) || hasEnded(post.requests[0]));
}

static bool isDone(MPI_Request &request) {
  int done = 0;
  PIPEWRIGHT_MPI_CHECK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  return done != 0;
}

void MpiTransport::waitSend(Line to) {
  const int64_t peer = to.peer;
  const Sign::WaitReason what = waitOf(to.lane, true);
  std::deque<Post> &posts = sends[to.index()];
  if (posts.empty())
    fail(processName(self), " waits for a send that it has not posted");
  Post &post = posts.front();
  // The notice first: when it tells another size, the data may never leave.
  waitFor(what, peer, post.bytes, [&] { return isDone(post.requests[1]); });
  if (post.notice != post.bytes)
    failSizes(self, peer, post.bytes, post.notice);
  waitFor(what, peer, post.bytes, [&] { return isDone(post.requests[0]); });
  posts.pop_front();
}

void MpiTransport::waitReceive(Line from) {
  const int64_t peer = from.peer;
  const Sign::WaitReason what = waitOf(from.lane, false);
  std::deque<Post> &posts = receives[from.index()];
  if (posts.empty())
    fail(processName(self), " waits for a receive that it has not posted");
  Post &post = posts.front();
  waitFor(what, peer, post.bytes, [&] {
    int done = 0;
    MPI_Status status;
    const int code = MPI_Test(&post.requests[0], &done, &status);
    int errorClass = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
      MPI_Error_class(code, &errorClass);
    if (errorClass == MPI_ERR_TRUNCATE)
      fail(processName(peer), " sends more than the ", post.bytes,
           " bytes that ", processName(self), " expects");
    PIPEWRIGHT_MPI_CHECK(code);
    if (!done)
      return false;
    int received = 0;
    MPI_Get_count(&status, MPI_BYTE, &received);
    if (received != post.bytes)
      failSizes(peer, self, received, post.bytes);
    return true;
  });
  waitFor(what, peer, post.bytes, [&] { return isDone(post.requests[1]); });
  posts.pop_front();
}

void MpiTransport::poll() {
  // A rendezvous moves only while both sides are inside MPI; every 0.25 ms
  // hides 85 % of a transfer and costs nothing that can be measured.
  const auto now = Clock::now();
  if (now - lastPoll < std::chrono::microseconds(250))
    return;
  lastPoll = now;
  failIfBroken();
  for (auto *side : {&sends, &receives})
    for (std::deque<Post> &posts : *side)
      for (const Post &post : posts)
        hasEnded(post.requests[0]);
  advanceErrands();
}

void MpiTransport::abort(const std::string &message) {
  // Two ends of a broken link fail at the same moment, but one message is
  // enough: the others are gone before their turn comes.
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::min(200 * self, 1000)));
  // The only place that can still speak: MPI_Abort does not return.
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", printable(message).c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

std::unique_ptr<Transport> pipewright::runtime::createMpiTransport() {
  return std::make_unique<MpiTransport>();
}

#endif // PIPEWRIGHT_HAS_MPI
