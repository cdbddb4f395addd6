package objc

import "math"

// Floating-point numbers travel as words.

func float32FromBits(w uint64) float32 { return math.Float32frombits(uint32(w)) }
func float64FromBits(w uint64) float64 { return math.Float64frombits(w) }
func float32Bits(f float32) uintptr    { return uintptr(math.Float32bits(f)) }
func float64Bits(f float64) uintptr    { return uintptr(math.Float64bits(f)) }
