//===- Gather.cpp - What ranks tell each other ----------------------------===//

#include "runtime/net/Gather.h"

#include <algorithm>

using namespace pipewright::runtime;

std::vector<std::vector<double>>
pipewright::runtime::gatherNumbers(Transport &transport,
                                   const std::vector<double> &row) {
  const int64_t width = row.size();
  std::vector<double> all(width * transport.size());
  std::copy(row.begin(), row.end(), all.begin() + width * transport.rank());
  transport.sumToAll(all.data(), all.size());
  std::vector<std::vector<double>> rows;
  for (int64_t r = 0; r < transport.size(); ++r)
    rows.emplace_back(all.begin() + r * width, all.begin() + (r + 1) * width);
  return rows;
}

std::vector<uint64_t> pipewright::runtime::gatherToAll(Transport &transport,
                                                       uint64_t number) {
  // Halves, as a double is exact only for whole numbers of 53 bits.
  std::vector<uint64_t> all;
  for (const std::vector<double> &halves :
       gatherNumbers(transport, {static_cast<double>(number >> 32),
                                 static_cast<double>(number & 0xffffffffu)}))
    all.push_back(static_cast<uint64_t>(halves[0]) << 32 |
                  static_cast<uint64_t>(halves[1]));
  return all;
}

std::vector<std::string>
pipewright::runtime::gatherTexts(Transport &transport,
                                 const std::string &text) {
  const auto sizes =
      gatherNumbers(transport, {static_cast<double>(text.size())});
  std::vector<std::string> texts;
  if (transport.rank() != 0) {
    transport.postSend(0, text.data(), text.size());
    transport.waitSend(0);
    return texts;
  }
  texts.push_back(text);
  for (int64_t r = 1; r < transport.size(); ++r) {
    std::string &other =
        texts.emplace_back(static_cast<size_t>(sizes[r][0]), '\0');
    transport.postReceive(r, other.data(), other.size());
    transport.waitReceive(r);
  }
  return texts;
}
