//go:build !linux && !windows

package objc

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutineID names the caller's goroutine: while a pool is open the goroutine has its thread for itself, so that either
// names the other. It is never zero.
func goroutineID() uintptr {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	if i := bytes.IndexByte(text, ' '); i > 0 {
		if n, err := strconv.ParseUint(string(text[:i]), 10, 64); err == nil {
			return uintptr(n)
		}
	}
	return 1
}
