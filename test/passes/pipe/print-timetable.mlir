// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=gpipe ranks=4" --pipe-print-timetable -o %t | FileCheck %s --check-prefix=GPIPE --strict-whitespace
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4" --pipe-print-timetable -o %t | FileCheck %s --check-prefix=ONE --strict-whitespace
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=breadth-first ranks=2" --pipe-print-timetable -o %t | FileCheck %s --check-prefix=LOOPED --strict-whitespace
// The same drawing comes out of the rank programs.
// RUN: pipewright-opt %inputs/pipe/chain.mlir --pipe-unroll-microbatches --pipe-schedule="policy=1f1b ranks=4" --pipe-insert-transfers --pipe-print-timetable -o %t | FileCheck %s --check-prefix=ONE --strict-whitespace

// GPIPE:// 4 ranks, 4 micro-batches, 14 slots; cells: F forward, B backward, then the micro-batch{{$}}
// GPIPE-NEXT:// rank 0 | F0 F1 F2 F3                   B0 B1 B2 B3{{$}}
// GPIPE-NEXT:// rank 1 |    F0 F1 F2 F3             B0 B1 B2 B3{{$}}
// GPIPE-NEXT:// rank 2 |       F0 F1 F2 F3       B0 B1 B2 B3{{$}}
// GPIPE-NEXT:// rank 3 |          F0 F1 F2 F3 B0 B1 B2 B3{{$}}

// ONE:// 4 ranks, 4 micro-batches, 14 slots; cells: F forward, B backward, then the micro-batch{{$}}
// ONE-NEXT:// rank 0 | F0 F1 F2 F3          B0    B1    B2    B3{{$}}
// ONE-NEXT:// rank 1 |    F0 F1 F2       B0 F3 B1    B2    B3{{$}}
// ONE-NEXT:// rank 2 |       F0 F1    B0 F2 B1 F3 B2    B3{{$}}
// ONE-NEXT:// rank 3 |          F0 B0 F1 B1 F2 B2 F3 B3{{$}}

// LOOPED:// 2 ranks, 4 stages, 4 micro-batches, 18 slots; cells: F forward, B backward, then stage.micro-batch{{$}}
// LOOPED-NEXT:// rank 0 | F0.0 F0.1 F0.2 F0.3 F2.0 F2.1 F2.2 F2.3           B2.0 B2.1 B2.2 B2.3 B0.0 B0.1 B0.2 B0.3{{$}}
// LOOPED-NEXT:// rank 1 |      F1.0 F1.1 F1.2 F1.3 F3.0 F3.1 F3.2 F3.3 B3.0 B3.1 B3.2 B3.3 B1.0 B1.1 B1.2 B1.3{{$}}

