//===- PipeStream.td - Streams and events of a rank --------*- tablegen -*-===//

#ifndef PIPEWRIGHT_DIALECTS_PIPE_PIPESTREAM_TD
#define PIPEWRIGHT_DIALECTS_PIPE_PIPESTREAM_TD

include "dialects/pipe/PipeBase.td"
include "dialects/pipe/PipeInterfaces.td"

class Pipe_EventOp<string mnemonic> : Pipe_OrderingOp<mnemonic> {
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$event,
                       Pipe_StreamAttr:$stream);
  let assemblyFormat = "$event `on` custom<Stream>($stream) attr-dict";
}

def Pipe_RecordEventOp : Pipe_EventOp<"record_event"> {
  let summary = "Fire an event when a stream has done what it has got so far";
  let description = [{
    Transfers record events of their own, which say that they are over.

    Constraints:
    - (C1) a link's other end is another rank.

    Life span: made by `pipe-assign-streams`, for targets with streams.

    Example:
    ```mlir
    pipe.record_event 1 on compute
    ```
  }];
}

def Pipe_WaitEventOp : Pipe_EventOp<"wait_event"> {
  let summary = "What a stream gets from here on begins after an event";
  let description = [{
    Constraints:
    - (C1) a link's other end is another rank.

    Life span: made by `pipe-assign-streams`, for targets with streams.

    Example:
    ```mlir
    pipe.wait_event 1 on send to 2
    ```
  }];
}

#endif // PIPEWRIGHT_DIALECTS_PIPE_PIPESTREAM_TD
