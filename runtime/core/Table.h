//===- Table.h - A list whose code is in the library ------------*- C++ -*-===//

#ifndef PIPEWRIGHT_RUNTIME_CORE_TABLE_H
#define PIPEWRIGHT_RUNTIME_CORE_TABLE_H

#include <initializer_list>
#include <vector>

namespace pipewright::runtime {

/// A vector whose constructors and destructor are compiled in Program.cpp for
/// the types that a Program has. A generated main.cpp, which is nothing but
/// these lists, would else spend most of its compilation on them.
template <typename T>
class Table : public std::vector<T> {
public:
  Table();
  Table(std::initializer_list<T> rows);
  Table(std::vector<T> rows);
  Table(const Table &other);
  Table &operator=(const Table &other);
  ~Table();
};

} // namespace pipewright::runtime

#endif // PIPEWRIGHT_RUNTIME_CORE_TABLE_H
