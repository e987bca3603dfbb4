//===- SvgElements.h - Text of SVG files ------------------------*- C++ -*-===//
//
// The few elements that pictures are made of, and the styles that they have by
// their classes.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVGELEMENTS_H
#define PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVGELEMENTS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace pipewright::schedules {

/// An estimate of how wide a text is in the widest of the usual fonts.
double widthOf(llvm::StringRef text, double fontSize);

/// Elements one behind the other: later ones lie above earlier ones.
class SvgElements {
public:
  /// `tip` is shown under the pointer.
  void rect(double x, double y, double width, double height,
            llvm::StringRef attributes, llvm::StringRef tip = "");
  /// `kind` are classes; a size of 0 is that of the classes.
  void text(double x, double y, llvm::StringRef words, llvm::StringRef kind,
            double size = 0);
  void path(llvm::StringRef attributes, llvm::StringRef data);

  /// The whole file; `words` say what is seen. With stripes, boxes may be
  /// filled by `url(#stripes)`. A grey one is for paper, so it is as light
  /// whatever the viewer prefers.
  std::string toFile(double width, double height, llvm::StringRef words,
                     bool hasStripes, bool isGrey = false) const;

private:
  std::string out;
};

} // namespace pipewright::schedules

#endif // PIPEWRIGHT_PASSES_SCHEDULES_DRAWING_SVGELEMENTS_H
