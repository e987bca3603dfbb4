//===- RuntimeTests.h - What unit tests of the runtime share ---*- C++ -*-===//

#include "runtime/Runtime.h"

#include "gtest/gtest.h"
