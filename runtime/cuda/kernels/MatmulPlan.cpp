//===- MatmulPlan.cpp - How cuBLASLt computes a product -------------------===//
//
// The algorithm of each shape is chosen in setUp by the library's heuristic:
// the same program must give the same bits on every run. With --algorithms it
// is the fastest of the heuristic's first ones, or the one that was so when the
// file was made.
//
// cuBLASLt thinks in columns. A row-major matrix is its own transpose there,
// so y = a b is computed as y^T = b^T a^T: the operands change places, and
// what is [m, n] for us is n by m for the library.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/kernels/MatmulPlan.h"
#include "runtime/calls/CallCosts.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/kernels/MatmulAlgorithms.h"

#include <algorithm>
#include <string>
#include <vector>

using namespace pipewright::runtime;

/// What algorithms may use; NVIDIA's advice for sm_90.
static constexpr uint64_t workspaceLimit = 32 << 20;

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

static cudaDataType_t dataType(ElementType type) {
  return type == ElementType::BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasComputeType_t computeType(DeviceRank &rank, ElementType type) {
  const DeviceProgram *program = rank.wholeProgram().device;
  const bool rounds = program && program->float32 == Float32Mode::Tf32;
  return type == ElementType::F32 && rounds ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
}

template <class T>
static void set(const MatmulPlan &plan,
                cublasLtMatmulDescAttributes_t attribute, const T &value) {
  PIPEWRIGHT_CUBLASLT(cublasLtMatmulDescSetAttribute(
      plan.operation.get(), attribute, &value, sizeof value));
}

/// A row-major matrix, or a batch of them, as columns.
static OwnedByMatmul<cublasLtMatrixLayout_t>
makeLayout(ElementType type, int64_t rows, int64_t columns, int64_t batch,
           int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  PIPEWRIGHT_CUBLASLT(cublasLtMatrixLayoutCreate(&made, dataType(type), columns,
                                                 rows, columns));
  OwnedByMatmul<cublasLtMatrixLayout_t> layout(made);
  const int32_t count = static_cast<int32_t>(batch);
  PIPEWRIGHT_CUBLASLT(cublasLtMatrixLayoutSetAttribute(
      made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  PIPEWRIGHT_CUBLASLT(cublasLtMatrixLayoutSetAttribute(
      made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
      sizeof stride));
  return layout;
}

static cublasLtEpilogue_t libraryEpilogue(MatmulEpilogue epilogue) {
  switch (epilogue) {
  case MatmulEpilogue::None:
    break;
  case MatmulEpilogue::Bias:
    return CUBLASLT_EPILOGUE_BIAS;
  case MatmulEpilogue::BiasGelu:
    return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  case MatmulEpilogue::GeluGradient:
    return CUBLASLT_EPILOGUE_DGELU;
  case MatmulEpilogue::GeluBiasGradient:
    return CUBLASLT_EPILOGUE_DGELU_BGRAD;
  case MatmulEpilogue::BiasGradient:
    // Our b is the library's A.
    return CUBLASLT_EPILOGUE_BGRADA;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

static bool usesBias(MatmulEpilogue epilogue) {
  return epilogue != MatmulEpilogue::None &&
         epilogue != MatmulEpilogue::GeluGradient;
}
static bool usesAux(MatmulEpilogue epilogue) {
  return epilogue == MatmulEpilogue::BiasGelu ||
         epilogue == MatmulEpilogue::GeluGradient ||
         epilogue == MatmulEpilogue::GeluBiasGradient;
}

void pipewright::runtime::describeEpilogue(const MatmulPlan &plan,
                                           const MatmulShape &s,
                                           MatmulEpilogue epilogue,
                                           const void *bias, const void *aux) {
  set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, libraryEpilogue(epilogue));
  if (usesBias(epilogue))
    set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (usesAux(epilogue)) {
    set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.n);
  }
}

static void describe(DeviceRank &rank, const MatmulShape &s,
                     MatmulEpilogue epilogue, bool aligned, MatmulPlan &plan) {
  cublasLtMatmulDesc_t operation = nullptr;
  PIPEWRIGHT_CUBLASLT(cublasLtMatmulDescCreate(
      &operation, computeType(rank, s.type), CUDA_R_32F));
  plan.operation.reset(operation);
  const cublasOperation_t plain = CUBLAS_OP_N, transposed = CUBLAS_OP_T;
  set(plan, CUBLASLT_MATMUL_DESC_TRANSA, s.transposeB ? transposed : plain);
  set(plan, CUBLASLT_MATMUL_DESC_TRANSB, s.transposeA ? transposed : plain);
  plan.a = makeLayout(s.type, s.transposeA ? s.k : s.m,
                      s.transposeA ? s.m : s.k, s.batch, s.m * s.k);
  plan.b =
      makeLayout(s.type, s.transposeB ? s.n : s.k, s.transposeB ? s.k : s.n,
                 s.batch, s.broadcastB ? 0 : s.k * s.n);
  plan.y = makeLayout(s.result, s.m, s.n, s.batch, s.m * s.n);
  if (epilogue != MatmulEpilogue::None) {
    const uint64_t beyond = aligned ? 0 : byteWidth(s.result);
    const void *someAddress =
        reinterpret_cast<const void *>(workspaceLimit + beyond);
    describeEpilogue(plan, s, epilogue, someAddress, someAddress);
  }
}

static OwnedByMatmul<cublasLtMatmulPreference_t>
makePreference(const MatmulShape &s, bool aligned) {
  cublasLtMatmulPreference_t made = nullptr;
  PIPEWRIGHT_CUBLASLT(cublasLtMatmulPreferenceCreate(&made));
  OwnedByMatmul<cublasLtMatmulPreference_t> preference(made);
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                    const auto &value) {
    PIPEWRIGHT_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(
        made, attribute, &value, sizeof value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceLimit);
  // Parts of a sum are added in float, never in the type of the result.
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  auto alignment = [&](ElementType type) {
    return aligned ? usualMatmulAlignment
                   : static_cast<uint32_t>(byteWidth(type));
  };
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(s.type));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(s.type));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(s.result));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(s.result));
  return preference;
}

/// At most `most` algorithms, the one that is said to be the fastest first.
static std::vector<cublasLtMatmulHeuristicResult_t>
proposals(cublasLtHandle_t handle, const MatmulShape &s, const MatmulPlan &plan,
          bool aligned, int most) {
  const auto preference = makePreference(s, aligned);
  std::vector<cublasLtMatmulHeuristicResult_t> results(most);
  int found = 0;
  const cublasStatus_t status = cublasLt().cublasLtMatmulAlgoGetHeuristic(
      handle, plan.operation.get(), plan.b.get(), plan.a.get(), plan.y.get(),
      plan.y.get(), preference.get(), most, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED)
    return {};
  checkCublasLt(status, "cublasLtMatmulAlgoGetHeuristic");
  results.resize(found);
  std::erase_if(results, [](const auto &result) {
    return result.state != CUBLAS_STATUS_SUCCESS;
  });
  return results;
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

namespace {

/// Memory for the operands of one product, and what runs it on them.
class Trial {
public:
  Trial(DeviceRank &rank, cublasLtHandle_t handle, const MatmulShape &s,
        MatmulEpilogue epilogue, const MatmulPlan &plan)
      : rank(rank), handle(handle), s(s), plan(plan),
        memory(rank.gpu(), place(s, epilogue), "products that are timed"),
        workspace(rank.gpu(), workspaceLimit, "products that are timed"),
        events(CU_EVENT_DEFAULT), begin(events.take()), end(events.take()) {
    fill();
    if (epilogue != MatmulEpilogue::None)
      describeEpilogue(plan, s, epilogue, address(biasAt), address(auxAt));
  }

  /// The median of some runs; none if the algorithm does not run after all.
  std::optional<float> milliseconds(const cublasLtMatmulAlgo_t &algorithm);

private:
  int64_t place(const MatmulShape &s, MatmulEpilogue epilogue);
  void fill();
  void *address(int64_t at) const {
    return reinterpret_cast<void *>(memory.address() + at);
  }
  cublasStatus_t run(const cublasLtMatmulAlgo_t &algorithm);

  DeviceRank &rank;
  const cublasLtHandle_t handle;
  const MatmulShape &s;
  const MatmulPlan &plan;
  int64_t bAt = 0, yAt = 0, biasAt = 0, auxAt = 0;
  const DeviceMemory memory, workspace;
  EventPool events;
  const CUevent begin, end;
};

} // namespace

/// Where each operand begins, and how much all take.
int64_t Trial::place(const MatmulShape &s, MatmulEpilogue epilogue) {
  int64_t bytes = 0;
  const auto next = [&](int64_t elements, ElementType type) {
    const int64_t at = bytes;
    bytes += (elements * byteWidth(type) + 255) / 256 * 256;
    return at;
  };
  next(s.batch * s.m * s.k, s.type);
  bAt = next((s.broadcastB ? 1 : s.batch) * s.k * s.n, s.type);
  yAt = next(s.batch * s.m * s.n, s.result);
  biasAt = next(usesBias(epilogue) ? std::max(s.m, s.n) : 0, s.result);
  auxAt = next(usesAux(epilogue) ? s.m * s.n : 0, s.result);
  return bytes;
}

/// With numbers from 0.5 to 1 of either sign, as f32 and as bf16: zeros take
/// less power, and so less time.
void Trial::fill() {
  std::vector<uint32_t> block(1 << 18);
  uint32_t state = 1;
  for (uint32_t &word : block) {
    state = state * 1664525 + 1013904223;
    word = (state & 0x807f807f) | 0x3f003f00;
  }
  const int64_t all = memory.bytes();
  int64_t done = std::min<int64_t>(all, block.size() * sizeof(uint32_t));
  copyToDevice(memory.address(), block.data(), done);
  for (; done < all; done = std::min(all, 2 * done))
    PIPEWRIGHT_CUDA(cuMemcpyDtoDAsync(memory.address() + done, memory.address(),
                                      std::min(done, all - done),
                                      rank.computeStream()));
}

cublasStatus_t Trial::run(const cublasLtMatmulAlgo_t &algorithm) {
  return cublasLt().cublasLtMatmul(
      handle, plan.operation.get(), &s.alpha, address(bAt), plan.b.get(),
      address(0), plan.a.get(), &s.beta, address(yAt), plan.y.get(),
      address(yAt), plan.y.get(), &algorithm,
      reinterpret_cast<void *>(workspace.address()), workspaceLimit,
      rank.computeStream());
}

std::optional<float>
Trial::milliseconds(const cublasLtMatmulAlgo_t &algorithm) {
  constexpr int runs = 5;
  if (run(algorithm) != CUBLAS_STATUS_SUCCESS)
    return std::nullopt;
  std::vector<float> times(runs);
  for (float &time : times) {
    PIPEWRIGHT_CUDA(cuEventRecord(begin, rank.computeStream()));
    checkCublasLt(run(algorithm), "cublasLtMatmul");
    PIPEWRIGHT_CUDA(cuEventRecord(end, rank.computeStream()));
    PIPEWRIGHT_CUDA(cuEventSynchronize(end));
    PIPEWRIGHT_CUDA(cuEventElapsedTime(&time, begin, end));
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[runs / 2];
}

/// Of the heuristic's first proposals.
static std::optional<cublasLtMatmulAlgo_t>
fastest(DeviceRank &rank, cublasLtHandle_t handle, const MatmulShape &s,
        MatmulEpilogue epilogue, const MatmulPlan &plan) {
  constexpr int tried = 16;
  const auto results = proposals(handle, s, plan, /*aligned=*/true, tried);
  Trial trial(rank, handle, s, epilogue, plan);
  std::optional<cublasLtMatmulAlgo_t> best;
  float least = 0;
  for (const cublasLtMatmulHeuristicResult_t &result : results) {
    const std::optional<float> time = trial.milliseconds(result.algo);
    if (!time || (best && *time >= least))
      continue;
    best = result.algo;
    least = *time;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Of the file that --algorithms names. The factor beta decides only by whether
/// y is read, alpha not at all.
static std::string textOf(DeviceRank &rank, const MatmulShape &s,
                          MatmulEpilogue epilogue) {
  const bool rounds = computeType(rank, s.type) == CUBLAS_COMPUTE_32F_FAST_TF32;
  return costOf(s, epilogue).name + (s.broadcastB ? ", one b" : "") + " to " +
         typeText(s.result) + (rounds ? ", in tf32" : "");
}

/// What the algorithm of the plan needs; none if it cannot run.
static std::optional<int64_t> workspaceOf(cublasLtHandle_t handle,
                                          const MatmulPlan &plan) {
  cublasLtMatmulHeuristicResult_t checked = {};
  if (cublasLt().cublasLtMatmulAlgoCheck(
          handle, plan.operation.get(), plan.b.get(), plan.a.get(),
          plan.y.get(), plan.y.get(), &plan.algorithm,
          &checked) != CUBLAS_STATUS_SUCCESS ||
      checked.workspaceSize > workspaceLimit)
    return std::nullopt;
  return static_cast<int64_t>(checked.workspaceSize);
}

/// As the file has it, which is made if there is none.
static std::optional<MatmulPlan>
makeKeptPlan(DeviceRank &rank, cublasLtHandle_t handle,
             MatmulAlgorithms &algorithms, const MatmulShape &s,
             MatmulEpilogue epilogue, MatmulPlan plan) {
  const std::string product = textOf(rank, s, epilogue);
  const auto found = algorithms.find(rank.gpu().name(), product, [&] {
    return fastest(rank, handle, s, epilogue, plan);
  });
  if (!found)
    return std::nullopt;
  plan.algorithm = *found;
  const std::optional<int64_t> bytes = workspaceOf(handle, plan);
  if (!bytes)
    algorithms.refuse(product);
  plan.workspaceBytes = *bytes;
  return plan;
}

/// A kernel that has a block for each multiprocessor takes twice as long where
/// transfers hold some: the last blocks come after all others. The algorithm is
/// chosen before, so that the bits are the same whatever the links.
static void leaveMultiprocessors(DeviceRank &rank, cublasLtHandle_t handle,
                                 MatmulPlan &plan) {
  const auto free = static_cast<int32_t>(rank.freeMultiprocessors());
  if (!free)
    return;
  set(plan, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, free);
  if (const auto bytes = workspaceOf(handle, plan))
    plan.workspaceBytes = std::max(plan.workspaceBytes, *bytes);
  else
    set(plan, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, int32_t{0});
}

static std::optional<MatmulPlan>
choosePlan(DeviceRank &rank, cublasLtHandle_t handle, const MatmulShape &s,
           MatmulEpilogue epilogue, bool aligned) {
  MatmulPlan plan;
  describe(rank, s, epilogue, aligned, plan);
  MatmulAlgorithms *algorithms = rank.settings().algorithms.get();
  // Operands that begin at odd places are rare.
  if (algorithms && aligned)
    return makeKeptPlan(rank, handle, *algorithms, s, epilogue,
                        std::move(plan));
  const auto results = proposals(handle, s, plan, aligned, 1);
  if (results.empty())
    return std::nullopt;
  plan.algorithm = results[0].algo;
  plan.workspaceBytes = static_cast<int64_t>(results[0].workspaceSize);
  return plan;
}

std::optional<MatmulPlan>
pipewright::runtime::planMatmul(DeviceRank &rank, cublasLtHandle_t handle,
                                const MatmulShape &s, MatmulEpilogue epilogue,
                                bool aligned) {
  std::optional<MatmulPlan> plan =
      choosePlan(rank, handle, s, epilogue, aligned);
  if (plan)
    leaveMultiprocessors(rank, handle, *plan);
  return plan;
}
