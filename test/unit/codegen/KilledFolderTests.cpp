//===- KilledFolderTests.cpp - Output folders of killed processes ---------===//
//
// Whenever the process that writes an output folder is killed, the folder is
// the old one or the new one, and has all files of the user's; the next folder
// that is made there removes what is left beside it.
//
//===----------------------------------------------------------------------===//

#include "codegen/package/OutputFolder.h"
#include "test/unit/KillAtEachCall.h"
#include "test/unit/codegen/TemporaryRoot.h"

#include <fcntl.h>
#include <memory>

using namespace pipewright::codegen;
using namespace pipewright::test;

namespace {

/// What a file system may not have.
enum class Lacks { Nothing, Exchange, Links };

class KilledFolder : public testing::TestWithParam<Lacks> {
protected:
  void prepare(bool hasOlder) {
    root = std::make_unique<TemporaryRoot>(TemporaryRoot::Where::InMemory);
    if (!hasOlder)
      return;
    write("old");
    root->write("out/notes.txt", "notes");
    root->write("out/src/mine.txt", "mine");
    root->write("out/runs/1/log", "log");
  }
  void write(llvm::StringRef text) const {
    llvm::Expected<OutputFolder> folder =
        OutputFolder::create(root->path("out"));
    if (!folder || folder->write("plan.json", text) ||
        folder->write("src/main.cpp", text) || folder->commit())
      _exit(1);
  }
  void writeNew() const {
    if (GetParam() == Lacks::Exchange)
      refuseCall(SYS_renameat2, EINVAL, 4, RENAME_EXCHANGE);
    if (GetParam() == Lacks::Links) {
      refuseCall(SYS_linkat, EPERM);
#ifdef SYS_link
      refuseCall(SYS_link, EPERM);
#endif
    }
    write("new");
  }
  bool hasUserFiles() const {
    return root->read("out/notes.txt") == "notes" &&
           root->read("out/src/mine.txt") == "mine" &&
           root->read("out/runs/1/log") == "log";
  }
  /// "old", "new", "" if there is none, or "mixed".
  std::string state() const {
    if (!root->exists("out"))
      return "";
    std::string plan = root->read("out/plan.json");
    return plan == root->read("out/src/main.cpp") &&
                   (plan == "old" || plan == "new") &&
                   root->exists("out/pipewright.manifest")
               ? plan
               : "mixed";
  }
  void expectRest(int call, const std::string &before, size_t files) {
    // Also the next one may end early: here, before it has written anything.
    llvm::Expected<OutputFolder> next = OutputFolder::create(root->path("out"));
    EXPECT_TRUE(static_cast<bool>(next)) << "call " << call;
    if (!next)
      llvm::consumeError(next.takeError());
    else
      OutputFolder(std::move(*next));
    if (!before.empty()) {
      EXPECT_EQ(state(), before) << "call " << call;
    }
    EXPECT_EQ(root->exists("out") ? root->entries("out") : files, files)
        << "call " << call;
  }

  std::unique_ptr<TemporaryRoot> root;
};

} // namespace

TEST_P(KilledFolder, IsOldOrNewWithAllFilesOfTheUser) {
  int news = 0;
  int kills =
      killAtEachCall([&] { prepare(/*hasOlder=*/true); }, [&] { writeNew(); },
                     [&](int call) {
                       std::string found = state();
                       bool mayBeGone = GetParam() == Lacks::Exchange;
                       EXPECT_TRUE(found == "old" || found == "new" ||
                                   (mayBeGone && found.empty()))
                           << "call " << call << ": " << found;
                       if (GetParam() == Lacks::Nothing) {
                         EXPECT_TRUE(hasUserFiles()) << "call " << call;
                       }
                       expectRest(call, found, 5);
                       EXPECT_TRUE(hasUserFiles()) << "call " << call;
                       EXPECT_TRUE(state() == "old" || state() == "new")
                           << "call " << call;
                       EXPECT_EQ(root->entries(), 1u) << "call " << call;
                       news += state() == "new";
                     });
  if (kills < 0)
    GTEST_SKIP() << "tracing is not allowed here";
  EXPECT_GT(kills, 30);
  EXPECT_GE(news, 2);
}

TEST_P(KilledFolder, IsThereWholeOrNot) {
  int kills = killAtEachCall(
      [&] { prepare(/*hasOlder=*/false); }, [&] { writeNew(); },
      [&](int call) {
        std::string found = state();
        EXPECT_TRUE(found.empty() || found == "new") << "call " << call;
        expectRest(call, found, 3);
        EXPECT_EQ(root->entries(), found.empty() ? 0u : 1u) << "call " << call;
      });
  if (kills < 0)
    GTEST_SKIP() << "tracing is not allowed here";
}

INSTANTIATE_TEST_SUITE_P(FileSystems, KilledFolder,
                         testing::Values(Lacks::Nothing, Lacks::Exchange,
                                         Lacks::Links),
                         [](const auto &info) {
                           return info.param == Lacks::Nothing    ? "Whole"
                                  : info.param == Lacks::Exchange ? "NoExchange"
                                                                  : "NoLinks";
                         });
