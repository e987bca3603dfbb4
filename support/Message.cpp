//===- Message.cpp - What the compiler tells on the terminal --------------===//

#include "support/Message.h"

#include "support/Text.h"

#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

namespace pipewright {

std::string messageText(llvm::StringRef text) {
  constexpr size_t longest = 8000;
  constexpr llvm::StringLiteral newLine = "\n  ";
  std::string all;
  for (size_t begin = 0;;) {
    size_t end = text.find(newLine, begin);
    all += text::shortened(text.slice(begin, end), longest);
    if (end == llvm::StringRef::npos)
      return all;
    all += newLine;
    begin = end + newLine.size();
  }
}

void printMessage(llvm::StringRef kind, const llvm::Twine &text) {
  llvm::errs() << kind << ": " << messageText(text.str()) << "\n";
}

void showProgress(const llvm::Twine &text) {
  constexpr llvm::StringLiteral eraseLine = "\r\x1b[K";
  if (llvm::sys::Process::StandardErrIsDisplayed())
    llvm::errs() << eraseLine << messageText(text.str());
}

} // namespace pipewright
