// A double of the Objective-C runtime, as much of it as a Metal program without cgo touches: the same exported
// functions with the same calling conventions, so that the purego end of package objc runs against it on Linux.
#ifndef DOUBLE_H
#define DOUBLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct object *id;
typedef struct class *Class;
typedef struct selector *SEL;
typedef void (*IMP)(void);
typedef unsigned long NSUInteger;
typedef long NSInteger;

// Every object starts with these two words; the fields of its class follow.
struct object {
    Class isa;
    _Atomic long references;
};

typedef struct { NSUInteger width, height, depth; } MTLSize;
typedef struct { NSUInteger location, length; } NSRange;

// runtime.c
SEL sel_registerName(const char *name);
const char *sel_getName(SEL sel);
Class objc_getClass(const char *name);
Class object_getClass(id object);
const char *class_getName(Class cls);
id objc_retain(id object);
void objc_release(id object);
id objc_autorelease(id object);
void *objc_autoreleasePoolPush(void);
void objc_autoreleasePoolPop(void *token);
// A class of objects with size bytes of fields; methods are added before the first message to it.
Class define_class(const char *name, size_t size);
void define_method(Class cls, const char *sel, void *imp);
void define_class_method(Class cls, const char *sel, void *imp);
// Messages for which the class has no method go to imp.
void define_any(Class cls, void *imp);
id create(Class cls); // one reference, zeroed fields

// blocks.c
struct block_descriptor {
    unsigned long reserved, size;
    void (*copy)(void *to, const void *from);
    void (*dispose)(const void *block);
};
struct block {
    void *isa;
    int flags, reserved;
    void (*invoke)(void);
    struct block_descriptor *descriptor;
};
void *_Block_copy(const void *block);
void _Block_release(const void *block);

// foundation.c
id make_string(const char *text);
id make_error(const char *domain, NSInteger code, const char *text); // autoreleased
id make_array(const id *objects, NSUInteger count);
const char *string_text(id string);
const void *data_bytes(id data);
size_t data_length(id data);

#define FIELDS(name, o) ((struct name *)((struct object *)(o) + 1))
#endif
