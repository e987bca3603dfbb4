//===- ExporterMetadata.h - What PyTorch's exporter notes ------*- C++ -*-===//
//
// PyTorch's newer exporter (torch.export) writes down beside the graph which
// initializers were parameters of the module and which were buffers, what the
// ones were computed from that it folded, and what each node read.
// tools/export.py notes in the model's properties what PyTorch's older exporter
// forgets:
//
//   pipewright.buffers      names of buffers, one in each line
//   pipewright.frozen       names of parameters that do not train, likewise
//   pipewright.padding_idx  `ROW NAME` for each table with a padding row
//
// A file may say anything here, so each note is read strictly or not at all.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_EXPORTERMETADATA_H
#define PIPEWRIGHT_FRONTENDS_ONNX_EXPORTERMETADATA_H

#include "frontends/onnx/ModelFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

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
  /// The same by the tensor's own name; buffers of tools/export.py too.
  llvm::StringMap<ExportedKind> tensors;
  /// Parameters that need no gradient (`requires_grad=False`), by their names
  /// in the module.
  llvm::StringSet<> frozen;
  /// Rows of tables that lookups give no gradient, by the table's name.
  llvm::StringMap<int64_t> paddingRows;
  /// How many notes did not parse, and where the first of them stands.
  int64_t ignored = 0;
  std::string firstIgnored;
};

ExporterMetadata readExporterMetadata(const ModelFile &file);

/// The placeholders among what a node's operation was called with, in order;
/// empty where nothing is noted.
std::vector<std::string> placeholdersReadBy(const onnx::NodeProto &node,
                                            const ExporterMetadata &metadata);

/// Whether notes say that an initializer is a buffer, a constant, or computed
/// from these alone.
bool isNotedAsUntrained(llvm::StringRef name, const ExporterMetadata &metadata);

/// What a lookup's note says of the gradient of its table.
struct LookupNotes {
  /// `padding_idx`, where it is not negative.
  std::optional<int64_t> paddingRow;
  /// `scale_grad_by_freq`
  bool dividesByCount = false;
};
LookupNotes lookupNotesOf(const onnx::NodeProto &node,
                          const ExporterMetadata &metadata);

/// Whether a node was a batch normalization by the batch's own statistics. The
/// newer exporter writes it in inference form all the same.
bool isNotedAsTrainingNorm(const onnx::NodeProto &node);

/// Whether a node is of `scaled_dot_product_attention`. The newer exporter
/// writes its dropout in inference form all the same.
bool isNotedAsAttention(const onnx::NodeProto &node);

/// Whether a node is of a group normalization.
bool isNotedAsGroupNorm(const onnx::NodeProto &node);

/// Whether a node was a group normalization, or an instance normalization
/// without a weight: a scale and a bias that it reads are not the module's.
bool isNotedAsPlainNorm(const onnx::NodeProto &node);

/// The operation of PyTorch that a node was, `aten.grid_sampler.default`; empty
/// where nothing is noted.
std::string operationOf(const onnx::NodeProto &node);

/// The module that a node is of, `h.0.ln1`; empty where nothing is noted, or
/// the node is of no module within the model.
std::string moduleOf(const onnx::NodeProto &node);

/// Reads the text of a Python list of strings: `['a', "b"]`; none if it is
/// anything else.
std::optional<std::vector<std::string>> parseStringList(llvm::StringRef text);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_EXPORTERMETADATA_H
