//===- Channels.cpp - How messages between ranks queue ----------*- C++ -*-===//
//
// The names of layouts and bufferings, read and written.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Channels.h"

#include "passes/schedules/Story.h"

using namespace pipewright::schedules;

llvm::StringRef pipewright::schedules::nameOf(ChannelLayout layout) {
  switch (layout) {
  case ChannelLayout::Link:
    return "link";
  case ChannelLayout::Direction:
    return "direction";
  case ChannelLayout::Rank:
    return "rank";
  }
  return "unknown";
}

llvm::Expected<ChannelLayout>
pipewright::schedules::parseChannelLayout(llvm::StringRef text) {
  for (ChannelLayout layout :
       {ChannelLayout::Link, ChannelLayout::Direction, ChannelLayout::Rank})
    if (text == nameOf(layout))
      return layout;
  return refuse("expects channels per link, direction or rank, but got '{0}'",
                text);
}

std::string pipewright::schedules::nameOf(Buffering buffering) {
  if (buffering == Buffering::none())
    return "none";
  return buffering == Buffering::infinite()
             ? "infinite"
             : std::to_string(buffering.messages);
}

llvm::Expected<Buffering>
pipewright::schedules::parseBuffering(llvm::StringRef text) {
  if (text == "none")
    return Buffering::none();
  if (text == "infinite")
    return Buffering::infinite();
  int64_t messages = 0;
  if (text.getAsInteger(10, messages) || messages < 0)
    return refuse("expects buffering of none, infinite or a number of messages "
                  "of at least 0, but got '{0}'",
                  text);
  return Buffering{messages};
}

std::string pipewright::schedules::describe(const Channels &channels) {
  int64_t messages = channels.buffering.messages;
  std::string text;
  if (messages == 0)
    text = "without buffering";
  else if (channels.buffering == Buffering::infinite())
    text = "with unlimited buffering";
  else
    text = llvm::formatv("with {0} message{1} buffered", messages,
                         messages == 1 ? "" : "s");
  if (channels.layout == ChannelLayout::Direction)
    text += ", one queue per rank and direction";
  else if (channels.layout == ChannelLayout::Rank)
    text += ", one queue per rank";
  return text;
}
