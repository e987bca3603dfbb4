//===- SvgElements.cpp - Text of SVG files --------------------------------===//

#include "passes/schedules/drawing/SvgElements.h"

#include "passes/schedules/drawing/Picture.h"
#include "support/Text.h"

using namespace pipewright;
using namespace pipewright::schedules;

/// Colours for light backgrounds.
static const char style[] = R"css(
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Arial, sans-serif; font-size: 12px; fill: #24292f; }
.background { fill: #ffffff; }
.title { font-size: 17px; font-weight: 600; }
.faint { fill: #59636e; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.small { font-size: 10px; }
.idle { fill: #eef0f3; }
.grid { stroke: #d0d7de; stroke-width: 1; fill: none; }
.box { stroke: #ffffff; stroke-width: 0.5; }
.dark { fill: #10151c; }
.light { fill: #ffffff; }
.pair { fill: none; stroke: #10151c; stroke-width: 1.6; }
.forward { stroke: #1a7f37; stroke-width: 1; fill: none; }
.gradient { stroke: #bc4c00; stroke-width: 1; fill: none; }
.memory { fill: #8c959f; }
.shared { fill: #8250df; }
.loop { fill: #10151c; }
.peak { stroke: #cf222e; stroke-width: 1; stroke-dasharray: 3 3; fill: none; }
)css";

/// A viewer that prefers dark ones replaces the neutral colours, while boxes
/// are the same on both.
static const char darkStyle[] = R"css(@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .background { fill: #0d1117; }
  .faint { fill: #9aa4af; }
  .idle { fill: #1d232b; }
  .grid { stroke: #3d444d; }
  .box { stroke: #0d1117; }
  .dark { fill: #10151c; }
  .light { fill: #ffffff; }
  .pair { stroke: #f0f6fc; }
  .forward { stroke: #3fb950; }
  .gradient { stroke: #f0883e; }
  .memory { fill: #6e7681; }
  .peak { stroke: #ff7b72; }
}
)css";

static const char greyStyle[] = R"css(.faint { fill: #333333; }
.idle { fill: #ffffff; stroke: #b0b0b0; stroke-width: 0.5; }
.box { stroke: #333333; }
.grid { stroke: #b0b0b0; }
.forward { stroke: #000000; }
.gradient { stroke: #000000; stroke-dasharray: 2 2; }
.memory { fill: #8c8c8c; }
.shared { fill: #000000; }
)css";

double pipewright::schedules::widthOf(llvm::StringRef text, double fontSize) {
  /// The width of a character, as a share of the font's size.
  constexpr double characterWidth = 0.64;
  return text.size() * fontSize * characterWidth;
}

void SvgElements::rect(double x, double y, double width, double height,
                       llvm::StringRef attributes, llvm::StringRef tip) {
  out += "<rect x=\"" + numberText(x) + "\" y=\"" + numberText(y) +
         "\" width=\"" + numberText(width) + "\" height=\"" +
         numberText(height) + "\" ";
  out += attributes;
  if (tip.empty())
    out += "/>\n";
  else
    out += "><title>" + text::xml(tip) + "</title></rect>\n";
}

void SvgElements::text(double x, double y, llvm::StringRef words,
                       llvm::StringRef kind, double size) {
  out += "<text x=\"" + numberText(x) + "\" y=\"" + numberText(y) + "\"";
  if (!kind.empty())
    out += (" class=\"" + kind + "\"").str();
  if (size > 0)
    out += " style=\"font-size:" + numberText(size) + "px\"";
  out += ">" + text::xml(words) + "</text>\n";
}

void SvgElements::path(llvm::StringRef attributes, llvm::StringRef data) {
  out += ("<path " + attributes + " d=\"" + data + "\"/>\n").str();
}

std::string SvgElements::toFile(double width, double height,
                                llvm::StringRef words, bool hasStripes,
                                bool isGrey) const {
  std::string head = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                     numberText(width) + "\" height=\"" + numberText(height) +
                     "\" viewBox=\"0 0 " + numberText(width) + " " +
                     numberText(height) + "\" role=\"img\">\n<title>" +
                     text::xml(words) + "</title>\n<style>" + style +
                     (isGrey ? greyStyle : darkStyle) + "</style>\n";
  if (hasStripes)
    head += "<defs><pattern id=\"stripes\" width=\"5\" height=\"5\" "
            "patternUnits=\"userSpaceOnUse\" "
            "patternTransform=\"rotate(45)\"><path d=\"M0 0V5\" "
            "stroke=\"#57606a\" stroke-width=\"1.5\"/></pattern></defs>\n";
  head += "<rect class=\"background\" width=\"" + numberText(width) +
          "\" height=\"" + numberText(height) + "\"/>\n";
  return head + out + "</svg>\n";
}
