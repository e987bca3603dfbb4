//===- ExporterMetadata.h - What PyTorch's exporter notes ------*- C++ -*-===//
//
// PyTorch's newer exporter (torch.export) writes down beside the graph which
// initializers were parameters of the module and which were buffers, what the
// ones were computed from that it folded, and what each node read. A file may
// say anything here, so each note is read strictly or not at all.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_EXPORTERMETADATA_H
#define PIPEWRIGHT_FRONTENDS_ONNX_EXPORTERMETADATA_H

#include "frontends/onnx/ModelFile.h"

#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright::frontend {

/// What a tensor was in the module that was exported.
enum class ExportedKind { Parameter, Buffer, Constant };

/// What is noted about one initializer.
struct InitializerNotes {
  std::optional<ExportedKind> kind;
  /// All values that went into it, when it was computed at export.
  std::optional<std::vector<std::string>> foldedFrom;
};

/// One tensor of the module, under its name there.
struct ModuleTensor {
  std::string name;
  ExportedKind kind;
};

struct ExporterMetadata {
  llvm::StringMap<InitializerNotes> initializers;
  /// The graph's signature by the placeholder that nodes read.
  llvm::StringMap<ModuleTensor> placeholders;
  /// The same by the tensor's own name.
  llvm::StringMap<ExportedKind> tensors;
  /// How many notes did not parse, and where the first of them stands.
  int64_t ignored = 0;
  std::string firstIgnored;
};

ExporterMetadata readExporterMetadata(const ModelFile &file);

/// The placeholders among what a node's operation was called with, in order;
/// empty where nothing is noted.
std::vector<std::string> placeholdersReadBy(const onnx::NodeProto &node,
                                            const ExporterMetadata &metadata);

/// Reads the text of a Python list of strings: `['a', "b"]`; none if it is
/// anything else.
std::optional<std::vector<std::string>> parseStringList(llvm::StringRef text);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_EXPORTERMETADATA_H
