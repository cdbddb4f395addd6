// A Metal device that keeps the books and computes nothing: the objects, ownership, errors and completion of Metal, so
// that the host path of a program can be run, counted and checked for leaks. Work is complete as soon as it is committed.
#include "double.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Class cls_device, cls_buffer, cls_queue, cls_command_buffer, cls_encoder, cls_library, cls_function, cls_pipeline,
    cls_indirect, cls_command, cls_event, cls_residency;

// What the tests may change.
static long newest_apple_family = 1009;
void objcdouble_set_newest_apple_family(long family) { newest_apple_family = family; }
static _Atomic long executed_commands;
long objcdouble_executed_commands(void) { return executed_commands; }

static void nothing(id self, SEL sel) {}
static id a_new(Class cls) { return create(cls); }
static id a_borrowed(Class cls) { return objc_autorelease(create(cls)); }

// Buffers.
struct buffer { void *contents; NSUInteger length; };

static id new_buffer(NSUInteger length) {
    id b = create(cls_buffer);
    *FIELDS(buffer, b) = (struct buffer){calloc(1, length ? length : 1), length};
    return b;
}
static id device_buffer(id self, SEL sel, NSUInteger length, NSUInteger options) { return length ? new_buffer(length) : NULL; }
static id device_buffer_bytes(id self, SEL sel, const void *bytes, NSUInteger length, NSUInteger options) {
    if (!length) return NULL;
    id b = new_buffer(length);
    memcpy(FIELDS(buffer, b)->contents, bytes, length);
    return b;
}
static void *buffer_contents(id self, SEL sel) { return FIELDS(buffer, self)->contents; }
static NSUInteger buffer_length(id self, SEL sel) { return FIELDS(buffer, self)->length; }
static uint64_t buffer_address(id self, SEL sel) { return (uint64_t)(uintptr_t)FIELDS(buffer, self)->contents; }
static void buffer_dealloc(id self, SEL sel) { free(FIELDS(buffer, self)->contents); }

// Libraries, functions, pipelines.
struct named { id name; };

static id named(Class cls, const char *name) {
    id o = create(cls);
    FIELDS(named, o)->name = make_string(name);
    return o;
}
static id named_name(id self, SEL sel) { return FIELDS(named, self)->name; }
static void named_dealloc(id self, SEL sel) { objc_release(FIELDS(named, self)->name); }

static id device_library(id self, SEL sel, id data, id *error) {
    if (data_length(data) < 4 || memcmp(data_bytes(data), "MTLB", 4)) {
        if (error) *error = make_error("MTLLibraryErrorDomain", 1, "not a metallib");
        return NULL;
    }
    return a_new(cls_library);
}
static id device_source(id self, SEL sel, id source, id options, id *error) {
    if (strstr(string_text(source), "#error")) {
        if (error) *error = make_error("MTLLibraryErrorDomain", 3, "program_source:1:2: error: as asked");
        return NULL;
    }
    return a_new(cls_library);
}
static id library_function(id self, SEL sel, id name) {
    return strncmp(string_text(name), "missing", 7) ? named(cls_function, string_text(name)) : NULL;
}
static id library_function_constants(id self, SEL sel, id name, id values, id *error) {
    id f = library_function(self, sel, name);
    if (!f && error) *error = make_error("MTLLibraryErrorDomain", 5, "no such function");
    return f;
}
static id device_pipeline(id self, SEL sel, id function, id *error) { return named(cls_pipeline, "pipeline"); }
static id device_pipeline_descriptor(id self, SEL sel, id descriptor, NSUInteger options, id *reflection, id *error) {
    return named(cls_pipeline, "pipeline");
}
static NSUInteger pipeline_max_threads(id self, SEL sel) { return 1024; }
static NSUInteger pipeline_width(id self, SEL sel) { return 32; }
static NSUInteger pipeline_static_memory(id self, SEL sel) { return 0; }
static bool yes(id self, SEL sel) { return true; }

// Indirect command buffers.
struct indirect { NSUInteger size; };

static id device_indirect(id self, SEL sel, id descriptor, NSUInteger count, NSUInteger options) {
    id o = create(cls_indirect);
    FIELDS(indirect, o)->size = count;
    return o;
}
static NSUInteger indirect_size(id self, SEL sel) { return FIELDS(indirect, self)->size; }
static id indirect_command(id self, SEL sel, NSUInteger index) {
    return index < FIELDS(indirect, self)->size ? a_borrowed(cls_command) : NULL;
}
static void indirect_reset(id self, SEL sel, NSRange range) {}
static void command_dispatch(id self, SEL sel, MTLSize groups, MTLSize threads) {}

// Events.
struct event { _Atomic uint64_t value; };

static id device_event(id self, SEL sel) { return a_new(cls_event); }
static uint64_t event_value(id self, SEL sel) { return FIELDS(event, self)->value; }
static void event_set(id self, SEL sel, uint64_t value) { FIELDS(event, self)->value = value; }
static bool event_wait(id self, SEL sel, uint64_t value, uint64_t milliseconds) {
    for (uint64_t i = 0; FIELDS(event, self)->value < value; i++) {
        if (i >= milliseconds) return false;
        usleep(1000);
    }
    return true;
}

// Command buffers.
enum { max_signals = 8, max_handlers = 8 };
struct command_buffer {
    NSUInteger status;
    int signals, handlers;
    id event[max_signals];
    uint64_t value[max_signals];
    struct block *handler[max_handlers];
};

static id device_queue(id self, SEL sel) { return a_new(cls_queue); }
static id device_queue_limited(id self, SEL sel, NSUInteger count) { return a_new(cls_queue); }
static id queue_buffer(id self, SEL sel) { return a_borrowed(cls_command_buffer); }
static id queue_buffer_descriptor(id self, SEL sel, id descriptor) { return a_borrowed(cls_command_buffer); }
static id command_buffer_encoder(id self, SEL sel) { return a_borrowed(cls_encoder); }
static id command_buffer_encoder_type(id self, SEL sel, NSUInteger type) { return a_borrowed(cls_encoder); }
static void command_buffer_signal(id self, SEL sel, id event, uint64_t value) {
    struct command_buffer *f = FIELDS(command_buffer, self);
    if (f->signals == max_signals) abort();
    f->event[f->signals] = objc_retain(event);
    f->value[f->signals++] = value;
}
static void command_buffer_handler(id self, SEL sel, void *block) {
    struct command_buffer *f = FIELDS(command_buffer, self);
    if (f->handlers == max_handlers) abort();
    f->handler[f->handlers++] = _Block_copy(block);
}
static void *call_handlers(void *p) {
    struct command_buffer *f = FIELDS(command_buffer, p);
    for (int i = 0; i < f->handlers; i++) {
        ((void (*)(void *, id))f->handler[i]->invoke)(f->handler[i], p);
        _Block_release(f->handler[i]);
    }
    f->handlers = 0;
    objc_release(p);
    return NULL;
}
static void command_buffer_commit(id self, SEL sel) {
    struct command_buffer *f = FIELDS(command_buffer, self);
    f->status = 4;
    for (int i = 0; i < f->signals; i++) FIELDS(event, f->event[i])->value = f->value[i];
    if (f->handlers) {
        pthread_t thread;
        pthread_create(&thread, NULL, call_handlers, objc_retain(self));
        pthread_detach(thread);
    }
}
static NSUInteger command_buffer_status(id self, SEL sel) { return FIELDS(command_buffer, self)->status; }
static id command_buffer_error(id self, SEL sel) { return NULL; }
static double command_buffer_start(id self, SEL sel) { return 1.25; }
static double command_buffer_end(id self, SEL sel) { return 1.5; }
static void command_buffer_dealloc(id self, SEL sel) {
    struct command_buffer *f = FIELDS(command_buffer, self);
    for (int i = 0; i < f->signals; i++) objc_release(f->event[i]);
    for (int i = 0; i < f->handlers; i++) _Block_release(f->handler[i]);
}
static void encoder_execute(id self, SEL sel, id indirect, NSRange range) { executed_commands += range.length; }
static void encoder_dispatch(id self, SEL sel, MTLSize groups, MTLSize threads) {
    executed_commands += groups.width * groups.height * groups.depth != 0;
}

// The device.
static id the_device;
id MTLCreateSystemDefaultDevice(void) { return objc_retain(the_device); }
id MTLCopyAllDevices(void) { return make_array(&the_device, 1); }
static id device_architecture(id self, SEL sel) {
    return objc_autorelease(named(objc_getClass("MTLArchitecture"), "double"));
}
static uint64_t device_registry_id(id self, SEL sel) { return 42; }
static bool device_family(id self, SEL sel, NSInteger family) {
    return (family >= 1001 && family <= newest_apple_family) || family == 5001 || family == 3003 || family == 2002;
}
static uint64_t device_working_set(id self, SEL sel) { return 8ul << 30; }
static NSUInteger device_max_buffer(id self, SEL sel) { return 4ul << 30; }
static NSUInteger device_allocated(id self, SEL sel) { return 0; }
static NSUInteger device_threadgroup_memory(id self, SEL sel) { return 32768; }
static MTLSize device_max_threads(id self, SEL sel) { return (MTLSize){1024, 1024, 1024}; }
static id device_residency(id self, SEL sel, id descriptor, id *error) { return a_new(cls_residency); }

static void define_nothing(Class cls, const char *const *names) {
    for (; *names; names++) define_method(cls, *names, nothing);
}

static void define_descriptor(const char *name, const char *const *setters) { define_nothing(define_class(name, 0), setters); }

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

void define_metal(void) {
    cls_buffer = define_class("MTLDoubleBuffer", sizeof(struct buffer));
    define_method(cls_buffer, "contents", buffer_contents);
    define_method(cls_buffer, "length", buffer_length);
    define_method(cls_buffer, "allocatedSize", buffer_length);
    define_method(cls_buffer, "gpuAddress", buffer_address);
    define_method(cls_buffer, "dealloc", buffer_dealloc);
    define_nothing(cls_buffer, NAMES("setLabel:", "didModifyRange:"));

    cls_library = define_class("MTLDoubleLibrary", 0);
    define_method(cls_library, "newFunctionWithName:", library_function);
    define_method(cls_library, "newFunctionWithName:constantValues:error:", library_function_constants);
    define_nothing(cls_library, NAMES("setLabel:"));
    cls_function = define_class("MTLDoubleFunction", sizeof(struct named));
    define_method(cls_function, "name", named_name);
    define_method(cls_function, "dealloc", named_dealloc);
    define_nothing(cls_function, NAMES("setLabel:"));
    cls_pipeline = define_class("MTLDoubleComputePipelineState", sizeof(struct named));
    define_method(cls_pipeline, "label", named_name);
    define_method(cls_pipeline, "dealloc", named_dealloc);
    define_method(cls_pipeline, "maxTotalThreadsPerThreadgroup", pipeline_max_threads);
    define_method(cls_pipeline, "threadExecutionWidth", pipeline_width);
    define_method(cls_pipeline, "staticThreadgroupMemoryLength", pipeline_static_memory);
    define_method(cls_pipeline, "supportIndirectCommandBuffers", yes);

    cls_indirect = define_class("MTLDoubleIndirectCommandBuffer", sizeof(struct indirect));
    define_method(cls_indirect, "size", indirect_size);
    define_method(cls_indirect, "indirectComputeCommandAtIndex:", indirect_command);
    define_method(cls_indirect, "resetWithRange:", indirect_reset);
    define_nothing(cls_indirect, NAMES("setLabel:"));
    cls_command = define_class("MTLDoubleIndirectComputeCommand", 0);
    define_method(cls_command, "concurrentDispatchThreadgroups:threadsPerThreadgroup:", command_dispatch);
    define_method(cls_command, "concurrentDispatchThreads:threadsPerThreadgroup:", command_dispatch);
    define_nothing(cls_command, NAMES("setComputePipelineState:", "setKernelBuffer:offset:atIndex:",
                                      "setThreadgroupMemoryLength:atIndex:", "setBarrier", "clearBarrier", "reset"));

    cls_event = define_class("MTLDoubleSharedEvent", sizeof(struct event));
    define_method(cls_event, "signaledValue", event_value);
    define_method(cls_event, "setSignaledValue:", event_set);
    define_method(cls_event, "waitUntilSignaledValue:timeoutMS:", event_wait);
    define_nothing(cls_event, NAMES("setLabel:"));
    cls_residency = define_class("MTLDoubleResidencySet", 0);
    define_nothing(cls_residency, NAMES("addAllocation:", "addAllocations:count:", "removeAllocation:", "commit",
                                        "requestResidency", "endResidency", "removeAllAllocations"));

    cls_queue = define_class("MTLDoubleCommandQueue", 0);
    define_method(cls_queue, "commandBuffer", queue_buffer);
    define_method(cls_queue, "commandBufferWithUnretainedReferences", queue_buffer);
    define_method(cls_queue, "commandBufferWithDescriptor:", queue_buffer_descriptor);
    define_nothing(cls_queue, NAMES("setLabel:", "addResidencySet:", "removeResidencySet:"));
    cls_command_buffer = define_class("MTLDoubleCommandBuffer", sizeof(struct command_buffer));
    define_method(cls_command_buffer, "computeCommandEncoder", command_buffer_encoder);
    define_method(cls_command_buffer, "computeCommandEncoderWithDispatchType:", command_buffer_encoder_type);
    define_method(cls_command_buffer, "blitCommandEncoder", command_buffer_encoder);
    define_method(cls_command_buffer, "encodeSignalEvent:value:", command_buffer_signal);
    define_method(cls_command_buffer, "addCompletedHandler:", command_buffer_handler);
    define_method(cls_command_buffer, "addScheduledHandler:", command_buffer_handler);
    define_method(cls_command_buffer, "commit", command_buffer_commit);
    define_method(cls_command_buffer, "status", command_buffer_status);
    define_method(cls_command_buffer, "error", command_buffer_error);
    define_method(cls_command_buffer, "GPUStartTime", command_buffer_start);
    define_method(cls_command_buffer, "GPUEndTime", command_buffer_end);
    define_method(cls_command_buffer, "dealloc", command_buffer_dealloc);
    define_nothing(cls_command_buffer, NAMES("enqueue", "waitUntilCompleted", "waitUntilScheduled", "setLabel:",
                                             "encodeWaitForEvent:value:", "pushDebugGroup:", "popDebugGroup",
                                             "useResidencySet:"));
    cls_encoder = define_class("MTLDoubleCommandEncoder", 0);
    define_method(cls_encoder, "executeCommandsInBuffer:withRange:", encoder_execute);
    define_method(cls_encoder, "dispatchThreadgroups:threadsPerThreadgroup:", encoder_dispatch);
    define_method(cls_encoder, "dispatchThreads:threadsPerThreadgroup:", encoder_dispatch);
    define_nothing(cls_encoder, NAMES("setComputePipelineState:", "setBuffer:offset:atIndex:", "setBufferOffset:atIndex:",
                                      "setBuffers:offsets:withRange:", "setBytes:length:atIndex:",
                                      "setThreadgroupMemoryLength:atIndex:", "useResource:usage:", "useResources:count:usage:",
                                      "useHeap:", "useHeaps:count:", "memoryBarrierWithScope:",
                                      "memoryBarrierWithResources:count:", "updateFence:", "waitForFence:", "endEncoding",
                                      "setLabel:", "pushDebugGroup:", "popDebugGroup", "insertDebugSignpost:",
                                      "fillBuffer:range:value:", "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:",
                                      "optimizeIndirectCommandBuffer:withRange:", "resetCommandsInBuffer:withRange:",
                                      "synchronizeResource:"));

    define_descriptor("MTLComputePipelineDescriptor",
                      NAMES("setComputeFunction:", "setSupportIndirectCommandBuffers:", "setLabel:",
                            "setMaxTotalThreadsPerThreadgroup:", "setThreadGroupSizeIsMultipleOfThreadExecutionWidth:"));
    define_descriptor("MTLIndirectCommandBufferDescriptor",
                      NAMES("setCommandTypes:", "setInheritBuffers:", "setInheritPipelineState:", "setMaxKernelBufferBindCount:",
                            "setMaxKernelThreadgroupMemoryBindCount:"));
    define_descriptor("MTLCommandBufferDescriptor", NAMES("setRetainedReferences:", "setErrorOptions:"));
    define_descriptor("MTLResidencySetDescriptor", NAMES("setLabel:", "setInitialCapacity:"));
    define_descriptor("MTLCompileOptions", NAMES("setLanguageVersion:", "setFastMathEnabled:", "setMathMode:",
                                                 "setMathFloatingPointFunctions:", "setPreserveInvariance:"));
    define_descriptor("MTLFunctionConstantValues", NAMES("setConstantValue:type:atIndex:", "setConstantValue:type:withName:"));

    Class architecture = define_class("MTLArchitecture", sizeof(struct named));
    define_method(architecture, "name", named_name);
    define_method(architecture, "dealloc", named_dealloc);

    cls_device = define_class("MTLDoubleDevice", sizeof(struct named));
    define_method(cls_device, "name", named_name);
    define_method(cls_device, "architecture", device_architecture);
    define_method(cls_device, "registryID", device_registry_id);
    define_method(cls_device, "supportsFamily:", device_family);
    define_method(cls_device, "hasUnifiedMemory", yes);
    define_method(cls_device, "recommendedMaxWorkingSetSize", device_working_set);
    define_method(cls_device, "currentAllocatedSize", device_allocated);
    define_method(cls_device, "maxBufferLength", device_max_buffer);
    define_method(cls_device, "maxThreadsPerThreadgroup", device_max_threads);
    define_method(cls_device, "maxThreadgroupMemoryLength", device_threadgroup_memory);
    define_method(cls_device, "newCommandQueue", device_queue);
    define_method(cls_device, "newCommandQueueWithMaxCommandBufferCount:", device_queue_limited);
    define_method(cls_device, "newBufferWithLength:options:", device_buffer);
    define_method(cls_device, "newBufferWithBytes:length:options:", device_buffer_bytes);
    define_method(cls_device, "newLibraryWithData:error:", device_library);
    define_method(cls_device, "newLibraryWithSource:options:error:", device_source);
    define_method(cls_device, "newComputePipelineStateWithFunction:error:", device_pipeline);
    define_method(cls_device, "newComputePipelineStateWithDescriptor:options:reflection:error:", device_pipeline_descriptor);
    define_method(cls_device, "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:", device_indirect);
    define_method(cls_device, "newSharedEvent", device_event);
    define_method(cls_device, "newEvent", device_event);
    define_method(cls_device, "newFence", device_event);
    define_method(cls_device, "newResidencySetWithDescriptor:error:", device_residency);
    the_device = named(cls_device, "Metal double");
}
