package runtime

import (
	"os"
	"syscall"
	"unsafe"
)

// mapGranule is what the offset of a mapping is a multiple of: the allocation granularity, which has been 64 KiB on every
// Windows.
func mapGranule() int { return max(64<<10, os.Getpagesize()) }

// mapFile maps n bytes of a file, which take length bytes of whole pages.
func mapFile(f *os.File, offset int64, n, length int) (mem []byte, unmap func(), err error) {
	h, err := syscall.CreateFileMapping(syscall.Handle(f.Fd()), nil, syscall.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, nil, &os.PathError{Op: "CreateFileMapping", Path: f.Name(), Err: err}
	}
	defer func() { _ = syscall.CloseHandle(h) }() // the view holds the mapping
	at, err := syscall.MapViewOfFile(h, syscall.FILE_MAP_READ, uint32(offset>>32), uint32(offset), uintptr(n))
	if err != nil {
		return nil, nil, &os.PathError{Op: "MapViewOfFile", Path: f.Name(), Err: err}
	}
	// The last page is there as a whole.
	mem = unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), length)
	return mem, func() { _ = syscall.UnmapViewOfFile(at) }, nil
}
