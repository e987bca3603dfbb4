//===- GraphImporter.h - Names of a graph and their values ------*- C++ -*-===//
//
// Holds the module that is being built, and for each ONNX name what it stands
// for: a computed value, a constant, or a weight. Weights enter the module
// when they are first read, so unused ones never do.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_GRAPHIMPORTER_H
#define PIPEWRIGHT_FRONTENDS_ONNX_GRAPHIMPORTER_H

#include "dialects/nn/NNOps.h"
#include "dialects/nn/WeightStore.h"
#include "frontends/common/BuiltOps.h"
#include "frontends/common/Frontend.h"
#include "frontends/common/RolePatterns.h"
#include "frontends/onnx/BatchPlaces.h"
#include "frontends/onnx/DeviceConfigurations.h"
#include "frontends/onnx/ExporterMetadata.h"
#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/TensorReader.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

#include <map>

namespace pipewright::frontend {

class NodeContext;

struct InputBinding {
  std::string name;
  Shape shape;
  ElementKind kind;
  std::optional<nn::FloatFormat> format;
};

/// Random numbers that exporters write dropout with, until they meet the tensor
/// that they drop elements of.
struct Noise {
  /// Uniform: numbers from `least` to `least + 1`. Mask: `factor` with the
  /// probability `keep`, else 0.
  enum Kind { Uniform, Mask } kind = Uniform;
  double least = 0;
  double keep = 1;
  double factor = 1;
  /// Keys the random stream: what one tensor of numbers drops, it drops alike.
  int64_t id = 0;
};

/// An initializer that the exporter computed of a weight: transposed, or
/// repeated along dimensions of size 1 and in front.
struct InitializerCopy {
  std::string initializer;
  /// The weight's key.
  std::string weight;
  bool isTransposed = false;
};

/// A running statistic that is the weight of one node alone, although its
/// initializer is read elsewhere, too.
struct OwnStatistic {
  /// The weight's key, and the initializer whose values it begins with.
  std::string weight, initializer;
  /// The first result of the node, and which input of it this is.
  std::string result;
  unsigned input;
};

/// What an ONNX name stands for.
struct ImportedValue {
  enum Kind {
    Missing,
    Computed,
    Constant,
    Weight,
    Sequence,
    Random,
    EmptyOptional
  } kind = Missing;
  mlir::Value value;
  ConstantTensor::Ptr constant;
  /// The key of a weight: the name of the initializer that it came from.
  std::string weight;
  /// What a sequence holds; its length is known while the model is imported.
  std::shared_ptr<const std::vector<ImportedValue>> elements;
  /// What random numbers are.
  Noise noise;
  /// Of a tensor.
  Shape shape;
  ElementKind element = ElementKind::Float;
  /// Of one of floats of 8 bits, which all ops but casts take for float32.
  std::optional<nn::FloatFormat> format;

  explicit operator bool() const { return kind != Missing; }
  bool isConstant() const { return kind == Constant; }
  bool isWeight() const { return kind == Weight; }
  bool isSequence() const { return kind == Sequence; }
  bool isRandom() const { return kind == Random; }
  /// An optional that holds nothing; one that holds something is that.
  bool isEmptyOptional() const { return kind == EmptyOptional; }
};

/// What a name is at the batch size of the file.
struct OriginalValue {
  Shape shape;
  std::optional<BatchPlace> place;
};

/// A node's label and the names that it reads and defines: those of the file,
/// or, in a subgraph, those of one of its iterations.
struct NodeNames {
  std::string label;
  llvm::SmallVector<std::string, 4> inputs;
  llvm::SmallVector<std::string, 2> outputs;
};

/// What an op result and a computed constant are as values of a graph.
ImportedValue computedValue(mlir::Value value);
ImportedValue constantValue(ConstantTensor tensor);

class GraphImporter {
public:
  GraphImporter(const ModelFile &file, mlir::MLIRContext &context,
                TensorReader &reader, const ExporterMetadata &metadata,
                RolePatterns &patterns);

  /// Builds the function's body for the nodes of `order`, which must outlive
  /// this.
  llvm::LogicalResult importNodes(llvm::ArrayRef<InputBinding> inputs,
                                  const NodeOrder &order);
  /// Imports a subgraph of node `n` once, with what its inputs stand for, and
  /// returns what its outputs do. Names within begin with `place`, as in
  /// "loop[3]". Fails where the model's subgraphs become too large.
  llvm::FailureOr<std::vector<ImportedValue>>
  importSubgraph(NodeContext &n, const onnx::GraphProto &subgraph,
                 llvm::StringRef place, std::vector<ImportedValue> inputs);
  bool isInSubgraph() const { return scope != nullptr; }

  /// What a name stands for; fails on an initializer that cannot be read.
  llvm::FailureOr<ImportedValue> lookup(llvm::StringRef name);
  void define(llvm::StringRef name, ImportedValue value);
  void define(llvm::StringRef name, mlir::Value value);
  void define(llvm::StringRef name, ConstantTensor tensor);
  /// A weight that does not train, whatever reads it, as the constant that it
  /// is; any other value as it is.
  llvm::FailureOr<ImportedValue> asConstantIfUntrained(ImportedValue value);
  /// Whether some node or the graph's outputs read a name.
  bool isRead(llvm::StringRef name) const { return readNames.contains(name); }
  /// Whether a name is read as something else than a running statistic.
  bool isReadAsValue(llvm::StringRef name) const {
    return namesOfValues.contains(name);
  }

  /// The elements of a float constant or initializer, one of them where all
  /// are equal and stored once; none of anything else.
  llvm::ArrayRef<float> storedFloats(const ImportedValue &value) const;

  /// Whether a node is an InstanceNormalization whose ones and zeros, if it
  /// reads such, are no weights.
  bool isPlainNorm(const onnx::NodeProto &node) const;

  /// The op result for a value of any kind. `name` is what a large constant
  /// is called when it becomes a weight.
  mlir::Value materialize(const ImportedValue &value, llvm::StringRef name);

  /// The symbol of a weight with a role. Constants become weights of that
  /// name; fails if the weight already has another role.
  llvm::FailureOr<std::string> weightSymbol(llvm::StringRef name,
                                            nn::WeightRole role);
  /// A new weight or constant `name` with the content of another.
  void copyWeight(llvm::StringRef name, const ImportedValue &from);
  /// `name`, or with underscores behind it if something has that name.
  std::string unusedName(std::string name) const;
  /// What every name is with `batch` samples; places only where those are 2 or
  /// more.
  llvm::StringMap<OriginalValue> recordValues(int64_t batch) const;
  /// Fails where an output of the model has the file's batch size still.
  llvm::LogicalResult checkOutputBatch();
  /// Where the batch is in a value whose size follows it; none if that is
  /// unknown.
  std::optional<BatchPlace> findBatch(const ImportedValue &value,
                                      const OriginalValue &original);
  bool isInitializer(llvm::StringRef name) const {
    return initializers.contains(name);
  }

  mlir::InFlightDiagnostic error() { return file.error(context); }
  void warn(std::string message) { warnings.push_back(std::move(message)); }

  const ModelFile &file;
  mlir::MLIRContext &context;
  TensorReader &reader;
  const ExporterMetadata &metadata;
  RolePatterns &patterns;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  nn::WeightStore weights;
  std::vector<std::string> warnings;
  BuiltOpsByOperator built;

  /// Set when the batch size differs from the file's; `originals` then has what
  /// every name is at the file's batch size.
  std::optional<BatchChange> batchChange;
  llvm::StringMap<OriginalValue> originals;
  /// The export was made in training mode, so weights read through Identity
  /// are tied on purpose.
  bool trainingExport = false;
  /// Running variances take the batch's variance with n - 1 in place of n.
  bool sampleVariance = false;
  /// Dropout in inference form drops with its ratio.
  bool trainDropout = false;
  /// Of all batch normalizations; unset: of those in inference form, frozen
  /// where others train.
  std::optional<BatchNorm> batchNorm;
  bool hasTrainingNorm = false;

  /// Initializers that an op reads as a table that nobody learns, and what that
  /// is, for people to read.
  llvm::StringMap<llvm::StringRef> untrainedTables;

  /// Initializers that are computed of a weight in place of being one.
  std::vector<InitializerCopy> initializerCopies;
  /// Running statistics that a node does not share with others.
  std::vector<OwnStatistic> ownStatistics;

  /// Results of InstanceNormalization within a group normalization.
  llvm::StringSet<> groupNorms;

  DeviceConfigurations devices;

  // What nodes leave for the warnings at the end.
  int64_t nextDropoutId = 0;
  int64_t activeDropouts = 0;
  std::vector<std::string> untied;
  /// Initializers that are a running statistic which a node writes.
  llvm::StringSet<> statesInUse;
  int64_t inferenceBatchNorms = 0;
  int64_t frozenBatchNorms = 0;
  int64_t inferenceDropouts = 0;
  /// Modules of PyTorch's attention whose dropout is in inference form in every
  /// export.
  std::vector<std::string> fixedAttentions;

private:
  struct WeightRecord {
    /// Empty bytes and a constant for a splat.
    FloatBytes bytes;
    ConstantTensor::Ptr splat;
    ElementKind element = ElementKind::Float;
    nn::WeightRole role = nn::WeightRole::Parameter;
    std::string symbol;
    mlir::Value parameter;
  };

  /// The names of a subgraph, while it is imported.
  struct Scope {
    const Scope *around;
    std::string place;
    /// The node that has it.
    const onnx::NodeProto *node;
    llvm::StringMap<std::string> names;
  };

  /// Counts the ops that subgraphs become.
  struct OpCounter : mlir::OpBuilder::Listener {
    bool isInSubgraph = false;
    int64_t count = 0;
    void notifyOperationInserted(mlir::Operation *,
                                 mlir::OpBuilder::InsertPoint) override {
      count += isInSubgraph;
    }
  };

  void createModule(llvm::ArrayRef<InputBinding> inputs);
  void noteRead(const std::string &name, bool asValue = true);
  void noteReads(const onnx::NodeProto &node);
  void noteStages(const onnx::NodeProto &node, llvm::StringRef label);
  llvm::LogicalResult importNode(const onnx::NodeProto &node);
  /// Fails where a result of a node does not follow the batch that it has.
  llvm::LogicalResult checkBatch(NodeContext &n);
  std::optional<BatchPlace> placeOf(const ImportedValue &value,
                                    const OriginalValue &original);
  /// What a name of the file is called where it is read now.
  std::string resolve(const std::string &name) const;
  NodeNames namesOf(const onnx::NodeProto &node) const;
  void openScope(Scope &inner, const onnx::GraphProto &subgraph);
  void closeScope();
  std::string instanceName(llvm::StringRef place, llvm::StringRef name);
  llvm::LogicalResult checkInlined(NodeContext &n);
  void countElements(const onnx::NodeProto &node);
  void keepFormat(const NodeContext &context, const onnx::NodeProto &node);
  void recordBuilt(const onnx::NodeProto &node, mlir::Operation *before,
                   mlir::Location loc);
  llvm::FailureOr<ImportedValue>
  importInitializer(const onnx::TensorProto &tensor);
  bool isSaidToTrain(llvm::StringRef name);
  llvm::FailureOr<mlir::Value>
  readTransposedParameter(const onnx::TensorProto &tensor,
                          const FloatBytes &bytes);
  /// A parameter that the exporter wrote once for each sample, or rows of a
  /// table each time that they are looked up, repeated so; null if an
  /// initializer is neither.
  llvm::FailureOr<mlir::Value>
  readRepeatedParameter(const onnx::TensorProto &tensor);
  ImportedValue addWeight(llvm::StringRef key, WeightRecord record);
  ImportedValue addConstantAsWeight(llvm::StringRef key,
                                    const ConstantTensor::Ptr &constant,
                                    nn::WeightRole role);
  std::string newSymbol(llvm::StringRef name);
  void declareWeight(WeightRecord &record, llvm::StringRef key);
  mlir::Value readWeight(llvm::StringRef key);
  mlir::Value materializeConstant(const ConstantTensor::Ptr &constant,
                                  llvm::StringRef name);

  const NodeOrder *order = nullptr;
  const Scope *scope = nullptr;
  /// What subgraphs have become so far.
  OpCounter inlinedOps;
  int64_t inlinedNodes = 0, inlinedElements = 0;
  /// All names of the model's graph and of what was imported of subgraphs.
  llvm::StringSet<> takenNames;
  /// Of names in subgraphs, which are gone.
  llvm::StringMap<ImportedValue> valuesInSubgraphs;
  /// Of the values built here, where the file's batch size is 1.
  std::optional<BatchPlaces> places;

  llvm::StringMap<const onnx::TensorProto *> initializers;
  /// Scalars that may have been parameters; warned about where they are read.
  llvm::DenseSet<const ConstantTensor *> untrainedScalars;
  llvm::StringMap<ImportedValue> values;
  std::map<std::string, WeightRecord> weightRecords;
  llvm::StringSet<> readNames, namesOfValues;
  llvm::StringSet<> symbols;
  /// Keeps the constants alive, so that an address means one constant.
  llvm::DenseMap<const ConstantTensor *,
                 std::pair<ConstantTensor::Ptr, mlir::Value>>
      constantValues;
};

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_GRAPHIMPORTER_H
