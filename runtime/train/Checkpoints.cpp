//===- Checkpoints.cpp - What a run needs to go on ------------------------===//

#include "runtime/train/Checkpoints.h"
#include "runtime/core/Error.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/Source.h"
#include "runtime/io/WeightSource.h"
#include "runtime/net/Gather.h"
#include "runtime/rank/Worker.h"
#include "runtime/train/FilterLayout.h"
#include "runtime/train/TensorParts.h"
#include "runtime/train/WeightFiles.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <sys/resource.h>

using namespace pipewright::runtime;

namespace pipewright::runtime {

/// A tensor that a replica of this rank writes: the first one that has any of
/// it.
struct Checkpoints::Part {
  std::string name;
  const TensorInfo *tensor;
  /// In that replica's copy.
  int64_t begin;

  /// Whether the replica has all of it.
  bool isThere() const {
    return tensor->partOf(tensor->firstReplica()).buffer.bytes ==
           tensor->buffer.bytes;
  }
};

} // namespace pipewright::runtime

//===----------------------------------------------------------------------===//
// Names of tensors
//===----------------------------------------------------------------------===//

static bool isKept(const TensorInfo &tensor) {
  return tensor.isWeight() || tensor.role == Role::OptimizerState ||
         tensor.role == Role::OldVersion;
}

/// What a weight's tensors are called: `w`, `w#m`, `w#old`, `w#old2`.
static std::vector<std::string> namesOf(const RankProgram &rank) {
  std::vector<std::string> names;
  std::map<std::string, int> versions;
  for (const TensorInfo &tensor : rank.tensors) {
    std::string name = tensor.name;
    if (tensor.role == Role::OptimizerState)
      name += "#" + std::string(tensor.state);
    if (tensor.role == Role::OldVersion) {
      const int number = ++versions[name];
      name += number == 1 ? "#old" : "#old" + std::to_string(number);
    }
    names.push_back(isKept(tensor) ? name : "");
  }
  return names;
}

/// Older versions are of a plan, everything else of the model.
static bool isOfPlan(const std::string &name) {
  const size_t mark = name.rfind("#old");
  return mark != std::string::npos &&
         name.find_first_not_of("0123456789", mark + 4) == std::string::npos;
}

/// The position that writes each tensor: of several that hold one the owner.
static std::map<std::string, int64_t> writersOf(const Program &program) {
  std::map<std::string, int64_t> writers;
  std::set<std::string> owned;
  for (size_t position = 0; position < program.ranks.size(); ++position) {
    const RankProgram &rank = program.ranks[position];
    const std::vector<std::string> names = namesOf(rank);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty())
        continue;
      const bool isOwner = rank.tensors[i].owner;
      if (isOwner && owned.contains(names[i]))
        fail("'", names[i],
             "' is two tensors of a checkpoint: rename a weight of the model");
      if (isOwner ? (owned.insert(names[i]), true)
                  : !writers.contains(names[i]))
        writers[names[i]] = static_cast<int64_t>(position);
    }
  }
  return writers;
}

static std::string fileNameOf(const Place &place) {
  return "rank-" + std::to_string(place.position) +
         (place.replica > 0 ? "-replica-" + std::to_string(place.replica)
                            : "") +
         ".safetensors";
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Throws an Error unless each tensor is one of the program's, and there.
static void checkContents(const WeightSource &contents,
                          const std::string &folder, const Program &program) {
  const auto wanted = writersOf(program);
  for (const auto &[name, writer] : wanted)
    if (!contents.contains(name) && !isOfPlan(name))
      fail("'", folder, "' has no '", name,
           "', which this program has: it is of another model");
  for (const std::string &name : contents.names())
    if (!wanted.contains(name) && !isOfPlan(name))
      fail("'", folder, "' has '", name,
           "', which this program does not have: it is of another model");
}

void pipewright::runtime::loadCheckpoint(Worker &rank,
                                         const std::string &folder) {
  const WeightSource contents(folder);
  checkContents(contents, folder, rank.wholeProgram());
  const RankProgram &program = rank.program();
  const std::vector<std::string> names = namesOf(program);
  // Copies are made of what has been loaded, older versions among them, unless
  // these are there themselves.
  for (const bool ofPlan : {false, true}) {
    for (size_t i = 0; i < names.size(); ++i) {
      const TensorInfo &tensor = program.tensors[i];
      if (isKept(tensor) && ofPlan == (tensor.role == Role::OldVersion) &&
          contents.contains(names[i]))
        loadTensor(
            rank, tensor,
            contents.find(names[i], tensor.type, parseShape(tensor.shape)));
    }
    if (!ofPlan)
      copyWeights(rank);
  }
}

/// What must be as it was, and what people should know if it is not.
static void compare(const CheckpointManifest &then,
                    const CheckpointManifest &now, const std::string &path,
                    int64_t updates,
                    const std::function<void(const std::string &)> &say) {
  if (then.optimizer != now.optimizer)
    fail("'", path, "' was trained with ", then.optimizer,
         ", but this program with ", now.optimizer,
         ": compile it with --optimizer ", then.optimizer,
         ", or begin anew from its weights: --weights ", path);
  if (then.seed != now.seed || then.shuffled != now.shuffled)
    fail("'", path, "' takes samples by --seed ", then.seed,
         then.shuffled ? "" : " --no-shuffle",
         ": go on with the same, so that none is taken twice");
  if (then.step % updates != 0)
    fail("'", path, "' is of step ", then.step, ", but this schedule takes ",
         updates, " steps together: choose one with --resume STEP");
  if (then.step > now.step)
    fail("'", path, "' is of step ", then.step, ", but --steps ", now.step,
         " counts from the first one: give more");
  if (then.plan != now.plan)
    say("note: '" + path +
        "' is of another plan: what it adds up in another order rounds "
        "differently");
}

Checkpoints::Position
Checkpoints::resume(const std::function<void(const std::string &)> &say) {
  if (!options.resumes) {
    // The next --resume could not tell the two runs apart.
    const bool isFirst = rank.transport().rank() == 0;
    if (const auto found = isFirst ? folder.steps() : std::vector<int64_t>();
        !found.empty())
      fail("--checkpoint: '", options.checkpoint,
           "' has checkpoints of an earlier run, up to step ", found.back(),
           ": go on with --resume, or give another folder");
    return {};
  }
  std::vector<double> found = {0, 0, 0, 0};
  if (rank.transport().rank() == 0) {
    std::vector<std::string> skipped;
    const bool isNamed = options.resumeStep != Options::newest;
    std::optional<int64_t> step = folder.newest(options.resumeStep, skipped);
    if (isNamed && step != options.resumeStep)
      fail(skipped.empty() ? "--resume: there is no checkpoint of step " +
                                 std::to_string(options.resumeStep) + " in '" +
                                 options.checkpoint + "'"
                           : "--resume: " + skipped.front());
    for (const std::string &line : skipped)
      say("warning: passed over: " + line);
    if (!step && !skipped.empty())
      fail("--resume: no checkpoint in '", options.checkpoint,
           "' can be used; begin anew in another folder");
    if (step) {
      const std::string path = folder.folderOf(*step);
      const CheckpointManifest then = readManifest(path);
      if (isNamed && folder.steps().back() > *step)
        fail("--resume ", *step, ": '", options.checkpoint,
             "' has newer checkpoints, up to step ", folder.steps().back(),
             ": move them to another folder first");
      compare(then, manifest({.step = options.steps}), path,
              rank.wholeProgram().updates, say);
      found = {static_cast<double>(then.step),
               static_cast<double>(then.samples),
               static_cast<double>(then.plan == rank.wholeProgram().planHash()),
               static_cast<double>(then.skipped)};
      say("resumed    from '" + path + "'");
    } else {
      say("resumed    from nothing: there is no checkpoint in '" +
          options.checkpoint + "' yet");
    }
  }
  found = gatherNumbers(rank.transport(), found)[0];
  const Position start = {static_cast<int64_t>(found[0]),
                          static_cast<int64_t>(found[1]),
                          static_cast<int64_t>(found[3])};
  if (start.step > 0)
    loadCheckpoint(rank, folder.folderOf(start.step));
  // One of another plan is made anew if no step comes.
  made = found[2] != 0 ? start.step : 0;
  return start;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Checkpoints::Checkpoints(const Options &options, Worker &rank,
                         RankFactory &factory)
    : options(options), rank(rank), factory(factory),
      folder(options.checkpoint), lastTime(std::chrono::steady_clock::now()) {
  if (rank.transport().rank() == 0)
    folder.open();
  // It clears away what an earlier run left, under names that are used again.
  rank.transport().barrier();
  parts = partsOf(rank.wholeProgram(), rank.number());
  shadow.resize(
      checkpointBytes(rank.wholeProgram(), rank.number())[rank.replica()]);
}

/// What all replicas of a position write together.
std::vector<Checkpoints::Part> Checkpoints::partsOf(const Program &program,
                                                    int64_t position) {
  const auto writers = writersOf(program);
  const RankProgram &rank = program.ranks[position];
  const std::vector<std::string> names = namesOf(rank);
  std::vector<Part> parts;
  std::vector<int64_t> bytes(program.replicas);
  std::set<std::string> taken;
  for (size_t i = 0; i < names.size(); ++i) {
    const TensorInfo &tensor = rank.tensors[i];
    if (names[i].empty() || writers.at(names[i]) != position ||
        !taken.insert(names[i]).second)
      continue;
    // Where replicas have the same, the first one writes it.
    int64_t &begin = bytes[tensor.firstReplica()];
    parts.push_back({names[i], &tensor, begin});
    begin += tensor.buffer.bytes;
  }
  return parts;
}

std::vector<int64_t>
pipewright::runtime::checkpointBytes(const Program &program, int64_t position) {
  std::vector<int64_t> bytes(program.replicas);
  for (const Checkpoints::Part &part : Checkpoints::partsOf(program, position))
    bytes[part.tensor->firstReplica()] = part.begin + part.tensor->buffer.bytes;
  return bytes;
}

Checkpoints::~Checkpoints() {
  if (thread.joinable())
    thread.join();
}

bool Checkpoints::isDue(int64_t step, int64_t before) const {
  if (options.checkpointSeconds > 0)
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         lastTime)
               .count() >= options.checkpointSeconds;
  const int64_t every = options.checkpointEvery;
  return every > 0 && step / every != before / every;
}

Checkpoints::Votes Checkpoints::votes(int64_t step, int64_t before) const {
  const bool isFirst = rank.transport().rank() == 0;
  return {.done = phase != Phase::None && done ? 1.0 : 0.0,
          .due = isFirst && isDue(step, before) ? 1.0 : 0.0};
}

std::string Checkpoints::keep(const Votes &sum, Position now) {
  std::string said;
  if (sum.due > 0)
    said = finish();
  else if (phase != Phase::None && sum.done == rank.transport().size())
    said = advance();
  if (sum.due > 0)
    begin(now);
  return said;
}

std::string Checkpoints::keepNow(Position now) {
  begin(now);
  return finish();
}

std::string Checkpoints::finish() {
  std::string said;
  while (phase != Phase::None)
    said = advance();
  return said;
}

CheckpointManifest Checkpoints::manifest(Position at) const {
  const Program &program = rank.wholeProgram();
  CheckpointManifest manifest;
  manifest.model = program.name;
  manifest.optimizer = program.optimizer.name;
  manifest.step = at.step;
  manifest.samples = at.samples;
  manifest.skipped = at.skipped;
  manifest.seed = options.seed;
  manifest.shuffled = options.shuffle;
  manifest.plan = program.planHash();
  return manifest;
}

void Checkpoints::begin(Position now) {
  current = now;
  // Forwards change running statistics, and an older version is overwritten
  // before its update begins; the rest is changed by updates, which wait.
  const bool isAside = rank.canBeReadAside();
  const auto isLater = [isAside](const Part &part) {
    return isAside && part.tensor->role != Role::State &&
           part.tensor->role != Role::OldVersion && part.isThere();
  };
  for (const Part &part : parts)
    if (!part.isThere())
      collect(part);
    else if (isOwn(part) && !isLater(part))
      copy(part);
  copied = false;
  rank.setBeforeUpdate([this] { waitForCopy(); });
  failure.clear();
  file = {};
  done = false;
  phase = Phase::Writing;
  lastTime = std::chrono::steady_clock::now();
  thread = std::thread([this, isLater, step = now.step] {
    factory.leaveCores();
    for (const Part &part : parts)
      if (isOwn(part) && isLater(part))
        copy(part);
    {
      const std::lock_guard lock(mutex);
      copied = true;
    }
    changed.notify_all();
    // Of this thread alone: nobody waits for it any more.
    setpriority(PRIO_PROCESS, 0, 10);
    try {
      write(step);
    } catch (const std::exception &error) {
      failure = error.what();
    }
    done = true;
  });
}

bool Checkpoints::isOwn(const Part &part) const {
  return part.tensor->firstReplica() == rank.replica();
}

void Checkpoints::copy(const Part &part) {
  rank.read(part.tensor->partOf(rank.replica()).buffer,
            shadow.data() + part.begin);
}

/// On all replicas, between two steps.
void Checkpoints::collect(const Part &part) {
  const Buffer own = part.tensor->partOf(rank.replica()).buffer;
  collectParts(
      rank, *part.tensor, part.tensor->firstReplica(),
      [&](int64_t begin, int64_t bytes, void *destination) {
        rank.read(own.at(begin, bytes), destination);
      },
      isOwn(part) ? shadow.data() + part.begin : nullptr);
}

void Checkpoints::waitForCopy() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return copied; });
}

void Checkpoints::write(int64_t step) {
  std::vector<TensorHeader> headers;
  for (const Part &part : parts)
    if (isOwn(part))
      headers.push_back(
          {part.name, part.tensor->type, parseShape(part.tensor->shape)});
  if (headers.empty())
    return;
  const std::string name =
      fileNameOf(rank.wholeProgram().mesh().placeOf(rank.transport().rank()));
  SafetensorsWriter writer(folder.begin(step) + "/" + name, headers);
  for (const Part &part : parts) {
    if (!isOwn(part))
      continue;
    const char *values = shadow.data() + part.begin;
    if (part.tensor->channelsLast) {
      const std::vector<char> file = filterForFile(*part.tensor, values);
      writer.write(file.data(), static_cast<int64_t>(file.size()));
    } else {
      writer.write(values, part.tensor->buffer.bytes);
    }
  }
  writer.commit();
  file = {name, writer.bytes(), writer.checksum()};
}

std::string Checkpoints::advance() {
  if (thread.joinable())
    thread.join();
  if (phase == Phase::Writing) {
    rank.setBeforeUpdate({});
    beginCommit();
    phase = Phase::Committing;
    return "";
  }
  phase = Phase::None;
  if (gatherNumbers(rank.transport(), {isWhole ? 1.0 : 0.0})[0][0] != 0)
    made = current.step;
  return remark;
}

/// Folders are put to the disk, and gigabytes of an old checkpoint removed:
/// no step waits for that.
void Checkpoints::beginCommit() {
  // A double is exact only for whole numbers of 53 bits.
  const auto rows = gatherNumbers(
      rank.transport(), {static_cast<double>(file.bytes),
                         static_cast<double>(file.checksum >> 32),
                         static_cast<double>(file.checksum & 0xffffffffu)});
  const std::vector<std::string> failures =
      gatherTexts(rank.transport(), failure);
  isWhole = false;
  remark.clear();
  done = rank.transport().rank() != 0;
  if (done)
    return;
  CheckpointManifest manifest = this->manifest(current);
  for (int64_t r = 0; r < static_cast<int64_t>(rows.size()); ++r)
    if (rows[r][0] > 0)
      manifest.files.push_back(
          {fileNameOf(rank.wholeProgram().mesh().placeOf(r)),
           static_cast<int64_t>(rows[r][0]),
           static_cast<uint64_t>(rows[r][1]) << 32 |
               static_cast<uint64_t>(rows[r][2])});
  thread = std::thread([this, manifest, failures] {
    factory.leaveCores();
    setpriority(PRIO_PROCESS, 0, 10);
    commit(manifest, failures);
    if (isWhole)
      prune();
    done = true;
  });
}

void Checkpoints::commit(const CheckpointManifest &manifest,
                         const std::vector<std::string> &failures) {
  try {
    for (const std::string &text : failures)
      if (!text.empty())
        fail(text);
    folder.commit(manifest);
    isWhole = true;
  } catch (const std::exception &error) {
    message = error.what();
    remark = "no checkpoint: " + message;
    ++failed;
    folder.abandon(manifest.step);
  }
}

/// What could not be removed costs room on the disk, and no checkpoint.
void Checkpoints::prune() {
  try {
    folder.prune(current.step, options.keep);
  } catch (const std::exception &error) {
    remark = std::string("an old checkpoint stays: ") + error.what();
  }
}
