//===- Findings.cpp - Where two runs of a step differ ---------------------===//

#include "runtime/train/Findings.h"
#include "runtime/core/ProcessName.h"
#include "runtime/net/Gather.h"
#include "runtime/rank/Worker.h"

#include <sstream>
#include <vector>

using namespace pipewright::runtime;
using Kind = StepDigest::Kind;

//===----------------------------------------------------------------------===//
// One run
//===----------------------------------------------------------------------===//

StepDigest pipewright::runtime::digestOf(Worker &rank,
                                         const std::function<void()> &run) {
  StepDigest digest;
  // Where a step has several updates there is no moment at which all gradients
  // are there.
  const bool hasGradients = rank.wholeProgram().updates == 1;
  if (hasGradients)
    rank.captureGradients();
  rank.setDigest(&digest);
  run();
  rank.setDigest(nullptr);
  const Table<TensorInfo> &tensors = rank.program().tensors;
  if (hasGradients)
    for (size_t i = 0; i < rank.gradients().size(); ++i)
      if (const std::vector<float> &values = rank.gradients()[i];
          !values.empty())
        digest.add(Kind::Gradient, i, values.data(),
                   values.size() * sizeof(float));
  std::vector<char> values;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].outlastsStep()) {
      const Buffer own = tensors[i].partOf(rank.replica()).buffer;
      values.resize(own.bytes);
      rank.read(own, values.data());
      digest.add(Kind::Tensor, i, values.data(), values.size());
    }
  return digest;
}

bool pipewright::runtime::agree(Worker &rank, const StepDigest &first,
                                const StepDigest &second) {
  double differs = firstDifference(first, second).has_value();
  rank.transport().sumToAll(&differs, 1);
  return differs == 0;
}

//===----------------------------------------------------------------------===//
// Where it began
//===----------------------------------------------------------------------===//

/// A line of numbers, and the words.
static std::string textOf(const Finding &finding) {
  std::ostringstream text;
  text << finding.differs << " " << static_cast<int>(finding.kind) << " "
       << finding.place << " " << finding.number << " " << finding.sends.size();
  for (const auto &[peer, first] : finding.sends)
    text << " " << peer << " " << first;
  text << "\n" << finding.words;
  return text.str();
}

static Finding findingOf(const std::string &text) {
  std::istringstream from(text);
  Finding finding;
  int kind = 0;
  size_t count = 0;
  from >> finding.differs >> kind >> finding.place >> finding.number >> count;
  finding.kind = static_cast<Kind>(kind);
  for (size_t i = 0; i < count; ++i) {
    int64_t peer = 0, first = 0;
    from >> peer >> first;
    finding.sends[peer] = first;
  }
  from.get();
  std::getline(from, finding.words);
  return finding;
}

/// "gradient of 'w'", "what it sends to rank 1, in F0.2"
static std::string wordsOf(const StepDigest::Entry &entry, const Worker &rank) {
  const Program &program = rank.wholeProgram();
  const auto peer = [&] {
    return processName(program.mesh().processAt(
        {.position = entry.place, .replica = rank.replica()}));
  };
  const auto tensor = [&]() -> const TensorInfo & {
    return rank.program().tensors[entry.place];
  };
  const std::string where = entry.task.empty() ? "" : " in " + entry.task;
  switch (entry.kind) {
  case Kind::Input:
    return std::string("the input '") + program.inputs[entry.place].name +
           "' of micro-batch " + std::to_string(entry.number);
  case Kind::Send:
    return "what it computed" + where + " and sends to " + peer();
  case Kind::Receive:
    return "what came from " + peer() + ", and was something else there";
  case Kind::Addend:
    return "what it computed" + where + " and adds to that of others";
  case Kind::Sum:
    return "a sum over several ranks";
  case Kind::Loss:
    return "the loss of micro-batch " + std::to_string(entry.number);
  case Kind::Gradient:
    return std::string("the gradient of '") + tensor().name + "'";
  case Kind::Norm:
    return "the norm of all gradients";
  case Kind::Tensor:
    return (*tensor().state ? "'" + std::string(tensor().state) + "' of '"
                            : std::string("'")) +
           tensor().name + "' after the update";
  }
  return "";
}

std::vector<int64_t>
pipewright::runtime::originsAmong(const std::vector<Finding> &findings,
                                  const Mesh &mesh) {
  std::vector<int64_t> origins, sums;
  for (int64_t r = 0; r < static_cast<int64_t>(findings.size()); ++r) {
    const Finding &finding = findings[r];
    if (!finding.differs)
      continue;
    if (finding.kind == Kind::Receive) {
      Place sender = mesh.placeOf(r);
      const int64_t position = sender.position;
      sender.position = finding.place;
      const auto &sends = findings[mesh.processAt(sender)].sends;
      const auto sent = sends.find(position);
      if (sent != sends.end() && sent->second <= finding.number)
        continue;
    }
    (finding.kind == Kind::Sum ? sums : origins).push_back(r);
  }
  return origins.empty() ? sums : origins;
}

std::string
pipewright::runtime::firstDifferenceOfAll(Worker &rank, const StepDigest &first,
                                          const StepDigest &second) {
  Finding own;
  own.sends = differingSends(first, second);
  if (const auto entry = firstDifference(first, second)) {
    own.differs = true;
    own.kind = entry->kind;
    own.place = entry->place;
    own.number = entry->number;
    own.words = wordsOf(*entry, rank);
  }
  std::vector<Finding> findings;
  for (const std::string &text : gatherTexts(rank.transport(), textOf(own)))
    findings.push_back(findingOf(text));
  std::string words;
  for (const int64_t origin :
       originsAmong(findings, rank.wholeProgram().mesh()))
    words += (words.empty() ? "" : "; ") + processName(origin) + ": " +
             findings[origin].words;
  return words;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

std::map<std::string, uint64_t>
pipewright::runtime::resultsOf(const Worker &rank, const StepDigest &digest) {
  std::map<std::string, uint64_t> results;
  for (StepDigest::Entry entry : digest.entries()) {
    if (entry.kind == Kind::Loss)
      entry.number = rank.numberInBatch(entry.number);
    else if (entry.kind != Kind::Gradient && entry.kind != Kind::Tensor)
      continue;
    else if (rank.program().tensors[entry.place].role == Role::OldVersion)
      continue;
    results[wordsOf(entry, rank)] = entry.hash;
  }
  return results;
}
