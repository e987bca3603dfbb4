//===- DeviceConfigurations.cpp - Pipeline stages in the file -------------===//
//
// Of onnx.proto, which the installed schema is too old for:
//
//   ModelProto.configuration = 26, repeated DeviceConfigurationProto
//     {name = 1, num_devices = 2, device = 3}
//   NodeProto.device_configurations = 10, repeated NodeDeviceConfigurationProto
//     {configuration_id = 1, sharding_spec = 2, pipeline_stage = 3}
//   ShardingSpecProto.sharded_dim = 4, repeated ShardedDimProto
//     {simple_sharding = 2}, repeated SimpleShardedDimProto {num_shards = 3}
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/DeviceConfigurations.h"

#include "dialects/nn/NNDevices.h"
#include "frontends/onnx/GraphOrder.h"
#include "frontends/onnx/Limits.h"
#include "frontends/onnx/Names.h"
#include "frontends/onnx/Subgraphs.h"
#include "frontends/onnx/UnknownFields.h"
#include "support/Text.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using google::protobuf::UnknownFieldSet;

namespace pipewright::frontend {

namespace {

enum ModelField { kConfiguration = 26 };
enum NodeField { kNodeConfigurations = 10 };
enum ConfigurationField { kName = 1, kNumDevices = 2, kDevice = 3 };
enum NodeConfigurationField { kId = 1, kShardingSpec = 2, kStage = 3 };
enum ShardingField { kShardedDim = 4, kSimpleSharding = 2, kNumShards = 3 };

/// The IR version that has configurations.
constexpr int64_t kIrVersion = 11;

/// What a node says for one configuration.
struct NodeNote {
  std::string configuration;
  std::optional<int64_t> stage;
  bool isSharded = false;
};

} // namespace

static std::string printableName(std::string name) {
  return text::isPrintable(name) && name.size() <= kMaxLabelBytes
             ? name
             : text::shortened(name, kMaxLabelBytes);
}

/// The text of a field that occurs at most once; the last one counts.
static std::string textOf(const UnknownFieldSet &fields, int number,
                          bool &isMalformed) {
  auto texts = unknownTexts(fields, number, isMalformed);
  return texts.empty() ? std::string() : *texts.back();
}

/// The part of an integer that an int32 field has.
static std::optional<int64_t> int32Of(const UnknownFieldSet &fields, int number,
                                      bool &isMalformed) {
  auto value = unknownInteger(fields, number, isMalformed);
  return value ? std::optional<int64_t>(static_cast<int32_t>(*value))
               : std::nullopt;
}

static bool isSharded(const UnknownFieldSet &configuration, bool &isMalformed) {
  for (const auto &spec :
       unknownMessages(configuration, kShardingSpec, isMalformed))
    for (const auto &dim : unknownMessages(spec, kShardedDim, isMalformed))
      for (const auto &shard :
           unknownMessages(dim, kSimpleSharding, isMalformed))
        if (unknownInteger(shard, kNumShards, isMalformed).value_or(1) > 1)
          return true;
  return false;
}

static std::vector<NodeNote> notesOf(const onnx::NodeProto &node,
                                     bool &isMalformed) {
  std::vector<NodeNote> notes;
  for (const auto &fields : unknownMessages(node.unknown_fields(),
                                            kNodeConfigurations, isMalformed)) {
    NodeNote note{printableName(textOf(fields, kId, isMalformed)),
                  int32Of(fields, kStage, isMalformed),
                  isSharded(fields, isMalformed)};
    if (note.configuration.empty() ||
        (note.stage && (*note.stage < 0 || *note.stage >= nn::kMaxNotedStages)))
      isMalformed = true;
    else
      notes.push_back(std::move(note));
  }
  return notes;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

DeviceConfigurations::DeviceConfigurations(const onnx::ModelProto &model) {
  bool isMalformed = false;
  for (const auto &fields :
       unknownMessages(model.unknown_fields(), kConfiguration, isMalformed)) {
    std::string name = printableName(textOf(fields, kName, isMalformed));
    int64_t devices = int32Of(fields, kNumDevices, isMalformed).value_or(0);
    if (name.empty() || devices < 0 || devices > nn::kMaxNotedStages)
      isMalformed = true;
    else
      all[name].devices = devices;
  }
  if (isMalformed && malformed++ == 0)
    firstMalformed = "of the model";
}

void DeviceConfigurations::note(StringRef label,
                                ArrayRef<const onnx::NodeProto *> nodes) {
  std::map<std::string, int64_t> stages;
  for (const onnx::NodeProto *node : nodes) {
    bool isMalformed = false;
    for (const NodeNote &note : notesOf(*node, isMalformed)) {
      if (note.isSharded && sharded++ == 0)
        firstSharded = label.str();
      if (note.stage)
        stages.try_emplace(note.configuration, *note.stage);
    }
    if (isMalformed && malformed++ == 0)
      firstMalformed = ("of node '" + label + "'").str();
  }
  for (const auto &[name, stage] : stages) {
    auto [it, isNew] = all[name].stages.insert({label.str(), stage});
    if (!isNew && it->second != stage)
      it->second = nn::kSeveralStages;
  }
}

void DeviceConfigurations::attachTo(ModuleOp module) const {
  if (all.empty())
    return;
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (const auto &[name, configuration] : all) {
    SmallVector<std::pair<StringRef, int64_t>> stages(
        configuration.stages.begin(), configuration.stages.end());
    entries.push_back(builder.getNamedAttr(
        name, nn::makeConfiguration(configuration.devices, stages,
                                    module.getContext())));
  }
  module->setAttr(nn::kConfigurations, builder.getDictionaryAttr(entries));
}

std::vector<std::string> DeviceConfigurations::warnings() const {
  std::vector<std::string> warnings;
  if (malformed)
    warnings.push_back(std::to_string(malformed) +
                       " configurations of devices do not parse and are "
                       "ignored, the first " +
                       firstMalformed);
  if (sharded)
    warnings.push_back("tensors of node '" + firstSharded +
                       "' are sharded over devices in the model's "
                       "configurations, which is not supported: of these only "
                       "pipeline stages are read");
  return warnings;
}

void inheritStages(onnx::NodeProto &node, const onnx::NodeProto &call) {
  bool isMalformed = false;
  std::vector<NodeNote> own = notesOf(node, isMalformed);
  for (const std::string *text :
       unknownTexts(call.unknown_fields(), kNodeConfigurations, isMalformed)) {
    UnknownFieldSet fields;
    if (!fields.ParseFromString(*text))
      continue;
    std::string name = printableName(textOf(fields, kId, isMalformed));
    if (llvm::none_of(own, [&](const NodeNote &note) {
          return note.configuration == name && note.stage;
        }))
      node.mutable_unknown_fields()->AddLengthDelimited(kNodeConfigurations,
                                                        *text);
  }
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Takes away the messages of a field that have a name.
static void eraseNamed(UnknownFieldSet &fields, int number, int nameField,
                       StringRef name) {
  bool isMalformed = false;
  for (int i = fields.field_count() - 1; i >= 0; --i) {
    UnknownFieldSet message;
    if (fields.field(i).number() == number &&
        fields.field(i).type() ==
            google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        message.ParseFromString(fields.field(i).length_delimited()) &&
        textOf(message, nameField, isMalformed) == name)
      fields.DeleteSubrange(i, 1);
  }
}

static void addMessage(UnknownFieldSet &fields, int number,
                       const UnknownFieldSet &message) {
  message.SerializeToString(fields.AddLengthDelimited(number));
}

static void writeConfiguration(onnx::ModelProto &model,
                               const StageAnnotations &annotations) {
  UnknownFieldSet configuration;
  configuration.AddLengthDelimited(kName, annotations.configuration);
  configuration.AddVarint(kNumDevices, annotations.devices);
  for (int64_t device = 0; device < annotations.devices; ++device)
    configuration.AddLengthDelimited(kDevice, "rank " + std::to_string(device));
  UnknownFieldSet &fields = *model.mutable_unknown_fields();
  eraseNamed(fields, kConfiguration, kName, annotations.configuration);
  addMessage(fields, kConfiguration, configuration);
  model.set_ir_version(std::max<int64_t>(model.ir_version(), kIrVersion));
}

static void writeStage(onnx::NodeProto &node,
                       const StageAnnotations &annotations,
                       std::optional<int64_t> stage) {
  UnknownFieldSet &fields = *node.mutable_unknown_fields();
  eraseNamed(fields, kNodeConfigurations, kId, annotations.configuration);
  if (!stage)
    return;
  UnknownFieldSet note;
  note.AddLengthDelimited(kId, annotations.configuration);
  note.AddVarint(kStage, *stage);
  addMessage(fields, kNodeConfigurations, note);
}

/// Whether ops of a node may be named after what is within it.
static bool hasInside(const onnx::NodeProto &node,
                      const onnx::ModelProto &model) {
  return !subgraphsOf(node).empty() ||
         llvm::any_of(model.functions(), [&](const auto &function) {
           return function.name() == node.op_type();
         });
}

/// The stage of what an import calls `label`, or what is within it.
static std::optional<int64_t>
findStage(const std::string &label, bool inside,
          const std::map<std::string, int32_t> &stages) {
  std::optional<int64_t> stage;
  for (auto it = stages.lower_bound(label);
       it != stages.end() && StringRef(it->first).starts_with(label); ++it) {
    StringRef rest = StringRef(it->first).drop_front(label.size());
    if (!rest.empty() && !(inside && StringRef("/[.").contains(rest[0])))
      continue;
    stage = stage && *stage != it->second ? nn::kSeveralStages
                                          : int64_t(it->second);
  }
  return stage;
}

/// A file's model and the labels that an import gives its nodes.
static FailureOr<ModelFile> parseWithLabels(StringRef path,
                                            MLIRContext &context,
                                            std::vector<std::string> &labels) {
  FailureOr<ModelFile> file = parseModelFile(path, context);
  if (failed(file))
    return failure();
  // Names are settled in a copy, which has no use for the weights.
  google::protobuf::RepeatedPtrField<onnx::TensorProto> kept;
  file->proto->mutable_graph()->mutable_initializer()->Swap(&kept);
  ModelFile settled = *file;
  settled.proto = std::make_shared<onnx::ModelProto>(*file->proto);
  file->proto->mutable_graph()->mutable_initializer()->Swap(&kept);
  if (failed(settleNames(settled, context)))
    return failure();
  for (const onnx::NodeProto &node : settled.graph().node())
    labels.push_back(nodeLabel(node));
  return file;
}

static bool hasExternalData(const onnx::GraphProto &graph) {
  auto isExternal = [](const onnx::TensorProto &tensor) {
    return tensor.data_location() == onnx::TensorProto::EXTERNAL;
  };
  return llvm::any_of(graph.initializer(), isExternal) ||
         llvm::any_of(allNodesOf(graph), [&](const onnx::NodeProto *node) {
           return llvm::any_of(node->attribute(), [&](const auto &attribute) {
             return isExternal(attribute.t());
           });
         });
}

/// Whether two files are in the same folder.
static bool areNeighbors(StringRef a, StringRef b) {
  auto folderOf = [](StringRef path) {
    StringRef folder = llvm::sys::path::parent_path(path);
    return folder.empty() ? StringRef(".") : folder;
  };
  bool same = false;
  return !llvm::sys::fs::equivalent(folderOf(a), folderOf(b), same) && same;
}

llvm::Expected<AnnotatedModel>
annotateOnnx(StringRef path, StringRef output,
             const StageAnnotations &annotations) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  std::string problem;
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
    problem = diagnostic.str();
    return success();
  });
  std::vector<std::string> labels;
  FailureOr<ModelFile> file = parseWithLabels(path, context, labels);
  if (failed(file))
    return llvm::createStringError(problem);
  onnx::ModelProto &model = *file->proto;
  if (hasExternalData(file->graph()) && !areNeighbors(path, output))
    return llvm::createStringError(path +
                                   " has weights in files beside it: write '" +
                                   output + "' into the same folder");
  AnnotatedModel annotated;
  writeConfiguration(model, annotations);
  for (auto [node, label] :
       llvm::zip_equal(*model.mutable_graph()->mutable_node(), labels)) {
    std::optional<int64_t> stage =
        findStage(label, hasInside(node, model), annotations.stages);
    if (stage == nn::kSeveralStages) {
      annotated.split.push_back(label);
      stage.reset();
    }
    writeStage(node, annotations, stage);
  }
  if (!model.SerializeToString(&annotated.bytes))
    return llvm::createStringError(path + " becomes larger than 2 GiB");
  return annotated;
}

} // namespace pipewright::frontend
