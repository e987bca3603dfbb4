//===- UnknownFields.h - Fields newer than the ONNX schema -----*- C++ -*-===//
//
// The installed schema of ONNX may be older than a file. Protobuf keeps the
// fields that it does not know, by their numbers in onnx.proto.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_FRONTENDS_ONNX_UNKNOWNFIELDS_H
#define PIPEWRIGHT_FRONTENDS_ONNX_UNKNOWNFIELDS_H

#include <google/protobuf/unknown_field_set.h>

#include <list>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::frontend {

/// The texts, or messages as bytes, of a field; of a field of another type
/// none, and `isMalformed` is set.
std::vector<const std::string *>
unknownTexts(const google::protobuf::UnknownFieldSet &fields, int number,
             bool &isMalformed);

/// The messages of a field, in which each field is unknown.
std::list<google::protobuf::UnknownFieldSet>
unknownMessages(const google::protobuf::UnknownFieldSet &fields, int number,
                bool &isMalformed);

/// The last value of a field that is an integer.
std::optional<int64_t>
unknownInteger(const google::protobuf::UnknownFieldSet &fields, int number,
               bool &isMalformed);

} // namespace pipewright::frontend

#endif // PIPEWRIGHT_FRONTENDS_ONNX_UNKNOWNFIELDS_H
