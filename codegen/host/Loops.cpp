//===- Loops.cpp - Lists that repeat themselves as loops ------------------===//
//
// First runs are found: places where calls look like those `period` statements
// later, and counters advance evenly. Those that save the most lines become
// loops. Then buffers are named: what differs from iteration to iteration is an
// element of an array, whose index follows from the iteration.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Loops.h"

#include "codegen/host/Repetitions.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

using llvm::ArrayRef;

namespace pipewright::codegen {

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

namespace {

/// Statements from `begin` on of which each looks like the one `period` before.
struct Run {
  size_t begin, end, period;

  size_t iterations() const { return (end - begin) / period; }
  size_t saved() const { return period * (iterations() - 1); }
  /// Of three iterations on; shorter ones read better as they are.
  bool isWorthwhile() const { return iterations() >= 3 && saved() >= 8; }
  /// The part that lies in other bounds, perhaps nothing.
  Run within(size_t from, size_t to) const {
    size_t first = std::max(begin, from);
    return {first, std::max(first, std::min(end, to)), period};
  }
};

/// Finds all runs in a list.
class RunFinder {
public:
  explicit RunFinder(ArrayRef<Statement> body);

  std::vector<Run> find() const;

private:
  /// Longer iterations are no loops that one would read.
  static constexpr size_t kLongestPeriod = 512;

  void addRuns(size_t period, std::vector<Run> &runs) const;
  bool advancesEvenly(size_t statement, size_t period) const;

  /// Statements with the same number differ in counters and in which buffers
  /// of families they name, at most.
  std::vector<size_t> shapes;
  std::vector<std::vector<int64_t>> counters;
};

} // namespace

static std::vector<int64_t> countersOf(const CallStatement &statement) {
  std::vector<int64_t> numbers;
  forEachWord(statement, [&](const Token &word) {
    if (auto *counter = std::get_if<Counter>(&word))
      numbers.push_back(counter->value.first);
  });
  return numbers;
}

RunFinder::RunFinder(ArrayRef<Statement> body) : counters(body.size()) {
  std::map<std::string, size_t> known;
  for (auto [index, statement] : llvm::enumerate(body)) {
    auto *call = std::get_if<CallStatement>(&statement);
    // Everything else is like nothing.
    std::string shape = call ? shapeOf(*call) : '\0' + std::to_string(index);
    shapes.push_back(known.emplace(shape, known.size()).first->second);
    if (call)
      counters[index] = countersOf(*call);
  }
}

/// Whether the counters of a statement and of the two that follow it in the
/// next iterations are equally far apart.
bool RunFinder::advancesEvenly(size_t statement, size_t period) const {
  auto &first = counters[statement], &second = counters[statement + period],
       &third = counters[statement + 2 * period];
  for (size_t i = 0; i < first.size(); ++i)
    if (second[i] - first[i] != third[i] - second[i])
      return false;
  return true;
}

void RunFinder::addRuns(size_t period, std::vector<Run> &runs) const {
  Run run = {0, period, period};
  auto next = [&](size_t begin, size_t end) {
    if (run.isWorthwhile())
      runs.push_back(run);
    run = {begin, end, period};
  };
  for (size_t at = 0; at + period < shapes.size(); ++at) {
    size_t end = at + period + 1;
    if (shapes[at] != shapes[at + period])
      next(at + 1, end);
    else if (at >= run.begin + period && !advancesEvenly(at - period, period))
      next(at - period + 1, end);
    else
      run.end = end;
  }
  next(0, 0);
}

std::vector<Run> RunFinder::find() const {
  std::vector<Run> runs;
  size_t longest = std::min(kLongestPeriod, shapes.size() / 3);
  for (size_t period = 1; period <= longest; ++period)
    addRuns(period, runs);
  return runs;
}

/// Chooses runs that do not overlap, in the order of the list: that which saves
/// most lines first, then others in front of it and behind it.
static void chooseRuns(ArrayRef<Run> runs, size_t begin, size_t end,
                       std::vector<Run> &chosen) {
  Run best = {begin, begin, 1};
  size_t saved = 0;
  for (const Run &run : runs) {
    Run part = run.within(begin, end);
    if (!part.isWorthwhile() || part.saved() <= saved)
      continue;
    best = part;
    saved = part.saved();
  }
  if (saved == 0)
    return;
  // What is no whole iteration is left for the rest.
  best.end = best.begin + best.period * best.iterations();
  chooseRuns(runs, begin, best.begin, chosen);
  chosen.push_back(best);
  chooseRuns(runs, best.end, end, chosen);
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

namespace {

/// An array of numbers in no simple order; a cycle begins again at its end.
struct Order {
  std::string name;
  std::vector<int64_t> numbers;
  bool isCycle;
};

} // namespace

/// The numbers as a progression, perhaps one that begins again at 0 behind the
/// largest of them.
static std::optional<Progression> progressionOf(ArrayRef<int64_t> numbers) {
  int64_t step = numbers[1] - numbers[0];
  int64_t modulus = *llvm::max_element(numbers) + 1;
  for (const Progression &progression :
       {Progression{numbers[0], step},
        Progression{numbers[0], (step + modulus) % modulus, modulus}})
    if (llvm::all_of(llvm::enumerate(numbers), [&](auto number) {
          return progression.at(number.index()) == number.value();
        }))
      return progression;
  return std::nullopt;
}

/// After how many numbers they begin again; all of them where they do not.
static size_t cycleOf(ArrayRef<int64_t> numbers) {
  for (size_t cycle = 1; cycle <= numbers.size() / 2; ++cycle)
    if (numbers.drop_front(cycle) == numbers.drop_back(cycle))
      return cycle;
  return numbers.size();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {

/// Writes a function's body again, with loops.
class LoopWriter {
public:
  LoopWriter(const Function &function, std::vector<Run> runs)
      : function(function), runs(std::move(runs)), arrays(function) {}

  std::vector<Statement> write();

private:
  const CallStatement &call(size_t index) const {
    return std::get<CallStatement>(function.body[index]);
  }
  /// The indices of buffers of families that a statement of a run names, in all
  /// iterations; none for other words.
  std::vector<std::vector<int64_t>> indicesOf(const Run &run, size_t offset);
  bool isSimple(const Run &run);
  void peel(Run &run);
  void findArrays(const Run &run);
  Element inOrder(const std::string &array, ArrayRef<int64_t> indices);
  /// A statement of the first iteration, as it stands in the loop.
  CallStatement repeat(const Run &run, size_t offset);
  Loop loopOf(const Run &run);

  const Function &function;
  std::vector<Run> runs;
  BufferArrays arrays;
  std::vector<Order> orders;
};

} // namespace

std::vector<std::vector<int64_t>> LoopWriter::indicesOf(const Run &run,
                                                        size_t offset) {
  std::vector<std::vector<int64_t>> indices;
  for (size_t at = run.begin + offset; at < run.end; at += run.period) {
    std::vector<const Token *> words = wordsOf(call(at));
    indices.resize(words.size());
    for (auto [word, numbers] : llvm::zip_equal(words, indices))
      if (arrays.isInFamily(*word))
        numbers.push_back(arrays.indexOf(*word));
  }
  return indices;
}

/// Whether indices follow from the number of the iteration.
bool LoopWriter::isSimple(const Run &run) {
  for (size_t offset = 0; offset < run.period; ++offset)
    for (const auto &indices : indicesOf(run, offset))
      if (!indices.empty() && !progressionOf(indices))
        return false;
  return true;
}

/// Leaves out first or last iterations where the others are simple then: often
/// buffers only fall into their pattern.
void LoopWriter::peel(Run &run) {
  static constexpr std::pair<size_t, size_t> trials[] = {
      {0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1}};
  for (auto [first, last] : trials) {
    if (run.iterations() < first + last + 3)
      continue;
    Run part =
        run.within(run.begin + first * run.period, run.end - last * run.period);
    if (!isSimple(part))
      continue;
    run = part;
    return;
  }
}

/// Families of which a run names different buffers in one place become arrays.
void LoopWriter::findArrays(const Run &run) {
  for (size_t at = run.begin; at + run.period < run.end; ++at)
    for (auto [word, next] :
         llvm::zip_equal(wordsOf(call(at)), wordsOf(call(at + run.period))))
      if (arrays.isInFamily(*word) && *word != *next)
        arrays.declareFamily(*word);
}

/// The element of an array with these indices, one for each iteration.
Element LoopWriter::inOrder(const std::string &array,
                            ArrayRef<int64_t> indices) {
  size_t cycle = cycleOf(indices);
  bool isCycle = cycle < indices.size();
  std::vector<int64_t> wanted = indices.take_front(cycle).vec();
  auto use = [&](const Order &order, int64_t first) -> Element {
    int64_t modulus = isCycle ? cycle : 0;
    return {array, order.name, {first, 1, modulus}};
  };
  // Perhaps they are part of another order, which may begin elsewhere.
  for (const Order &order : orders) {
    if (order.isCycle != isCycle || (isCycle && order.numbers.size() != cycle))
      continue;
    std::vector<int64_t> numbers = order.numbers;
    if (isCycle)
      llvm::append_range(numbers, order.numbers);
    auto at = std::search(numbers.begin(), numbers.end(), wanted.begin(),
                          wanted.end());
    if (at != numbers.end())
      return use(order, at - numbers.begin());
  }
  orders.push_back({arrays.unique("order"), std::move(wanted), isCycle});
  return use(orders.back(), 0);
}

CallStatement LoopWriter::repeat(const Run &run, size_t offset) {
  CallStatement statement = call(run.begin + offset);
  std::vector<const Token *> second =
      wordsOf(call(run.begin + run.period + offset));
  std::vector<std::vector<int64_t>> indices = indicesOf(run, offset);
  size_t position = 0;
  forEachWord(statement, [&](Token &word) {
    size_t at = position++;
    if (auto *counter = std::get_if<Counter>(&word)) {
      Progression &value = counter->value;
      value.step = std::get<Counter>(*second[at]).value.first - value.first;
    }
    const std::string *array = arrays.arrayOf(word);
    if (!array)
      return;
    std::optional<Progression> simple = progressionOf(indices[at]);
    bool isComment = at + statement.trailingComment.size() >= second.size();
    if (simple)
      word = Element(*array, "", *simple);
    else if (isComment)
      word = *array;
    else
      word = inOrder(*array, indices[at]);
  });
  return statement;
}

/// Goes over micro-batches if they advance, else it only counts.
Loop LoopWriter::loopOf(const Run &run) {
  Loop loop = {"i", 0, 1, static_cast<int64_t>(run.iterations()), {}};
  bool hasMicroBatch = false;
  for (size_t offset = 0; offset < run.period; ++offset) {
    loop.body.push_back(repeat(run, offset));
    forEachWord(loop.body.back(), [&](const Token &word) {
      auto *counter = std::get_if<Counter>(&word);
      if (!counter || counter->kind != Counter::Kind::MicroBatch ||
          counter->value.step <= 0 || hasMicroBatch)
        return;
      hasMicroBatch = true;
      loop.variable = "microBatch";
      loop.begin = counter->value.first;
      loop.step = counter->value.step;
    });
  }
  return loop;
}

std::vector<Statement> LoopWriter::write() {
  llvm::for_each(runs, [&](Run &run) { peel(run); });
  for (const Run &run : runs)
    findArrays(run);
  std::vector<Statement> calls;
  auto run = runs.begin();
  for (size_t at = 0; at < function.body.size();) {
    if (run != runs.end() && run->begin == at) {
      calls.push_back(loopOf(*run));
      at = (run++)->end;
    } else if (auto *call = std::get_if<CallStatement>(&function.body[at++])) {
      calls.push_back(arrays.withElements(*call));
    }
  }
  std::vector<Statement> body = arrays.declarations();
  for (const Order &order : orders) {
    ValueTable table = {"int64_t", order.name, {}};
    for (int64_t number : order.numbers)
      table.values.push_back(std::to_string(number));
    body.push_back(std::move(table));
  }
  body.push_back(BlankLine());
  llvm::append_range(body, calls);
  return body;
}

bool foldLoops(Function &function) {
  std::vector<Run> runs = RunFinder(function.body).find(), chosen;
  chooseRuns(runs, 0, function.body.size(), chosen);
  if (chosen.empty())
    return false;
  function.body = LoopWriter(function, chosen).write();
  return true;
}

} // namespace pipewright::codegen
