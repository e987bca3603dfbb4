//===- ProgramTests.cpp - `check` against token passing ---------*- C++ -*-===//
//
// Random programs in PyTorch's CSV, judged by reader and checker, and executed
// here cell by cell: each layout's queues, buffers and groups, in random turns
// and, where the program is small, in every possible interleaving. The two
// share nothing but the text. PIPEWRIGHT_RANDOM_PROGRAMS=1000000 makes more of
// them.
//
//===----------------------------------------------------------------------===//

#include "test/unit/schedules/ScheduleTesting.h"

#include "passes/schedules/Checker.h"
#include "passes/schedules/files/Csv.h"

#include <cstdlib>
#include <map>
#include <random>
#include <set>

using namespace pipewright::schedules;
using namespace pipewright::schedules::testing;

namespace {

using Random = std::mt19937;

int below(Random &random, size_t limit) {
  return static_cast<int>(random() % limit);
}

/// F, B; s and r with F or B (activation or gradient); w, the wait for a send.
struct Action {
  char what;
  char kind;
  int stage, microBatch;
  auto operator<=>(const Action &) const = default;
};
/// Several are a group.
using Cell = std::vector<Action>;

struct Program {
  int ranks, stages, microBatches;
  std::vector<int> rankOf;
  std::vector<std::vector<Cell>> lists;

  std::string text() const {
    std::string text;
    for (const auto &list : lists) {
      for (size_t i = 0; i < list.size(); ++i) {
        text += i > 0 ? "," : "";
        text += list[i].size() > 1 ? "(" : "";
        for (size_t k = 0; k < list[i].size(); ++k)
          text += (k > 0 ? ";" : "") + nameOf(list[i][k]);
        text += list[i].size() > 1 ? ")BATCH_P2P" : "";
      }
      text += "\n";
    }
    return text;
  }

  static std::string nameOf(const Action &action) {
    std::string word = action.what == 's'   ? "SEND_"
                       : action.what == 'r' ? "RECV_"
                       : action.what == 'w' ? "WAIT_SEND_"
                                            : "";
    return std::to_string(action.stage) + word + action.kind +
           std::to_string(action.microBatch);
  }
  /// The stage at the other end of a message.
  static int otherStage(const Action &action) {
    bool toNext = (action.kind == 'F') == (action.what != 'r');
    return action.stage + (toNext ? 1 : -1);
  }
};

/// Tasks in an order that can run, each send behind its task, each receive
/// somewhere before its consumer; then some cells change places.
Program randomProgram(Random &random) {
  Program program;
  program.ranks = 2 + below(random, 2);
  program.stages = program.ranks + below(random, 3);
  program.microBatches = 1 + below(random, 3);
  for (int stage = 0; stage < program.stages; ++stage)
    program.rankOf.push_back(
        stage < program.ranks ? stage : below(random, program.ranks));
  std::shuffle(program.rankOf.begin(), program.rankOf.end(), random);
  program.lists.resize(program.ranks);
  std::set<Action> done;
  auto isReady = [&](const Action &task) {
    auto [what, kind, stage, m] = task;
    if (done.count(task))
      return false;
    if (kind == 'F')
      return stage == 0 || done.count({'t', 'F', stage - 1, m}) > 0;
    return done.count({'t', 'F', stage, m}) > 0 &&
           (stage + 1 == program.stages ||
            done.count({'t', 'B', stage + 1, m}) > 0);
  };
  size_t all = 2 * program.stages * program.microBatches;
  while (done.size() < all) {
    Action task{'t', below(random, 2) ? 'F' : 'B',
                below(random, program.stages),
                below(random, program.microBatches)};
    if (!isReady(task))
      continue;
    done.insert(task);
    int rank = program.rankOf[task.stage];
    auto &list = program.lists[rank];
    list.push_back({task});
    Action send{'s', task.kind, task.stage, task.microBatch};
    int other = Program::otherStage(send);
    if (other < 0 || other >= program.stages || program.rankOf[other] == rank)
      continue;
    list.push_back({send});
    // Most receives come when they are sent, so that most programs are right.
    program.lists[program.rankOf[other]].push_back(
        {{'r', task.kind, other, task.microBatch}});
  }
  return program;
}

bool isTask(const Cell &cell) { return cell[0].what == 't'; }

void mutate(Program &program, Random &random) {
  auto &list = program.lists[below(random, program.ranks)];
  if (list.size() < 2)
    return;
  size_t i = below(random, list.size() - 1);
  switch (below(random, 8)) {
  case 0: { // Receives right before their consumers.
    std::vector<Cell> moved;
    for (const Cell &cell : list) {
      if (cell.size() == 1 && cell[0].what == 'r')
        continue;
      for (const Cell &receive : list)
        if (receive.size() == 1 && receive[0].what == 'r' && isTask(cell) &&
            receive[0].kind == cell[0].kind &&
            receive[0].stage == cell[0].stage &&
            receive[0].microBatch == cell[0].microBatch)
          moved.push_back(receive);
      moved.push_back(cell);
    }
    if (moved.size() == list.size())
      list = moved;
    break;
  }
  case 1: // A send that blocks.
    if (list[i].size() == 1 && list[i][0].what == 's') {
      Action wait = list[i][0];
      wait.what = 'w';
      for (const Cell &cell : list)
        if (cell[0] == wait)
          return;
      list.insert(list.begin() + i + 1 + below(random, list.size() - i),
                  {wait});
    }
    break;
  case 2:
  case 3: // A group.
    if (!isTask(list[i]) && !isTask(list[i + 1]) && list[i][0].what != 'w' &&
        list[i + 1][0].what != 'w') {
      list[i].insert(list[i].end(), list[i + 1].begin(), list[i + 1].end());
      list.erase(list.begin() + i + 1);
    }
    break;
  case 4:
    if (below(random, 10) == 0)
      list.erase(list.begin() + i);
    break;
  default: // Neighbours change places, where it is not plainly wrong.
    if (!isTask(list[i]) || !isTask(list[i + 1]) || below(random, 4) == 0)
      std::swap(list[i], list[i + 1]);
    break;
  }
}

/// Executes a program; copied to try another interleaving.
class Execution {
public:
  Execution(const Program &program, ChannelLayout layout, int64_t buffers)
      : program(&program), layout(layout), buffers(buffers), at(program.ranks) {
  }

  bool isWrong() const { return wrong; }
  /// Moves that are possible: a rank's next cell, or a message.
  std::vector<int> moves() const {
    std::vector<int> moves;
    for (int rank = 0; rank < program->ranks; ++rank)
      if (canStep(rank))
        moves.push_back(rank);
    for (size_t i = 0; i < posts.size(); ++i)
      if (canMove(i))
        moves.push_back(program->ranks + static_cast<int>(i));
    return moves;
  }
  void make(int move) {
    if (move < program->ranks)
      step(move);
    else
      moveMessage(move - program->ranks);
  }
  bool isAtEnd() const {
    for (int rank = 0; rank < program->ranks; ++rank)
      if (at[rank] < program->lists[rank].size())
        return false;
    for (const Post &post : posts)
      if (!hasLeft(post))
        return false;
    return computed.size() ==
           size_t(2 * program->stages) * program->microBatches;
  }
  /// What tells two states apart.
  std::vector<int64_t> key() const {
    std::vector<int64_t> key(at.begin(), at.end());
    std::map<Action, int> moved;
    for (const Post &post : posts)
      moved[post.action] = post.moved;
    for (const auto &[action, isMoved] : moved)
      key.push_back(isMoved);
    return key;
  }

private:
  struct Post {
    Action action;
    int rank, peer;
    /// The cell, which with the queue says what starts together.
    size_t cell;
    bool moved = false;
  };

  bool isOut(const Post &post) const { return post.action.what == 's'; }
  std::vector<int> queueOf(const Post &post) const {
    switch (layout) {
    case ChannelLayout::Link:
      return {post.rank, post.peer, isOut(post)};
    case ChannelLayout::Pair:
      return {post.rank, post.peer};
    case ChannelLayout::Direction:
      return {post.rank, post.action.kind};
    case ChannelLayout::Rank:
      return {post.rank};
    }
    return {};
  }
  /// Messages of a channel keep their order.
  std::vector<int> channelOf(const Post &post) const {
    std::vector<int> channel = {isOut(post) ? post.rank : post.peer,
                                isOut(post) ? post.peer : post.rank};
    if (layout == ChannelLayout::Direction)
      channel.push_back(post.action.kind);
    return channel;
  }
  bool isTogether(const Post &a, const Post &b) const {
    return a.rank == b.rank && a.cell == b.cell && queueOf(a) == queueOf(b);
  }
  bool hasLeft(const Post &post) const {
    for (const Post &other : posts)
      if (isTogether(post, other) && !other.moved)
        return false;
    return true;
  }
  /// All before it in its queue has left, and of its own channel all before it
  /// has moved.
  bool isAtHead(size_t number) const {
    const Post &post = posts[number];
    for (size_t i = 0; i < number; ++i) {
      const Post &other = posts[i];
      if (other.rank != post.rank || other.moved)
        continue;
      bool isSameEnd =
          isOut(other) == isOut(post) && channelOf(other) == channelOf(post);
      if (isSameEnd ||
          (queueOf(other) == queueOf(post) && !isTogether(other, post)))
        return false;
    }
    return !post.moved;
  }
  int64_t countMoved(const Post &like, bool out) const {
    int64_t count = 0;
    for (const Post &post : posts)
      count += post.moved && isOut(post) == out &&
               channelOf(post) == channelOf(like);
    return count;
  }
  int partnerOf(size_t number) const {
    for (size_t i = 0; i < posts.size(); ++i)
      if (isOut(posts[i]) != isOut(posts[number]) &&
          channelOf(posts[i]) == channelOf(posts[number]) && isAtHead(i))
        return static_cast<int>(i);
    return -1;
  }
  bool canMove(size_t number) const {
    if (!isAtHead(number))
      return false;
    if (buffers == 0)
      return isOut(posts[number]) && partnerOf(number) >= 0;
    int64_t held =
        countMoved(posts[number], true) - countMoved(posts[number], false);
    return isOut(posts[number]) ? held < buffers : held > 0;
  }
  void moveMessage(size_t number) {
    std::vector<Action> &order = sent[channelOf(posts[number])];
    auto take = [&](Post &receive) {
      const Action &action = order[countMoved(receive, false)];
      wrong |= action.kind != receive.action.kind ||
               action.microBatch != receive.action.microBatch ||
               Program::otherStage(action) != receive.action.stage;
      receive.moved = true;
    };
    if (!isOut(posts[number])) {
      take(posts[number]);
      return;
    }
    order.push_back(posts[number].action);
    int partner = buffers == 0 ? partnerOf(number) : -1;
    posts[number].moved = true;
    if (partner >= 0)
      take(posts[partner]);
  }

  const Post *find(const Action &action) const {
    for (const Post &post : posts)
      if (post.action == action)
        return &post;
    return nullptr;
  }
  /// The receive that a task needs; none where it needs none.
  std::optional<Action> receiveOf(const Action &task) const {
    Action receive = task;
    receive.what = 'r';
    int other = Program::otherStage(receive);
    if (other < 0 || other >= program->stages ||
        program->rankOf[other] == program->rankOf[task.stage])
      return std::nullopt;
    return receive;
  }

  bool canStep(int rank) const {
    const auto &list = program->lists[rank];
    if (wrong || at[rank] == list.size())
      return false;
    const Action &action = list[at[rank]][0];
    if (action.what == 't') {
      std::optional<Action> receive = receiveOf(action);
      const Post *post = receive ? find(*receive) : nullptr;
      return !post || hasLeft(*post);
    }
    if (action.what == 'w') {
      Action send = action;
      send.what = 's';
      const Post *post = find(send);
      return !post || hasLeft(*post);
    }
    return true;
  }

  void step(int rank) {
    size_t number = at[rank]++;
    for (const Action &action : program->lists[rank][number]) {
      if (action.what == 't')
        compute(action);
      else if (action.what != 'w')
        post(rank, number, action);
    }
  }
  void compute(const Action &task) {
    auto [what, kind, stage, m] = task;
    std::optional<Action> receive = receiveOf(task);
    wrong |= receive && !find(*receive);
    if (kind == 'B') {
      wrong |= !computed.count({'t', 'F', stage, m});
      wrong |= !receive && stage + 1 < program->stages &&
               !computed.count({'t', 'B', stage + 1, m});
    } else {
      wrong |=
          !receive && stage > 0 && !computed.count({'t', 'F', stage - 1, m});
    }
    computed.insert(task);
  }
  void post(int rank, size_t cell, const Action &action) {
    Action task{'t', action.kind, action.stage, action.microBatch};
    wrong |= action.what == 's' && !computed.count(task);
    posts.push_back(
        {action, rank, program->rankOf[Program::otherStage(action)], cell});
  }

  const Program *program;
  ChannelLayout layout;
  int64_t buffers;
  std::vector<size_t> at;
  std::vector<Post> posts;
  std::map<std::vector<int>, std::vector<Action>> sent;
  std::set<Action> computed;
  bool wrong = false;
};

bool succeeds(Execution execution, Random &random) {
  while (!execution.isWrong()) {
    std::vector<int> moves = execution.moves();
    if (moves.empty())
      return execution.isAtEnd();
    execution.make(moves[below(random, moves.size())]);
  }
  return false;
}

/// Counts interleavings that end well and those that do not, up to a number of
/// states.
struct Interleavings {
  std::set<std::vector<int64_t>> seen;
  bool anyGood = false, anyBad = false;

  void explore(const Execution &execution) {
    if (seen.size() > 3000 || !seen.insert(execution.key()).second)
      return;
    std::vector<int> moves = execution.moves();
    if (execution.isWrong() || moves.empty()) {
      bool isGood = !execution.isWrong() && execution.isAtEnd();
      (isGood ? anyGood : anyBad) = true;
      return;
    }
    for (int move : moves) {
      Execution next = execution;
      next.make(move);
      explore(next);
    }
  }
};

std::string verdictOf(const std::string &text, const Channels &channels) {
  llvm::Expected<CsvSchedule> csv = parseCsv(text, "program.csv");
  if (!csv)
    return llvm::toString(csv.takeError());
  std::string message = messageOf(checkSchedule(csv->schedule));
  if (message.empty() && csv->hasMessages())
    message = messageOf(checkDataFlow(csv->schedule, csv->lists));
  if (message.empty() && csv->hasMessages())
    message = messageOf(checkInstructions(csv->lists, channels));
  return message;
}

} // namespace

TEST(Programs, AreJudgedAsTheyRun) {
  Random random(3);
  const char *asked = std::getenv("PIPEWRIGHT_RANDOM_PROGRAMS");
  int64_t rounds = asked ? std::atoll(asked) : 10000;
  const Buffering bufferings[] = {Buffering::none(), Buffering::none(),
                                  Buffering{1}, Buffering::infinite()};
  int64_t accepted = 0, deadlocks = 0, differ = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    Program program = randomProgram(random);
    for (int n = below(random, 8); n > 0; --n)
      mutate(program, random);
    std::string text = program.text();
    Buffering buffering = bufferings[below(random, std::size(bufferings))];
    std::set<bool> verdicts;
    for (const ChannelLayoutInfo &info : channelLayouts) {
      Channels channels{info.layout, buffering};
      std::string message = verdictOf(text, channels);
      Execution start(program, info.layout, buffering.messages);
      bool isRight = succeeds(start, random);
      ASSERT_EQ(isRight, message.empty())
          << "round " << round << ", " << describe(channels) << ": " << message
          << "\n"
          << text;
      accepted += isRight;
      deadlocks += llvm::StringRef(message).starts_with("deadlock ");
      verdicts.insert(isRight);
      if (round % 20 == 0 && program.microBatches == 1) {
        Interleavings all;
        all.explore(start);
        EXPECT_FALSE(all.anyGood && all.anyBad) << text;
        EXPECT_FALSE(isRight ? all.anyBad : all.anyGood) << text;
      }
    }
    differ += verdicts.size() == 2;
  }
  // The comparison means something only if all three happen often.
  EXPECT_GT(accepted, rounds / 2);
  EXPECT_GT(deadlocks, rounds / 20);
  EXPECT_GT(differ, rounds / 50);
}
