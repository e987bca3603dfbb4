//===- PlanValues.h - Single values of a plan in JSON -----------*- C++ -*-===//
//
// Every value is checked where it is read, and a wrong one is named by its path
// in the file. Unknown keys are refused: a misspelt one would be a plan without
// it.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANVALUES_H
#define PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANVALUES_H

#include "passes/schedules/Refusal.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

namespace pipewright::schedules::plan {

/// A place in the file. Its text is only made when something is wrong there.
struct JsonPath {
  const JsonPath *parent = nullptr;
  llvm::StringRef key;
  size_t index = 0;

  std::string path() const {
    if (!parent)
      return key.str();
    std::string before = parent->path();
    if (key.empty())
      return before + "[" + std::to_string(index) + "]";
    return before + (parent->parent ? "." : ": ") + key.str();
  }
  JsonPath at(llvm::StringRef key) const { return {this, key, 0}; }
  JsonPath at(size_t index) const { return {this, "", index}; }
};

struct Range {
  int64_t least = 0;
  int64_t most = std::numeric_limits<int32_t>::max();
};
/// Bounds that keep sums over all tasks of a step far from overflow.
inline constexpr Range anySize = {0, int64_t(1) << 40};
inline constexpr double maxSeconds = 1e9, leastBandwidth = 1e-9;

/// A value as text, short enough for a message.
inline std::string show(const llvm::json::Value &value) {
  std::string text = llvm::formatv("{0}", value).str();
  return text.size() <= 48 ? text : text.substr(0, 45) + "...";
}

template <typename... Args>
llvm::Error refuseAt(const JsonPath &place, const char *format,
                     Args &&...args) {
  return refuse("{0}: {1}", place.path(),
                llvm::formatv(format, std::forward<Args>(args)...).str());
}

/// Each key of the object is one of `keys`.
inline llvm::Error readObject(const llvm::json::Value &value,
                              const JsonPath &place,
                              llvm::ArrayRef<llvm::StringRef> keys,
                              const llvm::json::Object *&object) {
  object = value.getAsObject();
  if (!object)
    return refuseAt(place, "expects an object, found {0}", show(value));
  for (const auto &[key, unused] : *object)
    if (!llvm::is_contained(keys, llvm::StringRef(key)))
      return refuseAt(place, "does not know the key '{0}'; expects {1}",
                      text::shortened(llvm::StringRef(key), 64),
                      llvm::join(keys, ", "));
  return llvm::Error::success();
}

inline llvm::Error readArray(const llvm::json::Value &value,
                             const JsonPath &place,
                             const llvm::json::Array *&array, int64_t size = -1,
                             llvm::StringRef what = "") {
  array = value.getAsArray();
  if (!array)
    return refuseAt(place, "expects a list, found {0}", show(value));
  if (size >= 0 && static_cast<int64_t>(array->size()) != size)
    return refuseAt(place, "expects one entry for each of {0} {1}, found {2}",
                    size, what, array->size());
  return llvm::Error::success();
}

template <typename T>
llvm::Error readInteger(const llvm::json::Value &value, const JsonPath &place,
                        T &out, Range range = {}) {
  std::optional<int64_t> number = value.getAsInteger();
  if (!number || *number < range.least || *number > range.most)
    return refuseAt(place, "expects a whole number from {0} to {1}, found {2}",
                    range.least, range.most, show(value));
  out = static_cast<T>(*number);
  return llvm::Error::success();
}

inline llvm::Error readSeconds(const llvm::json::Value &value,
                               const JsonPath &place, double &out) {
  std::optional<double> number = value.getAsNumber();
  // Written so that NaN is refused too.
  if (!number || !(*number >= 0 && *number <= maxSeconds))
    return refuseAt(place, "expects a number from 0 to {0:E0}, found {1}",
                    maxSeconds, show(value));
  out = *number;
  return llvm::Error::success();
}

inline llvm::Error readBandwidth(const llvm::json::Value &value,
                                 const JsonPath &place, double &out) {
  if (value.getAsNull()) {
    out = std::numeric_limits<double>::infinity();
    return llvm::Error::success();
  }
  std::optional<double> number = value.getAsNumber();
  if (!number || !(*number >= leastBandwidth && std::isfinite(*number)))
    return refuseAt(place,
                    "expects bytes per second, at least {0:E0}, or null for no "
                    "limit, found {1}",
                    leastBandwidth, show(value));
  out = *number;
  return llvm::Error::success();
}

inline llvm::Error readFlag(const llvm::json::Value &value,
                            const JsonPath &place, bool &out) {
  std::optional<bool> flag = value.getAsBoolean();
  if (!flag)
    return refuseAt(place, "expects true or false, found {0}", show(value));
  out = *flag;
  return llvm::Error::success();
}

/// `read(value, place)` of a key, if it is there.
template <typename Read>
llvm::Error readIfGiven(const llvm::json::Object &object, const JsonPath &place,
                        llvm::StringRef key, Read read) {
  const llvm::json::Value *value = object.get(key);
  return value ? read(*value, place.at(key)) : llvm::Error::success();
}

template <typename Read>
llvm::Error readRequired(const llvm::json::Object &object,
                         const JsonPath &place, llvm::StringRef key,
                         Read read) {
  const llvm::json::Value *value = object.get(key);
  if (!value)
    return refuseAt(place, "lacks '{0}'", key);
  return read(*value, place.at(key));
}

} // namespace pipewright::schedules::plan

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANVALUES_H
