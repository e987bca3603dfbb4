//===- Program.cpp - The lists of a Program -------------------------------===//

#include "runtime/core/Program.h"
#include "runtime/core/Hash.h"

#include <utility>

namespace pipewright::runtime {

template <typename T>
Table<T>::Table() = default;
template <typename T>
Table<T>::Table(std::initializer_list<T> rows) : std::vector<T>(rows) {}
template <typename T>
Table<T>::Table(std::vector<T> rows) : std::vector<T>(std::move(rows)) {}
template <typename T>
Table<T>::Table(const Table &other) = default;
template <typename T>
Table<T> &Table<T>::operator=(const Table &other) = default;
template <typename T>
Table<T>::~Table() = default;

uint64_t Program::planHash() const { return hashOf(planJson); }

template class Table<int64_t>;
template class Table<GroupInfo>;
template class Table<std::pair<int64_t, int64_t>>;
template class Table<StepScalar>;
template class Table<TensorInfo>;
template class Table<InputInfo>;
template class Table<OutputInfo>;
template class Table<MemoryLine>;
template class Table<RankProgram>;

} // namespace pipewright::runtime
