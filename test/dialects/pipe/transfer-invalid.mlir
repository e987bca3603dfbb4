// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// post_receive (C1): a rank does not receive from itself.
pipe.rank 1 train {
  // expected-error @below {{expects another rank as peer, but got its own, 1}}
  %r = pipe.post_receive from 1 : !pipe.pending<tensor<4xf32>>
}

// -----

// post_send (C1): a rank does not send to itself.
pipe.rank 1 train {
  %r = pipe.post_receive from 0 : !pipe.pending<tensor<4xf32>>
  %x = pipe.wait_receive %r from 0 : tensor<4xf32>
  // expected-error @below {{expects another rank as peer, but got its own, 1}}
  %s = pipe.post_send %x to 1 : tensor<4xf32>
}

// -----

// wait_receive (C1): the peer is that of its post.
pipe.rank 1 train {
  %r = pipe.post_receive from 0 : !pipe.pending<tensor<4xf32>>
  // expected-error @below {{expects the peer of its post, 0, but got 2}}
  %x = pipe.wait_receive %r from 2 : tensor<4xf32>
}

// -----

// wait_send (C1): a receive is not waited for as a send.
pipe.rank 1 train {
  %r = pipe.post_receive from 0 : !pipe.pending<tensor<4xf32>>
  // expected-error @below {{expects the result of a 'pipe.post_send'}}
  pipe.wait_send %r to 0 : !pipe.pending<tensor<4xf32>>
}

// -----

// rank (C1): what is computed stands in bodies of stages.
pipe.rank 1 train {
  // expected-error @below {{has no place in a step or a rank's program}}
  %c = nn.constant dense<0.0> : tensor<4xf32>
}
