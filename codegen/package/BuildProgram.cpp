//===- BuildProgram.cpp - Compile and link a generated program ------------===//
//
// Three small files against one header: a compiler call each, side by side,
// and a link. What the tools print is shown only when they fail. They run in
// the folder and are told names relative to it, so that ccache and its like
// know a file again in another folder.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/BuildProgram.h"

#include "codegen/package/RunTool.h"
#include "support/InputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

// CMakeLists.txt of this folder defines PIPEWRIGHT_HOST_COMPILER,
// PIPEWRIGHT_RUNTIME_SOURCES, PIPEWRIGHT_RUNTIME_LIBRARY,
// PIPEWRIGHT_RUNTIME_LINK and PIPEWRIGHT_PROGRAM_FLAGS (both separated by
// colons).

namespace pipewright::codegen {

/// What is compiled.
static std::vector<std::string> sourcesFor(const Target &target) {
  std::vector<std::string> sources = {"stages.cpp", "ranks.cpp", "main.cpp"};
  llvm::append_range(sources, target.buildRules().sources);
  return sources;
}

static llvm::Expected<std::string> findTool(llvm::StringRef configured,
                                            llvm::StringRef fallback) {
  if (llvm::sys::fs::can_execute(configured))
    return configured.str();
  auto found = llvm::sys::findProgramByName(fallback);
  if (!found)
    return llvm::createStringError("cannot find '" + fallback +
                                   "', which is needed to build the program");
  return *found;
}

static void appendWords(std::vector<std::string> &command, const char *words) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(words).split(parts, ':', -1, false);
  llvm::append_range(command, parts);
}

/// What runs the compiler, such as ccache: the environment variable
/// CMAKE_CXX_COMPILER_LAUNCHER, as for CMake.
static llvm::Expected<std::vector<std::string>>
compilerCommand(const std::string &compiler) {
  const char *launcher = std::getenv("CMAKE_CXX_COMPILER_LAUNCHER");
  if (!launcher || !*launcher)
    return std::vector<std::string>{compiler};
  auto found = llvm::sys::findProgramByName(launcher);
  if (!found)
    return llvm::createStringError(
        "cannot find '" + llvm::Twine(launcher) +
        "', which the environment variable CMAKE_CXX_COMPILER_LAUNCHER names");
  return std::vector<std::string>{*found, compiler};
}

/// What a file of a program is compiled with. Where the one header of generated
/// C++ was precompiled beside the runtime, that is taken: it halves the time of
/// the whole compilation.
static void appendFlags(std::vector<std::string> &command, llvm::StringRef name,
                        const Target &target) {
  appendWords(command, PIPEWRIGHT_PROGRAM_FLAGS);
  llvm::SmallString<128> header =
      llvm::sys::path::parent_path(PIPEWRIGHT_RUNTIME_LIBRARY);
  llvm::sys::path::append(header, target.hostStyle().runtimeHeader + ".pch");
  if (name.ends_with(".cpp") && llvm::sys::fs::exists(header))
    llvm::append_values(command, std::string("-include-pch"),
                        header.str().str());
}

/// The last lines of what a tool printed, each behind two blanks.
static std::string tailOf(llvm::StringRef path) {
  llvm::Expected<FileBuffer> buffer = readTextFile(path);
  if (!buffer)
    return " " + llvm::toString(buffer.takeError());
  llvm::StringRef text = (*buffer)->getBuffer().rtrim();
  constexpr size_t limit = 2000;
  text = text.size() > limit ? text.take_back(limit) : text;
  std::string lines;
  for (llvm::StringRef line : llvm::split(text, '\n'))
    lines += ("\n  " + line).str();
  return lines;
}

static llvm::Error toolError(llvm::StringRef what, llvm::StringRef log) {
  return llvm::createStringError("cannot " + what + ":" + tailOf(log));
}

/// Runs a tool to its end.
static llvm::Error run(llvm::ArrayRef<std::string> command,
                       llvm::StringRef what, const std::string &log,
                       const std::string &folder) {
  llvm::Expected<Tool> tool = Tool::start(command, log, folder);
  if (!tool)
    return tool.takeError();
  return tool->wait() ? llvm::Error::success() : toolError(what, log);
}

/// Starts a compiler for each of the files at once: there are few. Waits for
/// all of them.
static llvm::Error compile(llvm::ArrayRef<std::string> names,
                           llvm::ArrayRef<std::string> compiler,
                           const Target &target, const std::string &include,
                           const std::string &src) {
  llvm::SmallVector<std::pair<Tool, std::string>> jobs;
  llvm::Error failure = llvm::Error::success();
  for (const std::string &name : names) {
    std::vector<std::string> command(compiler);
    appendFlags(command, name, target);
    llvm::append_values(command, "-I" + include, std::string("-I."),
                        std::string("-c"), name, std::string("-o"),
                        name + ".o");
    std::string log = src + "/" + name + ".log";
    llvm::Expected<Tool> tool = Tool::start(command, log, src);
    if (!tool) {
      failure = tool.takeError();
      break;
    }
    jobs.push_back({*tool, log});
  }
  std::string firstFailure;
  for (auto &[tool, log] : jobs)
    if (!tool.wait() && firstFailure.empty())
      firstFailure = log;
  if (failure || firstFailure.empty())
    return failure;
  return toolError("compile the generated program", firstFailure);
}

static llvm::Error buildDirectly(const std::string &folder,
                                 const Target &target,
                                 const std::string &runtimeSources) {
  auto path = findTool(PIPEWRIGHT_HOST_COMPILER, "c++");
  if (!path)
    return path.takeError();
  auto compiler = compilerCommand(*path);
  if (!compiler)
    return compiler.takeError();
  std::string src = folder + "/src";
  std::string include = llvm::sys::path::parent_path(runtimeSources).str();
  std::vector<std::string> names = sourcesFor(target);
  if (llvm::Error error = compile(names, *compiler, target, include, src))
    return error;

  std::vector<std::string> link = {*path};
  for (const std::string &name : names)
    link.push_back(name + ".o");
  llvm::append_range(link, target.buildRules().link);
  link.push_back(PIPEWRIGHT_RUNTIME_LIBRARY);
  appendWords(link, PIPEWRIGHT_RUNTIME_LINK);
  llvm::append_values(link, std::string("-pthread"), std::string("-o"),
                      std::string("../train"));
  std::string log = src + "/link.log";
  if (llvm::Error error = run(link, "link the generated program", log, src))
    return error;
  llvm::sys::fs::remove(log);
  for (const std::string &name : names) {
    llvm::sys::fs::remove(src + "/" + name + ".o");
    llvm::sys::fs::remove(src + "/" + name + ".log");
  }
  return llvm::Error::success();
}

static llvm::Error buildWithCMake(const std::string &folder) {
  auto cmake = findTool("", "cmake");
  if (!cmake)
    return cmake.takeError();
  std::string src = folder + "/src", log = src + "/build.log";
  if (llvm::Error error =
          run({*cmake, "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release"},
              "configure the generated program", log, src))
    return error;
  if (llvm::Error error = run({*cmake, "--build", "build", "--parallel"},
                              "build the generated program", log, src))
    return error;
  if (std::error_code error =
          llvm::sys::fs::rename(src + "/build/train", folder + "/train"))
    return llvm::createStringError("cannot move the built program: " +
                                   error.message());
  llvm::sys::fs::remove_directories(src + "/build");
  llvm::sys::fs::remove(log);
  return llvm::Error::success();
}

llvm::Expected<std::string> findRuntimeSources() {
  std::string folder = PIPEWRIGHT_RUNTIME_SOURCES;
  if (llvm::sys::fs::exists(folder + "/Runtime.h"))
    return folder;
  return llvm::createStringError("cannot find the sources of the runtime in '" +
                                 folder + "'");
}

llvm::Error buildProgram(llvm::StringRef folder, const Target &target) {
  auto sources = findRuntimeSources();
  if (!sources)
    return sources.takeError();
  if (llvm::sys::fs::exists(PIPEWRIGHT_RUNTIME_LIBRARY))
    return buildDirectly(folder.str(), target, *sources);
  return buildWithCMake(folder.str());
}

std::string programCMakeLists(const Target &target) {
  const BuildRules &rules = target.buildRules();
  std::string text = R"cmake(# Builds the program by itself:
#   cmake -S . -B build && cmake --build build
cmake_minimum_required(VERSION 3.25)
)cmake";
  text += ("project(train LANGUAGES " + rules.cmakeLanguages + ")\n").str();
  text += R"cmake(
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
)cmake";
  text += rules.cmakeSettings;
  text += "add_subdirectory(runtime)\n";
  text += rules.cmakeExecutable;
  return text + "target_link_libraries(train PRIVATE pipewright_runtime)\n";
}

} // namespace pipewright::codegen
