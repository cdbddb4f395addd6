// Selectors, classes, messages and reference counts.
#include "double.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct selector {
    const char *name;
    struct selector *next;
};

struct method {
    SEL sel;
    IMP imp;
};

// The method table is open-addressed and never changes once messages are sent, so that lookups take no lock.
enum { slots = 256 };
struct class {
    struct object object; // isa is the metaclass
    const char *name;
    Class parent;
    size_t size;
    bool meta;
    IMP any;
    int methods;
    struct method table[slots];
    Class next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct selector *selectors[4096];
static Class classes;
static _Atomic long live_objects, messages;

static void die(const char *what, const char *cls, const char *sel) {
    fprintf(stderr, "objcdouble: [%s %s]: %s\n", cls, sel, what);
    abort();
}

SEL sel_registerName(const char *name) {
    unsigned hash = 5381;
    for (const char *c = name; *c; c++) hash = hash * 33 + (unsigned char)*c;
    struct selector **bucket = &selectors[hash % 4096], *s;
    pthread_mutex_lock(&lock);
    for (s = *bucket; s && strcmp(s->name, name); s = s->next) {}
    if (!s) {
        s = malloc(sizeof *s);
        s->name = strdup(name);
        s->next = *bucket;
        *bucket = s;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

const char *sel_getName(SEL sel) { return sel ? sel->name : "<null selector>"; }

Class objc_getClass(const char *name) {
    pthread_mutex_lock(&lock);
    Class c = classes;
    while (c && strcmp(c->name, name)) c = c->next;
    pthread_mutex_unlock(&lock);
    return c;
}

Class object_getClass(id object) { return object ? object->isa : NULL; }
const char *class_getName(Class cls) { return cls ? cls->name : "nil"; }

static struct method *slot(Class cls, SEL sel) {
    size_t i = ((uintptr_t)sel >> 4) % slots;
    while (cls->table[i].sel && cls->table[i].sel != sel) i = (i + 1) % slots;
    return &cls->table[i];
}

static IMP find(Class cls, SEL sel) {
    for (; cls; cls = cls->parent) {
        struct method *m = slot(cls, sel);
        if (m->sel) return m->imp;
        if (cls->any) return cls->any;
    }
    return NULL;
}

// Called by objc_msgSend with a receiver that is not nil.
IMP objcdouble_lookup(id self, SEL sel) {
    messages++;
    IMP imp = find(self->isa, sel);
    if (!imp) die("unrecognized selector", self->isa->name, sel_getName(sel));
    return imp;
}

static Class root;

static Class new_class(const char *name, Class parent, size_t size, bool meta) {
    Class c = calloc(1, sizeof *c);
    c->name = name;
    c->parent = parent;
    c->size = sizeof(struct object) + size;
    c->meta = meta;
    return c;
}

Class define_class(const char *name, size_t size) {
    Class meta = new_class(name, root ? root->object.isa : NULL, 0, true);
    Class c = new_class(name, root, size, false);
    c->object.isa = meta;
    meta->object.isa = meta;
    if (!root) meta->parent = c;
    pthread_mutex_lock(&lock);
    c->next = classes;
    classes = c;
    pthread_mutex_unlock(&lock);
    return c;
}

void define_method(Class cls, const char *sel, void *imp) {
    struct method *m = slot(cls, sel_registerName(sel));
    if (m->sel || ++cls->methods > slots / 2) die("cannot define the method", cls->name, sel);
    *m = (struct method){sel_registerName(sel), (IMP)imp};
}

void define_class_method(Class cls, const char *sel, void *imp) { define_method(cls->object.isa, sel, imp); }
void define_any(Class cls, void *imp) { cls->any = (IMP)imp; }

id create(Class cls) {
    id o = calloc(1, cls->size);
    o->isa = cls;
    o->references = 1;
    live_objects++;
    return o;
}

static SEL sel_dealloc;

id objc_retain(id o) {
    if (o && !o->isa->meta) o->references++;
    return o;
}

void objc_release(id o) {
    if (!o || o->isa->meta) return;
    long left = --o->references;
    if (left < 0) die("released too often", o->isa->name, "release");
    if (left > 0) return;
    void (*dealloc)(id, SEL) = (void (*)(id, SEL))find(o->isa, sel_dealloc);
    dealloc(o, sel_dealloc);
    live_objects--;
    o->isa = NULL;
    free(o);
}

// Autorelease pools: a stack of objects per thread; a pool is the depth at which it was pushed.
static __thread id *pooled;
static __thread size_t depth, capacity, pools;

id objc_autorelease(id o) {
    if (!o) return o;
    if (!pools) die("autoreleased without a pool", o->isa->name, "autorelease");
    if (depth == capacity) {
        capacity = capacity ? 2 * capacity : 64;
        pooled = realloc(pooled, capacity * sizeof *pooled);
    }
    return pooled[depth++] = o;
}

void *objc_autoreleasePoolPush(void) {
    pools++;
    return (void *)((depth << 16) | pools);
}

void objc_autoreleasePoolPop(void *token) {
    size_t to = (uintptr_t)token >> 16, nesting = (uintptr_t)token & 0xffff;
    if (nesting != pools || to > depth) die("popped out of order or on another thread", "NSAutoreleasePool", "pop");
    pools--;
    while (depth > to) objc_release(pooled[--depth]);
}

// What the tests look at.
long objcdouble_live_objects(void) { return live_objects; }
long objcdouble_messages(void) { return messages; }
long objcdouble_retain_count(id o) { return o->references; }
long objcdouble_pools(void) { return (long)pools; }

static id method_alloc(Class cls, SEL sel) { return create(cls); }
static id method_self(id self, SEL sel) { return self; }
static id method_retain(id self, SEL sel) { return objc_retain(self); }
static void method_release(id self, SEL sel) { objc_release(self); }
static id method_autorelease(id self, SEL sel) { return objc_autorelease(self); }
static void method_dealloc(id self, SEL sel) {}
static Class method_class(id self, SEL sel) { return self->isa; }
static bool method_responds(id self, SEL sel, SEL asked) { return find(self->isa, asked) != NULL; }

void define_foundation(void);
void define_canary(void);
void define_metal(void);

__attribute__((constructor)) static void start(void) {
    sel_dealloc = sel_registerName("dealloc");
    root = define_class("NSObject", 0);
    define_class_method(root, "alloc", method_alloc);
    define_class_method(root, "new", method_alloc);
    define_method(root, "init", method_self);
    define_method(root, "retain", method_retain);
    define_method(root, "release", method_release);
    define_method(root, "autorelease", method_autorelease);
    define_method(root, "dealloc", method_dealloc);
    define_method(root, "class", method_class);
    define_method(root, "respondsToSelector:", method_responds);
    define_foundation();
    define_canary();
    define_metal();
}
