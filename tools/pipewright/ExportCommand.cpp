//===- ExportCommand.cpp - Trained weights back in a model ----------------===//

#include "tools/pipewright/ExportCommand.h"

#include "frontends/Frontends.h"
#include "support/Message.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace pipewright;
using namespace pipewright::tool;

static llvm::Error readLimit(llvm::StringRef name, llvm::StringRef text,
                             ExportCommandOptions &options) {
  constexpr int64_t most = INT32_MAX;
  if (text.getAsInteger(10, options.model.externalDataAbove) ||
      options.model.externalDataAbove < 0 ||
      options.model.externalDataAbove > most)
    return option::fail("--", name, " expects bytes from 0 to ", most,
                        ", but got '", text, "'");
  return llvm::Error::success();
}

static llvm::Error readWeights(const OptionSpelling &row,
                               const OptionValues &given,
                               ExportCommandOptions &options) {
  options.weights = given[row.name].str();
  if (options.weights.empty())
    return option::fail("export expects --weights FILE: what train --save or "
                        "--checkpoint has written, or safetensors of others");
  return llvm::Error::success();
}

const std::vector<OptionRow<ExportCommandOptions>> &
pipewright::tool::exportRows() {
  using O = ExportCommandOptions;
  using E = frontend::ExportOptions;
  auto at = [](auto member) {
    return [member](O &options) -> auto & { return options.model.*member; };
  };
  constexpr auto Flag = OptionSpelling::Flag, List = OptionSpelling::List;
  static const std::vector<OptionRow<O>> rows = {
      {under(Heading::Model,
             OptionSpelling{.name = "model", .kind = OptionSpelling::Word}),
       option::anyText(
           [](O &o) -> std::string & { return o.model.import.modelPath; })},
      {under(Heading::Model,
             {"weights", "FILE",
              "Safetensors, the index of several such files, or the folder of "
              "a checkpoint"}),
       readWeights},
      {under(Heading::Model, {.name = "weights-rename",
                              .valueName = "FROM=TO",
                              .help = "Replace a regular expression in the "
                                      "names of the weights",
                              .kind = List}),
       option::allTexts(at(&E::renames))},
      {under(Heading::Model,
             {.name = "weights-partial",
              .help = "Weights that are not there stay as they are",
              .kind = Flag}),
       option::flag(at(&E::isPartial))},
      {under(Heading::Model, {.name = "dim",
                              .valueName = "NAME=N",
                              .help = "Size of a symbolic dimension",
                              .kind = List}),
       [](const OptionSpelling &row, const OptionValues &given, O &options) {
         return option::readSizes(row, given, options.model.import.dims);
       }},
      {under(Heading::Model,
             {"micro-batch-size", "B",
              "Samples in dimension 0; what the model says unless given"}),
       option::count([](O &options) -> auto & {
         return options.model.import.microBatchSize;
       })},
      {under(Heading::Output,
             {"o", "OUT.onnx",
              "File to write; unless given, MODEL.trained.onnx"}),
       option::file(at(&E::output))},
      {under(Heading::Output,
             {.name = "inference",
              .help = "Batch normalization and dropout as after training, and "
                      "no loss",
              .kind = Flag}),
       option::flag(at(&E::forInference))},
      {under(Heading::Output,
             {"external-data-above", "BYTES",
              "Weights go into a file beside a model that has more bytes "
              "(2000000000)"}),
       option::ifGiven(readLimit)}};
  return rows;
}

static llvm::Error report(llvm::Expected<frontend::ExportedModel> written) {
  if (!written)
    return written.takeError();
  for (const std::string &warning : written->warnings)
    printMessage("warning", warning);
  for (const std::string &file : written->files)
    llvm::outs() << "wrote " << file << "\n";
  return llvm::Error::success();
}

llvm::Error pipewright::tool::exportModel(ExportCommandOptions options) {
  if (options.model.output.empty()) {
    llvm::SmallString<128> name(
        llvm::sys::path::filename(options.model.import.modelPath));
    llvm::sys::path::replace_extension(name, ".trained.onnx");
    options.model.output = name.str().str();
  }
  auto prepared = frontend::prepareExport(options.model);
  return prepared ? report((*prepared)(options.weights)) : prepared.takeError();
}

//===----------------------------------------------------------------------===//
// At the end of a training
//===----------------------------------------------------------------------===//

/// The word with the last --save's value, if that is a model's name; null if
/// not. `prefix` is what stands before the value in the word.
static std::string *findSave(std::vector<std::string> &arguments,
                             std::string &prefix) {
  std::string *found = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool isWhole = arguments[i] == "--save" && i + 1 < arguments.size();
    if (!isWhole && !llvm::StringRef(arguments[i]).starts_with("--save="))
      continue;
    found = &arguments[isWhole ? i + 1 : i];
    prefix = isWhole ? "" : "--save=";
  }
  return found && llvm::StringRef(*found).ends_with(".onnx") ? found : nullptr;
}

/// A name for weights beside the model that nothing has yet.
static std::string freeName(const std::string &model) {
  std::string name = model + ".safetensors";
  for (int number = 2; llvm::sys::fs::exists(name); ++number)
    name = model + "-" + std::to_string(number) + ".safetensors";
  return name;
}

llvm::Expected<TrainedModel>
TrainedModel::prepare(const frontend::ImportOptions &import,
                      std::vector<std::string> &arguments) {
  TrainedModel trained;
  std::string prefix;
  std::string *save = findSave(arguments, prefix);
  if (!save)
    return trained;
  frontend::ExportOptions options;
  options.import = import;
  options.output = save->substr(prefix.size());
  auto prepared = frontend::prepareExport(options);
  if (!prepared)
    return prepared.takeError();
  trained.exportWeights = std::move(*prepared);
  trained.weights = freeName(options.output);
  *save = prefix + trained.weights;
  return trained;
}

llvm::Error TrainedModel::write() const {
  // Without steps there is nothing to save.
  if (!exportWeights || !llvm::sys::fs::exists(weights))
    return llvm::Error::success();
  if (llvm::Error error = report(exportWeights(weights)))
    return llvm::createStringError(llvm::toString(std::move(error)) +
                                   "; the trained weights are in '" + weights +
                                   "'");
  llvm::sys::fs::remove(weights);
  return llvm::Error::success();
}
