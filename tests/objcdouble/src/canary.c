// An object that answers every selector: the registers and stack words of the message are written down as they
// arrived, and the answer is what the test asked for. It knows nothing of any method's types: where each word should be
// is said by Apple's compiler (the table of placements), not by this code.
#include "double.h"
#include <string.h>

#if defined(__x86_64__)
enum { integers = 6 }; // rdi rsi rdx rcx r8 r9
#else
enum { integers = 9 }; // x0 … x8
#endif
enum { floats = 8, stack_words = 16, pointee_words = 6 };

struct message {
    uint64_t x[integers];
    uint64_t d[floats];
    uint64_t stack[stack_words];
    // What the pointers among them pointed to when the message arrived, as far as the test said they are pointers.
    uint64_t x_pointee[integers][pointee_words];
    uint64_t stack_pointee[stack_words][pointee_words];
    uint64_t count;
};

struct answer {
    uint64_t x[2];       // result registers
    uint64_t d;          // floating-point result
    uint64_t size;       // bytes of a result that is returned in memory
    uint64_t memory[8];  // that result
    uint64_t pointers_x; // bit i: argument register i is a pointer to a struct
    uint64_t pointers_stack;
    uint64_t error_x;    // 1 + the register that holds an NSError** to fill, 0 for none
    uint64_t error_stack;
};

struct message canary_message;
struct answer canary_answer;

struct message *objcdouble_canary_message(void) { return &canary_message; }
struct answer *objcdouble_canary_answer(void) { return &canary_answer; }

// Called by canary_imp with the saved registers and the address of the first stack argument.
struct answer *objcdouble_canary_record(const uint64_t *x, const uint64_t *d, const uint64_t *stack) {
    struct message *m = &canary_message;
    uint64_t count = m->count + 1;
    memset(m, 0, sizeof *m);
    m->count = count;
    memcpy(m->x, x, sizeof m->x);
    memcpy(m->d, d, sizeof m->d);
    memcpy(m->stack, stack, sizeof m->stack);
    struct answer *a = &canary_answer;
    for (int i = 0; i < integers; i++)
        if (a->pointers_x >> i & 1) memcpy(m->x_pointee[i], (void *)x[i], sizeof m->x_pointee[i]);
    for (int i = 0; i < stack_words; i++)
        if (a->pointers_stack >> i & 1) memcpy(m->stack_pointee[i], (void *)stack[i], sizeof m->stack_pointee[i]);
    if (a->error_x) *(id *)x[a->error_x - 1] = make_error("CanaryDomain", 42, "the canary fell off its perch");
    if (a->error_stack) *(id *)stack[a->error_stack - 1] = make_error("CanaryDomain", 42, "the canary fell off its perch");
#if defined(__x86_64__)
    if (a->size) {
        memcpy((void *)x[0], a->memory, a->size);
        a->x[0] = x[0];
    }
#else
    if (a->size) memcpy((void *)x[8], a->memory, a->size);
#endif
    return a;
}

void canary_imp(void);

void define_canary(void) {
    Class c = define_class("Canary", 0);
    // Only what NSObject must do itself is not recorded.
    static const char *own[] = {"init", "retain", "release", "autorelease", "dealloc", "class", "respondsToSelector:"};
    Class root = objc_getClass("NSObject");
    id probe = create(root);
    extern IMP objcdouble_lookup(id, SEL);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        define_method(c, own[i], (void *)objcdouble_lookup(probe, sel_registerName(own[i])));
    objc_release(probe);
    define_any(c, canary_imp);
}
