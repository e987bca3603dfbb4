//===- Descriptor.cpp - Backend descriptors of cuDNN's double -------------===//

#include "test/doubles/cudnn/Descriptor.h"
#include "test/doubles/cudnn/Engine.h"

#include <algorithm>
#include <cstring>

using namespace pipewright::doubles;

[[noreturn]] static void refuse(cudnnStatus_t status,
                                const std::string &message) {
  throw Refusal(status, message);
}

static size_t widthOf(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_BOOLEAN:
    return sizeof(bool);
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return sizeof(void *);
  case CUDNN_TYPE_INT64:
    return sizeof(int64_t);
  case CUDNN_TYPE_FLOAT:
    return sizeof(float);
  case CUDNN_TYPE_DATA_TYPE:
  case CUDNN_TYPE_CONVOLUTION_MODE:
  case CUDNN_TYPE_HEUR_MODE:
  case CUDNN_TYPE_POINTWISE_MODE:
  case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    return sizeof(int);
  default:
    refuse(CUDNN_STATUS_NOT_SUPPORTED,
           "the double knows no attributes of type " + std::to_string(type));
  }
}

void Descriptor::set(cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count,
                     const void *values) {
  if (finalized)
    refuse(CUDNN_STATUS_BAD_PARAM,
           "attribute " + std::to_string(name) + " of a finalized descriptor");
  if (count < 1 || !values)
    refuse(CUDNN_STATUS_BAD_PARAM,
           "attribute " + std::to_string(name) + " without values");
  Attribute attribute;
  attribute.type = type;
  attribute.count = count;
  attribute.values.resize(count * widthOf(type));
  std::memcpy(attribute.values.data(), values, attribute.values.size());
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (int64_t i = 0; i < count; ++i) {
      auto other = descriptorOf(
          static_cast<const cudnnBackendDescriptor_t *>(values)[i]);
      if (!other->finalized)
        refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
               "attribute " + std::to_string(name) + " is not finalized");
      attribute.descriptors.push_back(std::move(other));
    }
  attributes[name] = std::move(attribute);
}

const Descriptor::Attribute &
Descriptor::find(cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type) const {
  const auto found = attributes.find(name);
  if (found == attributes.end() || found->second.type != type)
    refuse(CUDNN_STATUS_BAD_PARAM,
           "attribute " + std::to_string(name) + " is missing");
  return found->second;
}

const Descriptor &
Descriptor::descriptor(cudnnBackendAttributeName_t name) const {
  const Attribute &attribute = find(name, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  if (attribute.descriptors.size() != 1)
    refuse(CUDNN_STATUS_BAD_PARAM, "attribute is no single descriptor");
  return *attribute.descriptors.front();
}

/// As many of `values` as there is room for.
template <class T>
static void give(const std::vector<T> &values, int64_t room, int64_t *count,
                 void *to) {
  *count = static_cast<int64_t>(values.size());
  if (to)
    std::copy_n(values.begin(), std::min(room, *count), static_cast<T *>(to));
}

/// Makes the descriptors that the caller has made engine configurations.
static void giveEngines(const Descriptor &heuristic, int64_t room,
                        int64_t *count, void *to) {
  const Descriptor &graph =
      heuristic.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const auto engines = enginesFor(
      *graph.work, heuristic.one<cudnnBackendHeurMode_t>(
                       CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE));
  *count = static_cast<int64_t>(engines.size());
  if (!to)
    return;
  *count = std::min(*count, room);
  for (int64_t i = 0; i < *count; ++i) {
    auto result =
        descriptorOf(static_cast<const cudnnBackendDescriptor_t *>(to)[i]);
    if (result->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
      refuse(CUDNN_STATUS_BAD_PARAM, "room for an engine configuration");
    result->engine = engines[i];
    result->work = graph.work;
    result->finalized = true;
  }
}

void Descriptor::get(cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t room,
                     int64_t *count, void *values) {
  int64_t ignored = 0;
  if (!count)
    count = &ignored;
  if (!finalized)
    refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
           "reading attribute " + std::to_string(name));
  if (this->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
      name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
    return giveEngines(*this, room, count, values);
  if (this->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR &&
      name == CUDNN_ATTR_ENGINECFG_ENGINE && room == 1 && values) {
    auto result =
        descriptorOf(*static_cast<const cudnnBackendDescriptor_t *>(values));
    result->engine = engine;
    result->work = work;
    result->finalized = true;
    *count = 1;
    return;
  }
  if (this->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
      name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE &&
      type == CUDNN_TYPE_NUMERICAL_NOTE)
    return give(notesOf(engine), room, count, values);
  if (this->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
      name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX && type == CUDNN_TYPE_INT64)
    return give(std::vector<int64_t>{engine}, room, count, values);
  if (this->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
      name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE &&
      type == CUDNN_TYPE_INT64)
    return give(std::vector<int64_t>{workspaceBytes(*work, engine)}, room,
                count, values);
  refuse(CUDNN_STATUS_NOT_SUPPORTED,
         "the double cannot tell attribute " + std::to_string(name));
}

void Descriptor::finalize() {
  if (finalized)
    refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized already");
  switch (type) {
  case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
    tensorOf(*this);
    break;
  case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    one<void *>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE);
    work = std::make_shared<const Work>(workOf(*this));
    break;
  case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    work = descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).work;
    break;
  case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
    const Descriptor &configuration =
        descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    work = configuration.work;
    engine = configuration.engine;
    break;
  }
  case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: {
    const auto ids =
        all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64);
    const auto pointers =
        all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR);
    if (ids.size() != pointers.size())
      refuse(CUDNN_STATUS_BAD_PARAM, "as many addresses as tensors");
    break;
  }
  default:
    break;
  }
  finalized = true;
}
