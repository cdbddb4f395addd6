// Package mtl is Metal for compute, without cgo: Apple's classes as Go types, Apple's methods as Go methods.
//
//	device, err := mtl.SystemDefaultDevice()
//	queue := device.NewCommandQueue()
//	buffer := device.NewBufferWithLength(4096, mtl.ResourceStorageModeShared)
//
// # Names
//
// The types are Apple's without the prefix. A method is named by the first keyword of its selector, in Go's casing;
// where two selectors begin alike, the longer one has more keywords in its name. Each method's comment gives the
// selector, the macOS version that introduced it, and what is owned. NSError becomes an error, NSString a string, a C array
// with its count a slice, a block a function. Most of the package is generated (zz_*.go) from a description of the
// classes in internal/gen; some methods where Go wants another shape are written by hand: bytes, buffers with offsets,
// libraries, function constants.
//
// # Objects
//
// The types are small structs around an [objc.ID], to be copied freely; the zero value is nil, which answers zero. What
// comes from New… is the caller's to release; everything else is borrowed and lives until the innermost autorelease pool
// of the thread drains (objc.NewPool), so that code which asks for encoders or command buffers opens a pool. Descriptors are made
// for a device, NewHeapDescriptor(device) and so on: of Metal's own classes for a device of the system, and of Go
// classes for a device in Go.
//
// # Devices
//
// [SystemDefaultDevice] and [Devices] find the system's devices, and those that were registered: importing
// mtl/soft registers a device in Go that runs everywhere. Whether a feature is there is asked (RespondsTo,
// SupportsFamily), never guessed from names. The oldest supported macOS is 14; a method that is newer fails with an error,
// returned or latched (objc.TakeError), on objects that do not answer it.
//
// Nothing in this package has been run on Apple hardware by its authors; see the status table in
// the repository's README.
package mtl

//go:generate go run ./internal/gen/mtlgen
