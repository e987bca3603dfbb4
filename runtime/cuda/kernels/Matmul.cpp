//===- Matmul.cpp - Matrix products on the GPU by cuBLASLt ----------------===//

#include "runtime/calls/Matmul.h"
#include "runtime/calls/CallCosts.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceProfile.h"
#include "runtime/cuda/DeviceRank.h"
#include "runtime/cuda/kernels/Builtins.h"
#include "runtime/cuda/kernels/MatmulPlan.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>

using namespace pipewright::runtime;

namespace {

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
    std::optional<MatmulPlan> plan =
        planMatmul(rank, state.handle, s, epilogue, aligned);
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
      alignedTo(usualMatmulAlignment, aData, bData, yData, biasData, auxData);
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
