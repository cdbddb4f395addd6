// Package soft is a Metal device in Go. It answers Metal's selectors for compute with Go objects, so that a program
// written against package mtl runs on it unchanged, on any system, beside a GPU or instead of one:
//
//	import _ "github.com/ingot-metal/ingot/mtl/soft" // mtl.SystemDefaultDevice finds it where there is no GPU
//
// [New] makes a device that pretends to be a particular system: its GPU families, macOS version, limits, and the ways
// in which real systems fail (see [Options] and [Inject]). Kernels are executed by package simt, from the same libraries
// that a GPU takes.
//
// # How strict it is
//
// Most of what Metal leaves undefined is an error here, reported by the command buffer in which it happens
// (MTLCommandBufferErrorDomain) with the encoder, the dispatch, the kernel, the slot and the bytes:
//
//   - accesses outside of a buffer, misaligned ones, unbound slots, offsets beyond the buffer or not aligned as the argument
//     needs, constants shorter than their type, threadgroups over the pipeline's limit, threadgroup memory of no length or
//     over the device's limit, divergent barriers, kernels that do not end;
//   - hazards: two dispatches that no barrier separates, in a concurrent encoder or an indirect command buffer, touch
//     the same byte and one of them writes it. The detection is exact. It costs nothing where two dispatches cannot
//     meet; those that bind the same buffer, which one of them may write, run slower, as every access is noted;
//   - buffers that only an indirect command names and that are neither declared with useResource or useHeap nor in a residency
//     set; pipelines made without support for indirect command buffers; commands changed while they are executed;
//   - buffers and pipelines that were released too early, where nothing held them;
//   - misuse of the objects: encoding after endEncoding, two encoders at a time, unknown selectors, objects of another
//     device or class, ranges outside of their object.
//
// Not found are races within one dispatch (threads that touch the same bytes of a buffer, or of threadgroup memory without
// a barrier between them), reads of what was never written, and the results of integer divisions by zero and of shifts by
// more than the width. An access is checked against its buffer, as a GPU would have it, not against what the host takes
// for a part of the buffer.
//
// With [Options.Checks], also:
//
//   - reads of threadgroup memory that was not written since the threadgroup began, and of private variables that were never
//     written; loads that only move a value on within such memory may;
//   - races within a threadgroup: two threads touch the same byte of threadgroup or device memory, one of them writes, not
//     both are atomic, and no barrier with the flag of that memory lies between. A barrier without the flag orders only
//     what was read before it. Threads of a simdgroup are in order from instruction to instruction, on which much that
//     is shipped relies though Metal does not promise it; [Options.NoLockStep] wants a simdgroup barrier there, too;
//   - races between the threadgroups of a dispatch in device memory. Order by atomics is not followed: kernels that pass
//     data on so, and say it with a fence, are exempt;
//   - what depends on the order of threadgroups or simdgroups, by running them in that of [Options.Order].
//
// A write that changes nothing is no race: threads may store the same value. The history of accesses is bounded: where a
// dispatch touches more than 4 MiB of the buffers that it writes (1 MiB if by single bytes), the oldest part is forgotten,
// and races with it are not found.
//
// A command buffer that was misused while it was encoded is not executed at all. Misuse that no command buffer can
// report (a bad message to a device, say) fails the next one that is committed. Later command buffers of a queue run
// after one that failed, as in Metal.
//
// # Order
//
// Command buffers of one queue run one after the other, each spread over all cores; queues run side by side. Dispatches
// that no barrier orders run in the order of [Options.Order], which Metal does not promise.
//
// [Stats] tells what the device did and, with [Options.Counts], what each kernel did: instructions, lanes, bytes by slot.
//
// Encoders of a queue run in order here. Where Metal would let two of them run at the same time and they touch the same byte,
// one of them writing, the later one fails: a resource that is not tracked, or that an encoder uses without declaring it
// (residency sets declare nothing), without a fence, a barrier after queue stages, an event, or a wait of the host between
// them; and any resource in two queues without an event or a wait. That a resource is used undeclared, or by a second queue,
// the device learns when it happens: the accesses before that were not noted. The last 256 encoders are remembered.
//
// # What is missing
//
// Textures, samplers, argument buffers, function tables, counters but timestamps, dynamic libraries and drawing are not there; what
// asks for them gets an error, as from a Metal device without them.
package soft
