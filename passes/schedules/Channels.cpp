//===- Channels.cpp - How messages between ranks queue ----------*- C++ -*-===//
//
// The names of layouts and bufferings, read and written.
//
//===----------------------------------------------------------------------===//

#include "passes/schedules/Channels.h"

#include "passes/schedules/Refusal.h"
#include "support/Text.h"

#include "llvm/ADT/SmallVectorExtras.h"

#include <iterator>

using namespace pipewright::schedules;

// `infoOf` looks layouts up by number.
static_assert([] {
  for (unsigned i = 0; i < std::size(channelLayouts); ++i)
    if (static_cast<unsigned>(channelLayouts[i].layout) != i)
      return false;
  return true;
}());

static constexpr llvm::StringLiteral bytesPrefix = "bytes:";

std::string pipewright::schedules::namesOfChannelLayouts() {
  return text::listOf(llvm::map_to_vector(
      channelLayouts, [](const ChannelLayoutInfo &info) -> llvm::StringRef {
        return info.name;
      }));
}

llvm::Expected<ChannelLayout>
pipewright::schedules::parseChannelLayout(llvm::StringRef text) {
  for (const ChannelLayoutInfo &info : channelLayouts)
    if (text == info.name)
      return info.layout;
  return refuse("expects channels per {0}, but got '{1}'",
                namesOfChannelLayouts(), text);
}

std::string pipewright::schedules::nameOf(Buffering buffering) {
  if (buffering == Buffering::none())
    return "none";
  if (buffering == Buffering::infinite())
    return "infinite";
  return buffering.bytes != Buffering::unlimited
             ? bytesPrefix.str() + std::to_string(buffering.bytes)
             : std::to_string(buffering.messages);
}

llvm::Expected<Buffering>
pipewright::schedules::parseBuffering(llvm::StringRef text) {
  if (text == "none")
    return Buffering::none();
  if (text == "infinite")
    return Buffering::infinite();
  llvm::StringRef digits = text;
  bool isBytes = digits.consume_front(bytesPrefix);
  int64_t number = 0;
  if (digits.getAsInteger(10, number) || number < 0)
    return refuse("expects buffering of none, infinite, a number of messages "
                  "of at least 0 or bytes:N, but got '{0}'",
                  text);
  return isBytes ? Buffering::ofBytes(number) : Buffering{number};
}

std::string pipewright::schedules::describe(const Channels &channels) {
  const Buffering &buffering = channels.buffering;
  std::string text;
  if (buffering.messages == 0)
    text = "without buffering";
  else if (buffering == Buffering::infinite())
    text = "with unlimited buffering";
  else if (buffering.bytes != Buffering::unlimited)
    text = llvm::formatv("with {0} bytes buffered", buffering.bytes);
  else
    text = llvm::formatv("with {0} message{1} buffered", buffering.messages,
                         buffering.messages == 1 ? "" : "s");
  if (channels.layout != ChannelLayout::Link)
    text += ", " + infoOf(channels.layout).description.str();
  return text;
}
