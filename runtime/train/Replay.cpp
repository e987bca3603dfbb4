//===- Replay.cpp - Steps that are run twice to be believed ---------------===//

#include "runtime/train/Replay.h"
#include "runtime/core/ProcessName.h"
#include "runtime/net/Gather.h"
#include "runtime/rank/Rank.h"

#include <algorithm>
#include <set>
#include <sstream>

using namespace pipewright::runtime;
using Kind = StepDigest::Kind;

bool Replay::isDue(int64_t done) const {
  const int64_t every = options.replayEvery,
                together = rank.wholeProgram().updates;
  return every > 0 && done / every != (done - together) / every;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Gradients are begun anew in each step.
static bool isTakenBack(const TensorInfo &tensor) {
  return tensor.role != Role::Gradient;
}

void Replay::copy() {
  int64_t bytes = 0;
  for (const TensorInfo &tensor : rank.program().tensors)
    bytes += isTakenBack(tensor) ? tensor.buffer.bytes : 0;
  before.resize(bytes);
  char *to = before.data();
  for (const TensorInfo &tensor : rank.program().tensors)
    if (isTakenBack(tensor)) {
      rank.read(tensor.buffer, to);
      to += tensor.buffer.bytes;
    }
}

void Replay::takeBack() {
  const char *from = before.data();
  for (const TensorInfo &tensor : rank.program().tensors)
    if (isTakenBack(tensor)) {
      rank.write(tensor.buffer, from);
      from += tensor.buffer.bytes;
    }
}

StepDigest Replay::runOnce(const Run &run, bool isLast) {
  StepDigest digest;
  // Where a step has several updates there is no moment at which all gradients
  // are there.
  const bool hasGradients = rank.wholeProgram().updates == 1;
  if (hasGradients)
    rank.captureGradients();
  rank.setDigest(&digest);
  run(isLast);
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
    if (isTakenBack(tensors[i])) {
      values.resize(tensors[i].buffer.bytes);
      rank.read(tensors[i].buffer, values.data());
      digest.add(Kind::Tensor, i, values.data(), values.size());
    }
  return digest;
}

bool Replay::agree(const StepDigest &first, const StepDigest &second) {
  double differs = firstDifference(first, second).has_value();
  rank.transport().sumToAll(&differs, 1);
  return differs == 0;
}

bool Replay::check(const Run &run) {
  copy();
  Transport &transport = rank.transport();
  const StepDigest first = runOnce(run, false);
  takeBack();
  factory.moveToCoresOf(transport, 1);
  const StepDigest second = runOnce(run, true);
  factory.moveToCoresOf(transport, 0);
  if (agree(first, second))
    return true;
  takeBack();
  const StepDigest third = runOnce(run, false);
  takeBack();
  const bool asFirst = agree(first, third), asSecond = agree(second, third);
  text = find(first, second);
  text += asFirst || asSecond
              ? std::string("; a third run agrees with the ") +
                    (asFirst ? "first" : "second") +
                    ": a fault of the machine that does not repeat itself"
              : "; a third run differs from both: a fault that repeats itself, "
                "of the program or of the machine";
  return false;
}

//===----------------------------------------------------------------------===//
// Where it began
//===----------------------------------------------------------------------===//

namespace {

/// What a rank tells of its first difference. As text: a line of numbers, one
/// of the messages that differ, and the words.
struct Finding {
  bool differs = false;
  Kind kind = Kind::Input;
  int64_t place = 0, number = 0;
  /// The first message to each peer that differs.
  std::map<int64_t, int64_t> sends;
  std::string words;

  std::string toText() const;
  static Finding of(const std::string &text);
};

} // namespace

std::string Finding::toText() const {
  std::ostringstream text;
  text << differs << " " << static_cast<int>(kind) << " " << place << " "
       << number << " " << sends.size();
  for (const auto &[peer, first] : sends)
    text << " " << peer << " " << first;
  text << "\n" << words;
  return text.str();
}

Finding Finding::of(const std::string &text) {
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
static std::string wordsOf(const StepDigest::Entry &entry, const Rank &rank) {
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
  case Kind::Tensor:
    return (*tensor().state ? "'" + std::string(tensor().state) + "' of '"
                            : std::string("'")) +
           tensor().name + "' after the update";
  }
  return "";
}

/// The processes at which the difference began: those that got nothing else and
/// gave something else.
static std::vector<int64_t> originsAmong(const std::vector<Finding> &findings,
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

std::string Replay::find(const StepDigest &first, const StepDigest &second) {
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
  for (const std::string &text : gatherTexts(rank.transport(), own.toText()))
    findings.push_back(Finding::of(text));
  std::string words;
  for (const int64_t origin :
       originsAmong(findings, rank.wholeProgram().mesh()))
    words += (words.empty() ? "" : "; ") + processName(origin) + ": " +
             findings[origin].words;
  return words;
}
