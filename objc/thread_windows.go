package objc

import "syscall"

var getCurrentThreadID = syscall.NewLazyDLL("kernel32.dll").NewProc("GetCurrentThreadId")

// threadID names the OS thread that runs the caller; it is never zero.
func threadID() uintptr {
	id, _, _ := getCurrentThreadID.Call()
	return id
}
