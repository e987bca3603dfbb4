// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// record_event (C1): a rank has no link to itself.
pipe.rank 1 train {
  // expected-error @below {{expects a link to another rank, but got its own, 1}}
  pipe.record_event 0 on send to 1
}

// -----

// wait_event (C1): a rank has no link to itself.
pipe.rank 1 train {
  // expected-error @below {{expects a link to another rank, but got its own, 1}}
  pipe.wait_event 0 on receive from 1
}

// -----

// Events belong to the program of a rank.
// expected-error @below {{expects parent op 'pipe.rank'}}
pipe.record_event 0 on compute

// -----

pipe.rank 1 train {
  // expected-error @below {{attribute 'event' failed to satisfy constraint}}
  pipe.wait_event -1 on compute
}

// -----

pipe.rank 1 train {
  // expected-error @below {{expects a stream, 'compute', 'collective', 'to_host', 'from_host', 'send to RANK' or 'receive from RANK', but got 'copy'}}
  pipe.record_event 0 on copy
}

// -----

pipe.rank 1 train {
  // expected-error @below {{expected 'to'}}
  pipe.record_event 0 on send from 0
}

// -----

pipe.rank 1 train {
  // expected-error @below {{expects a rank at the other end of a link, and none (-1) for other streams, but got receive and -1}}
  pipe.record_event 0 on receive from -1
}
