//===- Tests.h - What unit tests of the compiler share ---------*- C++ -*-===//

#include "cmake/pch/Dialects.h"

#include "gtest/gtest.h"
