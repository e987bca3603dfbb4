//===- StepRecord.cpp - A step on disk, to be run again -------------------===//

#include "runtime/train/StepRecord.h"
#include "runtime/core/Error.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/CheckpointFolder.h"
#include "runtime/io/JsonFile.h"

#include <limits>

using namespace pipewright::runtime;
using Json = nlohmann::ordered_json;

static constexpr const char *formatName = "pipewright step 1";
static constexpr const char *recordName = "/record.json";

/// A line for each message and tensor of a step.
static constexpr int64_t maxRecordBytes = 256 << 20;

//===----------------------------------------------------------------------===//
// What a process took and gave
//===----------------------------------------------------------------------===//

static Json jsonOf(const std::vector<StepDigest::Entry> &entries) {
  Json json = Json::array();
  for (const StepDigest::Entry &entry : entries)
    json.push_back({static_cast<int>(entry.kind), entry.place, entry.number,
                    entry.task, checksumText(entry.hash)});
  return json;
}

static std::vector<StepDigest::Entry> entriesOf(const nlohmann::json &json) {
  constexpr auto last = static_cast<int64_t>(StepDigest::Kind::Norm);
  std::vector<StepDigest::Entry> entries;
  for (const auto &row : json.get_ref<const nlohmann::json::array_t &>()) {
    const int64_t kind = wholeNumber(row.at(0));
    if (kind > last)
      fail("an entry is of kind ", kind, ", but the last is ", last);
    entries.push_back({static_cast<StepDigest::Kind>(kind),
                       wholeNumber(row.at(1)), wholeNumber(row.at(2)),
                       row.at(3).get<std::string>(), readChecksum(row.at(4))});
  }
  return entries;
}

std::string pipewright::runtime::textOf(const StepResults &results) {
  Json named = Json::object();
  for (const auto &[name, hash] : results.named)
    named[name] = checksumText(hash);
  return Json({{"named", named}, {"entries", jsonOf(results.entries)}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

static StepResults resultsIn(const nlohmann::json &json) {
  StepResults results;
  for (const auto &[name, hash] :
       json.at("named").get_ref<const nlohmann::json::object_t &>())
    results.named[name] = readChecksum(hash);
  results.entries = entriesOf(json.at("entries"));
  return results;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static StepRecord parseRecord(const nlohmann::json &json) {
  StepRecord record;
  record.model = json.at("model").get<std::string>();
  record.step = wholeNumber(json.at("steps_before"));
  record.seed = json.at("seed").get<uint64_t>();
  for (const auto &rate :
       json.at("learning_rates").get_ref<const nlohmann::json::array_t &>())
    record.learningRates.push_back(rate.get<float>());
  record.clipNorm = json.value("clip_norm", 0.0);
  record.skipsNan = json.value("skips_nan", false);
  if (const auto skipped = json.find("skipped"); skipped != json.end())
    record.skipped = wholeNumber(*skipped);
  if (record.skipped > record.step)
    fail("it skipped ", record.skipped, " of ", record.step, " steps");
  record.microBatchSize = wholeNumber(json.at("micro_batch_size"));
  record.samples = wholeNumber(json.at("samples"));
  record.threadsPerRank = wholeNumber(json.at("threads_per_rank"));
  record.plan = readChecksum(json.at("plan"));
  for (const auto &input :
       json.at("inputs").get_ref<const nlohmann::json::array_t &>()) {
    record.inputs.push_back({input.at("name").get<std::string>(),
                             input.at("file").get<std::string>()});
    if (!isFileName(record.inputs.back().file))
      fail("a file in it has a name that no file of a record has");
  }
  for (const auto &loss :
       json.at("losses").get_ref<const nlohmann::json::array_t &>())
    record.losses.push_back(loss.is_null()
                                ? std::numeric_limits<double>::quiet_NaN()
                                : loss.get<double>());
  for (const auto &results :
       json.at("results").get_ref<const nlohmann::json::array_t &>())
    record.results.push_back(resultsIn(results));
  return record;
}

StepRecord pipewright::runtime::readStepRecord(const std::string &folder) {
  return readFormat(folder + recordName, "record of a step", maxRecordBytes,
                    formatName, parseRecord);
}

void pipewright::runtime::writeStepRecord(const std::string &folder,
                                          const StepRecord &record) {
  Json inputs = Json::array(), results = Json::array();
  for (const StepRecord::Input &input : record.inputs)
    inputs.push_back({{"name", input.name}, {"file", input.file}});
  for (const StepResults &each : record.results)
    results.push_back(Json::parse(textOf(each)));
  const Json json = {{"format", formatName},
                     {"model", record.model},
                     {"steps_before", record.step},
                     {"seed", record.seed},
                     {"learning_rates", record.learningRates},
                     {"clip_norm", record.clipNorm},
                     {"skips_nan", record.skipsNan},
                     {"skipped", record.skipped},
                     {"micro_batch_size", record.microBatchSize},
                     {"samples", record.samples},
                     {"threads_per_rank", record.threadsPerRank},
                     {"plan", checksumText(record.plan)},
                     {"inputs", inputs},
                     {"losses", record.losses},
                     {"results", results}};
  const std::string text =
      json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  AtomicFile file(folder + recordName);
  file.write(text.data(), text.size());
  file.commit();
}

StepResults pipewright::runtime::stepResultsOf(const std::string &text) {
  try {
    return resultsIn(parseJson(text));
  } catch (const std::exception &error) {
    fail("another rank told no results of a step: ", error.what());
  }
}
