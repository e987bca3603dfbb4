//===- Messages.cpp - How errors reach the terminal -----------------------===//
//
// See Messages.h.
//
//===----------------------------------------------------------------------===//

#include "tools/pipewright/Messages.h"

#include "dialects/nn/NNLocation.h"
#include "support/Message.h"

#include "mlir/IR/Location.h"

using namespace mlir;

namespace pipewright::tool {

/// Where something is: the name of a node, or a place in a file that is text.
static std::string placeOf(Location location) {
  if (StringRef name = nn::nameOfLocation(location); !name.empty())
    return name.str();
  auto place = dyn_cast<FileLineColLoc>(location);
  if (!place)
    return "";
  std::string text = place.getFilename().str();
  return place.getLine() == 0 ? text
                              : text + ":" + std::to_string(place.getLine()) +
                                    ":" + std::to_string(place.getColumn());
}

void printDiagnostic(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Note)
    return;
  const char *kind =
      diagnostic.getSeverity() == DiagnosticSeverity::Error     ? "error"
      : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? "warning"
                                                                : "remark";
  std::string text = diagnostic.str();
  std::string place = placeOf(diagnostic.getLocation());
  if (!place.empty() && !StringRef(text).contains(place))
    text = "at '" + place + "': " + text;
  printMessage(kind, text);
}

int fail(const llvm::Twine &message) {
  printMessage("error", message);
  return 1;
}

int fail(llvm::Error error) {
  std::string message = llvm::toString(std::move(error));
  return message.empty() ? 1 : fail(message);
}

} // namespace pipewright::tool
