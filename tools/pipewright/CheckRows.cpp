//===- CheckRows.cpp - The options of check -------------------------------===//

#include "tools/pipewright/Check.h"
#include "tools/pipewright/ProcessMapRow.h"
#include "tools/pipewright/ShardingRows.h"

#include "passes/schedules/Refusal.h"
#include "passes/schedules/files/FilePolicy.h"

#include "llvm/Support/FormatVariadic.h"

using namespace pipewright;
using namespace pipewright::schedules;
using namespace pipewright::tool;

using enum OptionSpelling::Kind;
using Given = const OptionValues &;

static llvm::Expected<MemoryLimit> parseMemory(llvm::StringRef text) {
  std::optional<option::Amount> amount = option::readAmount(text);
  if (!amount)
    return refuse("--memory expects a number of stashes, or bytes such as 16GB "
                  "or 512MiB, but got '{0}'",
                  text);
  return MemoryLimit{amount->number, amount->isBytes, text.str()};
}

/// The layouts to judge: the one that was asked for, or, of a file in PyTorch's
/// format, all that PyTorch may run it on, the strictest first.
static llvm::Expected<std::vector<Channels>>
parseChannels(llvm::StringRef layout, llvm::StringRef buffering,
              bool isPyTorch) {
  llvm::Expected<Buffering> parsed = parseBuffering(buffering);
  if (!parsed)
    return refuse("--buffering: {0}", llvm::toString(parsed.takeError()));
  if (isPyTorch && parsed->bytes != Buffering::unlimited)
    return refuse("--buffering in bytes needs to know the sizes of messages, "
                  "which only a plan says; give a number of messages");
  std::vector<Channels> all;
  if (layout.empty() && isPyTorch) {
    for (const ChannelLayoutInfo &info : llvm::reverse(channelLayouts))
      if (!info.pytorch.empty())
        all.push_back({info.layout, *parsed});
    return all;
  }
  all.push_back({ChannelLayout::Link, *parsed});
  if (layout.empty())
    return all;
  llvm::Expected<ChannelLayout> only = parseChannelLayout(layout);
  if (!only)
    return refuse("--channels: {0}", llvm::toString(only.takeError()));
  all[0].layout = *only;
  return all;
}

static llvm::Error readFile(const OptionSpelling &row, Given given,
                            CheckOptions &options) {
  options.file = given[row.name].str();
  return options.file.empty()
             ? refuse("expects a file: pipewright check FILE.csv|plan.json")
             : llvm::Error::success();
}

static llvm::Error readWithMessages(const OptionSpelling &row, Given given,
                                    CheckOptions &options) {
  options.withMessages = given.isSet(row.name);
  return options.withMessages && options.write.empty()
             ? refuse("--with-messages goes with --write, which says where to")
             : llvm::Error::success();
}

static llvm::Error readSendWaits(const OptionSpelling &row, Given given,
                                 CheckOptions &options) {
  options.sendWaits = !given.isSet(row.name);
  return !options.sendWaits && !options.withMessages
             ? refuse("--no-send-waits goes with --with-messages")
             : llvm::Error::success();
}

static llvm::Error readChannels(const OptionSpelling &row, Given given,
                                CheckOptions &options) {
  bool isPyTorch = llvm::StringRef(options.file).ends_with_insensitive(".csv");
  llvm::Expected<std::vector<Channels>> layouts =
      parseChannels(given[row.name], given["buffering"], isPyTorch);
  if (!layouts)
    return layouts.takeError();
  options.layouts = std::move(*layouts);
  return llvm::Error::success();
}

static llvm::Error readMemory(llvm::StringRef, llvm::StringRef text,
                              CheckOptions &options) {
  llvm::Expected<MemoryLimit> limit = parseMemory(text);
  if (!limit)
    return limit.takeError();
  options.limit = std::move(*limit);
  return llvm::Error::success();
}

static llvm::Error readMachine(llvm::StringRef, llvm::StringRef text,
                               CheckOptions &options) {
  return readLinks(text, options.machine);
}

const std::vector<OptionRow<CheckOptions>> &tool::checkRows() {
  static const std::vector<OptionRow<CheckOptions>> rows =
      under<OptionRow<CheckOptions>>(
          Heading::Output,
          {{{.name = "FILE.csv|plan.json", .kind = Word}, readFile},
           {{"write", "FILE", "Write the schedule to a .csv or .json too"},
            option::file(&CheckOptions::write)},
           {{.name = "with-messages",
             .help = "Write sends and receives, too (compute_comms)",
             .kind = Flag},
            readWithMessages},
           {{.name = "no-send-waits",
             .help =
                 "Write no WAIT_SEND cells, which older PyTorch does not know",
             .kind = Flag},
            readSendWaits},
           // Read with --channels.
           {{"buffering", "N",
             "What a directed channel holds: none, a number of messages, "
             "bytes:N (NCCL ends small sends early) where the plan knows "
             "sizes, or infinite",
             "none"},
            nullptr},
           {{"channels", "LAYOUT",
             "Which messages of a rank share a queue: " +
                 namesOfChannelLayouts() +
                 "; unless given, link for a plan, and for a CSV all that "
                 "PyTorch uses"},
            readChannels},
           {{"data-parallel", "D",
             "Replicas of all ranks; what the plan says unless given"},
            option::count(&CheckOptions::replicas)},
           {processMapSpelling(
                "that of the plan, or, with hosts of --machine, pairs where "
                "stashes move between ranks, and pipelines otherwise"),
            [](const OptionSpelling &row, Given given, CheckOptions &options) {
              return readProcessMap(row, given, options.processMap);
            }},
           {zeroSpelling(),
            [](const OptionSpelling &, Given given, CheckOptions &options) {
              return readSharding(given, options.replicas.value_or(1),
                                  options.sharding);
            }},
           {zeroBuffersSpelling(), nullptr},
           {weightsSpelling(), nullptr},
           {{"machine", "NAME|FILE.json",
             "Predict with the links of a machine, as of plan, in place of "
             "those that the plan was made for, and take its memory for the "
             "limit of stashes; a plan with costs says what tasks take"},
            option::ifGiven(readMachine)},
           {{"memory", "LIMIT",
             "What a rank may keep: a number of stashes, or bytes (16GB, "
             "512MiB) where the plan has costs"},
            option::ifGiven(readMemory)}});
  return rows;
}
