//===- Module.cpp - A module of kernels -----------------------------------===//

#include "test/doubles/ptx/Parser.h"

using namespace pipewright::ptx;

Module Module::parse(std::string_view text) {
  Module module;
  module.data = std::make_shared<ModuleData>();
  module.data->lines = splitLines(text);
  const std::string plain = withoutComments(text);
  Parser(plain, *module.data).parse();
  return module;
}

int Module::target() const { return data->target; }
int Module::version() const { return data->version; }

std::vector<std::string> Module::entries() const {
  std::vector<std::string> names;
  for (const auto &[name, entry] : data->entries)
    names.push_back(name);
  return names;
}

const EntryInfo *Module::find(std::string_view entry) const {
  auto found = data->entries.find(entry);
  return found == data->entries.end() ? nullptr : &found->second.info;
}

void Module::launch(std::string_view name, const LaunchShape &shape,
                    const std::vector<std::byte> &parameters,
                    Memory &memory) const {
  auto found = data->entries.find(name);
  if (found == data->entries.end())
    throw Fault(Fault::Kind::Launch, "no kernel '" + std::string(name) + "'");
  runGrid(*data, found->second, shape, parameters, memory);
}

Module::Variable Module::global(std::string_view name) const {
  auto found = data->variables.find(name);
  return found == data->variables.end() ? Variable() : found->second;
}
