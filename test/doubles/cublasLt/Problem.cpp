//===- Problem.cpp - One call of cublasLtMatmul ---------------------------===//

#include "test/doubles/cublasLt/Problem.h"
#include "test/doubles/cublasLt/Gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

using namespace pipewright::doubles;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

int64_t pipewright::doubles::elementBytes(cudaDataType type) {
  switch (type) {
  case CUDA_R_16BF:
    return 2;
  case CUDA_R_32F:
    return 4;
  default:
    return 0;
  }
}

static float loadElement(cudaDataType type, const char *base, int64_t index) {
  if (type == CUDA_R_32F) {
    float value;
    std::memcpy(&value, base + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, base + index * 2, 2);
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

static void storeElement(cudaDataType type, char *base, int64_t index,
                         float value) {
  if (type == CUDA_R_32F) {
    std::memcpy(base + index * 4, &value, 4);
    return;
  }
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t rounded =
      value != value
          ? 0x7FFF
          : static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  std::memcpy(base + index * 2, &rounded, 2);
}

/// Rounds to the 10 bits of fraction that tensor cores keep of a float.
static float roundToTf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7F800000) == 0x7F800000)
    return value;
  return std::bit_cast<float>((bits + 0x1000) & 0xFFFFE000);
}

int64_t Layout::extent() const {
  return order == CUBLASLT_ORDER_COL ? (columns - 1) * ld + rows
                                     : (rows - 1) * ld + columns;
}

//===----------------------------------------------------------------------===//
// What is accepted
//===----------------------------------------------------------------------===//

cublasStatus_t Problem::checkTypes() const {
  const cudaDataType a = layouts[0].type, b = layouts[1].type;
  const cudaDataType c = layouts[2].type, d = layouts[3].type;
  if (a != b)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (operands.scale != CUDA_R_32F || c != d)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool floats = a == CUDA_R_32F && d == CUDA_R_32F;
  const bool halves = a == CUDA_R_16BF && (d == CUDA_R_16BF || d == CUDA_R_32F);
  switch (operands.compute) {
  case CUBLAS_COMPUTE_32F:
  case CUBLAS_COMPUTE_32F_PEDANTIC:
    return floats || halves ? CUBLAS_STATUS_SUCCESS
                            : CUBLAS_STATUS_NOT_SUPPORTED;
  case CUBLAS_COMPUTE_32F_FAST_TF32:
    return floats ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

static bool isTransposed(cublasOperation_t operation) {
  return operation != CUBLAS_OP_N;
}

cublasStatus_t Problem::checkShapes() const {
  for (const Layout &layout : layouts) {
    if (layout.order != CUBLASLT_ORDER_COL &&
        layout.order != CUBLASLT_ORDER_ROW)
      return CUBLAS_STATUS_NOT_SUPPORTED;
    const int64_t least =
        layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.columns;
    if (layout.rows < 1 || layout.columns < 1 || layout.ld < least ||
        layout.batch < 1 || layout.batch != layouts[3].batch)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool ta = isTransposed(operands.transposeA);
  const bool tb = isTransposed(operands.transposeB);
  const Layout &a = layouts[0], &b = layouts[1], &c = layouts[2];
  const bool fits =
      (ta ? a.columns : a.rows) == m() && (tb ? b.columns : b.rows) == k() &&
      (tb ? b.rows : b.columns) == n() && c.rows == m() && c.columns == n();
  if (!fits)
    return CUBLAS_STATUS_INVALID_VALUE;
  const Layout &d = layouts[3];
  const bool overlaps = d.batch > 1 && std::abs(d.stride) < d.extent();
  return overlaps ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

namespace {
/// What an epilogue does, in parts.
struct Steps {
  bool bias = false;
  bool relu = false, gelu = false;
  bool writesAux = false;
  bool dgelu = false;
  bool sumsResult = false, sumsA = false, sumsB = false;
  bool known = true;
};
} // namespace

static Steps stepsOf(cublasLtEpilogue_t epilogue) {
  Steps steps;
  switch (epilogue) {
  case CUBLASLT_EPILOGUE_DEFAULT:
    break;
  case CUBLASLT_EPILOGUE_BIAS:
    steps.bias = true;
    break;
  case CUBLASLT_EPILOGUE_RELU:
    steps.relu = true;
    break;
  case CUBLASLT_EPILOGUE_RELU_BIAS:
    steps.relu = steps.bias = true;
    break;
  case CUBLASLT_EPILOGUE_GELU:
    steps.gelu = true;
    break;
  case CUBLASLT_EPILOGUE_GELU_BIAS:
    steps.gelu = steps.bias = true;
    break;
  case CUBLASLT_EPILOGUE_GELU_AUX:
    steps.gelu = steps.writesAux = true;
    break;
  case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    steps.gelu = steps.writesAux = steps.bias = true;
    break;
  case CUBLASLT_EPILOGUE_DGELU:
    steps.dgelu = true;
    break;
  case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    steps.dgelu = steps.sumsResult = true;
    break;
  case CUBLASLT_EPILOGUE_BGRADA:
    steps.sumsA = true;
    break;
  case CUBLASLT_EPILOGUE_BGRADB:
    steps.sumsB = true;
    break;
  default:
    steps.known = false;
  }
  return steps;
}

static bool usesBias(const Steps &steps) {
  return steps.bias || steps.sumsResult || steps.sumsA || steps.sumsB;
}

static bool usesAux(const Steps &steps) {
  return steps.writesAux || steps.dgelu;
}

cublasStatus_t Problem::checkEpilogue() const {
  const Steps steps = stepsOf(operands.epilogue);
  if (!steps.known)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool plain = !usesBias(steps) && !usesAux(steps);
  if (!plain && layouts[3].batch > 1)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (usesBias(steps) && !operands.bias)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (usesAux(steps) && (!operands.aux || operands.auxLd < m()))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Problem::check() const {
  if (operands.pointerMode != CUBLASLT_POINTER_MODE_HOST)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (cublasStatus_t status = checkTypes())
    return status;
  if (cublasStatus_t status = checkShapes())
    return status;
  return checkEpilogue();
}

//===----------------------------------------------------------------------===//
// Algorithms and workspaces
//===----------------------------------------------------------------------===//

uint64_t Problem::fingerprint() const {
  uint64_t hash = 0xCBF29CE484222325;
  const auto mix = [&](auto value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001B3;
  };
  mix(operands.compute);
  mix(operands.transposeA);
  mix(operands.transposeB);
  mix(operands.epilogue);
  for (const Layout &layout : layouts) {
    mix(layout.type);
    mix(layout.rows);
    mix(layout.columns);
    mix(layout.ld);
    mix(layout.order);
    mix(layout.batch);
    mix(layout.stride);
  }
  return hash;
}

/// As much as a split sum would need, within reason.
uint64_t Problem::wantedWorkspace() const {
  const uint64_t bytes = static_cast<uint64_t>(m() * n() * 4);
  return std::min<uint64_t>((bytes + 255) / 256 * 256, 256 << 10);
}

cublasStatus_t Problem::use(const Algorithm &algorithm, void *memory,
                            size_t bytes) {
  if (algorithm.mark != algorithmMark || algorithm.problem != fingerprint())
    return CUBLAS_STATUS_INVALID_VALUE;
  for (int i = 0; i < 4; ++i)
    if (data[i] &&
        reinterpret_cast<uintptr_t>(data[i]) % algorithm.alignments[i])
      return CUBLAS_STATUS_INVALID_VALUE;
  if (alignmentOf(operands.bias) < algorithm.alignments[4] ||
      alignmentOf(operands.aux) < algorithm.alignments[5])
    return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes < algorithm.workspaceBytes ||
      (algorithm.workspaceBytes &&
       (!memory || reinterpret_cast<uintptr_t>(memory) % 16)))
    return CUBLAS_STATUS_INVALID_VALUE;
  workspace = memory;
  workspaceBytes = algorithm.workspaceBytes;
  return CUBLAS_STATUS_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

std::string Problem::name() const {
  std::string text = "cublasLtMatmul";
  if (layouts[3].batch > 1)
    text += " of " + std::to_string(layouts[3].batch);
  return text + " " + std::to_string(m()) + "x" + std::to_string(n()) + "x" +
         std::to_string(k());
}

static size_t bytesOf(const Layout &layout) {
  const int64_t elements = (layout.batch - 1) * layout.stride + layout.extent();
  return static_cast<size_t>(elements * elementBytes(layout.type));
}

static cudaDataType typeOr(cudaDataType type, cudaDataType otherwise) {
  return type == static_cast<cudaDataType>(-1) ? otherwise : type;
}

namespace {
/// The vector and the matrix that an epilogue has beside the operands.
struct Extra {
  cudaDataType biasType = CUDA_R_32F, auxType = CUDA_R_32F;
  int64_t biasLength = 0, auxLength = 0;
  size_t biasBytes() const { return biasLength * elementBytes(biasType); }
  size_t auxBytes() const { return auxLength * elementBytes(auxType); }
};
} // namespace

static Extra extraOf(const Problem &problem, const Steps &steps) {
  Extra extra;
  const cudaDataType d = problem.layouts[3].type;
  extra.biasType = typeOr(problem.operands.biasType, d);
  extra.auxType = typeOr(problem.operands.auxType, d);
  if (usesBias(steps))
    extra.biasLength = steps.sumsB ? problem.n() : problem.m();
  if (usesAux(steps))
    extra.auxLength = (problem.n() - 1) * problem.operands.auxLd + problem.m();
  return extra;
}

std::vector<Access> Problem::accesses() const {
  const Steps steps = stepsOf(operands.epilogue);
  const Extra extra = extraOf(*this, steps);
  std::vector<Access> all = {{data[0], bytesOf(layouts[0]), false},
                             {data[1], bytesOf(layouts[1]), false}};
  if (beta != 0)
    all.push_back({data[2], bytesOf(layouts[2]), false});
  all.push_back({data[3], bytesOf(layouts[3]), true});
  if (workspaceBytes)
    all.push_back({workspace, workspaceBytes, true});
  if (extra.biasLength)
    all.push_back({operands.bias, extra.biasBytes(), !steps.bias});
  if (extra.auxLength)
    all.push_back({operands.aux, extra.auxBytes(), steps.writesAux});
  return all;
}

/// The operand as floats by columns, rows x columns after transposition.
static std::vector<float> pack(const Layout &layout, bool transposed,
                               const char *base, bool tf32) {
  const int64_t rows = transposed ? layout.columns : layout.rows;
  const int64_t columns = transposed ? layout.rows : layout.columns;
  std::vector<float> packed(rows * columns);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = transposed ? layout.at(j, i) : layout.at(i, j);
      const float value = loadElement(layout.type, base, at);
      packed[j * rows + i] = tf32 ? roundToTf32(value) : value;
    }
  return packed;
}

/// By tanh, as the library does it.
static float gelu(float x) {
  return 0.5f * x *
         (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}

static float geluSlope(float x) {
  const float inner = 0.7978845608f * (x + 0.044715f * x * x * x);
  const float t = std::tanh(inner);
  const float slope = 0.7978845608f * (1 + 3 * 0.044715f * x * x);
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope;
}

/// Sums over columns of an m-by-n matrix, in ascending order.
static void storeSums(const Extra &extra, void *to,
                      const std::vector<float> &values, int64_t rows,
                      bool ofColumns) {
  char *sums = static_cast<char *>(
      map(to, extra.biasBytes(), "bias gradient of cublasLtMatmul"));
  const int64_t columns = static_cast<int64_t>(values.size()) / rows;
  for (int64_t i = 0; i < extra.biasLength; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < (ofColumns ? rows : columns); ++j)
      sum += ofColumns ? values[i * rows + j] : values[j * rows + i];
    storeElement(extra.biasType, sums, i, sum);
  }
}

static void finishElements(const Problem &problem, const Steps &steps,
                           const Extra &extra, std::vector<float> &values) {
  const int64_t m = problem.m(), n = problem.n();
  char *bias = nullptr, *aux = nullptr;
  if (steps.bias)
    bias = static_cast<char *>(map(problem.operands.bias, extra.biasBytes(),
                                   "bias of cublasLtMatmul"));
  if (usesAux(steps))
    aux = static_cast<char *>(map(problem.operands.aux, extra.auxBytes(),
                                  "epilogue's matrix of cublasLtMatmul"));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      float &value = values[j * m + i];
      const int64_t at = j * problem.operands.auxLd + i;
      if (bias)
        value += loadElement(extra.biasType, bias, i);
      if (steps.writesAux)
        storeElement(extra.auxType, aux, at, value);
      if (steps.relu)
        value = std::max(value, 0.0f);
      if (steps.gelu)
        value = gelu(value);
      if (steps.dgelu)
        value *= geluSlope(loadElement(extra.auxType, aux, at));
    }
}

void Problem::run() const {
  const Steps steps = stepsOf(operands.epilogue);
  const Extra extra = extraOf(*this, steps);
  const bool tf32 = operands.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const char *bases[4] = {};
  static const char *const names[] = {
      "A of cublasLtMatmul", "B of cublasLtMatmul", "C of cublasLtMatmul",
      "D of cublasLtMatmul"};
  for (int i = 0; i < 4; ++i)
    if (i != 2 || beta != 0)
      bases[i] =
          static_cast<char *>(map(data[i], bytesOf(layouts[i]), names[i]));
  // A workspace may be overwritten from the first moment.
  if (workspaceBytes)
    std::memset(map(workspace, workspaceBytes, "workspace of cublasLtMatmul"),
                0xFF, workspaceBytes);
  const auto at = [&](int i, int32_t batch) {
    return bases[i] + batch * layouts[i].stride * elementBytes(layouts[i].type);
  };
  std::vector<float> values(m() * n());
  for (int32_t batch = 0; batch < layouts[3].batch; ++batch) {
    const std::vector<float> a =
        pack(layouts[0], isTransposed(operands.transposeA), at(0, batch), tf32);
    const std::vector<float> b =
        pack(layouts[1], isTransposed(operands.transposeB), at(1, batch), tf32);
    multiply(m(), n(), k(), a.data(), b.data(), values.data());
    for (int64_t j = 0; j < n(); ++j)
      for (int64_t i = 0; i < m(); ++i) {
        float &value = values[j * m() + i];
        value *= alpha;
        if (beta != 0)
          value += beta * loadElement(layouts[2].type, at(2, batch),
                                      layouts[2].at(i, j));
      }
    finishElements(*this, steps, extra, values);
    char *d = const_cast<char *>(at(3, batch));
    for (int64_t j = 0; j < n(); ++j)
      for (int64_t i = 0; i < m(); ++i)
        storeElement(layouts[3].type, d, layouts[3].at(i, j),
                     values[j * m() + i]);
    if (steps.sumsResult)
      storeSums(extra, operands.bias, values, m(), false);
    if (steps.sumsA)
      storeSums(extra, operands.bias, a, m(), false);
    if (steps.sumsB)
      storeSums(extra, operands.bias, b, k(), true);
  }
}
