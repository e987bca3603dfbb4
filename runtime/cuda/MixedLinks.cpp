//===- MixedLinks.cpp - Links of several kinds in one run -----------------===//

#include "runtime/cuda/MixedLinks.h"
#include "runtime/core/Error.h"
#include "runtime/core/ProcessName.h"

using namespace pipewright::runtime;

namespace {

class MixedLinks : public DeviceLinks {
public:
  struct Part {
    LinkKind kind;
    std::unique_ptr<DeviceLinks> links;
  };

  MixedLinks(const LinkChoice &choice, int64_t self, std::vector<Part> made)
      : choice(choice), self(self), parts(std::move(made)) {
    for (const Part &part : parts) {
      text += (text.empty() ? "" : " and ") + std::string(part.links->name());
      occupies |= part.links->occupiesGpu();
    }
  }

  const char *name() const override { return text.c_str(); }
  bool occupiesGpu() const override { return occupies; }
  int64_t multiprocessorsHeld() const override {
    int64_t held = 0;
    for (const Part &part : parts)
      held += part.links->multiprocessorsHeld();
    return held;
  }
  void connect(const std::vector<std::pair<int64_t, int64_t>> &all) override;
  void connectGroups(const std::vector<std::vector<int64_t>> &all) override {
    groupLinks().connectGroups(all);
  }
  void share(void *memory, int64_t bytes) override {
    for (const Part &part : parts)
      part.links->share(memory, bytes);
  }
  void send(int64_t peer, const void *data, int64_t bytes, CUstream_st *stream,
            CUevent_st *done) override {
    linksWith(peer, true).send(peer, data, bytes, stream, done);
  }
  void receive(int64_t peer, void *data, int64_t bytes, CUstream_st *stream,
               CUevent_st *done) override {
    linksWith(peer, false).receive(peer, data, bytes, stream, done);
  }
  void collect(int64_t group, const Collective &what, void *data,
               CUstream_st *stream, CUevent_st *done) override {
    groupLinks().collect(group, what, data, stream, done);
  }
  std::shared_ptr<const std::atomic<bool>> recorded(CUevent_st *done) override {
    for (const Part &part : parts)
      if (auto flag = part.links->recorded(done))
        return flag;
    return nullptr;
  }
  // An event is one of a single part; the others know nothing of it.
  void settle(CUevent_st *done) override {
    for (const Part &part : parts)
      part.links->settle(done);
  }
  void settleAll() override {
    for (const Part &part : parts)
      part.links->settleAll();
  }
  void settleGroups() override { groupLinks().settleGroups(); }
  void check() override {
    for (const Part &part : parts)
      part.links->check();
  }
  void abort() override {
    for (const Part &part : parts)
      part.links->abort();
  }
  void compareSizes(bool on) override {
    for (const Part &part : parts)
      part.links->compareSizes(on);
  }
  void setDeadline(double seconds) override {
    for (const Part &part : parts)
      part.links->setDeadline(seconds);
  }

private:
  DeviceLinks &linksOf(LinkKind kind) const {
    for (const Part &part : parts)
      if (part.kind == kind)
        return *part.links;
    fail("no links over ", factsOf(kind).name, " were made");
  }
  DeviceLinks &groupLinks() const { return linksOf(choice.groupKind); }
  DeviceLinks &linksWith(int64_t peer, bool isSend) const;

  const LinkChoice choice;
  const int64_t self;
  const std::vector<Part> parts;
  std::string text;
  bool occupies = false;
};

} // namespace

void MixedLinks::connect(const std::vector<std::pair<int64_t, int64_t>> &all) {
  if (all != choice.links)
    fail("links were chosen of another program");
  for (const Part &part : parts)
    part.links->connect(choice.over(part.kind));
}

DeviceLinks &MixedLinks::linksWith(int64_t peer, bool isSend) const {
  const LinkChoice::Link wanted = {isSend ? self : peer, isSend ? peer : self};
  for (size_t i = 0; i < choice.links.size(); ++i)
    if (choice.links[i] == wanted)
      return linksOf(choice.kinds[i]);
  fail(processName(self), " has no link ", isSend ? "to " : "from ",
       processName(peer));
}

std::unique_ptr<DeviceLinks>
pipewright::runtime::createLinks(const LinkChoice &choice, int64_t self,
                                 const MakeLinksOf &make) {
  std::vector<MixedLinks::Part> parts;
  for (const LinkKindFacts &facts : allLinkKinds)
    if (choice.uses(facts.kind))
      parts.push_back({facts.kind, make(facts.kind)});
  // Of ranks that have nothing to do with each other.
  if (parts.empty())
    return make(choice.groupKind);
  if (parts.size() == 1)
    return std::move(parts.front().links);
  return std::make_unique<MixedLinks>(choice, self, std::move(parts));
}
