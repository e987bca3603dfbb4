// RUN: pipewright-opt %s --split-input-file --verify-diagnostics

// collective (C1): one rank is no group.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects at least two ranks, each once, but got [0]}}
  %r = pipe.collective all_reduce in @s0 (%g) over [0] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// collective (C1): nobody is a member twice.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects at least two ranks, each once, but got [1, 0, 1]}}
  %r = pipe.collective all_reduce in @s0 (%g) over [1, 0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// collective (C1): one replica is no group.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.rank 0 train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{is over replicas, but the module has one alone}}
  %r = pipe.collective all_reduce in @s0 (%g) over replicas : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// collective (C2): nobody takes part in what others do.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.rank 2 train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{is of ranks [0, 1], but stands on rank 2}}
  %r = pipe.collective all_reduce in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// collective (C3): a broadcast has a root.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects a root with kind 'broadcast'}}
  %r = pipe.collective broadcast in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
}

// -----

// collective (C3): a sum that goes to one member has one, too.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects a root with kind 'reduce'}}
  %r = pipe.collective reduce in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// collective (C3): nothing else has one.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects no root with kind 'all_reduce'}}
  %r = pipe.collective all_reduce in @s0 (%g) over [0, 1] root 1 : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// Kinds are those that there are.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error-re @below {{expects one of all_reduce, {{.*}}, but got 'all_to_one'}}
  %r = pipe.collective all_to_one in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// collective (C3): the root is a member.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects one of ranks [0, 1] as its root, but got 2}}
  %r = pipe.collective broadcast in @s0 (%g) over [0, 1] root 2 : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
}

// -----

// collective (C3): the root is a replica.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [] {
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    }
  }
  pipe.rank 3 train {
    %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
    // expected-error @below {{expects one of 2 replicas as its root, but got 2}}
    %r = pipe.collective broadcast in @s0 (%g) over replicas root 2 : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// collective (C7): a bucket is of all that a stage updates.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 1>} {
  pipe.stage @s0 {
    pipe.forward sources [] {
    }
  }
  pipe.rank 0 train {
    %u = pipe.task update @s0 () : () -> !pipe.updated<@s0, split>
    // expected-error @below {{expects a bucket or one weight, but is of both}}
    %r = pipe.collective all_gather of @w bucket 0 in @s0 (%u) over replicas : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0, split>
  }
}

// -----

// collective (C8): replicas sum what a stage lends of its gradients.
module attributes {pipe.program = #pipe.program<replicas = 2, zero = 1>} {
  pipe.stage @s0 {
    pipe.forward sources [] {
    }
  }
  pipe.rank 0 train {
    %u = pipe.task update @s0 () : () -> !pipe.updated<@s0, split>
    // expected-error @below {{expects 'all_reduce' of one weight over replicas, but is 'all_gather'}}
    %r = pipe.collective all_gather of @w in @s0 (%u) over replicas : (!pipe.updated<@s0, split>) -> !pipe.updated<@s0, split>
  }
}

// -----

// collective (C4): gradients stay gradients.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects to return '!pipe.gradient<@s0>', but returns '!pipe.updated<@s0>'}}
  %r = pipe.collective all_reduce in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
}

// -----

// collective (C4): gradients are those of the stage.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  %u = pipe.task update @s0 (%g) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
  // expected-error @below {{expects the state of its stage, '!pipe.gradient<@s0>', but got '!pipe.updated<@s0>'}}
  %r = pipe.collective all_reduce in @s0 (%u) over [0, 1] : (!pipe.updated<@s0>) -> !pipe.gradient<@s0>
}

// -----

// collective (C5): gradients have no rounded copy.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{is of gradients, which have no rounded copy}}
  %r = pipe.collective all_reduce rounded in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// wait_collective (C1): gradients of one rank are there already.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.rank 0 train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects the result of a 'pipe.collective'}}
  pipe.wait_collective %g : !pipe.gradient<@s0>
}

// -----

// merge_statistics (C1): one replica has nothing to merge.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  // expected-error @below {{is over replicas, but the module has one alone}}
  pipe.merge_statistics in @s0 over replicas
}

// -----

// merge_statistics (C1): ranks of one replica have statistics of other stages.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  // expected-error @below {{is over ranks 0, 1, but expects replicas}}
  pipe.merge_statistics in @s0 over [0, 1]
}
}

// -----

// clip_gradients (C1): somebody clips.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects at least one rank, each once, but is over all replicas}}
  %c = pipe.clip_gradients in @s0 (%g) over replicas : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// clip_gradients (C1): a rank clips with itself.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.rank 2 train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{is of ranks 0, 1, but stands on rank 2}}
  %c = pipe.clip_gradients in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0>) -> !pipe.gradient<@s0>
}

// -----

// clip_gradients (C2): what it takes comes back.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects to return the types that it takes}}
  pipe.clip_gradients in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0>) -> ()
}

// -----

// clip_gradients (C2): nothing is taken twice.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{takes '!pipe.gradient<@s0>' twice}}
  %c:2 = pipe.clip_gradients in @s0 (%g, %g) over [0] : (!pipe.gradient<@s0>, !pipe.gradient<@s0>) -> (!pipe.gradient<@s0>, !pipe.gradient<@s0>)
}

// -----

// clip_gradients (C3): the norm of a part of the micro-batches is not that of all.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [] {
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    }
  }
  pipe.step train {
    %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0, partial>
    // expected-error @below {{expects whole gradients, but takes '!pipe.gradient<@s0, partial>'}}
    %c = pipe.clip_gradients in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, partial>
  }
}

// -----

// collective (C6): what is summed over replicas is not summed again.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [] {
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    }
  }
  pipe.step train {
    %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0, partial>
    %r = pipe.collective reduce_scatter in @s0 (%g) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, split>
    // expected-error @below {{expects a value that is partial over replicas, but got '!pipe.gradient<@s0, split>'}}
    %t = pipe.collective all_reduce in @s0 (%r) over replicas : (!pipe.gradient<@s0, split>) -> !pipe.gradient<@s0>
  }
}

// -----

// collective (C4): a part is not all.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [] {
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    }
  }
  pipe.step train {
    %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0, partial>
    // expected-error @below {{expects to return '!pipe.gradient<@s0, split>', but returns '!pipe.gradient<@s0>'}}
    %r = pipe.collective reduce_scatter in @s0 (%g) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0>
  }
}

// -----

// collective (C6): there are no weights of a part of the micro-batches.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [] {
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    }
  }
  pipe.step train {
    %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0, partial>
    // expected-error @below {{expects a value that is whole over replicas, but got '!pipe.gradient<@s0, partial>'}}
    %r = pipe.collective broadcast in @s0 (%g) over [0, 1] root 0 : (!pipe.gradient<@s0, partial>) -> !pipe.updated<@s0>
  }
}

// -----

// collective (C6): whole weights are not gathered.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [] {
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    }
  }
  pipe.step train {
    %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0, partial>
    %r = pipe.collective all_reduce in @s0 (%g) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0>
    %u = pipe.task update @s0 (%r) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0>
    // expected-error @below {{expects a value that is split over replicas, but got '!pipe.updated<@s0>'}}
    %w = pipe.collective all_gather in @s0 (%u) over replicas : (!pipe.updated<@s0>) -> !pipe.updated<@s0>
  }
}

// -----

// collective (C4): what replicas have is not changed by ranks.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
  pipe.stage @s0 {
    pipe.forward sources [] {
    }
    pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
    }
  }
  pipe.step train {
    %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0, partial>
    // expected-error @below {{expects to return '!pipe.gradient<@s0, partial>', but returns '!pipe.gradient<@s0>'}}
    %r = pipe.collective all_reduce in @s0 (%g) over [0, 1] : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0>
  }
}

// -----

// Nobody updates weights by a part of the micro-batches.
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects updated weights to be whole or split over replicas, but got partial ones}}
  %u = pipe.task update @s0 (%g) : (!pipe.gradient<@s0>) -> !pipe.updated<@s0, partial>
}

// -----

// keep_gradients (C1): a replica keeps its own part of a sum.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0, partial>
  // expected-error @below {{'pipe.keep_gradients' op expects '!pipe.gradient<@s0, split>', but takes '!pipe.gradient<@s0, partial>'}}
  %k = pipe.keep_gradients in @s0 (%g) : !pipe.gradient<@s0, partial>
}
}

// -----

// fold_gradients (C1): groups are the leaves of a binary tree.
module attributes {pipe.program = #pipe.program<>} {
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects a group of a power of two of them, but is of 1 of 6}}
  %k = pipe.fold_gradients in @s0 (%g) group 1 of 6 : !pipe.gradient<@s0>
}
}

// -----

// fold_gradients (C1): groups count from 0.
module attributes {pipe.program = #pipe.program<>} {
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0>
  // expected-error @below {{expects a group of a power of two of them, but is of 4 of 4}}
  %k = pipe.fold_gradients in @s0 (%g) group 4 of 4 : !pipe.gradient<@s0>
}
}

// -----

// fold_gradients (C2): of all gradients of the stage.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
pipe.stage @s0 {
  pipe.forward sources [] {
  }
  pipe.backward inputs [] outputs [] gradients_of [] input_gradients [] {
  }
}
pipe.step train {
  %g = pipe.task backward @s0 micro_batch 0 () : () -> !pipe.gradient<@s0, partial>
  %r = pipe.collective reduce_scatter in @s0 (%g) over replicas : (!pipe.gradient<@s0, partial>) -> !pipe.gradient<@s0, split>
  // expected-error @below {{expects all gradients of its stage, but takes '!pipe.gradient<@s0, split>'}}
  %k = pipe.fold_gradients in @s0 (%r) group 0 of 2 : !pipe.gradient<@s0, split>
}
}

// -----

// load_weights (C1): a replica loads its own part.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  // expected-error @below {{'pipe.load_weights' op expects to return '!pipe.updated<@s0, split>', but returns '!pipe.updated<@s0>'}}
  %l = pipe.load_weights in @s0 : !pipe.updated<@s0>
}
}

// -----

// load_weights (C2): what is in place takes no range.
module attributes {pipe.program = #pipe.program<replicas = 2>} {
pipe.stage @s0 {
  pipe.forward sources [] {
  }
}
pipe.step train {
  // expected-error @below {{expects no range of what is in place}}
  %l = pipe.load_weights in @s0 in_place range 0 : !pipe.updated<@s0, split>
}
}
