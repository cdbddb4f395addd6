//go:build !linux && !windows && !(darwin && (amd64 || arm64))

package objc

// threadID names the OS thread that runs the caller, by its goroutine; it is never zero.
func threadID() uintptr { return goroutineID() }
