//===- MergedWeights.h - Undo what exporters merge and copy ----*- C++ -*-===//
//
// PyTorch's newer exporter keeps one of several small tensors that are equal,
// which would tie weights that are not tied, and stores products' weights
// transposed, which cuts ties that were there. Its own notes tell which node
// read what.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_MERGEDWEIGHTS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_MERGEDWEIGHTS_H

#include "frontends/onnx/ExporterMetadata.h"

namespace pipewright::frontend {

/// Gives every tensor of the module that was merged into another an initializer
/// of its own again, and lets the nodes that read it read that. Returns how
/// many there were.
int64_t partMergedWeights(ModelFile &file, ExporterMetadata &metadata);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_MERGEDWEIGHTS_H
