//===- PipeOps.td - All ops of the pipe dialect ------------*- tablegen -*-===//

include "dialects/pipe/PipeStructure.td"
include "dialects/pipe/PipeTask.td"
include "dialects/pipe/PipeTransfer.td"
include "dialects/pipe/PipeHost.td"
include "dialects/pipe/PipeCollective.td"
include "dialects/pipe/PipeBuffer.td"
include "dialects/pipe/PipeStream.td"
