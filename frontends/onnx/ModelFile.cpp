//===- ModelFile.cpp - Reading an ONNX file -------------------------------===//
//
// Parses with protobuf alone: onnx::checker refuses models that are newer
// than the installed library although they parse.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ModelFile.h"

#include "onnx/defs/parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

using namespace mlir;

namespace pipewright::frontend {

InFlightDiagnostic ModelFile::error(MLIRContext &context) const {
  return emitError(UnknownLoc::get(&context)) << path << ": ";
}

static LogicalResult parseText(ModelFile &file, StringRef text,
                               MLIRContext &context) {
  // The parser wants a terminated string, and throws on malformed numbers.
  std::string copy = text.str();
  std::string problem;
  try {
    onnx::OnnxParser parser(copy.c_str());
    auto status = parser.Parse(*file.proto);
    if (status.IsOK())
      return success();
    problem = status.ErrorMessage();
  } catch (const std::exception &e) {
    problem = e.what();
  }
  StringRef firstLine = StringRef(problem).trim().split('\n').first;
  return file.error(context) << "is not valid ONNX text: " << firstLine;
}

static LogicalResult parseBinary(ModelFile &file, StringRef bytes,
                                 MLIRContext &context) {
  // Protobuf would print its own message beside ours.
  google::protobuf::LogSilencer silence;
  if (bytes.size() >= size_t(INT32_MAX))
    return file.error(context)
           << "is " << bytes.size()
           << " bytes, but protobuf reads less than 2 GiB: save the model "
              "with external data";
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t *>(bytes.data()), int(bytes.size()));
  if (file.proto->ParseFromCodedStream(&stream) &&
      stream.ConsumedEntireMessage())
    return success();
  return file.error(context)
         << "is not an ONNX model, or is truncated: it does not parse";
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
  if (file.opset < 7)
    return file.error(context) << "expects opset 7 or newer, but got "
                               << file.opset << ": export the model again";
  return success();
}

static LogicalResult checkForm(ModelFile &file, MLIRContext &context) {
  if (!file.proto->has_graph())
    return file.error(context) << "is not an ONNX model: it has no graph";
  if (failed(readOpset(file, context)))
    return failure();
  const onnx::GraphProto &graph = file.graph();
  if (file.proto->functions_size())
    return file.error(context)
           << "model-local functions ('" << file.proto->functions(0).name()
           << "') are not supported: inline them before import";
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

FailureOr<ModelFile> readModelFile(StringRef path, MLIRContext &context) {
  ModelFile file;
  file.path = path.str();
  file.folder = llvm::sys::path::parent_path(path).str();
  file.proto = std::make_shared<onnx::ModelProto>();

  bool isText = path.ends_with(".onnxtext") || path.ends_with(".onnxtxt");
  if (llvm::sys::fs::is_directory(path))
    return file.error(context) << "expects a file, but got a folder";
  auto buffer = llvm::MemoryBuffer::getFile(path, isText,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return file.error(context)
           << "cannot be read: " << buffer.getError().message();
  StringRef bytes = (*buffer)->getBuffer();
  if (bytes.empty())
    return file.error(context) << "is empty";

  if (failed(isText ? parseText(file, bytes, context)
                    : parseBinary(file, bytes, context)) ||
      failed(checkForm(file, context)))
    return failure();
  return file;
}

} // namespace pipewright::frontend
