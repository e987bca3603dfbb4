//===- CudnnAttention.cpp - Attention on the GPU by cuDNN -----------------===//
//
// cuDNN's engines keep the gradients of all scores in bf16 through workspace
// where nothing may be added by atomics: rows x columns for each head. A batch
// whose gradients are too many goes in parts.
//
// It gets no masks. Its backward pass knows one number of a row, max +
// log(sum), in f32: of a row that a mask hides in all columns (by -1e9, or the
// least number) the second term is lost, and its gradient comes out too large
// by the number of columns. What is causal alone has no such rows. And of a
// mask that is the same for all rows, 9.19 makes wrong gradients on an H200.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/kernels/CudnnAttention.h"
#include "runtime/calls/AttentionStrides.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/kernels/AttentionGraph.h"
#include "runtime/cuda/kernels/Builtins.h"

#include <algorithm>
#include <deque>
#include <limits>

using namespace pipewright::runtime;

/// Before 9.16 columns must be multiples of 128 for results to be right.
static constexpr size_t anyColumnsSince = 91600;
static constexpr int64_t columnsBefore = 128;

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

std::string pipewright::runtime::cudnnVersionText() {
  const size_t version = cudnn().cudnnGetVersion();
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string pipewright::runtime::attentionText(const AttentionShape &s) {
  std::string text = std::to_string(s.batch) + "x" + std::to_string(s.heads);
  if (s.group() > 1)
    text += "(" + std::to_string(s.keyHeads) + ")";
  text += "x" + std::to_string(s.rows);
  if (keysOf(s) != s.rows)
    text += "(" + std::to_string(s.columns) + ")";
  text += "x" + std::to_string(s.depth) + " " + typeText(s.type);
  if (s.causal)
    text += " causal";
  return text;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Why cuDNN need not be asked; empty where it must.
static std::string refusal(const AttentionShape &s) {
  if (s.type != ElementType::BF16)
    return "cuDNN has no backward pass in f32";
  if (s.dropoutRate > 0)
    return "cuDNN draws other random numbers for dropout";
  if (s.group() > 1)
    return "several heads of q read one of k and v";
  if (s.softcap > 0)
    return "its scores are bounded";
  // One of a single number changes nothing.
  if (s.maskBatch * s.maskHeads * s.maskRows * s.maskColumns > 1)
    return "cuDNN's gradients are wrong where there is a mask";
  if (s.rows == 1)
    return "cuDNN does not support a single row";
  return "";
}

/// One of `parts` equal parts of the heads of all samples: whole samples or
/// some heads of one. No heads where they cannot be parted so.
static AttentionShape partOf(AttentionShape s, int64_t parts) {
  if (s.batch % parts == 0) {
    s.batch /= parts;
  } else if (parts % s.batch == 0 && s.heads % (parts / s.batch) == 0) {
    s.heads /= parts / s.batch;
    s.batch = 1;
  } else {
    s.heads = 0;
  }
  return s;
}

/// Whether every part's tensors begin where cuDNN can read them.
static bool isAligned(const AttentionShape &part) {
  const int64_t numbers = part.batch * part.heads * part.rows;
  return numbers * 4 % CudnnGraph::alignment == 0;
}

int64_t AttentionPlans::meansBytes(const AttentionShape &s) const {
  const int64_t bytes = s.batch * s.heads * s.rows * 4 / parts;
  return (bytes + 255) / 256 * 256;
}

int64_t AttentionPlans::workspaceBytes(const AttentionShape &s) const {
  return std::max(forward.workspaceBytes,
                  meansBytes(s) + backward.workspaceBytes);
}

AttentionPlans pipewright::runtime::planAttention(const CudnnTarget &target,
                                                  const AttentionShape &s,
                                                  int64_t limit) {
  AttentionPlans plans;
  plans.reason = refusal(s);
  if (plans.reason.empty() && cudnn().cudnnGetVersion() < anyColumnsSince &&
      keysOf(s) % columnsBefore != 0)
    plans.reason = "cuDNN " + cudnnVersionText() +
                   " is older than 9.16, and its columns are no multiple of " +
                   std::to_string(columnsBefore);
  if (!plans.reason.empty())
    return plans;
  CudnnChoice forward =
      choosePlan(target, attentionForwardGraph(target, s), limit);
  if (!forward.plan) {
    plans.reason = "cuDNN " + cudnnVersionText() + ": " + forward.reason;
    return plans;
  }
  const int64_t heads = s.batch * s.heads;
  const int64_t leastBytes = 2 * s.rows * keysOf(s);
  plans.reason = "its scores cannot be parted to fit into " +
                 std::to_string(limit) + " bytes of workspace";
  for (int64_t parts = 1; parts <= heads; ++parts) {
    const AttentionShape part = partOf(s, parts);
    if (!part.heads || heads / parts * leastBytes > limit ||
        (parts > 1 && !isAligned(part)))
      continue;
    CudnnChoice backward =
        choosePlan(target, attentionBackwardGraph(target, part), limit);
    if (backward.plan) {
      plans.forward = std::move(*forward.plan);
      plans.backward = std::move(*backward.plan);
      plans.parts = parts;
      plans.reason.clear();
      return plans;
    }
    plans.reason = "cuDNN " + cudnnVersionText() + ": " + backward.reason;
    if (!backward.isTooLarge)
      break;
  }
  return plans;
}

//===----------------------------------------------------------------------===//
// Set up
//===----------------------------------------------------------------------===//

namespace {

/// What is known of one shape.
struct Entry {
  AttentionShape shape;
  AttentionPlans plans;
};

class CudnnAttentions : public LibraryState {
public:
  ~CudnnAttentions() override {
    entries.clear();
    if (handle)
      cudnn().cudnnDestroy(handle);
  }

  Entry *find(const AttentionShape &shape);
  /// On the rank's stream; made at the first call.
  cudnnHandle_t handleFor(DeviceRank &rank);

  std::deque<Entry> entries;

private:
  cudnnHandle_t handle = nullptr;
};

} // namespace

/// Whether the same plans do for both: dropout has none.
static bool isSame(const AttentionShape &a, const AttentionShape &b) {
  return a.batch == b.batch && a.heads == b.heads && a.group() == b.group() &&
         a.rows == b.rows && keysOf(a) == keysOf(b) && a.depth == b.depth &&
         a.scale == b.scale && a.softcap == b.softcap && a.causal == b.causal &&
         a.dropoutRate == b.dropoutRate && a.maskBatch == b.maskBatch &&
         a.maskHeads == b.maskHeads && a.maskRows == b.maskRows &&
         a.maskColumns == b.maskColumns && a.type == b.type &&
         a.inputStride == b.inputStride && a.outputStride == b.outputStride;
}

Entry *CudnnAttentions::find(const AttentionShape &shape) {
  for (Entry &entry : entries)
    if (isSame(entry.shape, shape))
      return &entry;
  return nullptr;
}

cudnnHandle_t CudnnAttentions::handleFor(DeviceRank &rank) {
  if (!handle)
    PIPEWRIGHT_CUDNN(cudnnCreate(&handle));
  PIPEWRIGHT_CUDNN(cudnnSetStream(handle, rank.computeStream()));
  return handle;
}

/// The plans, or in `reason` whatever stands against them.
static AttentionPlans tryPlans(DeviceRank &rank, CudnnAttentions &state,
                               const AttentionShape &s) {
  AttentionPlans plans;
  plans.reason = refusal(s);
  if (rank.settings().attention == AttentionBy::Own)
    plans.reason = "of --attention own";
  if (!plans.reason.empty())
    return plans;
  try {
    CudnnTarget target;
    target.handle = state.handleFor(rank);
    return planAttention(target, s, rank.settings().attentionWorkspace);
  } catch (const Error &error) {
    plans.reason = error.what();
    return plans;
  }
}

static std::string remarkOn(const AttentionShape &s,
                            const AttentionPlans &plans) {
  const std::string what = "attention  " + attentionText(s) + ": ";
  if (!plans)
    return what + "own kernels, because " + plans.reason;
  std::string text = what + "cuDNN " + cudnnVersionText() + ", engines " +
                     std::to_string(plans.forward.engine) + " and " +
                     std::to_string(plans.backward.engine);
  if (plans.parts > 1)
    text += ", backward in " + std::to_string(plans.parts) + " parts";
  return text;
}

bool pipewright::runtime::prepareCudnnAttention(DeviceRank &rank,
                                                const AttentionShape &s) {
  CudnnAttentions &state = rank.library<CudnnAttentions>();
  if (const Entry *known = state.find(s))
    return bool(known->plans);
  Entry &entry = state.entries.emplace_back(s, tryPlans(rank, state, s));
  const AttentionPlans &plans = entry.plans;
  if (!plans && rank.settings().attention == AttentionBy::Cudnn)
    fail("--attention cudnn: attention over ", attentionText(s),
         " is not possible by cuDNN (", plans.reason,
         "); --attention auto uses own kernels there");
  rank.remark(remarkOn(s, plans));
  if (plans)
    rank.reserveWorkspace(plans.workspaceBytes(s));
  return bool(plans);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static const void *alignedAddress(DeviceRank &rank, Buffer buffer) {
  const char *address = rank.device<char>(buffer);
  if (!alignedTo(CudnnGraph::alignment, address))
    fail("attention has an operand that does not begin at a multiple of ",
         CudnnGraph::alignment, " bytes");
  return address;
}

namespace {

/// The addresses of a plan's tensors, for one part after the other.
class Operands {
public:
  Operands(DeviceRank &rank, const AttentionShape &shape, int64_t parts)
      : rank(rank), shape(shape), parts(parts), scale(shape.scale) {
    addFixed(AttentionTensor::Scale, &scale);
  }
  // Some of the addresses are its own.
  Operands(const Operands &) = delete;
  Operands &operator=(const Operands &) = delete;

  /// The same for all parts.
  void addFixed(AttentionTensor tensor, const void *address) {
    ids.push_back(static_cast<int64_t>(tensor));
    addresses.push_back(static_cast<const char *>(address));
    strides.push_back({0, 0});
  }
  /// Adds a tensor that lies in a buffer as the strides say. These count
  /// elements of `elementBytes` bytes.
  void add(AttentionTensor tensor, Buffer buffer,
           const AttentionStrides &elements, int64_t elementBytes) {
    addFixed(tensor, alignedAddress(rank, buffer));
    strides.back() = {elements.sample * elementBytes,
                      elements.head * elementBytes};
  }
  void addVectors(AttentionTensor tensor, Buffer buffer,
                  const AttentionStrides &elements) {
    add(tensor, buffer, elements, byteWidth(shape.type));
  }
  /// One number for each row; there is room for two.
  void addLse(Buffer stats) {
    add(AttentionTensor::Lse, stats, {shape.heads * shape.rows, shape.rows, 1},
        sizeof(float));
  }
  void addHidden() { addFixed(AttentionTensor::Hidden, &hidden); }
  void addOne() { addFixed(AttentionTensor::One, &one); }

  void run(cudnnHandle_t handle, const CudnnPlan &plan, int64_t part,
           void *workspace) const {
    const Corner corner = cornerOf(part);
    std::vector<const void *> at;
    for (size_t i = 0; i < ids.size(); ++i)
      at.push_back(addresses[i] + corner.sample * strides[i].sample +
                   corner.head * strides[i].head);
    plan.run(handle, ids, at, workspace);
  }

private:
  /// The first sample and head of a part.
  struct Corner {
    int64_t sample, head;
  };
  /// Where a part begins, among samples and heads.
  Corner cornerOf(int64_t part) const {
    if (parts <= shape.batch)
      return {part * (shape.batch / parts), 0};
    const int64_t ofSample = parts / shape.batch;
    return {part / ofSample, part % ofSample * (shape.heads / ofSample)};
  }

  /// Bytes from one to the next.
  struct Strides {
    int64_t sample, head;
  };

  DeviceRank &rank;
  const AttentionShape &shape;
  const int64_t parts;
  const float scale;
  const float hidden = -std::numeric_limits<float>::infinity();
  const float one = 1;
  std::vector<int64_t> ids;
  std::vector<const char *> addresses;
  std::vector<Strides> strides;
};

} // namespace

/// What both directions read.
static void addInputs(Operands &operands, const Entry &entry, Buffer q,
                      Buffer k, Buffer v) {
  const AttentionShape &s = entry.shape;
  operands.addVectors(AttentionTensor::Q, q, rowStrides(s));
  operands.addVectors(AttentionTensor::K, k, keyStrides(s));
  operands.addVectors(AttentionTensor::V, v, keyStrides(s));
  if (s.causal)
    operands.addHidden();
}

bool pipewright::runtime::cudnnAttention(DeviceRank &rank,
                                         const AttentionShape &s, Buffer q,
                                         Buffer k, Buffer v, Buffer o,
                                         Buffer stats) {
  CudnnAttentions &state = rank.library<CudnnAttentions>();
  const Entry *entry = state.find(s);
  if (!entry || !entry->plans)
    return false;
  const AttentionPlans &plans = entry->plans;
  Operands operands(rank, entry->shape, /*parts=*/1);
  addInputs(operands, *entry, q, k, v);
  operands.addVectors(AttentionTensor::O, o, outputStrides(s));
  operands.addLse(stats);
  operands.run(state.handleFor(rank), plans.forward, 0,
               rank.workspace(plans.workspaceBytes(s)));
  return true;
}

bool pipewright::runtime::cudnnAttentionBackward(
    DeviceRank &rank, const AttentionShape &s, Buffer dO, Buffer q, Buffer k,
    Buffer v, Buffer o, Buffer stats, Buffer dq, Buffer dk, Buffer dv) {
  CudnnAttentions &state = rank.library<CudnnAttentions>();
  const Entry *entry = state.find(s);
  if (!entry || !entry->plans)
    return false;
  const AttentionPlans &plans = entry->plans;
  const int64_t parts = plans.parts;
  Operands operands(rank, entry->shape, parts);
  addInputs(operands, *entry, q, k, v);
  operands.addVectors(AttentionTensor::OutputGradient, dO, outputStrides(s));
  operands.addVectors(AttentionTensor::O, o, outputStrides(s));
  operands.addLse(stats);
  operands.addVectors(AttentionTensor::QGradient, dq, rowStrides(s));
  operands.addVectors(AttentionTensor::KGradient, dk, keyStrides(s));
  operands.addVectors(AttentionTensor::VGradient, dv, keyStrides(s));
  char *workspace =
      static_cast<char *>(rank.workspace(plans.workspaceBytes(s)));
  operands.addFixed(AttentionTensor::Means, workspace);
  operands.addOne();
  const cudnnHandle_t handle = state.handleFor(rank);
  for (int64_t part = 0; part < parts; ++part)
    operands.run(handle, plans.backward, part, workspace + plans.meansBytes(s));
  return true;
}
