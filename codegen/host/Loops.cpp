//===- Loops.cpp - Lists that repeat themselves as loops ------------------===//
//
// First runs are found: places where calls look like those `period` statements
// later, and counters advance evenly. Those that save the most lines become
// loops. Then buffers are named: what differs from iteration to iteration is an
// element of an array, whose index follows from the iteration.
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Loops.h"

#include "codegen/host/Identifiers.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using llvm::ArrayRef;
using llvm::StringRef;

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

/// Text that is the same for statements of the same shape.
static std::string shapeOf(const CallStatement &statement) {
  std::string shape = statement.call.callee;
  auto add = [&](char kind, const std::string &text) {
    shape += '\0';
    shape += kind;
    shape += text;
  };
  forEachWord(statement, [&](const Word &word) {
    if (auto *local = std::get_if<Local>(&word))
      local->family().empty() ? add('L', local->name())
                              : add('F', local->family());
    else if (auto *counter = std::get_if<Counter>(&word))
      add('C', std::to_string(static_cast<int>(counter->of)));
    else
      add('T', std::get<std::string>(word));
  });
  return shape;
}

static std::vector<int64_t> countersOf(const CallStatement &statement) {
  std::vector<int64_t> numbers;
  forEachWord(statement, [&](const Word &word) {
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
// Arrays
//===----------------------------------------------------------------------===//

namespace {

/// Buffers that are one array, if they differ from iteration to iteration.
struct Family {
  llvm::StringMap<int64_t> indices;
  /// As initializers.
  std::vector<std::string> places;
  /// The name of the array; empty while there is none.
  std::string array;
};

/// An array of numbers in no simple order; a cycle begins again at its end.
struct Order {
  std::string name;
  std::vector<int64_t> numbers;
  bool isCycle;
};

/// The arrays of a function.
class Arrays {
public:
  explicit Arrays(const Function &function);

  /// Null where the local is the only one of its kind.
  Family *familyOf(const Word &word);
  /// Makes the family an array.
  void declare(Family &family, StringRef name);
  /// What has these indices, one for each iteration.
  Element element(const Family &family, ArrayRef<int64_t> indices);
  const std::vector<Order> &allOrders() const { return orders; }

private:
  NameScope names;
  llvm::StringMap<Family> families;
  std::vector<Order> orders;
};

} // namespace

Arrays::Arrays(const Function &function) {
  for (const Statement &statement : function.body) {
    auto *declared = std::get_if<BufferDeclaration>(&statement);
    if (!declared)
      continue;
    names.unique(declared->buffer.name());
    Family &family = families[declared->buffer.family()];
    family.indices[declared->buffer.name()] = family.places.size();
    family.places.push_back("{" + std::to_string(declared->offset) + ", " +
                            std::to_string(declared->bytes) + "}");
  }
}

Family *Arrays::familyOf(const Word &word) {
  auto *local = std::get_if<Local>(&word);
  if (!local || local->family().empty())
    return nullptr;
  return &families.find(local->family())->second;
}

void Arrays::declare(Family &family, StringRef name) {
  if (family.array.empty())
    family.array = names.unique((name + "_of").str());
}

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

Element Arrays::element(const Family &family, ArrayRef<int64_t> indices) {
  if (std::optional<Progression> simple = progressionOf(indices))
    return {family.array, "", *simple};
  size_t cycle = cycleOf(indices);
  bool isCycle = cycle < indices.size();
  std::vector<int64_t> wanted = indices.take_front(cycle).vec();
  auto use = [&](const Order &order, int64_t first) -> Element {
    int64_t modulus = isCycle ? cycle : 0;
    return {family.array, order.name, {first, 1, modulus}};
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
  orders.push_back({names.unique("order"), std::move(wanted), isCycle});
  return use(orders.back(), 0);
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
  /// A statement of the first iteration, as it stands in the loop.
  CallStatement repeat(const Run &run, size_t offset);
  Loop loopOf(const Run &run);
  /// A statement that is in no loop.
  CallStatement once(CallStatement statement);
  std::vector<Statement> declarations();

  const Function &function;
  std::vector<Run> runs;
  Arrays arrays;
};

} // namespace

static std::vector<const Word *> wordsOf(const CallStatement &statement) {
  std::vector<const Word *> words;
  forEachWord(statement, [&](const Word &word) { words.push_back(&word); });
  return words;
}

std::vector<std::vector<int64_t>> LoopWriter::indicesOf(const Run &run,
                                                        size_t offset) {
  std::vector<std::vector<int64_t>> indices;
  for (size_t at = run.begin + offset; at < run.end; at += run.period) {
    std::vector<const Word *> words = wordsOf(call(at));
    indices.resize(words.size());
    for (auto [word, numbers] : llvm::zip_equal(words, indices))
      if (Family *family = arrays.familyOf(*word))
        numbers.push_back(
            family->indices.lookup(std::get<Local>(*word).name()));
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
      if (Family *family = arrays.familyOf(*word); family && *word != *next)
        arrays.declare(*family, std::get<Local>(*word).family());
}

CallStatement LoopWriter::repeat(const Run &run, size_t offset) {
  CallStatement statement = call(run.begin + offset);
  std::vector<const Word *> second =
      wordsOf(call(run.begin + run.period + offset));
  std::vector<std::vector<int64_t>> indices = indicesOf(run, offset);
  size_t position = 0;
  forEachWord(statement, [&](Word &word) {
    size_t at = position++;
    if (auto *counter = std::get_if<Counter>(&word)) {
      Progression &value = counter->value;
      value.step = std::get<Counter>(*second[at]).value.first - value.first;
    }
    Family *family = arrays.familyOf(word);
    if (family && !family->array.empty())
      word = arrays.element(*family, indices[at]);
  });
  return statement;
}

/// Goes over micro-batches if they advance, else it only counts.
Loop LoopWriter::loopOf(const Run &run) {
  Loop loop = {"i", 0, 1, static_cast<int64_t>(run.iterations()), {}};
  bool hasMicroBatch = false;
  for (size_t offset = 0; offset < run.period; ++offset) {
    loop.body.push_back(repeat(run, offset));
    forEachWord(loop.body.back(), [&](const Word &word) {
      auto *counter = std::get_if<Counter>(&word);
      if (!counter || counter->of != Counter::Of::MicroBatch ||
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

CallStatement LoopWriter::once(CallStatement statement) {
  forEachWord(statement, [&](Word &word) {
    Family *family = arrays.familyOf(word);
    if (!family || family->array.empty())
      return;
    int64_t index = family->indices.lookup(std::get<Local>(word).name());
    word = Element(family->array, "", {index});
  });
  return statement;
}

/// What is declared in front of the calls: arrays in place of their buffers.
std::vector<Statement> LoopWriter::declarations() {
  std::vector<Statement> all;
  for (const Statement &statement : function.body) {
    auto *declared = std::get_if<BufferDeclaration>(&statement);
    if (!declared)
      continue;
    Family *family = arrays.familyOf(declared->buffer);
    if (!family || family->array.empty())
      all.push_back(*declared);
    // The first one stands for all.
    else if (family->indices.lookup(declared->buffer.name()) == 0)
      all.push_back(ValueTable{"Buffer", family->array, family->places});
  }
  for (const Order &order : arrays.allOrders()) {
    ValueTable table = {"int64_t", order.name, {}};
    for (int64_t number : order.numbers)
      table.values.push_back(std::to_string(number));
    all.push_back(std::move(table));
  }
  return all;
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
      calls.push_back(once(*call));
    }
  }
  std::vector<Statement> body = declarations();
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
