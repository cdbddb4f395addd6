package objc

import "syscall"

// threadID names the OS thread that runs the caller; it is never zero.
func threadID() uintptr { return uintptr(syscall.Gettid()) }
