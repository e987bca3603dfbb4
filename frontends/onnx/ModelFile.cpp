//===- ModelFile.cpp - Reading an ONNX file -------------------------------===//
//
// Parses with protobuf alone: onnx::checker refuses models that are newer
// than the installed library although they parse.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ModelFile.h"

#include "frontends/onnx/Functions.h"
#include "frontends/onnx/Limits.h"
#include "frontends/onnx/Names.h"
#include "frontends/onnx/Subgraphs.h"
#include "support/InputFile.h"
#include "support/Text.h"

#include "onnx/defs/parser.h"
#include "llvm/Support/Path.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

using namespace mlir;

namespace pipewright::frontend {

InFlightDiagnostic ModelFile::error(MLIRContext &context) const {
  return emitError(UnknownLoc::get(&context)) << path << ": ";
}

/// How deep brackets are nested, outside of strings and comments. The parser
/// calls itself for each.
static int nestingOf(StringRef text) {
  int depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"' || c == '#')
      i = std::min(text.find(c == '"' ? '"' : '\n', i + 1), text.size());
    else if (c == '{' || c == '(' || c == '[')
      deepest = std::max(deepest, ++depth);
    else if (c == '}' || c == ')' || c == ']')
      --depth;
  }
  return deepest;
}

static LogicalResult parseText(ModelFile &file, StringRef text,
                               MLIRContext &context) {
  if (int depth = nestingOf(text); depth > kMaxNesting)
    return file.error(context)
           << "is not valid ONNX text: brackets are nested " << depth
           << " deep; models have less than " << kMaxNesting;
  if (text.contains('\0'))
    return file.error(context) << "is not valid ONNX text: it has a zero byte";
  // The parser wants a terminated string, and throws on malformed numbers.
  std::string copy = text.str();
  std::string problem;
  try {
    onnx::OnnxParser parser(copy.c_str());
    auto status = parser.Parse(*file.proto);
    if (status.IsOK())
      return success();
    problem = status.ErrorMessage();
  } catch (const std::exception &) {
    problem = "a number in it is malformed or too large";
  }
  StringRef firstLine = StringRef(problem).trim().split('\n').first;
  return file.error(context)
         << "is not valid ONNX text: " << text::shortened(firstLine, 200);
}

static LogicalResult parseBinary(ModelFile &file, StringRef bytes,
                                 MLIRContext &context) {
  // Protobuf would print its own message beside ours.
  google::protobuf::LogSilencer silence;
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t *>(bytes.data()), int(bytes.size()));
  if (file.proto->ParseFromCodedStream(&stream) &&
      stream.ConsumedEntireMessage())
    return success();
  return file.error(context)
         << "is not an ONNX model, or is truncated: it does not parse";
}

/// The field of a node that has its opset, if that is not the model's. ONNX has
/// no such field.
constexpr int kOpsetField = 20000;

void setOpset(google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
              int64_t opset) {
  for (onnx::NodeProto &node : nodes) {
    node.GetReflection()->MutableUnknownFields(&node)->AddVarint(kOpsetField,
                                                                 opset);
    for (onnx::GraphProto *inner : mutableSubgraphsOf(node))
      setOpset(*inner->mutable_node(), opset);
  }
}

int64_t ModelFile::opsetOf(const onnx::NodeProto &node) const {
  const auto &fields = node.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).number() == kOpsetField &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_VARINT &&
        fields.field(i).varint() >= kOldestOpset)
      return int64_t(fields.field(i).varint());
  return opset;
}

/// The version of the default operator set, the only one that we have.
static LogicalResult readOpset(ModelFile &file, MLIRContext &context) {
  for (const auto &import : file.proto->opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx")
      file.opset = import.version();
  }
  if (file.opset == 0)
    return file.error(context)
           << "is not an ONNX model: it imports no operator set";
  if (file.opset < kOldestOpset)
    return file.error(context)
           << "expects opset " << kOldestOpset << " or newer, but got "
           << file.opset << ": export the model again";
  return success();
}

static LogicalResult checkForm(ModelFile &file, MLIRContext &context) {
  if (!file.proto->has_graph())
    return file.error(context) << "is not an ONNX model: it has no graph";
  if (failed(readOpset(file, context)))
    return failure();
  const onnx::GraphProto &graph = file.graph();
  if (graph.sparse_initializer_size())
    return file.error(context) << "sparse initializers ('"
                               << graph.sparse_initializer(0).values().name()
                               << "') are not supported: store them dense";
  if (graph.node_size() == 0)
    return file.error(context) << "the graph has no nodes";
  if (graph.output_size() == 0)
    return file.error(context) << "the graph has no outputs";
  return success();
}

FailureOr<ModelFile> parseModelFile(StringRef path, MLIRContext &context) {
  ModelFile file;
  file.path = path.str();
  file.folder = llvm::sys::path::parent_path(path).str();
  file.proto = std::make_shared<onnx::ModelProto>();

  bool isText = path.ends_with(".onnxtext") || path.ends_with(".onnxtxt");
  llvm::Expected<FileBuffer> buffer = readRegularFile(file.path);
  if (!buffer)
    return file.error(context) << llvm::toString(buffer.takeError());
  StringRef bytes = (*buffer)->getBuffer();
  if (bytes.empty())
    return file.error(context) << "is empty";
  if (bytes.size() > kMaxModelBytes)
    return file.error(context)
           << "is " << bytes.size()
           << " bytes, but protobuf reads less than 2 GiB: save the model "
              "with external data";

  if (failed(isText ? parseText(file, bytes, context)
                    : parseBinary(file, bytes, context)))
    return failure();
  return file;
}

LogicalResult prepareModelFile(ModelFile &file, MLIRContext &context) {
  return failure(failed(settleNames(file, context)) ||
                 failed(checkForm(file, context)) ||
                 failed(inlineFunctions(file, context)) ||
                 failed(hoistInitializers(file, context)));
}

FailureOr<ModelFile> readModelFile(StringRef path, MLIRContext &context) {
  FailureOr<ModelFile> file = parseModelFile(path, context);
  if (failed(file) || failed(prepareModelFile(*file, context)))
    return failure();
  return file;
}

} // namespace pipewright::frontend
