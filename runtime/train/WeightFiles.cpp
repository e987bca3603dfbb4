//===- WeightFiles.cpp - Weights of all ranks in one file -----------------===//

#include "runtime/train/WeightFiles.h"
#include "runtime/core/BFloat16.h"
#include "runtime/core/Error.h"
#include "runtime/core/Hash.h"
#include "runtime/core/ProcessName.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/Source.h"
#include "runtime/net/Gather.h"
#include "runtime/rank/Worker.h"
#include "runtime/train/FilterLayout.h"
#include "runtime/train/RandomWeights.h"
#include "runtime/train/TensorParts.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

using namespace pipewright::runtime;

/// What rank 0 holds of another rank's tensor at a time.
static constexpr int64_t pieceBytes = 32 << 20;

/// Between steps, by way of the host.
static void copyOnce(Worker &rank, Buffer from, Buffer to) {
  std::vector<char> piece(std::min(from.bytes, pieceBytes));
  for (int64_t at = 0; at < from.bytes; at += pieceBytes) {
    const int64_t now = std::min(pieceBytes, from.bytes - at);
    rank.read(from.at(at, now), piece.data());
    rank.write(to.at(at, now), piece.data());
  }
}

/// Rounds f32 numbers to bf16.
static void roundOnce(Worker &rank, Buffer from, Buffer to) {
  std::vector<float> piece(std::min(from.bytes, pieceBytes) / sizeof(float));
  std::vector<BFloat16> rounded(piece.size());
  for (int64_t at = 0; at < from.bytes; at += pieceBytes) {
    const int64_t now = std::min(pieceBytes, from.bytes - at);
    rank.read(from.at(at, now), piece.data());
    narrow(piece.data(), now / 4, rounded.data());
    rank.write(to.at(at / 2, now / 2), rounded.data());
  }
}

void pipewright::runtime::loadTensor(Worker &rank, const TensorInfo &tensor,
                                     const TensorView &from) {
  if (from.bytes != tensor.buffer.bytes)
    fail("tensor '", tensor.name, "' has ", from.bytes,
         " bytes, but its buffer ", tensor.buffer.bytes);
  const auto [begin, own] = tensor.storedOn(rank.replica());
  std::vector<char> piece;
  // A filter is reordered as a whole.
  if (tensor.channelsLast) {
    piece.resize(from.bytes);
    from.read(0, from.bytes, piece.data());
    rank.write(own, filterForMemory(tensor, piece.data()).data() + begin);
    return;
  }
  for (int64_t at = 0; at < own.bytes; at += pieceBytes) {
    const int64_t now = std::min(pieceBytes, own.bytes - at);
    piece.resize(now);
    from.read(begin + at, now, piece.data());
    rank.write(own.at(at, now), piece.data());
  }
}

namespace {
/// The files that a request is for.
class RequestedWeights {
public:
  explicit RequestedWeights(const WeightRequest &request)
      : file(request.path, request.renames) {
    if (request.isPartial)
      rest = std::make_unique<WeightSource>(request.rest);
  }

  bool misses(const std::string &name) const { return !file.contains(name); }
  TensorView find(const TensorInfo &weight) const {
    const bool isOther = rest && misses(weight.name);
    return (isOther ? *rest : file)
        .find(weight.name, weight.type, parseShape(weight.shape));
  }

private:
  WeightSource file;
  std::unique_ptr<WeightSource> rest;
};
} // namespace

void pipewright::runtime::loadWeights(Worker &rank,
                                      const WeightRequest &request) {
  if (rank.program().tensors.empty())
    return;
  if (request.isRandom()) {
    drawWeights(rank);
  } else {
    const RequestedWeights weights(request);
    for (const TensorInfo &weight : rank.program().tensors)
      if (weight.isWeight())
        loadTensor(rank, weight, weights.find(weight));
  }
  copyWeights(rank);
}

/// What a tensor is a copy of.
static const TensorInfo &originalOf(Worker &rank, const TensorInfo &copy) {
  const Table<TensorInfo> &tensors = rank.program().tensors;
  return *std::find_if(
      tensors.begin(), tensors.end(), [&](const TensorInfo &tensor) {
        return (tensor.isWeight() || tensor.role == Role::Rounded) &&
               std::strcmp(tensor.name, copy.name) == 0 &&
               tensor.buffer.offset == copy.from.offset &&
               tensor.buffer.bytes == copy.from.bytes;
      });
}

void pipewright::runtime::copyWeights(Worker &rank) {
  // In their order: a copy of a copy stands behind it.
  for (const TensorInfo &tensor : rank.program().tensors) {
    if (!tensor.from)
      continue;
    const TensorInfo &original = originalOf(rank, tensor);
    const int64_t ratio = tensor.from.bytes / tensor.buffer.bytes;
    // What a replica has of the original, and where that is in the copy.
    const TensorPart part = original.storedOn(rank.replica());
    const Buffer to =
        tensor.shard.isAlone
            ? tensor.partOf(rank.replica()).buffer
            : tensor.buffer.at(part.begin / ratio, part.buffer.bytes / ratio);
    if (to.bytes > 0 && ratio > 1)
      roundOnce(rank, part.buffer, to);
    else if (to.bytes > 0)
      copyOnce(rank, part.buffer, to);
    if (original.shard.isAlone && !tensor.shard.isAlone)
      shareParts(rank, original, tensor);
  }
}

void pipewright::runtime::checkWeights(const Program &program,
                                       const WeightRequest &request) {
  if (request.isRandom())
    return checkRandomWeights(program);
  std::unique_ptr<RequestedWeights> weights;
  bool hasAny = false;
  for (const RankProgram &rank : program.ranks)
    for (const TensorInfo &weight : rank.tensors) {
      if (!weight.isWeight())
        continue;
      if (!weights)
        weights = std::make_unique<RequestedWeights>(request);
      weights->find(weight);
      hasAny |= !weights->misses(weight.name);
    }
  if (weights && !hasAny)
    fail("'", request.path, "' has no weight of this program");
}

std::string pipewright::runtime::missingWeights(const Program &program,
                                                const WeightRequest &request) {
  if (!request.isPartial)
    return "";
  const RequestedWeights weights(request);
  std::set<std::string> missing;
  for (const RankProgram &rank : program.ranks)
    for (const TensorInfo &weight : rank.tensors)
      if (weight.isWeight() && weights.misses(weight.name))
        missing.insert(weight.name);
  std::string list;
  for (const std::string &name : missing)
    list += (list.empty() ? "'" : ", '") + name + "'";
  return list.empty() ? list
                      : "'" + request.path + "' has not " + list +
                            ": they come from '" + request.rest + "'";
}

/// Copies a part of a tensor of the calling rank.
using ReadPart =
    std::function<void(int64_t begin, int64_t bytes, void *destination)>;

namespace {
/// Rank 0's file. Once something has gone wrong it takes no more, but the other
/// ranks can go on sending.
class Sink {
public:
  Sink(const std::string &path, const std::vector<TensorHeader> &headers,
       const Notes &notes) {
    attempt([&] {
      file = std::make_unique<SafetensorsWriter>(path, headers, notes);
    });
  }
  void write(const void *data, int64_t bytes) {
    attempt([&] { file->write(data, bytes); });
  }
  void commit() {
    attempt([&] { file->commit(); });
  }
  const std::string &trouble() const { return message; }

private:
  template <class Body>
  void attempt(const Body &body) {
    if (!message.empty())
      return;
    try {
      body();
    } catch (const Error &error) {
      message = error.what();
      file.reset();
    }
  }

  std::unique_ptr<SafetensorsWriter> file;
  std::string message;
};
} // namespace

/// Rank 0 writes one tensor, which its owner in the pipeline reads, piece by
/// piece.
static void passTensor(Transport &pipeline, int64_t owner, const ReadPart &read,
                       int64_t bytes, Sink *sink) {
  const bool reads = pipeline.rank() == owner;
  if (!reads && !sink)
    return;
  std::vector<char> piece(std::min(bytes, pieceBytes));
  for (int64_t at = 0; at < bytes; at += pieceBytes) {
    const int64_t now = std::min(pieceBytes, bytes - at);
    if (reads)
      read(at, now, piece.data());
    if (reads && !sink) {
      pipeline.postSend(0, piece.data(), now);
      pipeline.waitSend(0);
    } else if (!reads) {
      pipeline.postReceive(owner, piece.data(), now);
      pipeline.waitReceive(owner);
    }
    if (sink)
      sink->write(piece.data(), now);
  }
}

/// Writes the tensors that `selects` is true for; `find` tells how to read one
/// of the calling rank, by its index, and is called on all replicas alike: the
/// first one needs what it tells. Returns what went wrong on rank 0, and on
/// the others only that something did; nothing where all went well.
static std::string
saveTensors(Worker &rank, const std::string &path,
            const std::function<bool(const TensorInfo &)> &selects,
            const std::function<ReadPart(size_t)> &find,
            const Notes &notes = {}) {
  const Program &program = rank.wholeProgram();
  // By name, so that the file does not tell which rank holds what: equal
  // weights give equal files.
  struct Piece {
    TensorHeader header;
    int64_t owner;
    size_t index;
  };
  std::vector<Piece> pieces;
  for (size_t owner = 0; owner < program.ranks.size(); ++owner) {
    const auto &tensors = program.ranks[owner].tensors;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (selects(tensors[i]))
        pieces.push_back(
            {{tensors[i].name, tensors[i].type, parseShape(tensors[i].shape)},
             static_cast<int64_t>(owner),
             i});
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece &a, const Piece &b) {
    return a.header.name < b.header.name;
  });
  std::unique_ptr<Sink> sink;
  if (rank.transport().rank() == 0) {
    std::vector<TensorHeader> headers;
    for (const Piece &piece : pieces)
      headers.push_back(piece.header);
    sink = std::make_unique<Sink>(path, headers, notes);
  }
  for (const Piece &piece : pieces) {
    const ReadPart read =
        piece.owner == rank.number() ? find(piece.index) : ReadPart();
    // All replicas have the same; the first one's are written.
    if (rank.replica() == 0)
      passTensor(rank.pipeline(), piece.owner, read,
                 elementCount(piece.header.shape) *
                     byteWidth(piece.header.type),
                 sink.get());
  }
  if (sink)
    sink->commit();
  double failed = sink && !sink->trouble().empty();
  rank.transport().sumToAll(&failed, 1);
  return sink          ? sink->trouble()
         : failed != 0 ? "rank 0 cannot write the file"
                       : "";
}

/// How to read the memory of a tensor, of which replicas may have parts: then
/// the first one puts it together.
static ReadPart wholeOf(Worker &rank, const TensorInfo &tensor) {
  const Buffer own = tensor.partOf(rank.replica()).buffer;
  auto read = [&rank, own](int64_t begin, int64_t bytes, void *destination) {
    rank.read(own.at(begin, bytes), destination);
  };
  if (!tensor.isSharded())
    return read;
  auto whole = std::make_shared<std::vector<char>>(
      rank.replica() == 0 ? tensor.buffer.bytes : 0);
  collectParts(rank, tensor, /*home=*/0, read, whole->data());
  return [whole](int64_t begin, int64_t bytes, void *destination) {
    std::memcpy(destination, whole->data() + begin, bytes);
  };
}

/// How to read a tensor, whose memory `readMemory` reads, as files have it.
static ReadPart partsOf(const TensorInfo &tensor, const ReadPart &readMemory) {
  if (!tensor.channelsLast)
    return readMemory;
  // A part of the file comes from all over the memory of such a tensor.
  std::vector<char> whole(tensor.buffer.bytes);
  readMemory(0, whole.size(), whole.data());
  return [file = filterForFile(tensor, whole.data())](
             int64_t begin, int64_t bytes, void *destination) {
    std::memcpy(destination, file.data() + begin, bytes);
  };
}

std::string pipewright::runtime::writeWeights(Worker &rank,
                                              const std::string &path,
                                              const Notes &notes) {
  return saveTensors(
      rank, path,
      [](const TensorInfo &tensor) {
        return tensor.isWeight() && tensor.owner;
      },
      [&](size_t i) {
        const TensorInfo &weight = rank.program().tensors[i];
        const ReadPart whole = wholeOf(rank, weight);
        return rank.replica() == 0 ? partsOf(weight, whole) : ReadPart();
      },
      notes);
}

/// In place of a hash.
static constexpr double differingCopies = -1;

static Hash hashOf(Worker &rank, Buffer buffer) {
  Hash hash;
  std::vector<char> piece;
  for (int64_t at = 0; at < buffer.bytes; at += pieceBytes) {
    const int64_t now = std::min(pieceBytes, buffer.bytes - at);
    piece.resize(now);
    rank.read(buffer.at(at, now), piece.data());
    hash.addBytes(piece.data(), now);
  }
  return hash;
}

/// A weight of which there are several copies between two steps.
struct SharedWeight {
  /// The positions that hold it, one for each copy.
  std::multiset<int64_t> holders;
  /// How many of the copies are whole on each replica, and of those in bf16.
  size_t whole = 0, rounded = 0;

  bool isCompared(const TensorInfo &copy) const {
    return whole == holders.size() ? copy.isWeight()
                                   : copy.role == Role::Rounded;
  }
};

/// Of each copy that this rank has of a weight; stages of a rank may have one
/// each. In 53 bits, which a double has.
static double hashOfWeight(Worker &rank, const std::string &name,
                           const SharedWeight &shared) {
  std::optional<double> first;
  for (const TensorInfo &tensor : rank.program().tensors) {
    if (name != tensor.name || !shared.isCompared(tensor))
      continue;
    const auto own =
        static_cast<double>(hashOf(rank, tensor.buffer).value() >> 11);
    if (first && own != *first)
      return differingCopies;
    first = own;
  }
  return first.value_or(0);
}

/// By name, those that can be compared: all copies are whole on each replica,
/// or all that are in bf16. With several updates in a step, tied weights are
/// taken over at other times.
static std::map<std::string, SharedWeight>
sharedWeights(const Program &program) {
  std::map<std::string, SharedWeight> shared;
  int64_t position = 0;
  for (const RankProgram &rank : program.ranks) {
    for (const TensorInfo &tensor : rank.tensors) {
      if (tensor.isWeight()) {
        shared[tensor.name].holders.insert(position);
        shared[tensor.name].whole += !tensor.isSharded();
      }
      if (tensor.role == Role::Rounded && !tensor.isSharded())
        ++shared[tensor.name].rounded;
    }
    ++position;
  }
  std::erase_if(shared, [&](const auto &weight) {
    const SharedWeight &of = weight.second;
    return (of.whole < of.holders.size() && of.rounded < of.holders.size()) ||
           (program.replicas == 1 &&
            (of.holders.size() == 1 || program.updates > 1));
  });
  return shared;
}

std::string pipewright::runtime::weightTrouble(Worker &rank) {
  const Program &program = rank.wholeProgram();
  const Mesh mesh = program.mesh();
  const auto shared = sharedWeights(program);
  if (shared.empty())
    return "";
  std::vector<double> own;
  for (const auto &[name, weight] : shared)
    own.push_back(hashOfWeight(rank, name, weight));
  const auto hashes = gatherNumbers(rank.transport(), own);
  size_t number = 0;
  for (const auto &[name, weight] : shared) {
    const std::multiset<int64_t> &positions = weight.holders;
    const int64_t first = mesh.processAt({.position = *positions.begin()});
    for (int64_t process = 0; process < mesh.size(); ++process)
      if (positions.contains(mesh.placeOf(process).position) &&
          (hashes[process][number] != hashes[first][number] ||
           hashes[process][number] == differingCopies))
        return processName(process) +
               (hashes[process][number] == differingCopies
                    ? " has two weights '" + name + "' that differ"
                    : " has another weight '" + name + "' than " +
                          processName(first)) +
               ": a machine that computes otherwise, or a mistake in the "
               "program";
    ++number;
  }
  return "";
}

/// A name in the folder that nothing has yet.
static std::string rescueName(const std::filesystem::path &folder,
                              const std::string &path) {
  const std::string name =
      (folder / std::filesystem::path(path).filename()).string() + ".rescued";
  std::string free = name;
  std::error_code error;
  for (int number = 2; std::filesystem::exists(free, error); ++number)
    free = name + "-" + std::to_string(number);
  return free;
}

Saved pipewright::runtime::saveWeights(Worker &rank, const std::string &path) {
  Saved saved = {path, writeWeights(rank, path)};
  if (saved.trouble.empty())
    return saved;
  std::error_code here, temporary;
  const std::filesystem::path folders[] = {
      std::filesystem::current_path(here),
      std::filesystem::temp_directory_path(temporary)};
  for (const std::filesystem::path &folder : folders) {
    saved.path = rescueName(folder, path);
    if (writeWeights(rank, saved.path).empty())
      return saved;
  }
  saved.path.clear();
  return saved;
}

/// The gradients that were captured; whole ones on the first replica, where
/// replicas have parts.
static std::vector<std::vector<float>> wholeGradients(Worker &rank) {
  std::vector<std::vector<float>> gradients = rank.gradients();
  const Table<TensorInfo> &tensors = rank.program().tensors;
  for (size_t i = 0; i < gradients.size(); ++i)
    if (tensors[i].isWholeGradient() && tensors[i].isSharded()) {
      char *values = reinterpret_cast<char *>(gradients[i].data());
      const char *own = values + tensors[i].partOf(rank.replica()).begin;
      collectParts(
          rank, tensors[i], /*home=*/0,
          [own](int64_t begin, int64_t bytes, void *destination) {
            std::memmove(destination, own + begin, bytes);
          },
          values);
    }
  return gradients;
}

void pipewright::runtime::saveGradients(Worker &rank, const std::string &path) {
  const std::vector<std::vector<float>> gradients = wholeGradients(rank);
  const std::string trouble = saveTensors(
      rank, path,
      [](const TensorInfo &tensor) { return tensor.isWholeGradient(); },
      [&](size_t i) {
        if (gradients.size() <= i)
          fail(processName(rank.transport().rank()),
               " had no update task to take gradients at");
        return partsOf(
            rank.program().tensors[i],
            [&gradients, i](int64_t begin, int64_t bytes, void *destination) {
              const char *values =
                  reinterpret_cast<const char *>(gradients[i].data());
              std::memcpy(destination, values + begin, bytes);
            });
      });
  if (!trouble.empty())
    fail(trouble);
}
