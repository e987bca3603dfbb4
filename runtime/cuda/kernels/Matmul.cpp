//===- Matmul.cpp - Matrix products on the GPU by cuBLASLt ----------------===//
//
// The algorithm of each shape is chosen in setUp by the library's heuristic,
// never by timing: the same program must give the same bits on every run.
//
// cuBLASLt thinks in columns. A row-major matrix is its own transpose there,
// so y = a b is computed as y^T = b^T a^T: the operands change places, and
// what is [m, n] for us is n by m for the library.
//
//===----------------------------------------------------------------------===//

#include "runtime/calls/Matmul.h"
#include "runtime/calls/CallCosts.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/kernels/Builtins.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>

using namespace pipewright::runtime;

namespace {

/// What algorithms may use; NVIDIA's advice for sm_90.
constexpr uint64_t workspaceLimit = 32 << 20;
/// The alignment of operands, unless a part of a buffer begins at an odd place.
constexpr uint32_t usualAlignment = 16;

struct DestroyDescriptor {
  void operator()(cublasLtMatmulDesc_t descriptor) const {
    cublasLt().cublasLtMatmulDescDestroy(descriptor);
  }
  void operator()(cublasLtMatrixLayout_t layout) const {
    cublasLt().cublasLtMatrixLayoutDestroy(layout);
  }
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLt().cublasLtMatmulPreferenceDestroy(preference);
  }
};
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, DestroyDescriptor>;

/// One shape, with the algorithm that was chosen for it.
struct MatmulPlan {
  Owned<cublasLtMatmulDesc_t> operation;
  Owned<cublasLtMatrixLayout_t> a, b, y;
  cublasLtMatmulAlgo_t algorithm = {};
  int64_t workspaceBytes = 0;
};

/// All fields of a shape, and whether operands are aligned as usual.
using PlanKey =
    std::tuple<int64_t, int64_t, int64_t, int64_t, bool, bool, bool, bool,
               ElementType, ElementType, MatmulEpilogue, bool>;

class Matmuls : public LibraryState {
public:
  Matmuls() { PIPEWRIGHT_CUBLASLT(cublasLtCreate(&handle)); }
  ~Matmuls() override {
    plans.clear();
    cublasLt().cublasLtDestroy(handle);
  }

  cublasLtHandle_t handle = nullptr;
  std::map<PlanKey, MatmulPlan> plans;
};

} // namespace

static PlanKey keyOf(const MatmulShape &s, MatmulEpilogue epilogue,
                     bool aligned) {
  // The factor beta decides over the algorithm only by whether y is read.
  return {s.batch,      s.m,          s.n,          s.k,
          s.transposeA, s.transposeB, s.broadcastB, s.beta != 0,
          s.type,       s.result,     epilogue,     aligned};
}

/// One b for all rows: a batch of products is one taller product.
static MatmulShape simplified(MatmulShape s) {
  if (s.broadcastB && !s.transposeA) {
    s.m *= s.batch;
    s.batch = 1;
  }
  s.broadcastB &= s.batch > 1;
  return s;
}

static std::string productText(const MatmulShape &s) {
  const std::string text = std::to_string(s.m) + " x " + std::to_string(s.n) +
                           " x " + std::to_string(s.k) +
                           (s.type == ElementType::BF16 ? " in bf16" : "");
  return s.batch == 1 ? text : std::to_string(s.batch) + " of " + text;
}

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
static Owned<cublasLtMatrixLayout_t> makeLayout(ElementType type, int64_t rows,
                                                int64_t columns, int64_t batch,
                                                int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  PIPEWRIGHT_CUBLASLT(cublasLtMatrixLayoutCreate(&made, dataType(type), columns,
                                                 rows, columns));
  Owned<cublasLtMatrixLayout_t> layout(made);
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

/// Says what the epilogue works on. While an algorithm is chosen, addresses
/// only tell their alignment.
static void describeEpilogue(const MatmulPlan &plan, const MatmulShape &s,
                             MatmulEpilogue epilogue, const void *bias,
                             const void *aux) {
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

static Owned<cublasLtMatmulPreference_t> makePreference(const MatmulShape &s,
                                                        bool aligned) {
  cublasLtMatmulPreference_t made = nullptr;
  PIPEWRIGHT_CUBLASLT(cublasLtMatmulPreferenceCreate(&made));
  Owned<cublasLtMatmulPreference_t> preference(made);
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
    return aligned ? usualAlignment : static_cast<uint32_t>(byteWidth(type));
  };
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(s.type));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(s.type));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(s.result));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(s.result));
  return preference;
}

/// None if cuBLASLt has no algorithm.
static std::optional<MatmulPlan> makePlan(DeviceRank &rank,
                                          const MatmulShape &s,
                                          MatmulEpilogue epilogue,
                                          bool aligned) {
  MatmulPlan plan;
  describe(rank, s, epilogue, aligned, plan);
  const auto preference = makePreference(s, aligned);
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  const cublasStatus_t status = cublasLt().cublasLtMatmulAlgoGetHeuristic(
      rank.library<Matmuls>().handle, plan.operation.get(), plan.b.get(),
      plan.a.get(), plan.y.get(), plan.y.get(), preference.get(), 1, &best,
      &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED ||
      (status == CUBLAS_STATUS_SUCCESS && found == 0))
    return std::nullopt;
  checkCublasLt(status, "cublasLtMatmulAlgoGetHeuristic");
  plan.algorithm = best.algo;
  plan.workspaceBytes = static_cast<int64_t>(best.workspaceSize);
  return plan;
}

void pipewright::runtime::prepareMatmul(DeviceRank &rank,
                                        const MatmulShape &shape,
                                        MatmulEpilogue epilogue) {
  Matmuls &state = rank.library<Matmuls>();
  const MatmulShape s = simplified(shape);
  if (s.batch > INT32_MAX)
    fail("a batch of ", productText(s), " products is too large");
  for (const bool aligned : {true, false}) {
    const PlanKey key = keyOf(s, epilogue, aligned);
    if (state.plans.count(key))
      continue;
    std::optional<MatmulPlan> plan = makePlan(rank, s, epilogue, aligned);
    if (!plan && aligned)
      fail("cuBLASLt has no algorithm for a product of ", productText(s),
           epilogue == MatmulEpilogue::None ? "" : " with its epilogue", " on ",
           rank.gpu().name(),
           epilogue == MatmulEpilogue::None
               ? ""
               : "; compile with --epilogues none");
    // Parts of buffers that begin at odd places are rare.
    if (!plan)
      continue;
    rank.reserveWorkspace(plan->workspaceBytes);
    state.plans.emplace(key, std::move(*plan));
  }
}

template <>
void pipewright::runtime::prepareMatmul(DeviceRank &rank,
                                        const MatmulShape &shape) {
  prepareMatmul(rank, shape, MatmulEpilogue::None);
}

template <>
void pipewright::runtime::matmul(DeviceRank &rank, const MatmulShape &shape,
                                 Buffer a, Buffer b, Buffer y) {
  matmul(rank, shape, MatmulEpilogue::None, a, b, y, {}, {});
}

void pipewright::runtime::matmul(DeviceRank &rank, const MatmulShape &shape,
                                 MatmulEpilogue epilogue, Buffer a, Buffer b,
                                 Buffer y, Buffer bias, Buffer aux) {
  const MeasuredCall measured(rank, [&] { return costOf(shape, epilogue); });
  Matmuls &state = rank.library<Matmuls>();
  const MatmulShape s = simplified(shape);
  const void *aData = rank.device<void>(a);
  const void *bData = rank.device<void>(b);
  const void *biasData = rank.device<void>(bias);
  const void *auxData = rank.device<void>(aux);
  void *yData = rank.device<void>(y);
  const bool aligned =
      alignedTo(usualAlignment, aData, bData, yData, biasData, auxData);
  const auto found = state.plans.find(keyOf(s, epilogue, aligned));
  if (found == state.plans.end())
    fail("the product of ", productText(s), " was not set up",
         aligned ? ""
                 : ", or cuBLASLt cannot compute it on operands that do "
                   "not begin at multiples of 16 bytes");
  const MatmulPlan &plan = found->second;
  if (epilogue != MatmulEpilogue::None)
    describeEpilogue(plan, s, epilogue, biasData, auxData);
  PIPEWRIGHT_CUBLASLT(cublasLtMatmul(
      state.handle, plan.operation.get(), &s.alpha, bData, plan.b.get(), aData,
      plan.a.get(), &s.beta, yData, plan.y.get(), yData, plan.y.get(),
      &plan.algorithm, rank.workspace(plan.workspaceBytes),
      static_cast<size_t>(plan.workspaceBytes), rank.computeStream()));
}
