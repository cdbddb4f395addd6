// objc_msgSend and objc_msgSend_stret for the System V calling convention (the one of macOS on x86-64), and the
// implementation that writes a message down.
        .text

// Saves every argument register, asks for the implementation, restores them and jumps to it.
.macro SEND name, receiver, selector
        .globl  \name
        .type   \name, @function
\name:
        testq   \receiver, \receiver
        jz      9f
        pushq   %rbp
        movq    %rsp, %rbp
        subq    $192, %rsp
        movq    %rdi, (%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rcx, 24(%rsp)
        movq    %r8, 32(%rsp)
        movq    %r9, 40(%rsp)
        movq    %rax, 48(%rsp)
        movups  %xmm0, 64(%rsp)
        movups  %xmm1, 80(%rsp)
        movups  %xmm2, 96(%rsp)
        movups  %xmm3, 112(%rsp)
        movups  %xmm4, 128(%rsp)
        movups  %xmm5, 144(%rsp)
        movups  %xmm6, 160(%rsp)
        movups  %xmm7, 176(%rsp)
.ifc \receiver, %rsi
        movq    %rsi, %rdi
        movq    %rdx, %rsi
.endif
        call    objcdouble_lookup@PLT
        movq    %rax, %r11
        movq    (%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %rdx
        movq    24(%rsp), %rcx
        movq    32(%rsp), %r8
        movq    40(%rsp), %r9
        movq    48(%rsp), %rax
        movups  64(%rsp), %xmm0
        movups  80(%rsp), %xmm1
        movups  96(%rsp), %xmm2
        movups  112(%rsp), %xmm3
        movups  128(%rsp), %xmm4
        movups  144(%rsp), %xmm5
        movups  160(%rsp), %xmm6
        movups  176(%rsp), %xmm7
        leave
        jmp     *%r11
9:      xorl    %eax, %eax
        xorl    %edx, %edx
        pxor    %xmm0, %xmm0
        ret
        .size   \name, .-\name
.endm

        SEND objc_msgSend, %rdi, %rsi
        // The result goes to memory that rdi points to; for nil that memory stays as it was.
        SEND objc_msgSend_stret, %rsi, %rdx

        .globl  canary_imp
        .type   canary_imp, @function
canary_imp:
        pushq   %rbp
        movq    %rsp, %rbp
        subq    $112, %rsp
        movq    %rdi, (%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rcx, 24(%rsp)
        movq    %r8, 32(%rsp)
        movq    %r9, 40(%rsp)
        movsd   %xmm0, 48(%rsp)
        movsd   %xmm1, 56(%rsp)
        movsd   %xmm2, 64(%rsp)
        movsd   %xmm3, 72(%rsp)
        movsd   %xmm4, 80(%rsp)
        movsd   %xmm5, 88(%rsp)
        movsd   %xmm6, 96(%rsp)
        movsd   %xmm7, 104(%rsp)
        movq    %rsp, %rdi
        leaq    48(%rsp), %rsi
        leaq    16(%rbp), %rdx
        call    objcdouble_canary_record@PLT
        movsd   16(%rax), %xmm0
        movq    8(%rax), %rdx
        movq    (%rax), %rax
        leave
        ret
        .size   canary_imp, .-canary_imp
        .section .note.GNU-stack,"",@progbits
