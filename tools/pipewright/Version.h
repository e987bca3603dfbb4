//===- Version.h - Which Pipewright this is ---------------------*- C++ -*-===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_VERSION_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_VERSION_H

#include <string>

namespace pipewright::tool {

/// Its version and commit, its targets, and the libraries that it was built
/// with; several lines.
std::string versionText();

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_VERSION_H
