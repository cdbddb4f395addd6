// Blocks, as libsystem_blocks copies and frees them.
#include "double.h"
#include <stdlib.h>
#include <string.h>

enum { needs_free = 1 << 24, has_helpers = 1 << 25, is_global = 1 << 28, count_mask = 0xfffe };

void *_NSConcreteStackBlock[32], *_NSConcreteMallocBlock[32], *_NSConcreteGlobalBlock[32];
static _Atomic long live_blocks;

long objcdouble_live_blocks(void) { return live_blocks; }

void *_Block_copy(const void *p) {
    struct block *b = (struct block *)p;
    if (!b || b->flags & is_global) return b;
    if (b->flags & needs_free) {
        __atomic_add_fetch(&b->flags, 2, __ATOMIC_SEQ_CST);
        return b;
    }
    struct block *heap = malloc(b->descriptor->size);
    memcpy(heap, b, b->descriptor->size);
    heap->isa = _NSConcreteMallocBlock;
    heap->flags = (b->flags & ~0xffff) | needs_free | 2;
    if (heap->flags & has_helpers && heap->descriptor->copy) heap->descriptor->copy(heap, b);
    live_blocks++;
    return heap;
}

void _Block_release(const void *p) {
    struct block *b = (struct block *)p;
    if (!b || b->flags & is_global || !(b->flags & needs_free)) return;
    if (__atomic_sub_fetch(&b->flags, 2, __ATOMIC_SEQ_CST) & count_mask) return;
    if (b->flags & has_helpers && b->descriptor->dispose) b->descriptor->dispose(b);
    live_blocks--;
    free(b);
}
