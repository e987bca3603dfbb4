//===- Text.cpp - The text of a PTX module --------------------------------===//

#include "test/doubles/ptx/Text.h"

using namespace pipewright::ptx;

std::string pipewright::ptx::withoutComments(std::string_view text) {
  std::string result(text);
  for (size_t i = 0; i + 1 < result.size(); ++i) {
    if (result[i] != '/')
      continue;
    if (result[i + 1] == '/') {
      while (i < result.size() && result[i] != '\n')
        result[i++] = ' ';
    } else if (result[i + 1] == '*') {
      const size_t found = result.find("*/", i + 2);
      const size_t end = found == result.npos ? result.size() : found + 2;
      for (; i < end; ++i)
        if (result[i] != '\n')
          result[i] = ' ';
    }
  }
  return result;
}

std::string_view pipewright::ptx::trim(std::string_view text) {
  while (!text.empty() && isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string_view>
pipewright::ptx::splitOperands(std::string_view text) {
  std::vector<std::string_view> all;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '{' || c == '[' || c == '(';
    depth -= c == '}' || c == ']' || c == ')';
    if (c != ',' || (depth > 0 && i < text.size()))
      continue;
    const std::string_view part = trim(text.substr(begin, i - begin));
    if (!part.empty())
      all.push_back(part);
    begin = i + 1;
  }
  return all;
}

std::vector<std::string> pipewright::ptx::splitLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(trim(text.substr(0, end)));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}
