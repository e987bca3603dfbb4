//===- Json.h - JSON from outside -------------------------------*- C++ -*-===//
//
// LLVM's parser calls itself for each list in a list, and so does what walks
// over its values. No other call of it is left; tools/checks/source sees to it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_SUPPORT_JSON_H
#define PIPEWRIGHT_SUPPORT_JSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace pipewright {

/// A value of JSON whose lists and objects are nested at most 64 deep. The
/// error is one line of printable text, to be read after the name of the file.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

/// A key that stands twice in one object of what `parseJson` takes, which has
/// the last of its values; empty where there is none.
std::string findRepeatedKey(llvm::StringRef text);

} // namespace pipewright

#endif // PIPEWRIGHT_SUPPORT_JSON_H
