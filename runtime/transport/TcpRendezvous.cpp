//===- TcpRendezvous.cpp - Ranks find each other over TCP -----------------===//
//
// Every rank listens at a port of its own and tells rank 0, whose address all
// know. Once all have come, rank 0 answers with everyone's address, or with
// what went wrong; then each rank connects to those before it.
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/TcpRendezvous.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <poll.h>

using namespace pipewright::runtime;

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

TcpPlace TcpPlace::fromEnvironment() {
  TcpPlace place;
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

constexpr char magic[8] = {'p', 'w', 't', 'c', 'p', '0', '0', '1'};

/// What everyone who connects says first.
struct Hello {
  char magic[8] = {};
  int64_t rank = -1;
  int64_t size = 0;
  int64_t port = 0;

  bool isOurs() const { return std::memcmp(magic, ::magic, sizeof magic) == 0; }
};

/// One line of rank 0's answer.
struct Address {
  char host[64] = {};
  int64_t port = 0;
};

/// How long rank 0 takes to tell the others that somebody has not come.
constexpr double graceSeconds = 5;

class Meeting {
public:
  Meeting(const TcpPlace &place, double seconds)
      : place(place), seconds(seconds), deadline(seconds), sockets(place.size) {
  }

  std::vector<Socket> run();

private:
  void gatherAll();
  void welcome(Socket socket, const Hello &hello);
  void tellAll(const std::string &problem);
  void goToFirst();
  void connectToEarlier();
  void acceptLater();
  /// Those that are not there yet: "rank 2", "ranks 2, 3".
  std::string missing(int64_t first) const;

  Hello hello() const;
  std::string where() const {
    return place.host + ":" + std::to_string(place.port);
  }

  const TcpPlace &place;
  const double seconds;
  const Deadline deadline;
  Socket listener;
  std::vector<Socket> sockets;
  std::vector<Address> addresses;
};

/// Accepts connections and reads what they say first, without waiting for any
/// one of them: it may be a stranger that says nothing.
class Door {
public:
  explicit Door(const Socket &listener) : listener(listener) {}

  /// The next who has said Hello, or an empty Socket after a while.
  Socket next(Hello &hello, const Deadline &deadline);

private:
  struct Guest {
    Socket socket;
    Hello hello;
    size_t heard = 0;
  };
  bool listenTo(Guest &guest);

  const Socket &listener;
  std::list<Guest> guests;
};

} // namespace

/// False when there is no more to hear.
bool Door::listenTo(Guest &guest) {
  char byte = 0;
  const Deadline now(0);
  // A byte at a time, and no more than is there: a Hello is short.
  while (guest.heard < sizeof(Hello) && guest.socket.waitFor(POLLIN, 0)) {
    if (!guest.socket.receiveAll(&byte, 1, now))
      return false;
    reinterpret_cast<char *>(&guest.hello)[guest.heard++] = byte;
  }
  return true;
}

Socket Door::next(Hello &hello, const Deadline &deadline) {
  // Short naps while someone is at the door but has not spoken.
  const int nap = deadline.milliseconds(guests.empty() ? 100 : 5);
  if (Socket socket = acceptFrom(listener, nap))
    guests.push_back({std::move(socket), {}, 0});
  for (auto guest = guests.begin(); guest != guests.end();) {
    const bool alive = listenTo(*guest);
    if (guest->heard == sizeof(Hello) && guest->hello.isOurs()) {
      hello = guest->hello;
      Socket socket = std::move(guest->socket);
      guests.erase(guest);
      return socket;
    }
    const bool stranger = guest->heard == sizeof(Hello);
    guest = !alive || stranger ? guests.erase(guest) : std::next(guest);
  }
  return {};
}

Hello Meeting::hello() const {
  Hello hello;
  std::memcpy(hello.magic, magic, sizeof magic);
  hello.rank = place.rank;
  hello.size = place.size;
  hello.port = listener ? listener.port() : 0;
  return hello;
}

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

/// Rank 0: takes in one that has come.
void Meeting::welcome(Socket socket, const Hello &hello) {
  std::string problem;
  if (hello.size != place.size)
    problem = "ranks disagree on how many they are: rank " +
              std::to_string(hello.rank) +
              " has WORLD_SIZE=" + std::to_string(hello.size) +
              ", rank 0 has " + std::to_string(place.size);
  else if (hello.rank < 1 || hello.rank >= place.size || sockets[hello.rank])
    problem = "two processes have RANK=" + std::to_string(hello.rank);
  if (problem.empty()) {
    Address &address = addresses[hello.rank];
    std::snprintf(address.host, sizeof address.host, "%s",
                  socket.peerAddress().c_str());
    address.port = hello.port;
    sockets[hello.rank] = std::move(socket);
    return;
  }
  tellAll(problem);
  sockets.push_back(std::move(socket));
  sockets.erase(sockets.begin(), sockets.end() - 1);
  tellAll(problem);
  fail(problem);
}

/// Rank 0: waits for all, and tells them each other's addresses.
void Meeting::gatherAll() {
  listener = listenAt(place.host, place.port);
  addresses.resize(place.size);
  Door door(listener);
  for (int64_t here = 1; here < place.size;) {
    Hello hello;
    if (Socket socket = door.next(hello, deadline)) {
      welcome(std::move(socket), hello);
      ++here;
    } else if (deadline.passed()) {
      std::ostringstream text;
      text << missing(1) << " of " << place.size << " did not come to "
           << where() << " within " << seconds
           << " s (were all processes started, with the same MASTER_ADDR and "
              "MASTER_PORT? --timeout changes the time)";
      tellAll(text.str());
      fail(text.str());
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

/// Other ranks: go to rank 0 and hear who is where.
void Meeting::goToFirst() {
  std::string reason;
  Socket first = connectTo(place.host, place.port, deadline, reason);
  if (!first)
    fail("rank ", place.rank, " cannot reach rank 0 at ", where(), " within ",
         seconds, " s: ", reason,
         " (is rank 0 running, are MASTER_ADDR and MASTER_PORT its own?)");
  listener = listenAt(place.host, 0);
  const Hello mine = hello();
  // Rank 0 may have come later than this one.
  const Deadline patient(seconds + graceSeconds);
  int64_t length = 0;
  if (!first.sendAll(&mine, sizeof mine, patient) ||
      !first.receiveAll(&length, sizeof length, patient))
    fail("rank ", place.rank, " gets no answer from rank 0 at ", where(),
         " (does something else listen there? MASTER_PORT changes the port)");
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
  const Hello mine = hello();
  const Deadline patient(seconds);
  for (int64_t r = 1; r < place.rank; ++r) {
    const std::string seen = addresses[r].host;
    // Seen by rank 0 as its own machine: reached as rank 0 is.
    const std::string host = isLoopback(seen) ? sockets[0].peerAddress() : seen;
    std::string reason;
    sockets[r] = connectTo(host, addresses[r].port, patient, reason);
    if (!sockets[r] || !sockets[r].sendAll(&mine, sizeof mine, patient))
      fail("rank ", place.rank, " cannot reach rank ", r, " at ", host, ":",
           addresses[r].port, " within ", seconds, " s: ", reason);
  }
}

void Meeting::acceptLater() {
  const Deadline patient(seconds);
  Door door(listener);
  for (int64_t here = place.rank + 1; here < place.size;) {
    Hello hello;
    Socket socket = door.next(hello, patient);
    const bool expected = hello.rank > place.rank && hello.rank < place.size;
    if (socket && expected && !sockets[hello.rank]) {
      sockets[hello.rank] = std::move(socket);
      ++here;
    } else if (patient.passed()) {
      fail("rank ", place.rank, " waits for ", missing(place.rank + 1),
           " to connect (nothing came within ", seconds, " s)");
    }
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

std::vector<Socket> pipewright::runtime::meet(const TcpPlace &place,
                                              double deadlineSeconds) {
  if (place.size == 1)
    return std::vector<Socket>(1);
  return Meeting(place, deadlineSeconds).run();
}
