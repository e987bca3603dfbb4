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
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>
#include <functional>
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

/// A list, entry by entry: `read(entry, place, number)`.
template <typename Read>
llvm::Error readEach(const llvm::json::Value &value, const JsonPath &place,
                     Read read, int64_t size = -1, llvm::StringRef what = "") {
  const llvm::json::Array *list = nullptr;
  if (llvm::Error error = readArray(value, place, list, size, what))
    return error;
  for (auto [i, entry] : llvm::enumerate(*list))
    if (llvm::Error error = read(entry, place.at(i), i))
      return error;
  return llvm::Error::success();
}

/// One key of an object, and how its value is read.
struct Field {
  using Read =
      std::function<llvm::Error(const llvm::json::Value &, const JsonPath &)>;

  llvm::StringRef key;
  Read read;
  bool isRequired = false;
};

/// Reads the fields of an object in their order; it has no other keys.
inline llvm::Error readObject(const llvm::json::Value &value,
                              const JsonPath &place,
                              llvm::ArrayRef<Field> fields) {
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return refuseAt(place, "expects an object, found {0}", show(value));
  auto keys =
      llvm::map_to_vector(fields, [](const Field &field) { return field.key; });
  for (const auto &[key, unused] : *object)
    if (!llvm::is_contained(keys, llvm::StringRef(key)))
      return refuseAt(place, "does not know the key '{0}'; expects {1}",
                      text::shortened(llvm::StringRef(key), 64),
                      llvm::join(keys, ", "));
  for (const Field &field : fields) {
    const llvm::json::Value *found = object->get(field.key);
    if (!found && field.isRequired)
      return refuseAt(place, "lacks '{0}'", field.key);
    if (found)
      if (llvm::Error error = field.read(*found, place.at(field.key)))
        return error;
  }
  return llvm::Error::success();
}

inline Field required(Field field) {
  field.isRequired = true;
  return field;
}

/// How the value of a field is read into a place.
template <typename T>
Field::Read integer(T &out, Range range = {}) {
  return [&out, range](const llvm::json::Value &value, const JsonPath &at) {
    return readInteger(value, at, out, range);
  };
}
inline Field::Read seconds(double &out) {
  return [&out](const llvm::json::Value &value, const JsonPath &at) {
    return readSeconds(value, at, out);
  };
}
inline Field::Read bandwidth(double &out) {
  return [&out](const llvm::json::Value &value, const JsonPath &at) {
    return readBandwidth(value, at, out);
  };
}
inline Field::Read flag(bool &out) {
  return [&out](const llvm::json::Value &value, const JsonPath &at) {
    return readFlag(value, at, out);
  };
}

} // namespace pipewright::schedules::plan

#endif // PIPEWRIGHT_PASSES_SCHEDULES_FILES_PLANVALUES_H
