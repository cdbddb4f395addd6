// NSString, NSError, NSArray and dispatch_data.
#include "double.h"
#include <stdlib.h>
#include <string.h>

static Class cls_string, cls_error, cls_array, cls_data;

struct string { char *text; };

id make_string(const char *text) {
    id s = create(cls_string);
    FIELDS(string, s)->text = strdup(text);
    return s;
}

const char *string_text(id s) { return s ? FIELDS(string, s)->text : NULL; }

static id string_init_bytes(id self, SEL sel, const void *bytes, NSUInteger length, NSUInteger encoding) {
    FIELDS(string, self)->text = strndup(bytes, length);
    return self;
}
static const char *string_utf8(id self, SEL sel) { return FIELDS(string, self)->text; }
static NSUInteger string_length(id self, SEL sel) { return strlen(FIELDS(string, self)->text); }
static void string_dealloc(id self, SEL sel) { free(FIELDS(string, self)->text); }

struct error { id domain; NSInteger code; id text; };

id make_error(const char *domain, NSInteger code, const char *text) {
    id e = create(cls_error);
    *FIELDS(error, e) = (struct error){make_string(domain), code, make_string(text)};
    return objc_autorelease(e);
}

static id error_domain(id self, SEL sel) { return FIELDS(error, self)->domain; }
static NSInteger error_code(id self, SEL sel) { return FIELDS(error, self)->code; }
static id error_text(id self, SEL sel) { return FIELDS(error, self)->text; }
static id error_info(id self, SEL sel) { return NULL; }
static void error_dealloc(id self, SEL sel) {
    objc_release(FIELDS(error, self)->domain);
    objc_release(FIELDS(error, self)->text);
}

struct array { NSUInteger count; id *objects; };

static id array_init(id self, SEL sel, const id *objects, NSUInteger count) {
    struct array *f = FIELDS(array, self);
    f->count = count;
    f->objects = calloc(count + 1, sizeof(id));
    for (NSUInteger i = 0; i < count; i++) f->objects[i] = objc_retain(objects[i]);
    return self;
}
id make_array(const id *objects, NSUInteger count) { return array_init(create(cls_array), NULL, objects, count); }
static id array_with(id self, SEL sel, const id *objects, NSUInteger count) { return objc_autorelease(make_array(objects, count)); }
static NSUInteger array_count(id self, SEL sel) { return FIELDS(array, self)->count; }
static id array_at(id self, SEL sel, NSUInteger i) { return FIELDS(array, self)->objects[i]; }
static void array_dealloc(id self, SEL sel) {
    struct array *f = FIELDS(array, self);
    for (NSUInteger i = 0; i < f->count; i++) objc_release(f->objects[i]);
    free(f->objects);
}

struct data { size_t length; void *bytes; };

// With the default destructor (NULL) the bytes are copied.
id dispatch_data_create(const void *bytes, size_t length, void *queue, void *destructor) {
    id d = create(cls_data);
    *FIELDS(data, d) = (struct data){length, malloc(length ? length : 1)};
    memcpy(FIELDS(data, d)->bytes, bytes, length);
    return d;
}
size_t dispatch_data_get_size(id d) { return FIELDS(data, d)->length; }
void dispatch_release(id d) { objc_release(d); }
const void *data_bytes(id d) { return FIELDS(data, d)->bytes; }
size_t data_length(id d) { return FIELDS(data, d)->length; }
static void data_dealloc(id self, SEL sel) { free(FIELDS(data, self)->bytes); }

void define_foundation(void) {
    cls_string = define_class("NSString", sizeof(struct string));
    define_method(cls_string, "initWithBytes:length:encoding:", string_init_bytes);
    define_method(cls_string, "UTF8String", string_utf8);
    define_method(cls_string, "length", string_length);
    define_method(cls_string, "dealloc", string_dealloc);
    cls_error = define_class("NSError", sizeof(struct error));
    define_method(cls_error, "domain", error_domain);
    define_method(cls_error, "code", error_code);
    define_method(cls_error, "localizedDescription", error_text);
    define_method(cls_error, "userInfo", error_info);
    define_method(cls_error, "dealloc", error_dealloc);
    cls_array = define_class("NSArray", sizeof(struct array));
    define_class_method(cls_array, "arrayWithObjects:count:", array_with);
    define_method(cls_array, "count", array_count);
    define_method(cls_array, "objectAtIndex:", array_at);
    define_method(cls_array, "dealloc", array_dealloc);
    cls_data = define_class("OS_dispatch_data", sizeof(struct data));
    define_method(cls_data, "dealloc", data_dealloc);
}
