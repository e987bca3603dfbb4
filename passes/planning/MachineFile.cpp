//===- MachineFile.cpp - What was measured of this machine ----------------===//
//
// See MachineFile.h. Of processes that measure at once, the first one's file
// stays, and the others take what it has.
//
//===----------------------------------------------------------------------===//

#include "passes/planning/MachineFile.h"

#include "support/CacheFolder.h"
#include "support/InputFile.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <unistd.h>

using namespace pipewright;
using llvm::StringRef;

static constexpr StringRef firstLine = "pipewright machine 2";
/// Those that programs for CPUs compute in.
static constexpr Precision precisions[] = {Precision::F32, Precision::BF16};

static std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (auto [key, name] = StringRef(line).split(':');
        key.trim() == "model name")
      return name.trim().str();
  return llvm::sys::getHostCPUName().str();
}

std::string pipewright::writeMachine(const MeasuredMachine &machine) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << firstLine << "\n";
  for (const auto &[precision, model] : machine.models)
    for (const MachineFigure &figure : machineFigures())
      if (!figure.isOptional)
        os << nameOf(precision) << " " << figure.name << " "
           << llvm::format("%.17g", model.*figure.place) << "\n";
  return text;
}

llvm::Expected<MachineModels> pipewright::readMachine(StringRef text) {
  auto [first, rest] = text.split('\n');
  if (first != firstLine)
    return llvm::createStringError("expects '" + firstLine + "' first");
  std::map<std::string, double> numbers;
  for (; !rest.empty(); rest = rest.split('\n').second) {
    auto [name, number] = rest.split('\n').first.rsplit(' ');
    if (!llvm::to_float(number, numbers[name.str()]))
      return llvm::createStringError("expects a number behind '" + name + "'");
  }
  MachineModels models;
  for (Precision precision : precisions)
    for (const MachineFigure &figure : machineFigures()) {
      if (figure.isOptional)
        continue;
      std::string name = (nameOf(precision) + " " + figure.name).str();
      double number = numbers[name];
      if (!std::isfinite(number) || number <= 0)
        return llvm::createStringError("expects '" + name + "' above 0");
      models[precision].*figure.place = number;
    }
  return models;
}

/// The machine and the place of its file, not yet measured.
static MeasuredMachine thisMachine() {
  MeasuredMachine machine;
  machine.processor = processorName();
  auto hash =
      llvm::SHA256::hash(llvm::arrayRefFromStringRef(machine.processor));
  if (std::string folder = cacheFolder("machines"); !folder.empty())
    machine.path =
        folder + "/machine-" +
        llvm::toHex(llvm::ArrayRef(hash).take_front(8), /*LowerCase=*/true) +
        ".txt";
  return machine;
}

/// Writes a file of another name and lets `place` put it where it belongs.
static llvm::Error
writeFile(const MeasuredMachine &machine,
          llvm::function_ref<std::error_code(const std::string &)> place) {
  auto file = llvm::sys::fs::TempFile::create(machine.path + ".%%%%%%%%");
  if (!file)
    return file.takeError();
  std::error_code error;
  {
    llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
    os << writeMachine(machine);
    os.flush();
    error = os.error();
    os.clear_error();
  }
  if (!error)
    error = place(file->TmpName);
  llvm::consumeError(file->discard());
  return llvm::errorCodeToError(error);
}

/// Fills in what the file has; false where it has nothing.
static bool readFile(MeasuredMachine &machine) {
  llvm::Expected<FileBuffer> file = readRegularFile(machine.path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return false;
  }
  auto models = readMachine((*file)->getBuffer());
  if (!models) {
    llvm::consumeError(models.takeError());
    return false;
  }
  machine.models = std::move(*models);
  return true;
}

static MeasuredMachine readOrMeasure() {
  MeasuredMachine machine = thisMachine();
  if (!machine.path.empty() && readFile(machine))
    return machine;
  machine.models = measureCore(precisions);
  if (machine.path.empty())
    return machine;
  // What cannot be read stands in the way of a link.
  llvm::sys::fs::file_status status;
  bool isInTheWay =
      !llvm::sys::fs::status(machine.path, status) && !readFile(machine);
  llvm::Error error = writeFile(machine, [&](const std::string &from) {
    if (isInTheWay)
      return llvm::sys::fs::rename(from, machine.path);
    if (::link(from.c_str(), machine.path.c_str()) == 0 || errno == EEXIST)
      return std::error_code();
    return llvm::errnoAsErrorCode();
  });
  // What cannot be kept is measured by each process.
  if (error) {
    llvm::consumeError(std::move(error));
    machine.path.clear();
    return machine;
  }
  // Another process may have been first.
  readFile(machine);
  return machine;
}

const MeasuredMachine &pipewright::measuredMachine() {
  static const MeasuredMachine machine = readOrMeasure();
  return machine;
}

llvm::Expected<MeasuredMachine> pipewright::measureMachine() {
  MeasuredMachine machine = thisMachine();
  if (machine.path.empty())
    return llvm::createStringError(
        "there is no folder to keep it in that is writable for you alone; set "
        "PIPEWRIGHT_CACHE_DIR to one");
  machine.models = measureCore(precisions);
  llvm::Error error = writeFile(machine, [&](const std::string &from) {
    return llvm::sys::fs::rename(from, machine.path);
  });
  if (error)
    return llvm::createStringError("cannot write '" + machine.path +
                                   "': " + llvm::toString(std::move(error)));
  return machine;
}
