//===- TcpDoor.cpp - Lets in who proves to be of the job ------------------===//

#include "runtime/net/TcpDoor.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <sys/socket.h>
#include <utility>
#include <vector>

using namespace pipewright::runtime;
using namespace pipewright::runtime::tcp;

static Socket openReserve() { return Socket(open("/dev/null", O_CLOEXEC)); }

Door::Door(
    const Socket &listener, int64_t self, const JobKey &key,
    std::function<void(const std::string &, const Introduction &)> turnedAway)
    : listener(listener), self(self), key(key),
      turnedAway(std::move(turnedAway)), reserve(openReserve()) {}

/// Until somebody comes or speaks, for a while at most.
void Door::sleep(const Deadline &deadline) {
  std::vector<pollfd> entries = {{listener.get(), POLLIN, 0}};
  for (const Guest &guest : guests)
    entries.push_back({guest.socket.get(), POLLIN, 0});
  ::poll(entries.data(), entries.size(), deadline.milliseconds(100));
}

void Door::dropOne() {
  std::map<std::string, int64_t> counts;
  for (const Guest &guest : guests)
    ++counts[guest.address];
  const auto crowd =
      std::max_element(counts.begin(), counts.end(),
                       [](auto &a, auto &b) { return a.second < b.second; });
  guests.erase(
      std::find_if(guests.begin(), guests.end(), [&](const Guest &guest) {
        return guest.address == crowd->first;
      }));
}

void Door::acceptAll() {
  // A crowd must not keep those who have come already from being heard.
  for (size_t accepted = 0; accepted < mostGuests / 2; ++accepted) {
    Socket socket = acceptFrom(listener);
    if (!socket && (errno == EMFILE || errno == ENFILE) && !guests.empty()) {
      dropOne();
      socket = acceptFrom(listener);
    } else if (!socket && (errno == EMFILE || errno == ENFILE)) {
      // The one that is dropped comes again if it is of the job.
      reserve.close();
      acceptFrom(listener);
      reserve = openReserve();
      return;
    }
    if (!socket)
      return;
    if (guests.size() >= mostGuests)
      dropOne();
    const Challenge challenge = challengeWith(freshNonce());
    const std::string address = socket.peerAddress();
    if (socket.sendAll(&challenge, sizeof challenge, Deadline(0)))
      guests.push_back({std::move(socket),
                        address,
                        Deadline(doorSeconds),
                        challenge,
                        {},
                        0});
  }
}

/// Hears no more than an Introduction, and no more than is there.
Door::Verdict Door::listenTo(Guest &guest) {
  while (guest.heard < sizeof(Introduction)) {
    char *next = reinterpret_cast<char *>(&guest.introduction) + guest.heard;
    const ssize_t got = recv(guest.socket.get(), next,
                             sizeof(Introduction) - guest.heard, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return guest.patience.passed() ? Verdict::Stranger : Verdict::Waits;
    if (got <= 0)
      return Verdict::Stranger;
    guest.heard += got;
    if (guest.heard >= sizeof magic && !isOurs(guest.introduction))
      return Verdict::Stranger;
  }
  return judge(guest);
}

Door::Verdict Door::judge(Guest &guest) {
  const bool welcome = holds(guest.introduction, guest.challenge, self, key);
  const Answer answer =
      answerTo(guest.introduction, guest.challenge, self, welcome, key);
  const bool told = guest.socket.sendAll(&answer, sizeof answer, Deadline(0));
  if (!welcome)
    turnedAway(guest.address, guest.introduction);
  return welcome && told ? Verdict::Proven : Verdict::Stranger;
}

Socket Door::next(Introduction &introduction, const Deadline &deadline) {
  sleep(deadline);
  acceptAll();
  for (auto guest = guests.begin(); guest != guests.end();) {
    const Verdict verdict = listenTo(*guest);
    if (verdict == Verdict::Proven) {
      introduction = guest->introduction;
      Socket socket = std::move(guest->socket);
      guests.erase(guest);
      return socket;
    }
    guest =
        verdict == Verdict::Stranger ? guests.erase(guest) : std::next(guest);
  }
  return {};
}
