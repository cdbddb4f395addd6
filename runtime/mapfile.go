package runtime

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"unsafe"
)

// MapFile maps a file of weights into memory, without reading it: a read-only slice of its bytes, of which [As] makes
// slices of elements. The system reads pages when they are used, and need not write them to swap space. The file must not
// be shortened while it is mapped: reading what is no longer there ends the process.
//
// The slice is released like any other; the file is unmapped when the device has let go of it. A file longer than the
// device's longest buffer is mapped in parts, with [MapFileRange].
func MapFile(rt *Runtime, path string) (Slice[uint8], error) {
	return mapRange("MapFile", rt, path, 0, -1)
}

// MapFileRange is [MapFile] for n bytes from offset on, which may be any.
func MapFileRange(rt *Runtime, path string, offset, n int64) (Slice[uint8], error) {
	const fn = "MapFileRange"
	if offset < 0 || n <= 0 || offset > math.MaxInt64-n {
		return Slice[uint8]{}, &Error{Func: fn, Arg: "range", Have: fmt.Sprintf("%d bytes at %d", n, offset), Need: "at least one byte of the file", Err: ErrShape}
	}
	return mapRange(fn, rt, path, offset, n)
}

// mapRange maps n bytes of a file, or all that there are if n is negative.
func mapRange(fn string, rt *Runtime, path string, offset, n int64) (Slice[uint8], error) {
	var none Slice[uint8]
	if err := rt.opened(fn); err != nil {
		return none, err
	}
	f, err := os.Open(path)
	if err != nil {
		return none, &Error{Func: fn, Arg: "path", Err: err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return none, &Error{Func: fn, Arg: "path", Err: err}
	}
	size := info.Size()
	if n < 0 {
		n = size
	}
	switch {
	case !info.Mode().IsRegular():
		return none, &Error{Func: fn, Arg: "path", Have: info.Mode().Type().String(), Need: "a regular file", Err: ErrMisuse}
	case n == 0:
		return none, &Error{Func: fn, Arg: "path", Have: "an empty file", Need: "at least one byte", Err: ErrShape}
	case offset > size-n:
		return none, &Error{Func: fn, Arg: "range", Have: fmt.Sprintf("%d bytes at %d", n, offset), Need: fmt.Sprintf("bytes of the file, which has %d", size), Err: ErrShape}
	}
	granule := int64(mapGranule())
	start := offset / granule * granule
	page := int64(os.Getpagesize())
	length := (offset - start + n + page - 1) / page * page
	if length > int64(rt.limits.buffer) {
		return none, &Error{Func: fn, Arg: "range", Have: fmt.Sprintf("%d bytes", length), Need: fmt.Sprintf("at most %d, the longest buffer of the device", rt.limits.buffer), Err: ErrLimit}
	}
	mem, unmap, err := mapFile(f, start, int(min(length, size-start)), int(length))
	if err != nil {
		return none, &Error{Func: fn, Arg: "path", Err: err}
	}
	a, err := rt.wrapMemory(fn, mem, true, unmap)
	if err != nil {
		unmap()
		return none, err
	}
	return Slice[uint8]{view: View{a: a, off: int(offset - start), n: int(n)}, owner: true}, nil
}

// readPages reads a part of a file into whole pages, where files cannot be mapped.
func readPages(f *os.File, offset int64, n, length int) (mem []byte, unmap func(), err error) {
	mem = pages(length)
	if _, err := f.ReadAt(mem[:n], offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	return mem, func() {}, nil
}

// pages is memory that begins with a page.
func pages(length int) []byte {
	page := os.Getpagesize()
	raw := make([]byte, length+page)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) & uintptr(page-1)
	return raw[skip : skip+uintptr(length) : skip+uintptr(length)]
}
