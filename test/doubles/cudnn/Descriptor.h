//===- Descriptor.h - Backend descriptors of cuDNN's double ----*- C++ -*-===//
//
// A descriptor is a table of attributes until it is finalized, when it is
// checked, and read-only from then on. Attributes that are descriptors share
// them: what a program destroys lives as long as something refers to it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TEST_DOUBLES_CUDNN_DESCRIPTOR_H
#define PIPEWRIGHT_TEST_DOUBLES_CUDNN_DESCRIPTOR_H

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace pipewright::doubles {

/// What a call of the library refuses.
class Refusal : public std::runtime_error {
public:
  Refusal(cudnnStatus_t status, const std::string &message)
      : std::runtime_error(message), status(status) {}
  cudnnStatus_t status;
};

struct Work;

struct Descriptor {
  struct Attribute {
    cudnnBackendAttributeType_t type;
    int64_t count = 0;
    std::vector<std::byte> values;
    std::vector<std::shared_ptr<Descriptor>> descriptors;
  };

  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;

  // What finalizing finds out.

  /// What an operation graph computes.
  std::shared_ptr<const Work> work;
  /// The number of an engine.
  int engine = -1;

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           int64_t count, const void *values);
  void get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           int64_t room, int64_t *count, void *values);
  void finalize();

  bool has(cudnnBackendAttributeName_t name) const {
    return attributes.count(name) != 0;
  }
  /// The values of an attribute; a Refusal when it is missing or of another
  /// type, or when a count is given and not met.
  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type) const {
    const Attribute &attribute = find(name, type);
    std::vector<T> values(attribute.count);
    if (attribute.values.size() != values.size() * sizeof(T))
      throw Refusal(CUDNN_STATUS_BAD_PARAM, "attribute of another size");
    std::copy(attribute.values.begin(), attribute.values.end(),
              reinterpret_cast<std::byte *>(values.data()));
    return values;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name,
        cudnnBackendAttributeType_t type) const {
    const std::vector<T> values = all<T>(name, type);
    if (values.size() != 1)
      throw Refusal(CUDNN_STATUS_BAD_PARAM, "attribute is no single value");
    return values.front();
  }
  const Descriptor &descriptor(cudnnBackendAttributeName_t name) const;

private:
  const Attribute &find(cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type) const;
};

/// The descriptor behind a handle; a Refusal when there is none.
std::shared_ptr<Descriptor> descriptorOf(cudnnBackendDescriptor_t handle);

} // namespace pipewright::doubles

#endif // PIPEWRIGHT_TEST_DOUBLES_CUDNN_DESCRIPTOR_H
