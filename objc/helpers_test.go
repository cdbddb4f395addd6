package objc

import (
	"math"
	"unsafe"
)

func ptr(p *int) unsafe.Pointer { return unsafe.Pointer(p) }

func float32Bits(f float32) uintptr { return uintptr(math.Float32bits(f)) }
func float64Bits(f float64) uintptr { return uintptr(math.Float64bits(f)) }
