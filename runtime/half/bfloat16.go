package half

import (
	"math"
	"strconv"
)

// BFloat16 is a bfloat16 number: 1 sign bit, 8 exponent bits, 7 fraction bits; a float32 without its lower half.
// Metal calls it bfloat.
type BFloat16 uint16

// Limits of BFloat16.
const (
	MaxBFloat16             = 0x1.fep127 // largest finite value
	SmallestNormalBFloat16  = 0x1p-126   // smallest positive normal value
	SmallestNonzeroBFloat16 = 0x1p-133   // smallest positive value
	bfloat16ExponentMask    = BFloat16(0x7f80)
)

// BFloat16FromFloat32 rounds f to the nearest BFloat16, ties to even.
func BFloat16FromFloat32(f float32) BFloat16 {
	b := math.Float32bits(f)
	if b&float32AbsMask > float32Infinity {
		// Rounding could carry a NaN whose payload is all low bits into infinity, or a full one into minus zero.
		return BFloat16(b>>16 | 0x0040)
	}
	return BFloat16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 is b as a float32: exact.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// IsNaN reports whether b is not a number.
func (b BFloat16) IsNaN() bool { return b&0x7fff > bfloat16ExponentMask }

// IsInf reports whether b is infinite: positively if sign > 0, negatively if sign < 0, either if sign == 0.
func (b BFloat16) IsInf(sign int) bool {
	return sign >= 0 && b == bfloat16ExponentMask || sign <= 0 && b == bfloat16ExponentMask|0x8000
}

// String is the shortest decimal number that float32 formatting gives for b.
func (b BFloat16) String() string { return strconv.FormatFloat(float64(b.Float32()), 'g', -1, 32) }
