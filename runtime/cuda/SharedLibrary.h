//===- SharedLibrary.h - Libraries that are opened when needed -*- C++ -*-===//
//
// CUDA's driver and libraries are never linked: a program starts, prints its
// help and checks its options on machines that have none of them.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CUDA_SHAREDLIBRARY_H
#define PIPEWRIGHT_RUNTIME_CUDA_SHAREDLIBRARY_H

#include <string>

namespace pipewright::runtime {

/// An open library. It stays open until the process ends.
class SharedLibrary {
public:
  /// `what` is its name for users ("CUDA driver"), `advice` tells them how to
  /// get it. Throws an Error when it cannot be opened.
  SharedLibrary(std::string what, std::string file, std::string advice);

  /// The address of a function, null when the library is too old to have it.
  void *find(const char *name) const;

  /// Fills a pointer to a function. Throws an Error that names the library,
  /// the function, `needed` (a version) and the advice when it is not there.
  template <class Function>
  void get(Function *&pointer, const char *name, const char *needed) const {
    pointer = reinterpret_cast<Function *>(find(name));
    if (!pointer)
      failMissing(name, needed);
  }

private:
  [[noreturn]] void failMissing(const char *name, const char *needed) const;

  std::string what;
  std::string file;
  std::string advice;
  void *handle = nullptr;
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CUDA_SHAREDLIBRARY_H
