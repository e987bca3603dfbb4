//===- Api.cpp - Stands in for libcublasLt.so.13 --------------------------===//
//
// Handles, descriptors and heuristics. What the library would refuse is
// refused; an algorithm fits the one problem that it was found for.
//
//===----------------------------------------------------------------------===//

#include "test/doubles/cublasLt/Problem.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_set>

using namespace pipewright::doubles;

namespace {
struct Handle {
  int device = 0;
};
struct Preference {
  uint64_t workspaceBytes = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

std::mutex mutex;
std::unordered_set<const void *> &live() {
  static auto *all = new std::unordered_set<const void *>;
  return *all;
}
} // namespace

template <class T, class Opaque>
static void hand(T *made, Opaque *opaque) {
  std::lock_guard<std::mutex> lock(mutex);
  live().insert(made);
  *opaque = reinterpret_cast<Opaque>(made);
}

template <class T, class Opaque>
static T *find(Opaque opaque) {
  std::lock_guard<std::mutex> lock(mutex);
  auto *found = reinterpret_cast<T *>(opaque);
  return live().contains(found) ? found : nullptr;
}

template <class T, class Opaque>
static cublasStatus_t destroy(Opaque opaque) {
  auto *found = reinterpret_cast<T *>(opaque);
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!live().erase(found))
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  delete found;
  return CUBLAS_STATUS_SUCCESS;
}

/// Copies an attribute of exactly this type.
template <class T>
static cublasStatus_t assign(T &field, const void *from, size_t bytes) {
  if (!from || bytes != sizeof(T))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

extern "C" {

size_t CUBLASWINAPI cublasLtGetVersion() { return 130100; }

const char *CUBLASWINAPI cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_ALLOC_FAILED:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_ARCH_MISMATCH:
    return "CUBLAS_STATUS_ARCH_MISMATCH";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_INTERNAL_ERROR:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return "unknown status";
  }
}

const char *CUBLASWINAPI cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "success";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "the library was not initialized";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "an unsupported value or parameter was passed to the function";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "the GPU program failed to execute";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "the functionality requested is not supported";
  default:
    return cublasLtGetStatusName(status);
  }
}

cublasStatus_t CUBLASWINAPI cublasLtCreate(cublasLtHandle_t *handle) {
  CUcontext context = nullptr;
  // The library would make the primary context current; a program that has
  // none current has forgotten something.
  if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  auto *made = new Handle;
  cuCtxGetDevice(&made->device);
  hand(made, handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy<Handle>(handle);
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

cublasStatus_t CUBLASWINAPI
cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *descriptor,
                         cublasComputeType_t compute, cudaDataType_t scale) {
  auto *made = new Operands;
  made->compute = compute;
  made->scale = scale;
  hand(made, descriptor);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI
cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) {
  return destroy<Operands>(descriptor);
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
    const void *from, size_t bytes) {
  Operands *operands = find<Operands>(descriptor);
  if (!operands)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_POINTER_MODE:
    return assign(operands->pointerMode, from, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return assign(operands->transposeA, from, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return assign(operands->transposeB, from, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return assign(operands->epilogue, from, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return assign(operands->bias, from, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return assign(operands->biasType, from, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return assign(operands->aux, from, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return assign(operands->auxLd, from, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
    return assign(operands->auxType, from, bytes);
  case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
    return assign(operands->multiprocessors, from, bytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t CUBLASWINAPI
cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                           uint64_t rows, uint64_t columns, int64_t ld) {
  auto *made = new Layout;
  made->type = type;
  made->rows = static_cast<int64_t>(rows);
  made->columns = static_cast<int64_t>(columns);
  made->ld = ld;
  hand(made, layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI
cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy<Layout>(layout);
}

cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute,
    const void *from, size_t bytes) {
  Layout *layout = find<Layout>(handle);
  if (!layout)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_TYPE:
    return assign(layout->type, from, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ORDER:
    return assign(layout->order, from, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ROWS:
    return assign(layout->rows, from, bytes);
  case CUBLASLT_MATRIX_LAYOUT_COLS:
    return assign(layout->columns, from, bytes);
  case CUBLASLT_MATRIX_LAYOUT_LD:
    return assign(layout->ld, from, bytes);
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return assign(layout->batch, from, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return assign(layout->stride, from, bytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t CUBLASWINAPI
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  hand(new Preference, preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<Preference>(preference);
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t handle,
    cublasLtMatmulPreferenceAttributes_t attribute, const void *from,
    size_t bytes) {
  Preference *preference = find<Preference>(handle);
  if (!preference)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return assign(preference->workspaceBytes, from, bytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return assign(preference->reductions, from, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    return assign(preference->alignments[0], from, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    return assign(preference->alignments[1], from, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    return assign(preference->alignments[2], from, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return assign(preference->alignments[3], from, bytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static bool collect(cublasLtMatmulDesc_t descriptor, cublasLtMatrixLayout_t a,
                    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                    cublasLtMatrixLayout_t d, Problem &problem) {
  const Operands *operands = find<Operands>(descriptor);
  const cublasLtMatrixLayout_t handles[] = {a, b, c, d};
  if (!operands)
    return false;
  problem.operands = *operands;
  for (int i = 0; i < 4; ++i) {
    const Layout *layout = find<Layout>(handles[i]);
    if (!layout)
      return false;
    problem.layouts[i] = *layout;
  }
  return true;
}

static std::atomic<int32_t> latestChoice{0}, latestRun{0};

/// For tests: how many multiprocessors the algorithm of the latest product was
/// chosen for, and how many it was to run on; 0: all.
int32_t pipewrightCublasLtChosenFor() { return latestChoice; }
int32_t pipewrightCublasLtRunOn() { return latestRun; }

cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preferenceHandle, int requested,
    cublasLtMatmulHeuristicResult_t results[], int *found) {
  const Preference *preference = find<Preference>(preferenceHandle);
  Problem problem;
  if (!find<Handle>(handle) || !preference || requested < 1 || !found ||
      !collect(descriptor, a, b, c, d, problem))
    return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  latestChoice = problem.operands.multiprocessors;
  if (cublasStatus_t status = problem.check())
    return status;
  for (int i = 0; i < 4; ++i)
    if (preference->alignments[i] < elementBytes(problem.layouts[i].type))
      return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm algorithm = {
      algorithmMark,
      problem.fingerprint(),
      std::min(preference->workspaceBytes, problem.wantedWorkspace()),
      {preference->alignments[0], preference->alignments[1],
       preference->alignments[2], preference->alignments[3],
       alignmentOf(problem.operands.bias), alignmentOf(problem.operands.aux)}};
  // The second does without workspace.
  for (*found = 0; *found < std::min(requested, 2); ++*found) {
    cublasLtMatmulHeuristicResult_t &result = results[*found];
    result = {};
    static_assert(sizeof algorithm <= sizeof result.algo);
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = algorithm.workspaceBytes;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
    algorithm.workspaceBytes = 0;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoCheck(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result) {
  Problem problem;
  if (!find<Handle>(handle) || !algo || !result ||
      !collect(descriptor, a, b, c, d, problem))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (cublasStatus_t status = problem.check())
    return status;
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.mark != algorithmMark ||
      algorithm.problem != problem.fingerprint())
    return CUBLAS_STATUS_INVALID_VALUE;
  result->workspaceSize = algorithm.workspaceBytes;
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor,
               const void *alpha, const void *a, cublasLtMatrixLayout_t aLayout,
               const void *b, cublasLtMatrixLayout_t bLayout, const void *beta,
               const void *c, cublasLtMatrixLayout_t cLayout, void *d,
               cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t workspaceBytes, cudaStream_t stream) {
  Problem problem;
  if (!find<Handle>(handle) || !alpha || !beta || !a || !b || !d ||
      !collect(descriptor, aLayout, bLayout, cLayout, dLayout, problem))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (cublasStatus_t status = problem.check())
    return status;
  latestRun = problem.operands.multiprocessors;
  problem.data[0] = a;
  problem.data[1] = b;
  problem.data[2] = c;
  problem.data[3] = d;
  std::memcpy(&problem.alpha, alpha, sizeof problem.alpha);
  std::memcpy(&problem.beta, beta, sizeof problem.beta);
  if (problem.beta != 0 && !c)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (algo) {
    Algorithm algorithm;
    std::memcpy(&algorithm, algo, sizeof algorithm);
    if (cublasStatus_t status =
            problem.use(algorithm, workspace, workspaceBytes))
      return status;
  }
  const CUresult result = enqueue(
      reinterpret_cast<CUstream>(stream),
      {problem.name(), [problem] { problem.run(); }, problem.accesses()});
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                : CUBLAS_STATUS_EXECUTION_FAILED;
}

} // extern "C"
