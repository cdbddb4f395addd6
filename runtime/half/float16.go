package half

import (
	"math"
	"strconv"
)

// Float16 is an IEEE 754 binary16 number: 1 sign bit, 5 exponent bits, 10 fraction bits. Metal calls it half.
type Float16 uint16

// Limits of Float16.
const (
	MaxFloat16              = 65504.0            // largest finite value
	SmallestNormalFloat16   = 1.0 / (1 << 14)    // smallest positive normal value, 2⁻¹⁴
	SmallestNonzeroFloat16  = 1.0 / (1 << 24)    // smallest positive value, 2⁻²⁴
	float16ExponentMask     = Float16(0x7c00)    // all exponent bits
	float16FractionMask     = Float16(0x03ff)    // all fraction bits
	float16QuietBit         = uint32(0x0200)     // upper fraction bit: set in quiet NaNs
	float32AbsMask          = uint32(0x7fffffff) // everything but the sign
	float32Infinity         = uint32(0x7f800000)
	float32Hidden           = uint32(0x00800000) // the bit that a normal significand has above its fraction
	float16OverflowFloat32  = uint32(0x477ff000) // 65520: halfway between MaxFloat16 and 2¹⁶, the first that rounds to infinity
	float16NormalFloat32    = uint32(0x38800000) // 2⁻¹⁴
	float16UnderflowFloat32 = uint32(0x33000000) // 2⁻²⁵: halfway to the smallest value, the last that rounds to zero
	float16Rebias           = uint32(127-15) << 23
)

// Float16FromFloat32 rounds f to the nearest Float16, ties to even.
func Float16FromFloat32(f float32) Float16 {
	b := math.Float32bits(f)
	sign, a := b>>16&0x8000, b&float32AbsMask
	switch {
	case a > float32Infinity:
		return Float16(sign | uint32(float16ExponentMask) | float16QuietBit | a>>13&uint32(float16FractionMask))
	case a >= float16OverflowFloat32:
		return Float16(sign | uint32(float16ExponentMask))
	case a >= float16NormalFloat32:
		// A carry out of the fraction moves on into the exponent, which is what rounding up to a power of two means.
		a -= float16Rebias
		return Float16(sign | (a+0x0fff+a>>13&1)>>13)
	case a <= float16UnderflowFloat32:
		return Float16(sign)
	}
	// Subnormal: the significand counts units of 2^(exponent-150), the result units of 2⁻²⁴.
	shift := 126 - a>>23
	significand := a&(float32Hidden-1) | float32Hidden
	q, rest, tie := significand>>shift, significand&(1<<shift-1), uint32(1)<<(shift-1)
	if rest > tie || rest == tie && q&1 != 0 {
		q++
	}
	return Float16(sign | q)
}

// Float32 is h as a float32: exact.
func (h Float16) Float32() float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h&float16ExponentMask)>>10, uint32(h&float16FractionMask)
	switch exponent {
	case 0:
		// Zero or subnormal; the product of a small integer and a power of two is exact.
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*SmallestNonzeroFloat16))
	case 31:
		return math.Float32frombits(sign | float32Infinity | fraction<<13)
	}
	return math.Float32frombits(sign | exponent<<23 + float16Rebias | fraction<<13)
}

// IsNaN reports whether h is not a number.
func (h Float16) IsNaN() bool { return h&0x7fff > float16ExponentMask }

// IsInf reports whether h is infinite: positively if sign > 0, negatively if sign < 0, either if sign == 0.
func (h Float16) IsInf(sign int) bool {
	return sign >= 0 && h == float16ExponentMask || sign <= 0 && h == float16ExponentMask|0x8000
}

// String is the shortest decimal number that float32 formatting gives for h.
func (h Float16) String() string { return strconv.FormatFloat(float64(h.Float32()), 'g', -1, 32) }
