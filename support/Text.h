//===- Text.h - Text from outside in what is parsed again -------*- C++ -*-===//
//
// Names come from models, and files, and command lines, and go into sources,
// JSON, pictures and messages. Each such place is written through the function
// for it here, so that a name can never be anything but a name there.
//
// Pure: of LLVM, it uses ADT and the tables of Unicode.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_SUPPORT_TEXT_H
#define PIPEWRIGHT_SUPPORT_TEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace pipewright::text {

/// The text on one line, as people can see it: valid UTF-8, where control
/// characters, bytes that are no UTF-8, and characters that are invisible or
/// change the direction of text stand as `\x0a` or `\u202e`. The same again for
/// what is printable already.
std::string printable(llvm::StringRef text);
bool isPrintable(llvm::StringRef text);

/// The same with at most `most` bytes, the middle left out: `abc...xyz`.
std::string shortened(llvm::StringRef text, size_t most = 120);

/// What is wrong with a name by which people and files know something, to be
/// read after the name; empty if nothing is.
std::string problemOfName(llvm::StringRef name);

/// For behind `//` or between `/*` and `*/`: neither can end in it, nor can it
/// join the next line.
std::string comment(llvm::StringRef text);

/// A literal of C and C++, quotes included, that is exactly these bytes.
std::string stringLiteral(llvm::StringRef text);

/// A raw literal of C++, for text of several lines that people read; an
/// ordinary one where a raw one would not hold the same bytes.
std::string rawLiteral(llvm::StringRef text);

/// A lower-case identifier of C and C++ that is neither a keyword nor reserved
/// nor a macro that headers of these languages define; different texts may give
/// the same.
std::string identifier(llvm::StringRef text);
/// Whether the text can be an identifier in generated code, as it is.
bool isIdentifier(llvm::StringRef text);

/// A string of JSON, quotes included, that may also stand in a script of HTML.
/// Bytes that are no UTF-8 become U+FFFD.
std::string json(llvm::StringRef text);

/// Between tags or in a quoted attribute of XML, SVG and HTML.
std::string xml(llvm::StringRef text);

/// Text of LaTeX, in which no character is a command.
std::string latex(llvm::StringRef text);

/// Words as a sentence has them: `a, b or c`.
std::string listOf(llvm::ArrayRef<llvm::StringRef> words);

/// A cell of a CSV file, in quotes where it needs them.
std::string csv(llvm::StringRef text);

} // namespace pipewright::text

#endif // PIPEWRIGHT_SUPPORT_TEXT_H
