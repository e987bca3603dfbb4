//===- ExporterMetadata.cpp - What PyTorch's exporter notes ---------------===//
//
// The notes are `metadata_props`, lists of keys and values that ONNX has since
// IR version 10. The installed schema may be older and keeps them as unknown
// fields, so they are found by number.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ExporterMetadata.h"

#include "frontends/onnx/Limits.h"
#include "frontends/onnx/UnknownFields.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;

namespace pipewright::frontend {

namespace {

/// Numbers of the field `metadata_props` in onnx.proto.
enum MetadataField { InValueInfo = 4, InNode = 9, InGraph = 16 };

constexpr StringRef kKind = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr StringRef kFolded = "pkg.onnxscript.optimizer.folded_from";
constexpr StringRef kSignature =
    "pkg.torch.export.ExportedProgram.graph_signature";
constexpr StringRef kNode = "pkg.torch.onnx.fx_node";
constexpr StringRef kBuffers = "pipewright.buffers";
constexpr StringRef kFrozen = "pipewright.frozen";
constexpr StringRef kPaddingRows = "pipewright.padding_idx";
constexpr StringRef kScopes = "pkg.torch.onnx.name_scopes";

/// Notes longer than this are not PyTorch's; one line of a signature or one
/// name takes about a hundred bytes.
constexpr size_t kMaxBytes = size_t(16) << 20;

} // namespace

/// The value of one key among the properties of a message.
template <typename Message>
static std::optional<std::string> findNote(const Message &message,
                                           MetadataField number, StringRef key,
                                           bool &isMalformed) {
  for (const std::string *text :
       unknownTexts(message.unknown_fields(), number, isMalformed)) {
    onnx::StringStringEntryProto entry;
    if (text->size() > kMaxBytes || !entry.ParseFromString(*text))
      isMalformed = true;
    else if (entry.key() == key)
      return entry.value();
  }
  return std::nullopt;
}

/// Takes a quoted Python string off the front of `text`.
static std::optional<std::string> takeString(StringRef &text) {
  if (text.empty() || (text[0] != '\'' && text[0] != '"'))
    return std::nullopt;
  const char quote = text[0];
  std::string value;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      text = text.drop_front(i + 1);
      return value;
    }
    if (text[i] == '\\' &&
        (++i == text.size() || !StringRef("\\'\"").contains(text[i])))
      return std::nullopt;
    value += text[i];
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> parseStringList(StringRef text) {
  std::vector<std::string> list;
  if (!text.consume_front("["))
    return std::nullopt;
  if (text == "]")
    return list;
  while (true) {
    std::optional<std::string> value = takeString(text);
    if (!value)
      return std::nullopt;
    list.push_back(std::move(*value));
    if (text == "]")
      return list;
    if (!text.consume_front(", "))
      return std::nullopt;
  }
}

static std::optional<ExportedKind> parseKind(StringRef text) {
  return llvm::StringSwitch<std::optional<ExportedKind>>(text)
      .Case("PARAMETER", ExportedKind::Parameter)
      .Case("BUFFER", ExportedKind::Buffer)
      .Case("CONSTANT_TENSOR", ExportedKind::Constant)
      .Default(std::nullopt);
}

static bool isIdentifier(StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) {
    return llvm::isAlnum(c) || c == '_';
  });
}

/// A name that weights may get: what Python's attributes are made of.
static bool isPlainName(StringRef text) {
  constexpr size_t maxCharacters = 250;
  return !text.empty() && text.size() <= maxCharacters &&
         !text.starts_with("__") && llvm::all_of(text, [](char c) {
           return llvm::isAlnum(c) || StringRef("_.-/").contains(c);
         });
}

/// Inputs of a module that are no tensors of its own.
static bool isOtherInput(StringRef kind) {
  return kind == "USER_INPUT" || kind == "CUSTOM_OBJ" || kind == "TOKEN";
}

namespace {

class Reader {
public:
  explicit Reader(const ModelFile &file) : file(file) {}

  ExporterMetadata read() {
    readSignature();
    readProperties();
    llvm::StringSet<> names;
    for (const auto &tensor : file.graph().initializer())
      names.insert(tensor.name());
    for (const auto &value : file.graph().value_info())
      if (names.contains(value.name()))
        readInitializer(value);
    return std::move(metadata);
  }

private:
  void ignore(StringRef where) {
    if (metadata.ignored++ == 0)
      metadata.firstIgnored = where.str();
  }

  /// `p_fc_weight: PARAMETER target='fc.weight'`
  bool readSignatureLine(StringRef line);
  void readSignature();
  void readInitializer(const onnx::ValueInfoProto &value);
  /// The model's own properties.
  void readProperties();
  bool readPaddingRow(StringRef line);

  const ModelFile &file;
  ExporterMetadata metadata;
};

} // namespace

bool Reader::readSignatureLine(StringRef line) {
  auto [placeholder, rest] = line.split(": ");
  auto [word, target] = rest.split(' ');
  if (!isIdentifier(placeholder))
    return false;
  std::optional<ExportedKind> kind = parseKind(word);
  if (!kind)
    return isOtherInput(word);
  if (!target.consume_front("target="))
    return false;
  std::optional<std::string> name = takeString(target);
  if (!name || !isPlainName(*name))
    return false;
  metadata.tensors.try_emplace(*name, *kind);
  return metadata.placeholders
      .try_emplace(placeholder, ModuleTensor{*name, *kind})
      .second;
}

void Reader::readSignature() {
  bool isMalformed = false;
  const std::string text =
      findNote(file.graph(), InGraph, kSignature, isMalformed).value_or("");
  if (isMalformed)
    ignore("the graph");
  bool isInput = false;
  for (StringRef line : llvm::split(text, '\n')) {
    if (line.starts_with("#"))
      isInput = line == "# inputs";
    else if (isInput && !line.empty() && !readSignatureLine(line))
      ignore("the graph's signature");
  }
}

bool Reader::readPaddingRow(StringRef line) {
  auto [number, name] = line.split(' ');
  int64_t row;
  if (number.getAsInteger(10, row) || row < 0 || !isPlainName(name))
    return false;
  return metadata.paddingRows.try_emplace(name, row).second;
}

void Reader::readProperties() {
  for (const auto &property : file.proto->metadata_props()) {
    const StringRef key = property.key(), text = property.value();
    if (key != kBuffers && key != kFrozen && key != kPaddingRows)
      continue;
    if (text.size() > kMaxBytes) {
      ignore(key);
      continue;
    }
    for (StringRef line : llvm::split(text, '\n')) {
      bool isRead = line.empty();
      if (key == kPaddingRows)
        isRead |= readPaddingRow(line);
      else if (key == kFrozen && isPlainName(line))
        isRead = metadata.frozen.insert(line).second || isRead;
      else if (isPlainName(line))
        isRead |= metadata.tensors.try_emplace(line, ExportedKind::Buffer)
                      .first->second == ExportedKind::Buffer;
      if (!isRead)
        ignore(key);
    }
  }
}

void Reader::readInitializer(const onnx::ValueInfoProto &value) {
  bool isMalformed = false;
  InitializerNotes notes;
  if (auto kind = findNote(value, InValueInfo, kKind, isMalformed)) {
    notes.kind = parseKind(*kind);
    isMalformed |= !notes.kind;
  }
  if (auto list = findNote(value, InValueInfo, kFolded, isMalformed)) {
    notes.foldedFrom = parseStringList(*list);
    isMalformed |= !notes.foldedFrom;
  }
  if (isMalformed)
    ignore("'" + value.name() + "'");
  if (notes.kind || notes.foldedFrom)
    metadata.initializers[value.name()] = std::move(notes);
}

ExporterMetadata readExporterMetadata(const ModelFile &file) {
  return Reader(file).read();
}

namespace {
/// What a node's note says that it was: an operation and its arguments, as
/// text.
struct CallNotes {
  std::string operation, arguments;
};
} // namespace

static CallNotes callNotesOf(const onnx::NodeProto &node) {
  bool isMalformed = false;
  const std::string note =
      findNote(node, InNode, kNode, isMalformed).value_or("");
  // `%add : [num_users=1] = call_function[target=...](args = (%x, %p_b), ...)`
  auto [call, arguments] = StringRef(note).split("](args = (");
  return {call.rsplit("target=").second.str(), arguments.str()};
}

std::string operationOf(const onnx::NodeProto &node) {
  const CallNotes call = callNotesOf(node);
  StringRef operation = call.operation;
  operation.consume_front("torch.ops.");
  return text::printable(operation.take_front(kMaxLabelBytes));
}

/// Arguments in the order of the call; none of them has brackets of its own.
static llvm::SmallVector<StringRef> listed(const CallNotes &call) {
  llvm::SmallVector<StringRef> arguments;
  StringRef(call.arguments).split(')').first.split(arguments, ", ");
  return arguments;
}

std::vector<std::string> placeholdersReadBy(const onnx::NodeProto &node,
                                            const ExporterMetadata &metadata) {
  std::vector<std::string> found;
  llvm::StringSet<> seen;
  const CallNotes call = callNotesOf(node);
  StringRef rest = call.arguments;
  while (!rest.empty()) {
    rest = rest.split('%').second;
    StringRef name =
        rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (metadata.placeholders.contains(name) && seen.insert(name).second)
      found.push_back(name.str());
  }
  return found;
}

bool isNotedAsUntrained(StringRef name, const ExporterMetadata &metadata) {
  auto isParameter = [&](StringRef tensor) {
    auto noted = metadata.tensors.find(tensor);
    return noted != metadata.tensors.end() &&
           noted->second == ExportedKind::Parameter;
  };
  auto noted = metadata.initializers.find(name);
  if (noted == metadata.initializers.end())
    return metadata.tensors.contains(name) && !isParameter(name);
  const InitializerNotes &notes = noted->second;
  return notes.kind ? *notes.kind != ExportedKind::Parameter
                    : llvm::none_of(*notes.foldedFrom, isParameter);
}

LookupNotes lookupNotesOf(const onnx::NodeProto &node,
                          const ExporterMetadata &metadata) {
  LookupNotes notes;
  if (node.input_size() > 0) {
    auto row = metadata.paddingRows.find(node.input(0));
    if (row != metadata.paddingRows.end())
      notes.paddingRow = row->second;
  }
  const CallNotes call = callNotesOf(node);
  if (call.operation != "torch.ops.aten.embedding.default")
    return notes;
  // embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, ...)
  llvm::SmallVector<StringRef> arguments = listed(call);
  int64_t row;
  if (arguments.size() > 2 && !arguments[2].getAsInteger(10, row) && row >= 0)
    notes.paddingRow = row;
  notes.dividesByCount = arguments.size() > 3 && arguments[3] == "True";
  return notes;
}

bool isNotedAsTrainingNorm(const onnx::NodeProto &node) {
  // (x, weight, bias, running_mean, running_var, training, momentum, epsilon)
  constexpr size_t training = 5;
  const CallNotes call = callNotesOf(node);
  llvm::SmallVector<StringRef> arguments = listed(call);
  return StringRef(call.operation).contains("batch_norm") &&
         arguments.size() > training && arguments[training] == "True";
}

bool isNotedAsAttention(const onnx::NodeProto &node) {
  return StringRef(callNotesOf(node).operation)
      .contains("scaled_dot_product_attention");
}

bool isNotedAsGroupNorm(const onnx::NodeProto &node) {
  return StringRef(callNotesOf(node).operation).contains("group_norm");
}

bool isNotedAsPlainNorm(const onnx::NodeProto &node) {
  if (isNotedAsGroupNorm(node))
    return true;
  const CallNotes call = callNotesOf(node);
  llvm::SmallVector<StringRef> arguments = listed(call);
  // (x, weight, bias, ...)
  return StringRef(call.operation).contains("instance_norm") &&
         arguments.size() > 1 && arguments[1] == "None";
}

std::string moduleOf(const onnx::NodeProto &node) {
  bool isMalformed = false;
  auto note = findNote(node, InNode, kScopes, isMalformed);
  // `['', 'h.0', 'h.0.ln1', 'layer_norm']`: the last one is the operation.
  auto scopes = note ? parseStringList(*note) : std::nullopt;
  if (!scopes || scopes->size() < 2)
    return {};
  const std::string &module = (*scopes)[scopes->size() - 2];
  return isPlainName(module) ? module : std::string();
}

} // namespace pipewright::frontend
