//===- OtherWords.cpp - Options as other programs call them ---------------===//

#include "runtime/train/OtherWords.h"

#include <algorithm>
#include <cctype>
#include <vector>

using namespace pipewright::runtime;

static constexpr char sizeAdvice[] =
    "the size of a step is compiled in: pipewright compile --micro-batches M "
    "--micro-batch-size B --data-parallel D";
static constexpr char resumeAdvice[] =
    "--checkpoint DIR --resume goes on from the newest checkpoint in DIR, "
    "--resume STEP from that of a step";

static constexpr OtherWord otherWords[] = {
    {"--learning-rate", "--lr"},
    {"--max-steps", "--steps"},
    {"--num-steps", "--steps"},
    {"--train-iters", "--steps"},
    {"--iterations", "--steps"},
    {"--num-epochs", "--epochs"},
    {"--num-train-epochs", "--epochs"},
    {"--lr-scheduler", "--lr-schedule"},
    {"--lr-scheduler-type", "--lr-schedule"},
    {"--lr-decay-style", "--lr-schedule"},
    {"--warmup-steps", "--warmup"},
    {"--clip-grad", "--clip-norm"},
    {"--grad-clip", "--clip-norm"},
    {"--max-grad-norm", "--clip-norm"},
    {"--gradient-clipping", "--clip-norm"},
    {"--train-data", "--data"},
    {"--dataset", "--data"},
    {"--data-path", "--data"},
    {"--input", "--data"},
    {"--val-data", "--eval-data"},
    {"--valid-data", "--eval-data"},
    {"--test-data", "--eval-data"},
    {"--eval-interval", "--eval-every"},
    {"--eval-steps", "--eval-every"},
    {"--eval-iters", "--eval-batches"},
    {"--load", "--weights"},
    {"--init-from", "--weights"},
    {"--output-dir", "--save"},
    {"--save-dir", "--save"},
    {"--out", "--save"},
    {"--log-file", "--log"},
    {"--profile-trace", "--trace"},
    {"--num-threads", "--threads-per-rank"},
    {"--threads", "--threads-per-rank"},
    {"--infer", "--predict"},
    {"--generate", "--guess"},
    {"--prompt", "--guess"},
    {"--checkpoint-dir", "--checkpoint"},
    {"--ckpt-dir", "--checkpoint"},
    {"--save-interval", "--checkpoint-every"},
    {"--save-every", "--checkpoint-every"},
    {"--save-steps", "--checkpoint-every"},
    {"--checkpoint-interval", "--checkpoint-every"},
    {"--save-total-limit", "--keep"},
    {"--resume-from", "", resumeAdvice},
    {"--resume-from-checkpoint", "", resumeAdvice},
    {"--batch-size", "", sizeAdvice},
    {"--micro-batches", "", sizeAdvice},
    {"--micro-batch-size", "", sizeAdvice},
    {"--ranks", "", "ranks are compiled in: pipewright compile --ranks P"},
    {"--optimizer", "",
     "the optimizer is compiled in: pipewright compile --optimizer adamw"},
    {"--momentum", "",
     "it is compiled in: pipewright compile --optimizer sgd,momentum=0.9"},
    {"--weight-decay", "",
     "it is compiled in: pipewright compile --optimizer "
     "adamw,weight_decay=0.01"},
    {"--loss", "", "the loss is compiled in: pipewright compile --loss NAME"},
    {"--precision", "",
     "it is compiled in: pipewright compile --precision bf16"},
    {"--bf16", "", "it is compiled in: pipewright compile --precision bf16"},
    {"--device", "", "it is compiled in: pipewright compile --target cuda"},
    {"--gpus", "", "it is compiled in: pipewright compile --target cuda"},
};

std::string pipewright::runtime::spelled(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(c));
  });
  return name;
}

const OtherWord *pipewright::runtime::findOther(const std::string &name) {
  for (const OtherWord &other : otherWords)
    if (name == other.word)
      return &other;
  return nullptr;
}

bool pipewright::runtime::isNear(const std::string &typed,
                                 const std::string &word) {
  // Comparing takes time by the product of lengths.
  constexpr size_t longest = 64;
  if (typed.size() > longest || word.size() > longest)
    return false;
  std::vector<std::vector<size_t>> errors(typed.size() + 1,
                                          std::vector<size_t>(word.size() + 1));
  for (size_t i = 0; i <= typed.size(); ++i)
    for (size_t j = 0; j <= word.size(); ++j) {
      size_t &least = errors[i][j] = i + j;
      if (i == 0 || j == 0)
        continue;
      least = std::min({errors[i - 1][j] + 1, errors[i][j - 1] + 1,
                        errors[i - 1][j - 1] + (typed[i - 1] != word[j - 1])});
      if (i > 1 && j > 1 && typed[i - 1] == word[j - 2] &&
          typed[i - 2] == word[j - 1])
        least = std::min(least, errors[i - 2][j - 2] + 1);
    }
  return errors[typed.size()][word.size()] <= word.size() / 3;
}
