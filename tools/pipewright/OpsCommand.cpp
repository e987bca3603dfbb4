//===- OpsCommand.cpp - The operators that models may have ----------------===//
//
// What is said of an operator follows from the nn ops that it becomes, and
// these are asked by their interfaces.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/OpsCommand.h"

#include "codegen/target/Target.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/nn/NNInterfaces.h"
#include "frontends/onnx/Importer.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace pipewright;
using namespace pipewright::tool;
using frontend::OperatorSummary;
using mlir::RegisteredOperationName;

const std::vector<OptionRow<OpsOptions>> &pipewright::tool::opsRows() {
  static const std::vector<OptionRow<OpsOptions>> rows =
      under<OptionRow<OpsOptions>>(Heading::Output,
                                   {{{.name = "json",
                                      .help = "Print the list as JSON",
                                      .kind = OptionSpelling::Flag},
                                     option::flag(&OpsOptions::asJson)},
                                    {{.name = "markdown",
                                      .help = "Print the list as a page",
                                      .kind = OptionSpelling::Flag},
                                     option::flag(&OpsOptions::asMarkdown)}});
  return rows;
}

namespace {

/// An operator, and what follows from the nn ops that it becomes.
struct Facts {
  OperatorSummary op;
  /// yes, no, or none needed.
  llvm::StringRef gradient;
  bool isCompiled = true;
  bool hasBf16 = true;

  std::string builtOps() const;
  /// In the order of `headings`.
  std::vector<std::string> cells() const;
};

} // namespace

std::string Facts::builtOps() const {
  std::set<std::string> all = op.built.floats;
  all.insert(op.built.others.begin(), op.built.others.end());
  return llvm::join(all, " ");
}

static llvm::StringRef yesOrNo(bool holds) { return holds ? "yes" : "no"; }

static std::vector<std::string> headings() {
  std::vector<std::string> all = {"operator", "opsets", "gradient"};
  for (const codegen::Target *target : codegen::allTargets())
    all.push_back(target->name().str());
  all.push_back("bf16");
  return all;
}

std::vector<std::string> Facts::cells() const {
  std::vector<std::string> all = {
      op.name, llvm::formatv("{0}-{1}", op.since, op.until), gradient.str()};
  for (size_t i = 0; i < codegen::allTargets().size(); ++i)
    all.push_back(yesOrNo(isCompiled).str());
  all.push_back(yesOrNo(hasBf16).str());
  return all;
}

template <class... Interfaces>
static bool hasAnyOf(RegisteredOperationName op) {
  return (op.hasInterface<Interfaces>() || ...);
}

/// Whether each nn op of a list has one of these interfaces.
template <class... Interfaces>
static bool allHave(const std::set<std::string> &ops,
                    mlir::MLIRContext &context) {
  return llvm::all_of(ops, [&](const std::string &name) {
    auto op = RegisteredOperationName::lookup("nn." + name, &context);
    return op && hasAnyOf<Interfaces...>(*op);
  });
}

static Facts factsOf(OperatorSummary op, mlir::MLIRContext &context) {
  Facts facts;
  const auto &[floats, others] = op.built;
  // A gradient flows through floats alone.
  facts.gradient = floats.empty() ? "none needed"
                   : allHave<nn::DifferentiableOpInterface>(floats, context)
                       ? "yes"
                       : "no";
  for (const auto *ops : {&floats, &others}) {
    facts.isCompiled &= allHave<nn::KernelOpInterface, nn::LibraryOpInterface,
                                nn::ViewOpInterface>(*ops, context);
    facts.hasBf16 &= allHave<nn::PrecisionOpInterface>(*ops, context);
  }
  facts.op = std::move(op);
  return facts;
}

/// By name.
static std::vector<Facts> collectFacts() {
  mlir::MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  std::vector<Facts> all;
  for (OperatorSummary &op : frontend::onnxFrontend().operators())
    all.push_back(factsOf(std::move(op), context));
  llvm::sort(all, [](const Facts &a, const Facts &b) {
    return a.op.name < b.op.name;
  });
  return all;
}

static void printJson(llvm::ArrayRef<Facts> all) {
  llvm::json::Array list;
  for (const Facts &facts : all) {
    llvm::json::Object op{
        {"name", facts.op.name},      {"since", facts.op.since},
        {"until", facts.op.until},    {"constants", facts.op.onlyOfConstants},
        {"gradient", facts.gradient}, {"bf16", facts.hasBf16},
        {"nn", facts.builtOps()}};
    for (const codegen::Target *target : codegen::allTargets())
      op[target->name()] = facts.isCompiled;
    list.push_back(std::move(op));
  }
  llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(std::move(list)))
               << "\n";
}

static void printText(llvm::ArrayRef<Facts> all) {
  llvm::outs() << all.size() << " operators of ONNX\n";
  auto printLine = [](llvm::ArrayRef<std::string> cells, llvm::StringRef note) {
    std::string line =
        llvm::formatv("  {0,-24} {1,-6} {2,-11}", cells[0], cells[1], cells[2]);
    for (const std::string &cell : cells.drop_front(3))
      line += llvm::formatv(" {0,-4}", cell);
    llvm::outs() << llvm::StringRef(line + " " + note.str()).rtrim() << "\n";
  };
  printLine(headings(), "");
  for (const Facts &facts : all)
    printLine(facts.cells(),
              facts.op.onlyOfConstants ? "of constants only" : "");
}

constexpr llvm::StringLiteral kPage = R"(# Operators of ONNX

What `pipewright ops --markdown` prints. The importer names the
[ops of `nn`](../dialects/nn/README.md) that an operator becomes, tests see that it becomes no
others, and each of these ops says by its interfaces what follows here:

- **opsets**: from the first version of ONNX's operator set that has the operator as it is imported,
  to the last that has it, or the newest that was tried; newer ones get a warning;
- **gradient**: all ops that gradients flow through have one. None is needed where integers or
  booleans come out, and where no op is left: the result is an operand or a constant, or random
  numbers that become part of `nn.dropout`;
- **cpu**, **cuda**: the target compiles it, in float32;
- **bf16**: so it is in programs of `--precision bf16`; an op may compute in float32 there.

Forms of an operator that are not supported are refused with an error that names the node.

)";

static void printMarkdown(llvm::ArrayRef<Facts> all) {
  auto printRow = [](std::vector<std::string> cells, std::string last) {
    cells.push_back(std::move(last));
    llvm::outs() << "| " << llvm::join(cells, " | ") << " |\n";
  };
  llvm::outs() << kPage;
  printRow(headings(), "ops of `nn`");
  llvm::outs() << "|";
  for (size_t i = 0; i <= headings().size(); ++i)
    llvm::outs() << "---|";
  llvm::outs() << "\n";
  for (const Facts &facts : all)
    printRow(facts.cells(), facts.op.onlyOfConstants ? "none: of constants only"
                            : facts.builtOps().empty() ? "none"
                                                       : facts.builtOps());
}

void pipewright::tool::printOps(const OpsOptions &options) {
  std::vector<Facts> all = collectFacts();
  if (options.asJson)
    printJson(all);
  else if (options.asMarkdown)
    printMarkdown(all);
  else
    printText(all);
}
