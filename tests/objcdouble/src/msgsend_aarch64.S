// objc_msgSend for AArch64, and the implementation that writes a message down. Results in memory use x8 and plain
// objc_msgSend, so there is no second entry.
        .text

        .globl  objc_msgSend
        .type   objc_msgSend, %function
objc_msgSend:
        cbz     x0, 9f
        stp     x29, x30, [sp, #-224]!
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        str     x8, [sp, #80]
        stp     q0, q1, [sp, #96]
        stp     q2, q3, [sp, #128]
        stp     q4, q5, [sp, #160]
        stp     q6, q7, [sp, #192]
        bl      objcdouble_lookup
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldp     x2, x3, [sp, #32]
        ldp     x4, x5, [sp, #48]
        ldp     x6, x7, [sp, #64]
        ldr     x8, [sp, #80]
        ldp     q0, q1, [sp, #96]
        ldp     q2, q3, [sp, #128]
        ldp     q4, q5, [sp, #160]
        ldp     q6, q7, [sp, #192]
        ldp     x29, x30, [sp], #224
        br      x16
9:      mov     x1, #0
        movi    d0, #0
        ret
        .size   objc_msgSend, .-objc_msgSend

        .globl  canary_imp
        .type   canary_imp, %function
canary_imp:
        stp     x29, x30, [sp, #-160]!
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        str     x8, [sp, #80]
        stp     d0, d1, [sp, #88]
        stp     d2, d3, [sp, #104]
        stp     d4, d5, [sp, #120]
        stp     d6, d7, [sp, #136]
        add     x0, sp, #16
        add     x1, sp, #88
        add     x2, sp, #160
        bl      objcdouble_canary_record
        ldr     d0, [x0, #16]
        ldp     x0, x1, [x0]
        ldp     x29, x30, [sp], #160
        ret
        .size   canary_imp, .-canary_imp
        .section .note.GNU-stack,"",%progbits
