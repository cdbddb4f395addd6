//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package runtime

import "os"

// mapGranule is what the offset of a mapping is a multiple of.
func mapGranule() int { return os.Getpagesize() }

// mapFile reads n bytes of a file into length bytes of whole pages.
func mapFile(f *os.File, offset int64, n, length int) (mem []byte, unmap func(), err error) {
	return readPages(f, offset, n, length)
}
