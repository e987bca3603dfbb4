//===- Frontend.h - What reads models --------------------------*- C++ -*-===//
//
// What any frontend is told, what it gives, and how it is asked: the rest of
// the compiler sees a module, bytes of weights and warnings, whatever the
// format of the file.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_COMMON_FRONTEND_H
#define PIPEWRIGHT_FRONTENDS_COMMON_FRONTEND_H

#include "dialects/nn/WeightStore.h"
#include "frontends/common/BuiltOps.h"
#include "frontends/common/RolePatterns.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::frontend {

/// Divided by the n values of a channel, as ONNX defines it, or by n - 1, as
/// PyTorch and other frameworks do.
enum class RunningVariance { Population, Sample };

/// Batch normalization trains with the statistics of each micro-batch, or keeps
/// the running ones that the model has.
enum class BatchNorm { Batch, Frozen };

struct ImportOptions {
  /// An ONNX model, as text when the name ends in .onnxtext or .onnxtxt; text
  /// of a level when it ends in .mlir, which has no use for the other options.
  std::string modelPath;
  /// Sizes of symbolic dimensions; `INPUT:INDEX` names one without a name.
  llvm::StringMap<int64_t> dims;
  /// Size of dimension 0 of every input; unset: what the model says.
  std::optional<int64_t> microBatchSize;
  /// "", "softmax-cross-entropy" or "mse". With "" the model's own scalar
  /// output is the loss.
  std::string loss;
  /// The output that the loss is computed from; "": the first float output.
  std::string lossOutput;
  /// Name of the input that `loss` adds.
  std::string targetInput = "targets";
  /// Which weights train, against what the model says; the last one wins.
  std::vector<RoleRule> roleRules;
  /// Which variance of a batch the running variance of a batch normalization
  /// takes; unset: the sample's where PyTorch wrote the file.
  std::optional<RunningVariance> runningVariance;
  /// What every batch normalization does; unset: what it was exported to do,
  /// and those of a model that was exported for inference train.
  std::optional<BatchNorm> batchNorm;
  /// Dropout that the model has in inference form drops with its ratio.
  bool trainDropout = false;
  /// Off: import the forward graph of a model that has no loss.
  bool requireLoss = true;
};

/// `module @<graph>` with nn.weight symbols and `func.func @model`; with a
/// loss, the function's first result is the scalar loss. Argument and result
/// names are in their `nn.name` attributes.
struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  nn::WeightStore weights;
  /// What the user should know about training this model; not errors.
  std::vector<std::string> warnings;
  /// The nn ops that were built for nodes of each operator.
  BuiltOpsByOperator built;
};

/// An operator of a format.
struct OperatorSummary {
  std::string name;
  /// The first version of the format's operators that has it as it is read.
  int64_t since;
  /// The last one, or the newest that the frontend was checked with.
  int64_t until;
  /// It is computed while compiling, of constants alone.
  bool onlyOfConstants;
  /// The ops that it may become; none where it is its operand, or constant.
  BuiltOps built;
};

/// Which pipeline stages the nodes of a model are in.
struct StageAnnotations {
  /// What the file calls the devices that they are for, and how many these are.
  std::string configuration;
  int64_t devices = 0;
  /// By the names of nodes, as an import gives them; nn::kSeveralStages for
  /// those that are in several.
  std::map<std::string, int32_t> stages;
};

/// A model with stages.
struct AnnotatedModel {
  std::string bytes;
  /// Nodes that are in several stages, which the format cannot say.
  std::vector<std::string> split;
};

/// What becomes of a model's file with other weights.
struct ExportOptions {
  /// The model, and the sizes that an import of it needs.
  ImportOptions import;
  std::string output;
  /// Normalizations and dropout as after training, without the loss.
  bool forInference = false;
  /// Weights stand in a file beside the output where both would be larger.
  int64_t externalDataAbove = 2'000'000'000;
  /// How names of the file of weights become names of the model: FROM=TO.
  std::vector<std::string> renames;
  /// Weights that the file has not keep their values.
  bool isPartial = false;
};

/// What has been written.
struct ExportedModel {
  std::vector<std::string> files;
  std::vector<std::string> warnings;
};

/// Writes the model with the weights of a file: safetensors, an index of
/// several, or the folder of a checkpoint. The error is a line that names the
/// file.
using ExportWeights =
    std::function<llvm::Expected<ExportedModel>(llvm::StringRef weights)>;

/// A format of models.
class Frontend {
public:
  virtual ~Frontend() = default;

  /// Whether a file is one of its own, by its name.
  virtual bool reads(llvm::StringRef path) const = 0;
  /// Mistakes in the model or the options are reported as one error through the
  /// context's diagnostic engine.
  virtual llvm::FailureOr<ImportedModel>
  import(const ImportOptions &options, mlir::MLIRContext &context) const = 0;
  /// The model in the file `path` with these stages, to be written to `output`.
  /// The error is a line that names the file.
  virtual llvm::Expected<AnnotatedModel>
  annotate(llvm::StringRef path, llvm::StringRef output,
           const StageAnnotations &annotations) const {
    return llvm::createStringError(path +
                                   " is not an ONNX model, and only "
                                   "these say in which stage nodes are: '" +
                                   output + "' is not written");
  }
  /// Whether a model can be written with other weights, found out before there
  /// are any. The error is a line that names the file.
  virtual llvm::Expected<ExportWeights>
  prepareExport(const ExportOptions &options) const {
    return llvm::createStringError(options.import.modelPath +
                                   " is not an ONNX model, and only these are "
                                   "written with other weights: '" +
                                   options.output + "' is not written");
  }
  /// What the format calls its operators, and which of them are imported.
  virtual std::vector<OperatorSummary> operators() const { return {}; }
};

/// A message for each op that an import built and `operators()` does not have.
std::vector<std::string> unsaidOps(const Frontend &frontend,
                                   const ImportedModel &model);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_COMMON_FRONTEND_H
