//===- SharedLibrary.cpp - Libraries that are opened when needed ----------===//

#include "runtime/cuda/SharedLibrary.h"
#include "runtime/core/Error.h"

#include <dlfcn.h>

using namespace pipewright::runtime;

SharedLibrary::SharedLibrary(std::string what, std::string file,
                             std::string advice)
    : what(std::move(what)), file(std::move(file)), advice(std::move(advice)) {
  handle = dlopen(this->file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle)
    return;
  const char *reason = dlerror();
  fail("no ", this->what, ": ", this->file, " cannot be opened (",
       reason ? reason : "unknown reason", "); ", this->advice);
}

void *SharedLibrary::find(const char *name) const {
  return dlsym(handle, name);
}

void SharedLibrary::failMissing(const char *name, const char *needed) const {
  fail(what, " is too old: ", file, " has no function ", name, ", but ", needed,
       " is needed; ", advice);
}
