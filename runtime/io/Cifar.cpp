//===- Cifar.cpp - CIFAR-10 and CIFAR-100 in their binary form ------------===//
//
// A record is one label byte (CIFAR-100: coarse, then fine) and 3 x 32 x 32
// bytes. Images are normalised by the data set's own mean and deviation.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/io/DataFile.h"
#include "runtime/io/Source.h"

#include <memory>

using namespace pipewright::runtime;

namespace {

constexpr int64_t planeBytes = 32 * 32;
constexpr int64_t imageBytes = 3 * planeBytes;

struct Cifar {
  std::vector<std::shared_ptr<DataFile>> files;
  int64_t labels = 1;
  const float *mean = nullptr;
  const float *deviation = nullptr;

  int64_t recordBytes() const { return labels + imageBytes; }

  /// A part of a record, until the next one is asked for.
  const unsigned char *record(int64_t sample, int64_t begin,
                              int64_t bytes) const {
    for (const auto &file : files) {
      const int64_t records = file->bytes() / recordBytes();
      if (sample < records)
        return file->view(sample * recordBytes() + begin, bytes);
      sample -= records;
    }
    fail("sample ", sample, " lies behind the end of the data");
  }
};

constexpr float mean10[3] = {0.4914f, 0.4822f, 0.4465f};
constexpr float deviation10[3] = {0.2470f, 0.2435f, 0.2616f};
constexpr float mean100[3] = {0.5071f, 0.4865f, 0.4409f};
constexpr float deviation100[3] = {0.2673f, 0.2564f, 0.2762f};

} // namespace

SourcePair pipewright::runtime::openCifar(const std::string &kind,
                                          const std::string &paths,
                                          const InputSlot &slot) {
  if (slot.info.type != ElementType::F32 || !slot.batched ||
      slot.sampleShape != std::vector<int64_t>{3, 32, 32})
    fail("input '", slot.info.name, "' expects ", typeText(slot.info.type),
         " samples of shape ", shapeText(slot.sampleShape), ", but '", kind,
         ":' gives f32 images of 3x32x32");
  auto data = std::make_shared<Cifar>();
  const bool fine = kind == "cifar100";
  data->labels = fine ? 2 : 1;
  data->mean = fine ? mean100 : mean10;
  data->deviation = fine ? deviation100 : deviation10;
  Source source;
  for (const std::string &path : splitCommas(paths)) {
    auto file = std::make_shared<DataFile>(path);
    if (file->bytes() % data->recordBytes())
      fail("'", path, "' is no ", kind, " file: ", file->bytes(),
           " bytes are no multiple of ", data->recordBytes(),
           " (bytes of a record)");
    source.samples += file->bytes() / data->recordBytes();
    data->files.push_back(std::move(file));
  }
  if (data->files.empty())
    fail("--data ", slot.info.name, "=", kind, ":... names no file");
  source.description = kind + ":" + paths;
  source.read = [data](int64_t sample, void *out) {
    const unsigned char *pixels =
        data->record(sample, data->labels, imageBytes);
    float *to = static_cast<float *>(out);
    for (int64_t channel = 0; channel < 3; ++channel) {
      const float scale = 1 / (255 * data->deviation[channel]);
      const float shift = data->mean[channel] / data->deviation[channel];
      for (int64_t i = 0; i < planeBytes; ++i)
        *to++ = *pixels++ * scale - shift;
    }
  };
  source.check = [data] {
    for (const auto &file : data->files)
      file->checkSize();
  };
  SourcePair pair = {source, {}, {}};
  pair.fits = [](const InputSlot &other) {
    return other.info.type == ElementType::I64 && other.batched &&
           other.sampleElements == 1;
  };
  pair.companion = [data, source, fits = pair.fits](const InputSlot &other) {
    if (!fits(other))
      fail("input '", other.info.name, "' expects ", typeText(other.info.type),
           " samples of shape ", shapeText(other.sampleShape),
           ", but a label is one i64");
    Source labels = source;
    labels.description = "labels of " + source.description;
    labels.read = [data](int64_t sample, void *out) {
      // CIFAR-100's fine label is the second byte.
      *static_cast<int64_t *>(out) = *data->record(sample, data->labels - 1, 1);
    };
    return labels;
  };
  return pair;
}
