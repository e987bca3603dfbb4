//===- FigureTable.h - Schedules side by side -------------------*- C++ -*-===//
//
// The figures of several schedules as one table, for people, papers and
// scripts.
//
//===----------------------------------------------------------------------===//

#ifndef PIPEWRIGHT_TOOLS_PIPEWRIGHT_FIGURETABLE_H
#define PIPEWRIGHT_TOOLS_PIPEWRIGHT_FIGURETABLE_H

#include "tools/pipewright/SimulatedSchedule.h"

#include "llvm/Support/raw_ostream.h"

namespace pipewright::tool {

/// `text`, `csv`, `latex`, `json`
std::vector<llvm::StringRef> tableFormats();

/// `format` is one of those. Data formats have every column; those for people
/// leave out what is the same and usual in all rows, and say what figures mean.
void printTable(llvm::raw_ostream &os, llvm::StringRef format,
                llvm::ArrayRef<SimulatedSchedule> schedules);

} // namespace pipewright::tool

#endif // PIPEWRIGHT_TOOLS_PIPEWRIGHT_FIGURETABLE_H
