//===- TcpRendezvous.cpp - Ranks find each other over TCP -----------------===//
//
// Every rank but the last listens at a port of its own and tells rank 0, whose
// address all know. Once all have come, rank 0 answers with everyone's address,
// or with what went wrong; then each rank connects to those before it. On every
// connection both ends first prove that they are of the same job. Once all have
// met nobody listens any more.
//
//===----------------------------------------------------------------------===//

#include "runtime/net/TcpRendezvous.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/net/TcpAcceptor.h"
#include "runtime/net/TcpHandshake.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <poll.h>
#include <thread>

using namespace pipewright::runtime;
using namespace pipewright::runtime::tcp;

//===----------------------------------------------------------------------===//
// Where ranks meet
//===----------------------------------------------------------------------===//

static std::string variable(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

static int64_t numberOf(const char *name, int64_t least, int64_t most) {
  const std::string text = variable(name);
  char *end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty())
    fail("ranks that are processes need the environment variables RANK, "
         "WORLD_SIZE, MASTER_ADDR and MASTER_PORT, but ",
         name, " is not set");
  if (*end || errno || value < least || value > most)
    fail(name, "=", text, ": expected a number from ", least, " to ", most);
  return value;
}

TcpJob TcpJob::fromEnvironment(std::string_view program) {
  TcpJob place;
  place.key = JobKey::fromEnvironment(program);
  place.size = numberOf("WORLD_SIZE", 1, 1 << 16);
  place.rank = numberOf("RANK", 0, place.size - 1);
  place.host = variable("MASTER_ADDR");
  if (place.host.empty())
    fail("ranks that are processes need the environment variables RANK, "
         "WORLD_SIZE, MASTER_ADDR and MASTER_PORT, but MASTER_ADDR is not set");
  place.port = static_cast<int>(numberOf("MASTER_PORT", 1, 65535));
  // torchrun keeps a store of its own at the port that it names.
  if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True")
    place.port = place.port < 65535 ? place.port + 1 : place.port - 1;
  return place;
}

//===----------------------------------------------------------------------===//
// The meeting
//===----------------------------------------------------------------------===//

namespace {

/// One line of what rank 0 tells once all have come.
struct Address {
  char host[64] = {};
  int64_t port = 0;
};

/// How long rank 0 takes to tell the others that somebody has not come.
constexpr double graceSeconds = 5;

class Meeting {
public:
  Meeting(const TcpJob &place, double seconds)
      : place(place), seconds(seconds), deadline(seconds), sockets(place.size) {
  }

  std::vector<Socket> run();

private:
  void gatherAll();
  void welcome(Socket socket, const Introduction &introduction);
  std::string findProblem(const Introduction &introduction) const;
  void turnAway(const std::string &address, const Introduction &introduction);
  [[noreturn]] void failMissing();
  void tellAll(const std::string &problem);
  void goToFirst();
  void connectToEarlier();
  void takeIn(const Deadline &until);
  void acceptLater();
  Socket join(int64_t to, const std::string &host, int port,
              const Deadline &until);
  bool introduce(const Socket &socket, int64_t to, const std::string &where,
                 const Deadline &until);
  /// Those that are not there yet: "rank 2", "ranks 2, 3".
  std::string missing(int64_t first) const;

  std::string where() const {
    return place.host + ":" + std::to_string(place.port);
  }

  const TcpJob &place;
  const double seconds;
  const Deadline deadline;
  Socket listener;
  std::unique_ptr<Acceptor> acceptor;
  std::vector<Socket> sockets;
  std::vector<Address> addresses;
  /// What was said of those that could not prove that they are of the job.
  int64_t noticed = 0;
  std::string lastNotice;
};

} // namespace

//===----------------------------------------------------------------------===//
// One connection
//===----------------------------------------------------------------------===//

/// What differs between two processes of which one could not prove anything to
/// the other: `there` as seen by the one that speaks.
static std::string differenceText(const std::array<uint8_t, 8> &here,
                                  const std::array<uint8_t, 8> &there) {
  if (here != there)
    return "it has another program (" + programText(there) + ", not " +
           programText(here) +
           "): start every rank from a copy of the same "
           "folder";
  return "it is of another job: give all processes the same "
         "PIPEWRIGHT_JOB_KEY, or start them by one launcher";
}

/// Proves who this is, and hears the other's proof. False if the connection
/// breaks: then another try may do.
bool Meeting::introduce(const Socket &socket, int64_t to,
                        const std::string &there, const Deadline &until) {
  Challenge challenge;
  if (!socket.receiveAll(&challenge, sizeof challenge, until))
    return false;
  if (!isOurs(challenge))
    fail("rank ", place.rank, " gets no answer from rank ", to, " at ", there,
         ": something else listens there (MASTER_PORT changes the port)");
  Introduction mine;
  mine.rank = place.rank;
  mine.size = place.size;
  mine.to = to;
  mine.port = listener ? listener.port() : 0;
  prove(mine, challenge, place.key);
  Answer answer;
  if (!socket.sendAll(&mine, sizeof mine, until) ||
      !socket.receiveAll(&answer, sizeof answer, until))
    return false;
  if (answer.welcome != 1)
    fail("rank ", place.rank, " is turned away by rank ", to, " at ", there,
         ": ", differenceText(place.key.program, answer.program));
  if (!holds(answer, mine, challenge, place.key))
    fail("what listens at ", there, " cannot prove that it is rank ", to,
         " of this job (MASTER_PORT changes the port)");
  return true;
}

Socket Meeting::join(int64_t to, const std::string &host, int port,
                     const Deadline &until) {
  const std::string there = host + ":" + std::to_string(port);
  bool reached = false;
  std::string reason;
  do {
    Socket socket = connectTo(host, port, until, reason);
    if (!socket)
      break;
    reached = true;
    if (to == 0 && !listener && place.rank + 1 < place.size) {
      listener = listenAt(socket.localAddress(), 0);
      acceptor = std::make_unique<Acceptor>(
          listener, place.rank, place.key,
          [](const std::string &, const Introduction &) {});
    }
    if (introduce(socket, to, there, until))
      return socket;
    // A rank that is overrun by strangers may drop one of its own.
    std::this_thread::sleep_for(
        std::chrono::milliseconds(until.milliseconds(50)));
  } while (!until.passed());
  if (reached)
    fail("rank ", place.rank, " gets no answer from rank ", to, " at ", there,
         " within ", seconds,
         " s (does something else listen there? MASTER_PORT changes the port)");
  fail("rank ", place.rank, " cannot reach rank ", to, " at ", there,
       " within ", seconds, " s: ", reason,
       to == 0 ? " (is rank 0 running, are MASTER_ADDR and MASTER_PORT its "
                 "own? --rendezvous-timeout changes the time)"
               : "");
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

std::string Meeting::missing(int64_t first) const {
  std::string list;
  int64_t count = 0;
  for (int64_t r = first; r < place.size; ++r)
    if (!sockets[r]) {
      list += (count++ ? ", " : "") + std::to_string(r);
    }
  return (count > 1 ? "ranks " : "rank ") + list;
}

void Meeting::tellAll(const std::string &problem) {
  const int64_t length = problem.size();
  for (const Socket &socket : sockets)
    if (socket) {
      const Deadline soon(1);
      if (socket.sendAll(&length, sizeof length, soon))
        socket.sendAll(problem.data(), problem.size(), soon);
    }
}

/// Somebody speaks our words, but cannot prove anything. It ends nothing; a
/// user who has mixed up two programs sees why nothing goes on.
void Meeting::turnAway(const std::string &address,
                       const Introduction &introduction) {
  constexpr int64_t maxNotices = 3;
  lastNotice = "a process at " + address + " that calls itself rank " +
               std::to_string(introduction.rank) + " was turned away: " +
               differenceText(place.key.program, introduction.program);
  if (++noticed > maxNotices)
    return;
  std::fflush(stdout);
  std::fprintf(stderr, "note: %s\n", printable(lastNotice).c_str());
}

/// What is wrong with one who is of the job; "" if nothing is.
std::string Meeting::findProblem(const Introduction &introduction) const {
  const std::string rank = std::to_string(introduction.rank);
  if (introduction.program != place.key.program)
    return "rank " + rank + " does not have the same program as rank 0 (" +
           programText(introduction.program) + ", rank 0 has " +
           programText(place.key.program) +
           "): start every rank from a copy of the same folder";
  if (introduction.size != place.size)
    return "ranks disagree on how many they are: rank " + rank +
           " has WORLD_SIZE=" + std::to_string(introduction.size) +
           ", rank 0 has " + std::to_string(place.size);
  if (introduction.rank < 1 || introduction.rank >= place.size)
    return "a process has RANK=" + rank + ", but ranks are 0 to " +
           std::to_string(place.size - 1);
  if (sockets[introduction.rank])
    return "two processes have RANK=" + rank;
  return "";
}

/// Rank 0: takes in one that has come.
void Meeting::welcome(Socket socket, const Introduction &introduction) {
  const std::string problem = findProblem(introduction);
  if (problem.empty()) {
    Address &address = addresses[introduction.rank];
    std::snprintf(address.host, sizeof address.host, "%s",
                  socket.peerAddress().c_str());
    address.port = introduction.port;
    sockets[introduction.rank] = std::move(socket);
    return;
  }
  tellAll(problem);
  sockets.push_back(std::move(socket));
  sockets.erase(sockets.begin(), sockets.end() - 1);
  tellAll(problem);
  fail(problem);
}

void Meeting::failMissing() {
  std::ostringstream text;
  text << missing(1) << " of " << place.size << " did not come to " << where()
       << " within " << seconds
       << " s (were all processes started, with the same MASTER_ADDR and "
          "MASTER_PORT? --rendezvous-timeout changes the time)";
  const std::string here = listener.localAddress();
  if (isLoopback(here) && !isLoopback(place.host) && place.host != "localhost")
    text << "; on this machine " << place.host << " means " << here
         << ", which no other machine reaches: set MASTER_ADDR to an address, "
            "or to 0.0.0.0 on rank 0";
  if (!lastNotice.empty())
    text << "; " << lastNotice;
  tellAll(text.str());
  fail(text.str());
}

/// Rank 0: waits for all, and tells them each other's addresses.
void Meeting::gatherAll() {
  listener = listenAt(place.host, place.port);
  addresses.resize(place.size);
  Acceptor acceptor(
      listener, place.rank, place.key,
      [this](const std::string &address, const Introduction &said) {
        turnAway(address, said);
      });
  for (int64_t here = 1; here < place.size;) {
    Introduction introduction;
    if (Socket socket = acceptor.next(introduction, deadline)) {
      welcome(std::move(socket), introduction);
      ++here;
    } else if (deadline.passed()) {
      failMissing();
    }
  }
  const int64_t fine = 0;
  const Deadline soon(graceSeconds);
  for (int64_t r = 1; r < place.size; ++r)
    if (!sockets[r].sendAll(&fine, sizeof fine, soon) ||
        !sockets[r].sendAll(addresses.data(), place.size * sizeof(Address),
                            soon))
      fail("rank ", r, " went away before all ranks had come");
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

/// Goes to rank 0 and hears who is where.
void Meeting::goToFirst() {
  Socket first = join(0, place.host, place.port, deadline);
  // Rank 0 may have come later than this one.
  const Deadline patient(seconds + graceSeconds);
  // Strangers are heard meanwhile, lest they fill the queue before the
  // acceptor.
  while (acceptor && !patient.passed() && !first.waitFor(POLLIN, 0))
    takeIn(Deadline(0.02));
  int64_t length = 0;
  if (!first.receiveAll(&length, sizeof length, patient))
    fail("rank ", place.rank, " has lost rank 0 before all ranks had come");
  if (length) {
    std::string problem(std::clamp<int64_t>(length, 0, 4096), ' ');
    first.receiveAll(problem.data(), problem.size(), patient);
    fail(problem);
  }
  addresses.resize(place.size);
  if (!first.receiveAll(addresses.data(), place.size * sizeof(Address),
                        patient))
    fail("rank ", place.rank, " has lost rank 0 before all ranks had come");
  sockets[0] = std::move(first);
}

void Meeting::connectToEarlier() {
  const Deadline patient(seconds);
  for (int64_t r = 1; r < place.rank; ++r) {
    Address &address = addresses[r];
    address.host[sizeof address.host - 1] = 0;
    if (address.port < 1 || address.port > 65535)
      fail("rank ", place.rank, " hears from rank 0 that rank ", r,
           " listens at port ", address.port, ": expected 1 to 65535");
    const std::string host = address.host;
    if (isLoopback(host) && !isLoopback(sockets[0].localAddress()))
      fail("rank ", r, " came to rank 0 over ", host,
           ", where only its own machine reaches it: set MASTER_ADDR to an "
           "address that all machines reach");
    sockets[r] = join(r, host, static_cast<int>(address.port), patient);
  }
}

/// One of the later ranks, if one comes.
void Meeting::takeIn(const Deadline &until) {
  Introduction introduction;
  Socket socket = acceptor->next(introduction, until);
  const int64_t rank = introduction.rank;
  if (socket && rank > place.rank && rank < place.size &&
      introduction.size == place.size && !sockets[rank])
    sockets[rank] = std::move(socket);
}

void Meeting::acceptLater() {
  const Deadline patient(seconds);
  const auto all = [&] {
    return std::all_of(sockets.begin() + place.rank + 1, sockets.end(),
                       [](const Socket &socket) { return bool(socket); });
  };
  while (!all()) {
    if (patient.passed())
      fail("rank ", place.rank, " waits for ", missing(place.rank + 1),
           " to connect (nothing came within ", seconds, " s)");
    takeIn(patient);
  }
}

std::vector<Socket> Meeting::run() {
  if (place.rank == 0) {
    gatherAll();
  } else {
    goToFirst();
    connectToEarlier();
    acceptLater();
  }
  return std::move(sockets);
}

std::vector<Socket> pipewright::runtime::meet(const TcpJob &place,
                                              double deadlineSeconds) {
  if (place.size == 1)
    return std::vector<Socket>(1);
  return Meeting(place, deadlineSeconds).run();
}
