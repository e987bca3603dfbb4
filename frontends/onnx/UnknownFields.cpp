//===- UnknownFields.cpp - Fields newer than the ONNX schema --------------===//

#include "frontends/onnx/UnknownFields.h"

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

namespace pipewright::frontend {

std::vector<const std::string *> unknownTexts(const UnknownFieldSet &fields,
                                              int number, bool &isMalformed) {
  std::vector<const std::string *> texts;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField &field = fields.field(i);
    if (field.number() != number)
      continue;
    if (field.type() == UnknownField::TYPE_LENGTH_DELIMITED)
      texts.push_back(&field.length_delimited());
    else
      isMalformed = true;
  }
  return texts;
}

std::list<UnknownFieldSet> unknownMessages(const UnknownFieldSet &fields,
                                           int number, bool &isMalformed) {
  // They cannot be moved.
  std::list<UnknownFieldSet> messages;
  for (const std::string *text : unknownTexts(fields, number, isMalformed)) {
    if (messages.emplace_back().ParseFromString(*text))
      continue;
    messages.pop_back();
    isMalformed = true;
  }
  return messages;
}

std::optional<int64_t> unknownInteger(const UnknownFieldSet &fields, int number,
                                      bool &isMalformed) {
  std::optional<int64_t> value;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField &field = fields.field(i);
    if (field.number() != number)
      continue;
    if (field.type() == UnknownField::TYPE_VARINT)
      value = static_cast<int64_t>(field.varint());
    else
      isMalformed = true;
  }
  return value;
}

} // namespace pipewright::frontend
