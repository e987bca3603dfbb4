//===- ChosenMachine.cpp - A machine that the user names ------------------===//

#include "tools/pipewright/ChosenMachine.h"

#include "support/InputFile.h"
#include "support/Json.h"
#include "support/Text.h"
#include "tools/pipewright/OptionTable.h"

#include <cmath>

namespace pipewright::tool {

static llvm::Error fail(llvm::StringRef path, const llvm::Twine &what) {
  return option::fail("--machine: '", text::printable(path), "' ", what.str(),
                      ": expects what pipewright machine show --json prints");
}

static llvm::Expected<ChosenMachine> readFile(llvm::StringRef path,
                                              Precision precision) {
  llvm::Expected<FileBuffer> file = readTextFile(path);
  if (!file)
    return fail(path, llvm::toString(file.takeError()));
  llvm::Expected<llvm::json::Value> json = parseJson((*file)->getBuffer());
  if (!json)
    return fail(path, "is no JSON: " + llvm::toString(json.takeError()));
  const llvm::json::Object *all = json->getAsObject();
  const llvm::json::Object *figures = all ? all->getObject("figures") : nullptr;
  if (!figures)
    return fail(path, "has no 'figures'");
  const llvm::json::Object *own = figures->getObject(nameOf(precision));
  if (!own)
    return fail(path, "has no figures of " + nameOf(precision));
  ChosenMachine machine;
  machine.name = text::shortened(
      all->getString("processor").value_or(llvm::StringRef(path)));
  for (const MachineFigure &figure : machineFigures()) {
    std::optional<double> number = own->getNumber(figure.name);
    if (!number || !std::isfinite(*number) || !(*number > 0))
      return fail(path, "has no number above 0 for '" + figure.name + "' of " +
                            nameOf(precision));
    if (figure.isCount && *number != std::floor(*number))
      return fail(path, "has no whole number for '" + figure.name + "' of " +
                            nameOf(precision));
    machine.model.*figure.place = *number;
  }
  return machine;
}

llvm::Expected<ChosenMachine> chooseMachine(llvm::StringRef text,
                                            Precision precision) {
  if (text.ends_with(".json"))
    return readFile(text, precision);
  std::optional<MachineModel> known = MachineModel::named(text);
  if (!known)
    return option::fail("--machine expects ", MachineModel::names(),
                        ", or a FILE.json that pipewright machine show --json "
                        "has written, but got '",
                        text::shortened(text), "'");
  return ChosenMachine{text.str(), *known};
}

} // namespace pipewright::tool
