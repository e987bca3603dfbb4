//===- ErrorText.cpp - What errors say to users ---------------------------===//

#include "runtime/train/ErrorText.h"
#include "runtime/core/ProcessName.h"

#include <new>
#include <stdexcept>

using namespace pipewright::runtime;

std::string pipewright::runtime::messageOf(const std::exception &error) {
  if (dynamic_cast<const std::bad_alloc *>(&error) ||
      dynamic_cast<const std::length_error *>(&error))
    return "there is not enough memory for what was asked for: fewer or "
           "smaller micro-batches, or more ranks, need less";
  return error.what();
}

std::string pipewright::runtime::ranked(int64_t rank,
                                        const std::string &message) {
  return message.rfind("rank ", 0) == 0 ? message
                                        : processName(rank) + ": " + message;
}
