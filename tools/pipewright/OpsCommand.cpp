//===- OpsCommand.cpp - The operators that models may have ----------------===//

#include "tools/pipewright/OpsCommand.h"

#include "frontends/onnx/Importer.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace pipewright;
using namespace pipewright::tool;

const std::vector<OptionRow<OpsOptions>> &pipewright::tool::opsRows() {
  static const std::vector<OptionRow<OpsOptions>> rows =
      under<OptionRow<OpsOptions>>(Heading::Output,
                                   {{{.name = "json",
                                      .help = "Print the list as JSON",
                                      .kind = OptionSpelling::Flag},
                                     option::flag(&OpsOptions::asJson)}});
  return rows;
}

void pipewright::tool::printOps(const OpsOptions &options) {
  std::vector<frontend::OperatorSummary> all =
      frontend::onnxFrontend().operators();
  llvm::sort(all, [](const auto &a, const auto &b) { return a.name < b.name; });
  if (options.asJson) {
    llvm::json::Array list;
    for (const frontend::OperatorSummary &op : all)
      list.push_back(llvm::json::Object{{"name", op.name},
                                        {"since", op.since},
                                        {"constants", op.onlyOfConstants}});
    llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(std::move(list)))
                 << "\n";
    return;
  }
  llvm::outs() << all.size()
               << " operators of ONNX, from that version of its operator set "
                  "on, for all targets\n";
  for (const frontend::OperatorSummary &op : all)
    llvm::outs() << llvm::formatv("  {0,-24} {1,2}{2}\n", op.name, op.since,
                                  op.onlyOfConstants ? "  of constants only"
                                                     : "");
}
