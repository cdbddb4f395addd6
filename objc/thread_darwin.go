//go:build amd64 || arm64

package objc

import (
	"sync"

	"github.com/ebitengine/purego"
)

var pthreadSelf = sync.OnceValue(func() uintptr {
	if backendAvailable() != nil {
		return 0
	}
	address, _ := findSymbol(System, "pthread_self")
	return address
})

// threadID names the OS thread that runs the caller; it is never zero.
func threadID() uintptr {
	if fn := pthreadSelf(); fn != 0 {
		if id, _, _ := purego.SyscallN(fn); id != 0 {
			return id
		}
	}
	return goroutineID()
}
