package runtime

import "unsafe"

// Element is what a [Slice] can hold: the scalar types that Metal kernels read and write. Float16 and BFloat16 of package
// runtime/half are covered, as types over uint16.
type Element interface {
	~float32 | ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64
}

// sizeOf is the size of an element in bytes.
func sizeOf[T Element]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// bytesOf is the memory of a Go slice.
func bytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*sizeOf[T]())
}
