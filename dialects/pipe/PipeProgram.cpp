//===- PipeProgram.cpp - What was decided for the whole program -----------===//

#include "dialects/pipe/PipeDialect.h"

#include "mlir/IR/Diagnostics.h"

#include <cmath>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

FailureOr<runtime::ProcessMap>
FieldParser<runtime::ProcessMap, runtime::ProcessMap>::parse(
    AsmParser &parser) {
  StringRef name;
  const SMLoc place = parser.getCurrentLocation();
  if (failed(parser.parseKeyword(&name)))
    return failure();
  if (auto map = runtime::processMapNamed(name))
    return *map;
  return parser.emitError(place)
         << "expects " << runtime::processMapNames() << ", but got " << name;
}

raw_ostream &runtime::operator<<(raw_ostream &os, ProcessMap map) {
  return os << nameOf(map);
}

static LogicalResult verifyTaskTimes(function_ref<InFlightDiagnostic()> error,
                                     ArrayAttr stages) {
  // One for each kind of task of a schedule.
  constexpr int64_t kinds = 6;
  for (Attribute stage : stages) {
    auto times = dyn_cast<DenseF64ArrayAttr>(stage);
    if (!times || times.size() != kinds ||
        !llvm::all_of(times.asArrayRef(),
                      [](double time) { return std::isfinite(time); }))
      return error() << "expects 'task_times' to be an array of six f64 "
                        "numbers for each stage";
  }
  return success();
}

LogicalResult
ProgramAttr::verify(function_ref<InFlightDiagnostic()> error,
                    std::optional<int64_t> ranks, int64_t replicas,
                    runtime::ProcessMap, std::optional<int64_t> microBatches,
                    std::optional<int64_t> microBatchSize, int64_t updates,
                    StringAttr, bool, Attribute machine, nn::OptimizerAttr,
                    int64_t zero, std::optional<int64_t> bucketSize,
                    FloatAttr clipNorm, ArrayAttr taskTimes) {
  const std::pair<StringRef, std::optional<int64_t>> counts[] = {
      {"ranks", ranks},
      {"replicas", replicas},
      {"micro_batches", microBatches},
      {"micro_batch_size", microBatchSize},
      {"bucket_size", bucketSize},
      {"updates", updates}};
  for (const auto &[name, number] : counts)
    if (number && *number < 1)
      return error() << "expects '" << name << "' to be positive, but got "
                     << *number;
  if (replicas > kMaxProcesses / ranks.value_or(1))
    return error() << "expects at most " << kMaxProcesses
                   << " ranks of all replicas, but got " << replicas
                   << (replicas == 1 ? " replica of " : " replicas of ")
                   << ranks.value_or(1);
  if (zero < 0 || zero > 3)
    return error() << "expects 'zero' to be 0, 1, 2 or 3, but got " << zero;
  if (zero > 0 && replicas == 1)
    return error() << "expects 'zero' of 0 with one replica, but got " << zero;
  if (machine && !isa<StringAttr, DictionaryAttr>(machine))
    return error() << "expects 'machine' to be the name of a machine or its "
                      "figures, but got "
                   << machine;
  if (clipNorm && (!clipNorm.getType().isF64() ||
                   !std::isfinite(clipNorm.getValueAsDouble()) ||
                   clipNorm.getValueAsDouble() <= 0))
    return error() << "expects 'clip_norm' to be an f64 above 0, but got "
                   << clipNorm;
  if (zero >= 2 && clipNorm)
    return error()
           << "expects no 'clip_norm' with 'zero' of 2 or 3: the norm of all "
              "gradients is known when all are kept";
  return taskTimes ? verifyTaskTimes(error, taskTimes) : success();
}

ProgramFields pipewright::pipe::programOf(ModuleOp module) {
  auto program = module->getAttrOfType<ProgramAttr>(PipeDialect::kProgram);
  return program ? ProgramFields(program) : ProgramFields();
}

void pipewright::pipe::changeProgram(
    ModuleOp module, function_ref<void(ProgramFields &)> change) {
  ProgramFields fields = programOf(module);
  change(fields);
  module->setAttr(PipeDialect::kProgram, fields.get(module.getContext()));
}

ProgramFields::ProgramFields(ProgramAttr program)
    : ranks(program.getRanks()), replicas(program.getReplicas()),
      processMap(program.getProcessMap()),
      microBatches(program.getMicroBatches()),
      microBatchSize(program.getMicroBatchSize()),
      updates(program.getUpdates()), schedule(program.getSchedule()),
      sumsInScheduleOrder(program.getSumsInScheduleOrder()),
      machine(program.getMachine()), optimizer(program.getOptimizer()),
      zero(program.getZero()), bucketSize(program.getBucketSize()),
      clipNorm(program.getClipNorm()), taskTimes(program.getTaskTimes()) {}

ProgramAttr ProgramFields::get(MLIRContext *context) const {
  return ProgramAttr::get(context, ranks, replicas, processMap, microBatches,
                          microBatchSize, updates, schedule,
                          sumsInScheduleOrder, machine, optimizer, zero,
                          bucketSize, clipNorm, taskTimes);
}
