//===- pipewright-import.cpp - Print an imported ONNX model ---------------===//
//
// The importer alone, for its tests: the module goes to standard output, the
// warnings go to standard error.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNOps.h"
#include "frontends/Frontends.h"
#include "frontends/onnx/Importer.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

using namespace llvm;

static cl::opt<std::string> model(cl::Positional, cl::Required,
                                  cl::desc("MODEL.onnx"));
static cl::list<std::string> dims("dim", cl::desc("size of a dimension"),
                                  cl::value_desc("NAME=N"));
static cl::opt<int64_t> batch("micro-batch-size", cl::desc("size of dim 0"));
static cl::opt<std::string> loss("loss", cl::desc("loss to attach"));
static cl::opt<std::string> lossOutput("loss-output",
                                       cl::desc("output that the loss uses"));
static cl::opt<std::string> target("target-input", cl::init("targets"),
                                   cl::desc("name of the targets' input"));
static cl::opt<bool> noLoss("no-loss", cl::desc("do not ask for a loss"));
static cl::opt<bool> locations("print-locations",
                               cl::desc("print each op's location"));
static cl::opt<bool>
    weightSizes("print-weights",
                cl::desc("print name and size of each weight"));

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "import an ONNX model\n");
  pipewright::frontend::ImportOptions options;
  options.modelPath = model;
  options.loss = loss;
  options.lossOutput = lossOutput;
  options.targetInput = target;
  options.requireLoss = !noLoss;
  if (batch.getNumOccurrences())
    options.microBatchSize = batch;
  for (StringRef dim : dims) {
    auto [name, size] = dim.rsplit('=');
    if (size.getAsInteger(10, options.dims[name])) {
      errs() << "error: --dim expects NAME=N, but got '" << dim << "'\n";
      return 1;
    }
  }

  mlir::MLIRContext context;
  auto imported = pipewright::frontend::importModel(options, context);
  if (failed(imported))
    return 1;
  for (const std::string &warning : imported->warnings)
    errs() << "warning: " << warning << "\n";
  auto unsaid = pipewright::frontend::unsaidOps(
      pipewright::frontend::onnxFrontend(), *imported);
  for (const std::string &message : unsaid)
    errs() << "error: " << message << "\n";
  if (!unsaid.empty())
    return 1;
  mlir::OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo();
  imported->module->print(outs(), flags);
  outs() << "\n";
  if (weightSizes)
    for (auto weight : imported->module->getOps<pipewright::nn::WeightOp>())
      outs() << weight.getSymName() << ": "
             << imported->weights.lookup(weight.getSymName()).size()
             << " bytes\n";
  return 0;
}
