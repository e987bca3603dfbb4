//===- FieldWords.cpp - What others call what we have ---------------------===//

#include "tools/pipewright/FieldWords.h"
#include "tools/pipewright/OptionTable.h"

#include <algorithm>

using namespace pipewright::tool;

static constexpr llvm::StringLiteral batchAdvice =
    "a step trains on D x M x B samples: --data-parallel D, --micro-batches M, "
    "--micro-batch-size B";
static constexpr llvm::StringLiteral rateAdvice =
    "the learning rate is of training: OUT/train --lr 1e-3, or as the standard "
    "of the program --optimizer adamw,lr=1e-3";
static constexpr llvm::StringLiteral stepsAdvice =
    "it is of training: OUT/train --steps N, or --epochs N";
static constexpr llvm::StringLiteral trainingAdvice =
    "it is an option of the program: see OUT/train --help";
static constexpr llvm::StringLiteral rematAdvice =
    "what the backward recomputes is --remat MODE, such as full, or auto, "
    "which --help explains";
static constexpr llvm::StringLiteral tensorAdvice =
    "there is no tensor parallelism yet; --ranks P cuts layers from layers, "
    "--data-parallel D makes replicas";
static constexpr llvm::StringLiteral shardAdvice =
    "--data-parallel D --zero 3 makes replicas that keep a part each of "
    "weights and of the optimizer's states, and gather weights of few stages";

static constexpr FieldWord words[] = {
    // How many of everything.
    {"pp", "ranks"},
    {"np", "ranks"},
    {"num-ranks", "ranks"},
    {"n-ranks", "ranks"},
    {"pp-size", "ranks"},
    {"pipeline-parallel", "ranks"},
    {"pipeline-parallel-size", "ranks"},
    {"pipeline-model-parallel-size", "ranks"},
    {"world-size", "",
     "a run has P x D workers: --ranks P of a pipeline, in each of "
     "--data-parallel D replicas"},
    {"nproc-per-node", "",
     "a run has P x D workers: --ranks P of a pipeline, in each of "
     "--data-parallel D replicas; what starts them is mpirun or torchrun"},
    {"gpus", "", "--target cuda --ranks P is a pipeline of P GPUs"},
    {"num-gpus", "", "--target cuda --ranks P is a pipeline of P GPUs"},
    {"devices", "", "--target cuda --ranks P is a pipeline of P GPUs"},
    {"device", "target"},
    {"cuda", "", "what the program runs on is --target cuda"},
    {"cpu", "", "what the program runs on is --target cpu"},
    {"num-stages", "stages"},
    {"n-stages", "stages"},
    {"pipeline-stages", "stages"},
    {"virtual-stages", "loops"},
    {"num-model-chunks", "loops"},
    {"stages-per-rank", "loops"},
    {"num-virtual-stages-per-pipeline-rank", "loops"},
    {"virtual-pipeline-model-parallel-size", "loops"},
    {"dp", "data-parallel"},
    {"dp-size", "data-parallel"},
    {"replicas", "data-parallel"},
    {"data-parallel-size", "data-parallel"},
    {"tp", "", tensorAdvice},
    {"tensor-parallel", "", tensorAdvice},
    {"tensor-model-parallel-size", "", tensorAdvice},
    {"zero-stage", "zero"},
    {"zero-level", "zero"},
    {"distributed-optimizer", "",
     "--zero 1 is: replicas keep a part each of the optimizer's states"},
    {"use-distributed-optimizer", "",
     "--zero 1 is: replicas keep a part each of the optimizer's states"},
    {"fsdp", "", shardAdvice},
    {"clip-grad", "clip-norm"},
    {"grad-clip", "clip-norm"},
    {"max-grad-norm", "clip-norm"},
    {"gradient-clipping", "clip-norm"},
    {"microbatches", "micro-batches"},
    {"num-microbatches", "micro-batches"},
    {"num-micro-batches", "micro-batches"},
    {"n-microbatches", "micro-batches"},
    {"chunks", "micro-batches"},
    {"accumulate", "micro-batches"},
    {"gradient-accumulation-steps", "micro-batches"},
    {"mbs", "micro-batch-size"},
    {"microbatch-size", "micro-batch-size"},
    {"micro-batch", "micro-batch-size"},
    {"train-micro-batch-size-per-gpu", "micro-batch-size"},
    {"batch", "", batchAdvice},
    {"batch-size", "", batchAdvice},
    {"global-batch-size", "", batchAdvice},
    {"train-batch-size", "", batchAdvice},
    // What is computed, and how.
    {"model", "", "the model stands by itself: pipewright COMMAND MODEL.onnx"},
    {"onnx", "", "the model stands by itself: pipewright COMMAND MODEL.onnx"},
    {"criterion", "loss"},
    {"loss-fn", "loss"},
    {"loss-function", "loss"},
    {"optim", "optimizer"},
    {"policy", "schedule"},
    {"pipeline-schedule", "schedule"},
    {"pp-schedule", "schedule"},
    {"partition", "balance"},
    {"partition-method", "balance"},
    {"split", "balance"},
    {"recompute", "", rematAdvice},
    {"activation-checkpointing", "", rematAdvice},
    {"checkpoint-activations", "", rematAdvice},
    {"gradient-checkpointing", "", rematAdvice},
    {"recompute-granularity", "", rematAdvice},
    {"num-microbatches-with-partial-activation-checkpoints", "",
     "how many micro-batches keep all is --remat window:N"},
    {"dtype", "precision"},
    {"bf16", "", "what is computed in is --precision bf16"},
    {"tf32", "", "what is computed in is --precision tf32"},
    {"amp", "", "what is computed in is --precision bf16"},
    {"fp16", "", "float16 is not supported; --precision bf16 has its speed"},
    {"half", "", "float16 is not supported; --precision bf16 has its speed"},
    // What is of training.
    {"lr", "", rateAdvice},
    {"learning-rate", "", rateAdvice},
    {"momentum", "", "it is of the optimizer: --optimizer sgd,momentum=0.9"},
    {"weight-decay", "",
     "it is of the optimizer: --optimizer adamw,weight_decay=0.01"},
    {"epochs", "", stepsAdvice},
    {"steps", "", stepsAdvice},
    {"train-iters", "", stepsAdvice},
    {"max-steps", "", stepsAdvice},
    {"data", "", "it is of training: OUT/train --data NAME=FILE"},
    {"dataset", "", "it is of training: OUT/train --data NAME=FILE"},
    {"data-path", "", "it is of training: OUT/train --data NAME=FILE"},
    {"seed", "", trainingAdvice},
    {"save", "", trainingAdvice},
    {"load", "", trainingAdvice},
    {"weights", "", trainingAdvice},
    {"resume", "", trainingAdvice},
    {"lr-schedule", "", trainingAdvice},
    {"warmup", "", trainingAdvice},
    {"log", "", trainingAdvice},
    {"profile", "", trainingAdvice},
    {"metrics", "", trainingAdvice},
    {"transport", "", trainingAdvice},
    {"timeout", "", trainingAdvice},
    {"threads", "", "it is of the program: OUT/train --threads-per-rank N"},
    // What comes out.
    {"out", "o"},
    {"output", "o"},
    {"out-dir", "o"},
    {"output-dir", "o"},
    {"output-path", "o"},
    {"level", "emit"},
    {"dump", "emit"},
    {"print-ir", "emit"},
    {"ir", "emit"},
    {"overwrite", "force"},
    {"plugin", "load-pass-plugin"},
    {"load-plugin", "load-pass-plugin"},
    {"max-memory", "memory-limit"},
    {"picture", "svg"},
    {"draw", "svg"},
    {"format", "table"},
    {"page", "html"},
};

/// Values of options that others spell in another way.
static constexpr struct {
  llvm::StringRef option, word, ours;
} values[] = {
    {"loss", "cross-entropy", "softmax-cross-entropy"},
    {"loss", "crossentropy", "softmax-cross-entropy"},
    {"loss", "crossentropyloss", "softmax-cross-entropy"},
    {"loss", "cross-entropy-loss", "softmax-cross-entropy"},
    {"loss", "ce", "softmax-cross-entropy"},
    {"loss", "xent", "softmax-cross-entropy"},
    {"loss", "softmaxcrossentropyloss", "softmax-cross-entropy"},
    {"loss", "mse-loss", "mse"},
    {"loss", "mseloss", "mse"},
    {"loss", "l2", "mse"},
    {"precision", "fp32", "f32"},
    {"precision", "float32", "f32"},
    {"precision", "float", "f32"},
    {"precision", "bfloat16", "bf16"},
    {"remat", "all", "full"},
    {"remat", "core_attn", "selective"},
    {"remat", "off", "none"},
    {"balance", "params", "parameters"},
    {"balance", "flop", "flops"},
    {"tied-weights", "allreduce", "all-reduce"},
    {"target", "gpu", "cuda"},
    {"target", "nvidia", "cuda"},
    {"target", "x86", "cpu"},
    {"layout", "channels-last", "nhwc"},
    {"layout", "channels-first", "nchw"},
};

static constexpr std::pair<llvm::StringRef, llvm::StringRef> commands[] = {
    {"build", "compile"},  {"explain", "plan"},       {"show", "plan"},
    {"analyze", "plan"},   {"run", "train"},          {"fit", "train"},
    {"list", "schedules"}, {"schedule", "schedules"}, {"draw", "schedules"},
    {"verify", "check"},   {"validate", "check"}};

const FieldWord *pipewright::tool::findFieldWord(llvm::StringRef option) {
  const FieldWord *found = llvm::find_if(
      words, [&](const FieldWord &each) { return each.word == option; });
  return found == std::end(words) ? nullptr : found;
}

llvm::StringRef pipewright::tool::commandMeantBy(llvm::StringRef word) {
  for (const auto &[theirs, ours] : commands)
    if (theirs == word)
      return ours;
  return {};
}

std::string pipewright::tool::spelled(llvm::StringRef word) {
  std::string text = word.lower();
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string option::wordMeantBy(llvm::StringRef option, llvm::StringRef text) {
  std::string word = spelled(text);
  for (const auto &[of, theirs, ours] : values)
    if (of == option && theirs == word)
      return ours.str();
  return word;
}
