//===- TcpRanks.cpp - Ranks that meet over the loopback -------------------===//

#include "test/conformance/TcpRanks.h"

#include <thread>

using namespace pipewright::runtime;

std::string pipewright::runtime::runRank(const TcpJob &place, double seconds,
                                         const Body &body) {
  std::unique_ptr<Transport> transport;
  try {
    transport = createTcpTransport(place, seconds);
    body(*transport);
  } catch (const std::exception &error) {
    if (transport)
      transport->abort(error.what());
    return error.what();
  }
  return "";
}

std::vector<std::string>
pipewright::runtime::runPlaces(const std::vector<TcpJob> &places,
                               double seconds, const Body &body) {
  std::vector<std::string> errors(places.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < places.size(); ++i)
    threads.emplace_back(
        [&, i] { errors[i] = runRank(places[i], seconds, body); });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

std::vector<TcpJob> pipewright::runtime::placesOf(int64_t ranks) {
  const int port = freePort();
  std::vector<TcpJob> places;
  for (int64_t r = 0; r < ranks; ++r)
    places.push_back({r, ranks, "127.0.0.1", port, {}});
  return places;
}
