//===- Fields.h - Fields of shapes by their names --------------*- C++ -*-===//
//
// The compiler fills these structs itself and writes them as designated
// initializers. Names and values come from one list of fields, so that a name
// that no field has, or a field that the list forgets, fails to compile when
// Pipewright is built, and not when a program is.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_RUNTIME_CALLS_FIELDS_H
#define PIPEWRIGHT_RUNTIME_CALLS_FIELDS_H

#include "runtime/core/ElementType.h"

#include <cstddef>
#include <string_view>
#include <variant>

namespace pipewright::runtime {

/// What a field of a shape can be.
using FieldValue = std::variant<int64_t, bool, float, ElementType>;

/// Stands for a value of any field.
struct AnyValue {
  template <class Value>
  operator Value() const;
};

/// How many fields an aggregate has: how many values can initialize it.
template <class Shape, class... Values>
constexpr size_t countFields() {
  if constexpr (requires { Shape{Values()..., AnyValue()}; })
    return countFields<Shape, Values..., AnyValue>();
  else
    return sizeof...(Values);
}

/// Takes the first name off a list that commas separate.
inline std::string_view takeName(std::string_view &names) {
  const std::string_view name = names.substr(0, names.find(','));
  names.remove_prefix(names.size() == name.size() ? name.size()
                                                  : name.size() + 2);
  return name;
}

template <class Shape, class Visit, class... Values>
void visitNamed(const Shape &, std::string_view names, Visit &visit,
                const Values &...values) {
  static_assert(sizeof...(Values) == countFields<Shape>(),
                "PIPEWRIGHT_FIELDS lists every field of the shape");
  (visit(takeName(names), values), ...);
}

/// At the end of a shape: `visitFields(visit)` calls `visit(name, value)` for
/// each field. All fields, in the order in which they are declared.
#define PIPEWRIGHT_FIELDS(...)                                                 \
  template <class Visit>                                                       \
  void visitFields(Visit visit) const {                                        \
    visitNamed(*this, #__VA_ARGS__, visit, __VA_ARGS__);                       \
  }

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CALLS_FIELDS_H
