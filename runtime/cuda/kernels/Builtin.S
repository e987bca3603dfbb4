//===- Builtin.S - The PTX of builtin kernels as bytes of the runtime -----===//
//
// PIPEWRIGHT_BUILTIN_PTX and PIPEWRIGHT_ATTENTION_PTX are paths of PTX text.

        .section .rodata
        .globl pipewrightBuiltinPtx, pipewrightBuiltinPtxEnd
pipewrightBuiltinPtx:
        .incbin PIPEWRIGHT_BUILTIN_PTX
pipewrightBuiltinPtxEnd:
        .byte 0
        .globl pipewrightAttentionPtx, pipewrightAttentionPtxEnd
pipewrightAttentionPtx:
        .incbin PIPEWRIGHT_ATTENTION_PTX
pipewrightAttentionPtxEnd:
        .byte 0

        .section .note.GNU-stack, "", %progbits
