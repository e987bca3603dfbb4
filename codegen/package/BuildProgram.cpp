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

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

// CMakeLists.txt of this folder defines PIPEWRIGHT_HOST_COMPILER,
// PIPEWRIGHT_RUNTIME_SOURCES, PIPEWRIGHT_RUNTIME_LIBRARY,
// PIPEWRIGHT_RUNTIME_LINK, PIPEWRIGHT_PROGRAM_FLAGS (both separated by colons)
// and, where that library knows GPUs, PIPEWRIGHT_RUNTIME_HAS_CUDA.

namespace pipewright::codegen {

/// What is compiled, beside the CPU's kernels.a.
static std::vector<std::string> sourcesFor(Target target) {
  std::vector<std::string> sources = {"stages.cpp", "ranks.cpp", "main.cpp"};
  if (target == Target::Cuda)
    llvm::append_values(sources, std::string("kernels.cpp"),
                        std::string("kernels.S"));
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
                        Target target) {
  appendWords(command, PIPEWRIGHT_PROGRAM_FLAGS);
  llvm::SmallString<128> header =
      llvm::sys::path::parent_path(PIPEWRIGHT_RUNTIME_LIBRARY);
  llvm::sys::path::append(header, target == Target::Cuda ? "DeviceRuntime.h.pch"
                                                         : "Runtime.h.pch");
  if (name.ends_with(".cpp") && llvm::sys::fs::exists(header))
    llvm::append_values(command, std::string("-include-pch"),
                        header.str().str());
}

/// The last lines of what a tool printed.
static std::string tailOf(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return {};
  llvm::StringRef text = (*buffer)->getBuffer().rtrim();
  constexpr size_t limit = 2000;
  return (text.size() > limit ? text.take_back(limit) : text).str();
}

static llvm::Error toolError(llvm::StringRef what, llvm::StringRef log) {
  return llvm::createStringError("cannot " + what + ":\n" + tailOf(log));
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
                           llvm::ArrayRef<std::string> compiler, Target target,
                           const std::string &include, const std::string &src) {
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

static llvm::Error buildDirectly(const std::string &folder, Target target,
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
  // Nothing refers to the features that its objects say they need.
  if (target == Target::Cpu)
    llvm::append_values(link, std::string("-Wl,--whole-archive"),
                        std::string("kernels.a"),
                        std::string("-Wl,--no-whole-archive"));
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

std::string findRuntimePtx() {
  llvm::StringRef build =
      llvm::sys::path::parent_path(PIPEWRIGHT_RUNTIME_LIBRARY);
  std::string folder = (build + "/cuda/kernels").str();
  return llvm::sys::fs::exists(folder + "/Builtin.ptx") ? folder
                                                        : std::string();
}

llvm::Error checkTarget(Target target) {
#ifndef PIPEWRIGHT_RUNTIME_HAS_CUDA
  if (target == Target::Cuda)
    return llvm::createStringError(
        "--target cuda expects a runtime that was built with CUDA's headers; "
        "install a CUDA toolkit with NCCL and cuDNN (no GPU is needed), or set "
        "CUDA_HOME, and build pipewright again; or write the sources alone "
        "with --no-build, and build them where these headers are");
#endif
  (void)target;
  return llvm::Error::success();
}

llvm::Error buildProgram(llvm::StringRef folder, Target target) {
  auto sources = findRuntimeSources();
  if (!sources)
    return sources.takeError();
  if (llvm::sys::fs::exists(PIPEWRIGHT_RUNTIME_LIBRARY))
    return buildDirectly(folder.str(), target, *sources);
  return buildWithCMake(folder.str());
}

std::string programCMakeLists(Target target) {
  bool isCuda = target == Target::Cuda;
  std::string text = R"cmake(# Builds the program by itself:
#   cmake -S . -B build && cmake --build build
cmake_minimum_required(VERSION 3.25)
)cmake";
  text += isCuda ? "project(train LANGUAGES CXX ASM)\n"
                 : "project(train LANGUAGES CXX)\n";
  text += R"cmake(
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
)cmake";
  // A program for CPUs needs nothing of CUDA, even where it is installed.
  // Nor does one for GPUs need oneDNN.
  text += isCuda ? "set(PIPEWRIGHT_CPU OFF)\nadd_subdirectory(runtime)\n"
                 : "set(PIPEWRIGHT_CUDA OFF)\nadd_subdirectory(runtime)\n";
  if (isCuda)
    text += R"cmake(if(NOT PIPEWRIGHT_HAS_CUDA)
  message(FATAL_ERROR "This program runs on GPUs: building it needs the headers "
    "of CUDA, NCCL, cuBLASLt and cuDNN (set CUDA_HOME or PIPEWRIGHT_CUDA_INCLUDE)")
endif()
add_executable(train main.cpp ranks.cpp stages.cpp kernels.cpp kernels.S)
set_target_properties(train PROPERTIES
  CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
# kernels.S includes the PTX from here.
target_include_directories(train PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
file(GLOB ptx CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/kernels.*.ptx")
set_source_files_properties(kernels.S PROPERTIES OBJECT_DEPENDS "${ptx}")
)cmake";
  else
    text +=
        R"cmake(add_executable(train main.cpp ranks.cpp stages.cpp)
set_target_properties(train PROPERTIES
  CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
# All of it: nothing refers to the features that its objects say they need.
target_link_libraries(train PRIVATE
  "$<LINK_LIBRARY:WHOLE_ARCHIVE,${CMAKE_CURRENT_SOURCE_DIR}/kernels.a>")
)cmake";
  return text + "target_link_libraries(train PRIVATE pipewright_runtime)\n";
}

} // namespace pipewright::codegen
