//===- CallOps.td - All ops of the call dialect ------------*- tablegen -*-===//
//
// The one file that TableGen reads.
//
//===----------------------------------------------------------------------===//

include "dialects/call/CallAttention.td"
include "dialects/call/CallLinear.td"
