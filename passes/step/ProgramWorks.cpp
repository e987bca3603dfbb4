//===- ProgramWorks.cpp - The works of rank programs ----------------------===//
//
// See ProgramWorks.h.
//
//===----------------------------------------------------------------------===//

#include "passes/step/ProgramWorks.h"

#include "passes/step/BackwardParts.h"
#include "passes/step/CostModel.h"
#include "passes/step/StepGraph.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

using namespace mlir;
using namespace pipewright;
using namespace pipewright::pipe;

namespace {

/// Reads the works of one program after the other.
class ProgramReader {
public:
  ProgramReader(const Stages &stages, int64_t ranks)
      : stages(stages), posted(ranks) {}

  void read(RankOp program);
  std::vector<schedules::Work> inOrder() const;

private:
  int32_t numberOf(const Content &content, Type type, int32_t from, int32_t to);
  double shareOf(TaskOp task, Operation *part);

  const Stages &stages;
  SymbolTableCollection kernels;
  std::vector<schedules::Work> works;
  /// What each rank posts of collectives, in its order.
  std::vector<std::vector<int32_t>> posted;
  /// The n-th parts of all members of a group are one work.
  std::map<std::pair<schedules::RankGroup, int64_t>, int32_t> groups;
  /// By what goes from where to where.
  std::map<std::tuple<std::string, int32_t, int32_t>, int32_t> messages;
};

} // namespace

int32_t ProgramReader::numberOf(const Content &content, Type type, int32_t from,
                                int32_t to) {
  auto [known, isNew] = messages.insert(
      {{content.describe(), from, to}, static_cast<int32_t>(works.size())});
  if (isNew) {
    works.push_back(describeWork(stages, content, type));
    works.back().members = {{from, 0, 0}, {to, 0, 0}};
  }
  return known->second;
}

/// Of the time of a task, by the cost model of a core: a ratio, of which that
/// is good enough.
double ProgramReader::shareOf(TaskOp task, Operation *part) {
  const MachineModel machine;
  StageOp stage = stages.stageOf(task.getStageAttr());
  const double all =
      workOf(stage.bodyOf(task.getKind())->getRegion(0), machine, kernels)
          .seconds;
  return all > 0
             ? workOf(opsRunBy(stages, part), machine, kernels).seconds / all
             : 0;
}

/// What is received, where that is of no stage edge.
static std::optional<Content> receivedBy(PostReceiveOp post,
                                         const Stages &stages) {
  for (Operation *wait : post.getResult().getUsers())
    for (OpOperand &use : wait->getResult(0).getUses())
      if (auto content = cast<StepOpInterface>(use.getOwner())
                             .getWantedContent(use, stages))
        return content;
  return std::nullopt;
}

static bool isOfEdge(const std::optional<Content> &content) {
  return !content || content->kind == Content::Kind::Result ||
         content->kind == Content::Kind::Gradient;
}

void ProgramReader::read(RankOp program) {
  auto rank = static_cast<int32_t>(program.getRank());
  std::map<schedules::RankGroup, int64_t> counts;
  // The work and the member that a post or what it makes belongs to.
  llvm::DenseMap<Value, std::pair<int32_t, size_t>> parts;
  int64_t tasks = 0;
  // How much of the last task is left, which is run in parts.
  double left = 0;
  // What was received since the last task: the next posts may be of that; what
  // collectives made, which have a queue of their own: sends may be. And what
  // was sent.
  std::vector<int32_t> received, made, sent;
  // As one more member of what a group does, which begins and ends here.
  auto join = [&](GroupOpInterface part) {
    schedules::RankGroup over = membersOf(part.getOver(), rank);
    auto [known, isNew] = groups.insert(
        {{over, counts[over]++}, static_cast<int32_t>(works.size())});
    if (isNew)
      works.push_back(describeWork(stages, part));
    posted[rank].push_back(known->second);
    works[known->second].members.push_back({rank, tasks, tasks, left});
    return known->second;
  };
  auto begin = [&](Value value, int32_t number, size_t member) {
    works[number].members[member].rank = rank;
    works[number].members[member].posted = tasks;
    parts[value] = {number, member};
  };
  auto end = [&](Value value) {
    auto part = parts.find(value);
    if (part == parts.end())
      return -1;
    works[part->second.first].members[part->second.second].waited = tasks;
    return part->second.first;
  };
  auto addNeeds = [&](int32_t number) {
    llvm::append_range(works[number].needs, received);
  };
  for (Operation &op : *program.getBody()) {
    if (auto task = dyn_cast<TaskOp>(op)) {
      ++tasks;
      left = task.getParts() ? 1 - shareOf(task, task) : 0;
      received.clear();
      made.clear();
      sent.clear();
    } else if (auto resume = dyn_cast<ResumeOp>(op)) {
      const bool isLast = resume == resume.getTask().getLastPart();
      left = isLast ? 0 : left - shareOf(resume.getTask(), resume);
    } else if (auto part = dyn_cast<GroupOpInterface>(op)) {
      int32_t number = join(part);
      if (cast<StepOpInterface>(op).isAsynchronous())
        begin(op.getResult(0), number, works[number].members.size() - 1);
      addNeeds(number);
    } else if (auto post = dyn_cast<PostSendOp>(op)) {
      auto value = cast<OpResult>(post.getValue());
      std::optional<Content> content =
          cast<StepOpInterface>(value.getOwner()).getContent(value, stages);
      if (isOfEdge(content))
        continue;
      int32_t number = numberOf(*content, value.getType(), rank,
                                static_cast<int32_t>(post.getPeer()));
      begin(post.getResult(), number, 0);
      addNeeds(number);
      if (!works[number].stash)
        llvm::append_range(works[number].needs, made);
    } else if (auto post = dyn_cast<PostReceiveOp>(op)) {
      std::optional<Content> content = receivedBy(post, stages);
      if (isOfEdge(content))
        continue;
      int32_t number =
          numberOf(*content, post.getResult().getType().getTensor(),
                   static_cast<int32_t>(post.getPeer()), rank);
      begin(post.getResult(), number, 1);
      // It may take the bytes of a stash that was sent back.
      if (works[number].stash)
        llvm::append_range(works[number].needs, sent);
    } else if (auto move = dyn_cast<MoveOp>(op)) {
      auto number = static_cast<int32_t>(works.size());
      works.push_back(describeWork(stages, move));
      works.back().members.resize(1);
      begin(move.getResult(), number, 0);
      if (auto before = parts.find(move.getValue()); before != parts.end())
        works.back().needs.push_back(before->second.first);
    } else if (auto wait = dyn_cast<WaitMoveOp>(op)) {
      end(wait.getValue());
    } else if (auto wait = dyn_cast<WaitCollectiveOp>(op)) {
      if (int32_t number = end(wait.getValue()); number >= 0)
        made.push_back(number);
    } else if (auto wait = dyn_cast<WaitSendOp>(op)) {
      int32_t number = end(wait.getPending());
      if (number >= 0 && works[number].stash)
        sent.push_back(number);
    } else if (auto wait = dyn_cast<WaitReceiveOp>(op)) {
      if (int32_t number = end(wait.getPending()); number >= 0)
        received.push_back(number);
    }
  }
}

/// Collectives first, each work behind what it needs and what its ranks post
/// before it. Programs that cannot run to their end have no order; then as they
/// were read.
std::vector<schedules::Work> ProgramReader::inOrder() const {
  // How many are to come before each, and which come behind it.
  std::vector<int64_t> unmet(works.size());
  std::vector<SmallVector<int32_t>> behind(works.size());
  auto add = [&](int32_t first, int32_t second) {
    behind[first].push_back(second);
    ++unmet[second];
  };
  for (auto [number, work] : llvm::enumerate(works))
    for (int32_t need : work.needs)
      add(need, static_cast<int32_t>(number));
  for (ArrayRef<int32_t> list : posted)
    for (auto [first, second] : llvm::zip(list, list.drop_front(!list.empty())))
      add(first, second);

  std::vector<int32_t> order, places(works.size(), -1);
  std::set<std::pair<bool, int32_t>> ready;
  auto insert = [&](int32_t work) {
    ready.insert({works[work].on != schedules::Resource::Group, work});
  };
  auto take = [&](int32_t work) {
    places[work] = static_cast<int32_t>(order.size());
    order.push_back(work);
  };
  auto all = llvm::seq<int32_t>(0, static_cast<int32_t>(works.size()));
  for (int32_t work : all)
    if (unmet[work] == 0)
      insert(work);
  while (!ready.empty()) {
    const int32_t next = ready.begin()->second;
    ready.erase(ready.begin());
    take(next);
    for (int32_t later : behind[next])
      if (--unmet[later] == 0)
        insert(later);
  }
  for (int32_t work : all)
    if (places[work] < 0)
      take(work);
  std::vector<schedules::Work> ordered;
  for (int32_t work : order) {
    ordered.push_back(works[work]);
    for (int32_t &need : ordered.back().needs)
      need = places[need];
  }
  return ordered;
}

std::vector<schedules::Work> pipewright::pipe::readWorks(ModuleOp module,
                                                         const Stages &stages,
                                                         int64_t ranks) {
  ProgramReader reader(stages, ranks);
  for (auto program : module.getOps<RankOp>())
    if (program.getMode() == StepMode::train)
      reader.read(program);
  return reader.inOrder();
}
