//===- OnnxMutator.cpp - Changes a model where it is one ------------------===//
//
// Random bytes are hardly ever a model. Here a parsed one is changed field by
// field, whatever the message: deleted, doubled, moved, swapped, set to numbers
// and names that are likely to matter. Bytes are changed blindly at times, too,
// and always where the input does not parse.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/OpRegistry.h"

#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"

#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

class ModelMutator {
public:
  ModelMutator(onnx::ModelProto &model, unsigned seed) : random(seed) {
    collect(model);
  }

  /// Changes one field of one message.
  void mutate();

private:
  size_t below(size_t bound) { return bound ? random() % bound : 0; }
  template <class T>
  const T &oneOf(const std::vector<T> &values) {
    return values[below(values.size())];
  }

  void collect(Message &message);
  void mutateRepeated(Message &message, const FieldDescriptor *field);
  void add(Message &message, const FieldDescriptor *field);
  void set(Message &message, const FieldDescriptor *field);
  std::unique_ptr<Message> some(const FieldDescriptor *field);
  int64_t number();
  double real();
  std::string text(const std::string &old, bool isOp);

  std::mt19937 random;
  /// All messages of the model, parents before their parts.
  std::vector<Message *> messages;
  std::vector<std::string> texts;
};

} // namespace

void ModelMutator::collect(Message &message) {
  messages.push_back(&message);
  const Reflection &reflection = *message.GetReflection();
  std::vector<const FieldDescriptor *> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor *field : fields) {
    const bool isText = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    const bool isMessage =
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!field->is_repeated()) {
      if (isText)
        texts.push_back(reflection.GetString(message, field));
      if (isMessage)
        collect(*reflection.MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (isText)
        texts.push_back(reflection.GetRepeatedString(message, field, i));
      if (isMessage)
        collect(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }
}

int64_t ModelMutator::number() {
  static const std::vector<int64_t> numbers = {0,
                                               1,
                                               2,
                                               3,
                                               4,
                                               6,
                                               7,
                                               8,
                                               10,
                                               11,
                                               16,
                                               -1,
                                               -2,
                                               -3,
                                               127,
                                               255,
                                               256,
                                               65535,
                                               1 << 20,
                                               INT32_MAX,
                                               INT32_MIN,
                                               1LL << 31,
                                               1LL << 32,
                                               1LL << 40,
                                               1LL << 62,
                                               -(1LL << 62),
                                               INT64_MAX,
                                               INT64_MIN,
                                               INT64_MIN + 1};
  return below(4) == 0 ? int64_t(below(24)) - 4 : oneOf(numbers);
}

double ModelMutator::real() {
  static const std::vector<double> numbers = {
      0,      -0.0, 1,   -1,       0.5,       1e-5, 1e-45,
      3.4e38, 1e39, 1e9, INFINITY, -INFINITY, NAN};
  return oneOf(numbers);
}

std::string ModelMutator::text(const std::string &old, bool isOp) {
  static const std::vector<std::string> odd = {"",
                                               std::string(1, '\0'),
                                               "__metadata__",
                                               "a=b",
                                               "\n",
                                               "\xff",
                                               "public",
                                               "../x",
                                               "axis",
                                               "weights.bin",
                                               "2",
                                               "18446744073709551615"};
  if (isOp && below(4) != 0) {
    using namespace pipewright::frontend;
    static const auto rows = [] {
      std::vector<std::string> names;
      for (auto family :
           {elementwiseOps, activationOps, shapeOps, indexingOps, generatorOps,
            linearOps, attentionOps, normalizationOps, reductionOps, poolingOps,
            lossOps, randomOps})
        for (const OpRow &row : family())
          names.push_back(row.name.str());
      return names;
    }();
    return oneOf(rows);
  }
  switch (below(4)) {
  case 0:
    return oneOf(odd);
  case 1: {
    std::vector<uint8_t> bytes(old.begin(), old.end());
    bytes.resize(old.size() + 8);
    bytes.resize(LLVMFuzzerMutate(bytes.data(), old.size(), bytes.size()));
    return {bytes.begin(), bytes.end()};
  }
  default:
    return texts.empty() ? "x" : oneOf(texts);
  }
}

/// A copy of one of the model's messages of a type, since what it is put into
/// may be its own part, or frees it; empty where there is none.
std::unique_ptr<Message> ModelMutator::some(const FieldDescriptor *field) {
  std::vector<const Message *> same;
  for (const Message *message : messages)
    if (message->GetDescriptor() == field->message_type())
      same.push_back(message);
  if (same.empty())
    return nullptr;
  const Message *chosen = oneOf(same);
  std::unique_ptr<Message> copy(chosen->New());
  copy->CopyFrom(*chosen);
  return copy;
}

void ModelMutator::set(Message &message, const FieldDescriptor *field) {
  const Reflection &reflection = *message.GetReflection();
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT32:
    return reflection.SetInt32(&message, field, int32_t(number()));
  case FieldDescriptor::CPPTYPE_INT64:
    return reflection.SetInt64(&message, field, number());
  case FieldDescriptor::CPPTYPE_UINT64:
    return reflection.SetUInt64(&message, field, number());
  case FieldDescriptor::CPPTYPE_FLOAT:
    return reflection.SetFloat(&message, field, float(real()));
  case FieldDescriptor::CPPTYPE_DOUBLE:
    return reflection.SetDouble(&message, field, real());
  case FieldDescriptor::CPPTYPE_ENUM:
    return reflection.SetEnumValue(&message, field, int(below(24)));
  case FieldDescriptor::CPPTYPE_STRING:
    return reflection.SetString(
        &message, field,
        text(reflection.GetString(message, field), field->name() == "op_type"));
  case FieldDescriptor::CPPTYPE_MESSAGE: {
    const std::unique_ptr<Message> copy = some(field);
    Message &target = *reflection.MutableMessage(&message, field);
    return copy ? target.CopyFrom(*copy) : target.Clear();
  }
  default:
    return;
  }
}

/// Appends an element; a message is a copy of another one where there is one.
void ModelMutator::add(Message &message, const FieldDescriptor *field) {
  const Reflection &reflection = *message.GetReflection();
  switch (field->cpp_type()) {
  case FieldDescriptor::CPPTYPE_INT32:
    return reflection.AddInt32(&message, field, int32_t(number()));
  case FieldDescriptor::CPPTYPE_INT64:
    return reflection.AddInt64(&message, field, number());
  case FieldDescriptor::CPPTYPE_UINT64:
    return reflection.AddUInt64(&message, field, number());
  case FieldDescriptor::CPPTYPE_FLOAT:
    return reflection.AddFloat(&message, field, float(real()));
  case FieldDescriptor::CPPTYPE_DOUBLE:
    return reflection.AddDouble(&message, field, real());
  case FieldDescriptor::CPPTYPE_STRING:
    return reflection.AddString(&message, field, text("", false));
  case FieldDescriptor::CPPTYPE_MESSAGE: {
    const std::unique_ptr<Message> copy = some(field);
    Message &added = *reflection.AddMessage(&message, field);
    return copy ? added.CopyFrom(*copy) : added.Clear();
  }
  default:
    return;
  }
}

void ModelMutator::mutateRepeated(Message &message,
                                  const FieldDescriptor *field) {
  const Reflection &reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, field);
  const int one = int(below(size)), other = int(below(size));
  switch (below(6)) {
  case 0:
    return add(message, field);
  case 1:
    if (size)
      reflection.SwapElements(&message, field, one, other);
    return;
  case 2:
  case 3:
    // The last one is all that can be removed.
    if (size) {
      reflection.SwapElements(&message, field, one, size - 1);
      reflection.RemoveLast(&message, field);
    }
    return;
  default:
    break;
  }
  // Another value in the place of an old one.
  add(message, field);
  if (size) {
    reflection.SwapElements(&message, field, one, size);
    reflection.RemoveLast(&message, field);
  }
}

void ModelMutator::mutate() {
  Message &message = *oneOf(messages);
  const Reflection &reflection = *message.GetReflection();
  std::vector<const FieldDescriptor *> fields;
  // Fields that are not there come into being now and then.
  if (below(8) == 0)
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i)
      fields.push_back(message.GetDescriptor()->field(i));
  else
    reflection.ListFields(message, &fields);
  if (fields.empty())
    return;
  const FieldDescriptor *field = oneOf(fields);
  if (field->is_repeated())
    mutateRepeated(message, field);
  else if (below(6) == 0)
    reflection.ClearField(&message, field);
  else
    set(message, field);
}

static bool parse(onnx::ModelProto &model, const uint8_t *data, size_t size) {
  google::protobuf::LogSilencer silence;
  if (size == 0 || (data[0] != '<' && data[0] != '#'))
    return model.ParseFromArray(data, int(size));
  const std::string text(reinterpret_cast<const char *>(data), size);
  try {
    return onnx::OnnxParser(text.c_str()).Parse(model).IsOK();
  } catch (const std::exception &) {
    return false;
  }
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  onnx::ModelProto model;
  if (seed % 16 == 0 || !parse(model, data, size))
    return LLVMFuzzerMutate(data, size, maxSize);
  for (unsigned i = 0; i < 1 + seed % 4; ++i)
    ModelMutator(model, seed + i).mutate();
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
