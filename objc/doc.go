// Package objc sends Objective-C messages without cgo, and lets Go objects answer them.
//
// # Objects
//
// An [ID] is an object, a word. The receiver decides where a message goes: an object of the Objective-C runtime gets it
// through objc_msgSend; a Go object, made by a [GoClass], through the Go method of the selector; nil answers zero. Both may
// be used side by side. [Available] says why there is no Objective-C runtime, which is so everywhere but on macOS; Go
// objects work everywhere.
//
// # Messages
//
// A [Message] is a selector with its types, described once:
//
//	var msgDispatch = objc.NewMessage("dispatchThreads:threadsPerThreadgroup:", "v@:{MTLSize=QQQ}{MTLSize=QQQ}")
//
//	msgDispatch.Send(encoder, 1024, 1, 1, 64, 1, 1)
//
// Arguments are the logical words, structures flattened. A Go method gets the same words ([Call.Word]); for the
// Objective-C runtime they are placed as the architecture's convention says. Sending allocates nothing. What a message
// cannot report (an unknown selector, a panic in a Go method) is latched until [TakeError] asks; it never is a silent
// zero. A real object is asked whether it responds before it gets a message that is newer than the oldest supported
// macOS ([NewMessageSince]).
//
// # Ownership
//
// As in Objective-C: what comes from new, alloc, copy and init is the caller's to release (+1), everything else is
// borrowed, and lives at least until the innermost pool of the thread drains:
//
//	defer objc.NewPool().Drain()
//
// A pool belongs to one OS thread and locks the goroutine to it. Go objects that are borrowed follow the same rule.
// [LiveObjects] and [Parked] let tests prove that nothing leaks.
//
// # Pointers
//
// Pointers travel as words. Memory that a message points to is outside Go's stacks: a [Scratch] for small things, which
// copies and allocates nothing, or the caller's own through [Pointer], kept alive by runtime.KeepAlive.
//
// Of real systems only what the tests' double of the runtime shows has been tried; see the status table in
// the repository's README.
package objc
