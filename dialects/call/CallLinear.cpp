//===- CallLinear.cpp - Matrix products with more -------------------------===//
//
// Inference, cost and call of a product with an epilogue.
//
//===----------------------------------------------------------------------===//

#include "dialects/call/CallDialect.h"
#include "dialects/nn/NNLinear.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::call;

static bool addsBias(MatmulEpilogue epilogue) {
  return epilogue == MatmulEpilogue::Bias ||
         epilogue == MatmulEpilogue::BiasGelu;
}

/// Checks that an optional operand is there exactly where it is `expected`.
static LogicalResult checkPresence(nn::InferenceSite site, StringRef what,
                                   Value value, bool expected,
                                   MatmulEpilogue epilogue) {
  if (!!value == expected)
    return success();
  return site.error("expects ", expected ? "a " : "no ", what,
                    " with epilogue ", stringifyMatmulEpilogue(epilogue));
}

/// Checks the bias and the pre-activation of a product of type `y`.
static LogicalResult checkEpilogue(nn::InferenceSite site,
                                   MatmulEpilogueOp::Adaptor adaptor,
                                   RankedTensorType y) {
  MatmulEpilogue epilogue = adaptor.getEpilogue();
  Value bias = adaptor.getBias(), activation = adaptor.getPreActivation();
  bool hasBias = addsBias(epilogue);
  // (C2), (C3)
  if (failed(checkPresence(site, "bias", bias, hasBias, epilogue)) ||
      failed(checkPresence(site, "pre-activation", activation, !hasBias,
                           epilogue)))
    return failure();
  // (C2)
  int64_t columns = y.getShape().back();
  if (bias && nn::tensorOf(bias) != y.clone({columns}))
    return site.error("expects a bias of type ", y.clone({columns}),
                      ", but got ", nn::tensorOf(bias));
  // (C3)
  if (activation && nn::tensorOf(activation) != y)
    return site.error("expects a pre-activation of type ", y, ", but got ",
                      nn::tensorOf(activation));
  // (C4)
  if (epilogue != MatmulEpilogue::Bias && columns % 8 != 0)
    return site.error("expects a multiple of 8 columns, but got ", columns);
  // (C5)
  if (epilogue == MatmulEpilogue::GeluBiasGradient &&
      !y.getElementType().isF32())
    return site.error("expects f32 operands with epilogue ",
                      stringifyMatmulEpilogue(epilogue), ", but got ", y);
  return success();
}

LogicalResult MatmulEpilogueOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  nn::InferenceSite site{location, getOperationName()};
  RankedTensorType a = nn::tensorOf(adaptor.getA()),
                   b = nn::tensorOf(adaptor.getB());
  // (C1)
  FailureOr<SmallVector<int64_t>> shape = nn::inferProduct(
      site, a, b, adaptor.getTransposeA(), adaptor.getTransposeB());
  if (failed(shape))
    return failure();
  if (b.getRank() != 2 || (adaptor.getTransposeA() && a.getRank() != 2))
    return site.error("expects one matrix and not a batch of them, but got ", a,
                      " and ", b);
  RankedTensorType y = a.clone(*shape);
  if (failed(checkEpilogue(site, adaptor, y)))
    return failure();
  types.push_back(y);
  if (adaptor.getEpilogue() == MatmulEpilogue::BiasGelu)
    types.push_back(y);
  if (adaptor.getEpilogue() == MatmulEpilogue::GeluBiasGradient)
    types.push_back(y.clone({y.getShape().back()}));
  return success();
}

/// The operations beside the multiplication, for each element of the result.
static int64_t epilogueFlops(MatmulEpilogue epilogue) {
  switch (epilogue) {
  case MatmulEpilogue::Bias:
    return 1;
  case MatmulEpilogue::BiasGelu:
    return 1 + nn::kGeluTanhFlops;
  case MatmulEpilogue::GeluGradient:
    return nn::kGeluTanhBackwardFlops;
  case MatmulEpilogue::GeluBiasGradient:
    return nn::kGeluTanhBackwardFlops + 1;
  }
  llvm_unreachable("all epilogues are listed");
}

int64_t MatmulEpilogueOp::getFlops() {
  return nn::productFlops(getA(), getTransposeA(), getY()) +
         epilogueFlops(getEpilogue()) * getY().getType().getNumElements();
}

/// The name of an enumerator that the runtime has.
#define PIPEWRIGHT_NAME(enumerator) ((void)runtime::enumerator, #enumerator)

static StringRef runtimeName(MatmulEpilogue epilogue) {
  switch (epilogue) {
  case MatmulEpilogue::Bias:
    return PIPEWRIGHT_NAME(MatmulEpilogue::Bias);
  case MatmulEpilogue::BiasGelu:
    return PIPEWRIGHT_NAME(MatmulEpilogue::BiasGelu);
  case MatmulEpilogue::GeluGradient:
    return PIPEWRIGHT_NAME(MatmulEpilogue::GeluGradient);
  case MatmulEpilogue::GeluBiasGradient:
    return PIPEWRIGHT_NAME(MatmulEpilogue::GeluBiasGradient);
  }
  llvm_unreachable("all epilogues are listed");
}

nn::LibraryCall MatmulEpilogueOp::getCall(StringRef) {
  // The runtime has one bias and one pre-activation, be they read or written.
  Value bias = getBias(), activation = getPreActivation();
  if (Value beside = getBeside())
    (getEpilogue() == MatmulEpilogue::BiasGelu ? activation : bias) = beside;
  StringRef epilogue = runtimeName(getEpilogue());
  return {.function = PIPEWRIGHT_CALL(matmul),
          .shape = nn::fieldsOf(nn::matmulShape(getA(), getB(), getTransposeA(),
                                                getTransposeB(), getY())),
          .option = epilogue,
          .buffers = {getA(), getB(), getY(), bias, activation},
          .work = nn::CallWork::Matmul,
          .preparation = {.function = PIPEWRIGHT_CALL(prepareMatmul),
                          .option = epilogue,
                          .everywhere = false}};
}
