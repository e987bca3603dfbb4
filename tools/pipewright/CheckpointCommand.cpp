//===- CheckpointCommand.cpp - Looks at checkpoints of runs ---------------===//

#include "tools/pipewright/CheckpointCommand.h"

#include "tools/pipewright/CheckpointDifference.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "runtime/io/CheckpointFolder.h"
#include "runtime/io/Source.h"
#include "runtime/io/WeightSource.h"
#include "support/Message.h"
#include "support/Text.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <filesystem>

using namespace pipewright;
using namespace pipewright::tool;
namespace rt = pipewright::runtime;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

const std::vector<OptionRow<CheckpointOptions>> &
pipewright::tool::checkpointRows() {
  using enum OptionSpelling::Kind;
  static const std::vector<OptionRow<CheckpointOptions>> rows =
      under<OptionRow<CheckpointOptions>>(
          Heading::Output,
          {{{.name = "show|verify|export|diff DIR", .kind = Words},
            option::allTexts(&CheckpointOptions::words)},
           {{"step", "N",
             "The one of this step; the newest valid one unless given"},
            option::count(&CheckpointOptions::step)},
           {{"o", "FILE", "Where export writes to, as safetensors"},
            option::file(&CheckpointOptions::output)},
           {{.name = "states",
             .help = "Export states of the optimizer, too",
             .kind = Flag},
            option::flag(&CheckpointOptions::withStates)},
           {{.name = "json",
             .help = "Print what show finds as JSON",
             .kind = Flag},
            option::flag(&CheckpointOptions::asJson)}});
  return rows;
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

static bool isCheckpoint(const std::string &folder) {
  std::error_code error;
  return fs::exists(folder + "/manifest.json", error);
}

/// The steps in the folder of a run; throws an Error where there are none.
static std::vector<int64_t> stepsOf(const std::string &folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    rt::fail("'", folder, "' is no folder");
  std::vector<int64_t> steps = rt::CheckpointFolder(folder).steps();
  if (steps.empty())
    rt::fail("'", folder,
             "' has no checkpoints: it is neither a folder that a run wrote "
             "to by --checkpoint, nor a step-N in one");
  return steps;
}

/// The folder of the checkpoint that a word means.
static std::string chosen(const std::string &word, int64_t step) {
  if (isCheckpoint(word)) {
    if (step != 0)
      rt::fail("--step is for the folder of a run, but '", word,
               "' is one checkpoint");
    return word;
  }
  const std::vector<int64_t> steps = stepsOf(word);
  rt::CheckpointFolder folder(word);
  if (step != 0) {
    if (!llvm::is_contained(steps, step))
      rt::fail("--step ", step, ": '", word,
               "' has none of this step; its last", " one is of step ",
               steps.back());
    return folder.folderOf(step);
  }
  std::vector<std::string> skipped;
  const auto newest = folder.newest(steps.back(), skipped);
  for (const std::string &line : skipped)
    printMessage("warning", "passed over: " + line);
  if (!newest)
    rt::fail("'", word, "': no checkpoint in it can be used");
  return folder.folderOf(*newest);
}

/// What `diff` compares: a checkpoint, or a file of weights.
static rt::WeightSource sourceOf(const std::string &word, int64_t step) {
  std::error_code error;
  return rt::WeightSource(fs::is_directory(word, error) ? chosen(word, step)
                                                        : word);
}

/// The weight whose state or older version a tensor is: `w` of `w#m`; empty for
/// a weight.
static llvm::StringRef weightOf(llvm::StringRef name,
                                const rt::WeightSource &tensors) {
  const llvm::StringRef weight = name.rsplit('#').first;
  return weight != name && tensors.contains(weight.str()) ? weight : "";
}

static int64_t bytesOf(const rt::CheckpointManifest &manifest) {
  int64_t bytes = 0;
  for (const rt::CheckpointFile &file : manifest.files)
    bytes += file.bytes;
  return bytes;
}

//===----------------------------------------------------------------------===//
// show
//===----------------------------------------------------------------------===//

static llvm::json::Object toJson(const rt::CheckpointManifest &manifest,
                                 const std::string &folder) {
  return llvm::json::Object{
      {"folder", llvm::json::fixUTF8(folder)},
      {"model", llvm::json::fixUTF8(manifest.model)},
      {"optimizer", llvm::json::fixUTF8(manifest.optimizer)},
      {"step", manifest.step},
      {"samples", manifest.samples},
      {"skipped", manifest.skipped},
      {"seed", manifest.seed},
      {"shuffled", manifest.shuffled},
      {"plan", llvm::formatv("{0:x-16}", manifest.plan).str()},
      {"bytes", bytesOf(manifest)}};
}

static void showAsJson(const std::string &folder) {
  const rt::WeightSource tensors(folder);
  llvm::json::Array rows;
  for (const std::string &name : tensors.names()) {
    const rt::TensorView view = tensors.view(name);
    rows.push_back(
        llvm::json::Object{{"name", llvm::json::fixUTF8(name)},
                           {"type", rt::typeText(view.type)},
                           {"shape", llvm::json::Array(view.shape)},
                           {"weight", weightOf(name, tensors).empty()}});
  }
  llvm::json::Object all = toJson(rt::readManifest(folder), folder);
  all["tensors"] = std::move(rows);
  llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(std::move(all)))
               << "\n";
}

static void showTensors(const rt::WeightSource &tensors) {
  size_t width = 0;
  for (const std::string &name : tensors.names())
    width = std::max(width, text::shortened(name, 60).size());
  for (const std::string &name : tensors.names()) {
    const rt::TensorView view = tensors.view(name);
    llvm::outs() << "  " << llvm::left_justify(text::shortened(name, 60), width)
                 << llvm::formatv("  {0,-5} ", rt::typeText(view.type))
                 << rt::shapeText(view.shape) << "\n";
  }
}

static void showOne(const std::string &folder) {
  const rt::CheckpointManifest manifest = rt::readManifest(folder);
  const rt::WeightSource tensors(folder);
  int64_t weights = 0, bytes = 0;
  for (const std::string &name : tensors.names())
    if (weightOf(name, tensors).empty()) {
      ++weights;
      bytes += tensors.view(name).bytes;
    }
  const int64_t rest = tensors.names().size() - weights;
  auto row = [](llvm::StringRef what, const std::string &text) {
    llvm::outs() << llvm::formatv("{0,-10} {1}\n", what, text::shortened(text));
  };
  row("model", manifest.model);
  row("optimizer", manifest.optimizer);
  row("step",
      rt::groupedText(manifest.step) +
          (manifest.skipped == 0 ? ""
                                 : ", " + rt::groupedText(manifest.skipped) +
                                       " of them skipped"));
  row("samples", rt::groupedText(manifest.samples) + ", seed " +
                     std::to_string(manifest.seed) +
                     (manifest.shuffled ? ", shuffled" : ", in order"));
  row("plan", llvm::formatv("{0:x-16}", manifest.plan).str());
  row("size", rt::bytesText(bytesOf(manifest)) + " in " +
                  rt::counted(manifest.files.size(), "file"));
  row("weights", rt::counted(weights, "tensor") + ", " + rt::bytesText(bytes));
  row("states", rt::counted(rest, "tensor"));
  showTensors(tensors);
}

/// A line for each; those that cannot be read say why.
static void showAll(const std::string &run) {
  const rt::CheckpointFolder folder(run);
  const std::vector<int64_t> steps = stepsOf(run);
  llvm::outs() << "      step       samples       size  optimizer  model\n";
  for (const int64_t step : steps) {
    llvm::outs() << llvm::formatv("{0,10}  ", rt::groupedText(step));
    try {
      const auto manifest = rt::readManifest(folder.folderOf(step));
      llvm::outs() << llvm::formatv("{0,12} {1,10}  {2,-9}  {3}\n",
                                    rt::groupedText(manifest.samples),
                                    rt::bytesText(bytesOf(manifest)),
                                    text::shortened(manifest.optimizer, 20),
                                    text::shortened(manifest.model, 40));
    } catch (const rt::Error &error) {
      llvm::outs() << text::printable(error.what()) << "\n";
    }
  }
}

static void show(const std::string &word, const CheckpointOptions &options) {
  if (options.asJson)
    showAsJson(chosen(word, options.step));
  else if (isCheckpoint(word) || options.step != 0)
    showOne(chosen(word, options.step));
  else
    showAll(word);
}

//===----------------------------------------------------------------------===//
// verify, export
//===----------------------------------------------------------------------===//

/// Reads every byte. An older state without its weight would be lost on resume.
static void verifyOne(const std::string &folder) {
  const rt::CheckpointManifest manifest = rt::readCheckpoint(folder);
  const rt::WeightSource tensors(folder);
  for (const std::string &name : tensors.names())
    tensors.view(name);
  llvm::outs() << text::printable(folder) << ": whole, "
               << rt::counted(tensors.names().size(), "tensor") << ", "
               << rt::bytesText(bytesOf(manifest)) << "\n";
}

static void verify(const std::string &word, int64_t step) {
  if (isCheckpoint(word) || step != 0)
    return verifyOne(chosen(word, step));
  const rt::CheckpointFolder folder(word);
  const std::vector<int64_t> steps = stepsOf(word);
  int64_t damaged = 0;
  for (const int64_t each : steps) {
    try {
      verifyOne(folder.folderOf(each));
    } catch (const rt::Error &error) {
      llvm::outs() << text::printable(error.what()) << "\n";
      ++damaged;
    }
  }
  if (damaged > 0)
    rt::fail("'", word, "': ", damaged, " of ",
             rt::counted(steps.size(), "checkpoint"), " cannot be used");
}

static void exportWeights(const std::string &word,
                          const CheckpointOptions &options) {
  if (options.output.empty())
    rt::fail("export expects where to write: -o FILE.safetensors");
  const std::string folder = chosen(word, options.step);
  rt::readCheckpoint(folder);
  const rt::WeightSource tensors(folder);
  std::vector<rt::TensorHeader> headers;
  for (const std::string &name : tensors.names())
    if (options.withStates || weightOf(name, tensors).empty()) {
      const rt::TensorView view = tensors.view(name);
      headers.push_back({name, view.type, view.shape});
    }
  rt::SafetensorsWriter writer(options.output, headers);
  for (const rt::TensorHeader &header : headers) {
    const std::vector<char> values = tensors.view(header.name).values<char>();
    writer.write(values.data(), values.size());
  }
  writer.commit();
  llvm::outs() << "wrote " << rt::counted(headers.size(), "tensor") << " of '"
               << text::printable(folder) << "' to '"
               << text::printable(options.output) << "'\n";
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

/// What `show`, `verify` and the others do, with how many words.
static void run(const CheckpointOptions &options) {
  static constexpr llvm::StringRef verbs[] = {"show", "verify", "export",
                                              "diff"};
  const std::string verb = options.words.empty() ? "" : options.words[0];
  if (!llvm::is_contained(verbs, verb))
    rt::fail("checkpoint expects ", text::listOf(verbs), ", but got '",
             text::shortened(verb, 64), "'");
  const size_t wanted = verb == "diff" ? 2 : 1;
  const std::vector<std::string> folders(options.words.begin() + 1,
                                         options.words.end());
  if (folders.size() != wanted)
    rt::fail("checkpoint ", verb, " expects ",
             wanted == 1 ? "one folder" : "two folders or files", ", but got ",
             folders.size());
  if (verb == "show")
    show(folders[0], options);
  else if (verb == "verify")
    verify(folders[0], options.step);
  else if (verb == "export")
    exportWeights(folders[0], options);
  else
    showDifference(sourceOf(folders[0], options.step),
                   sourceOf(folders[1], options.step));
}

llvm::Error pipewright::tool::runCheckpoint(const CheckpointOptions &options) {
  try {
    run(options);
  } catch (const rt::Error &error) {
    llvm::outs().flush();
    return llvm::createStringError(error.what());
  }
  return llvm::Error::success();
}
