//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package runtime

import (
	"os"
	"syscall"
)

// mapGranule is what the offset of a mapping is a multiple of.
func mapGranule() int { return os.Getpagesize() }

// mapFile maps n bytes of a file, which take length bytes of whole pages.
func mapFile(f *os.File, offset int64, n, length int) (mem []byte, unmap func(), err error) {
	mem, err = syscall.Mmap(int(f.Fd()), offset, length, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return mem, func() { _ = syscall.Munmap(mem) }, nil
}
