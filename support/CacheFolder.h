//===- CacheFolder.h - Where what is made once is kept ---------*- C++ -*-===//
//
// Below $PIPEWRIGHT_CACHE_DIR, else `pipewright` in the user's folder for
// caches
// ($XDG_CACHE_HOME, ~/.cache). An empty PIPEWRIGHT_CACHE_DIR turns it off. A
// folder that others may write to is not used; one that cannot be made is no
// error.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_SUPPORT_CACHEFOLDER_H
#define PIPEWRIGHT_SUPPORT_CACHEFOLDER_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace pipewright {

/// The folder `part` there, made if need be; empty where there is none that is
/// ours alone. Beside it there may be others' files.
std::string cacheFolder(llvm::StringRef part);

} // namespace pipewright

#endif // PIPEWRIGHT_SUPPORT_CACHEFOLDER_H
