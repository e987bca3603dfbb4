//===- PipeDialect.cpp - Registration of the pipe dialect -----------------===//
//
// Registers ops, types and attributes, and refuses misspelt discardable
// attributes, which MLIR would otherwise keep silently.
//
//===----------------------------------------------------------------------===//

#include "dialects/pipe/PipeDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

#include "dialects/pipe/PipeDialect.cpp.inc"
#include "dialects/pipe/PipeEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/pipe/PipeTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/pipe/PipeAttributes.cpp.inc"

#include "dialects/pipe/PipeInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/pipe/PipeOps.cpp.inc"

/// Whether ops of a class may stand in a step or in a rank's program.
template <typename OpTy>
static constexpr bool mayStandInStep =
    OpTy::template hasTrait<OpTrait::HasParent<StepOp>::Impl>() ||
    OpTy::template hasTrait<OpTrait::HasParent<RankOp>::Impl>() ||
    OpTy::template hasTrait<OpTrait::HasParent<StepOp, RankOp>::Impl>();

/// Whether all of them say what they do there.
template <typename... OpTys>
static constexpr bool allSayWhatTheyDo =
    ((!mayStandInStep<OpTys> ||
      OpTys::template hasTrait<StepOpInterface::Trait>()) &&
     ...);

static_assert(allSayWhatTheyDo<
#define GET_OP_LIST
#include "dialects/pipe/PipeOps.cpp.inc"
                  >,
              "every op of a step or a rank implements StepOpInterface");

namespace {
/// Constants stay in the body that uses them: bodies of stages are not isolated
/// from above, so folding would move them out of the stage otherwise.
struct BodyFoldInterface : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;

  bool shouldMaterializeInto(Region *region) const final {
    return isa<ForwardOp, GradientBodyInterface, EvaluateOp>(
        region->getParentOp());
  }
};
} // namespace

void PipeDialect::initialize() {
  addInterfaces<BodyFoldInterface>();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/pipe/PipeTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/pipe/PipeAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/pipe/PipeOps.cpp.inc"
      >();
}

/// Of seconds: sums of these are finite.
static bool isTime(double seconds) { return seconds >= 0 && seconds <= 1e9; }

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kBuffers) {
    auto buffers = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!buffers || !llvm::all_of(buffers, llvm::IsaPred<BufferAttr>))
      return op->emitOpError("expects '")
             << name << "' to be an array of #pipe.buffer";
    return success();
  }
  if (name == kAllReduced) {
    if (!isa<UnitAttr>(attribute.getValue()))
      return op->emitOpError("expects '")
             << name << "' to be a unit attribute, but got "
             << attribute.getValue();
    return success();
  }
  if (name == kProgram) {
    if (!isa<ModuleOp>(op) || !isa<ProgramAttr>(attribute.getValue()))
      return op->emitOpError("expects '")
             << name << "' to be a #pipe.program of a module, but got "
             << attribute.getValue();
    return success();
  }
  if (name == kLayerTimes) {
    auto times = dyn_cast<ArrayAttr>(attribute.getValue());
    auto isTimeOfModule = [](Attribute one) {
      auto pair = dyn_cast<ArrayAttr>(one);
      auto seconds = pair && pair.size() == 2 && isa<StringAttr>(pair[0])
                         ? dyn_cast<FloatAttr>(pair[1])
                         : FloatAttr();
      return seconds && isTime(seconds.getValueAsDouble());
    };
    if (!isa<ModuleOp>(op) || !times || !llvm::all_of(times, isTimeOfModule))
      return op->emitOpError("expects '")
             << name << "' to be names of a module's modules with seconds";
    return success();
  }
  if (name == kOpSeconds) {
    auto seconds = dyn_cast<DenseF64ArrayAttr>(attribute.getValue());
    if (!isa<ModuleOp>(op) || !seconds ||
        !llvm::all_of(seconds.asArrayRef(), isTime))
      return op->emitOpError("expects '")
             << name << "' to be seconds of the ops of a module's function";
    return success();
  }
  return op->emitOpError("has an unknown attribute '") << name << "'";
}

int64_t pipewright::pipe::byteSize(RankedTensorType type) {
  return type.getNumElements() * nn::bytesOfElement(type.getElementType());
}
