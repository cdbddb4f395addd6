package simt

import (
	"math"
	"math/bits"
)

// Formats. Denormal numbers are kept everywhere: a value is never flushed to zero. Narrowing rounds to nearest, ties to
// even; a NaN stays one and becomes quiet.

func halfToF32(h uint32) uint32 {
	// The exponent is moved by a multiplication, which also normalises denormal halves.
	f := math.Float32frombits((h & 0x7fff) << 13)
	r := math.Float32bits(f * 0x1p112)
	if h&0x7c00 == 0x7c00 {
		r |= 0x7f800000
	}
	return r | (h&0x8000)<<16
}

func f32ToHalf(f uint32) uint32 {
	sign := f >> 16 & 0x8000
	a := f & 0x7fffffff
	switch {
	case a >= 0x7f800000:
		if a > 0x7f800000 {
			return sign | 0x7e00 | a>>13&0x3ff
		}
		return sign | 0x7c00
	case a >= 0x477ff000: // rounds past the largest half
		return sign | 0x7c00
	case a >= 0x38800000:
		return sign | (a+0xfff+a>>13&1-0x38000000)>>13
	}
	// Adding 0.5 leaves the half's denormal bits, rounded, at the bottom of the significand.
	return sign | (math.Float32bits(math.Float32frombits(a)+0.5) - 0x3f000000)
}

func f32ToBFloat(f uint32) uint32 {
	if f&0x7fffffff > 0x7f800000 {
		return f>>16 | 0x40
	}
	return (f + 0x7fff + f>>16&1) >> 16
}

// f64ToF32Odd rounds to single precision so that a later rounding to a format of at most 11 bits is as if it had been
// done at once: an inexact result has its last bit set ("round to odd").
func f64ToF32Odd(d float64) uint32 {
	f := float32(d)
	b := math.Float32bits(f)
	if float64(f) == d || d != d || b&0x7fffffff == 0x7f800000 {
		return b
	}
	if b&1 == 0 { // rounded to even: step to the odd neighbour on d's side
		if (float64(f) < d) == (d > 0) {
			return b + 1
		}
		return b - 1
	}
	return b
}

func f64ToHalf(d float64) uint32   { return f32ToHalf(f64ToF32Odd(d)) }
func f64ToBFloat(d float64) uint32 { return f32ToBFloat(f64ToF32Odd(d)) }

// u64ToF64Odd converts so that a later rounding to 24 bits or fewer is exact.
func u64ToF64Odd(a uint64) float64 {
	if a>>53 == 0 {
		return float64(a)
	}
	n := 64 - 53 - bits.LeadingZeros64(a)
	top := a >> n
	if top<<n != a {
		top |= 1
	}
	return math.Ldexp(float64(top), n)
}

func s64ToF64Odd(a int64) float64 {
	if a < 0 {
		return -u64ToF64Odd(-uint64(a))
	}
	return u64ToF64Odd(uint64(a))
}

// f64ToS and f64ToU convert to an integer of w bits, rounding towards zero. Values beyond the range give its nearest
// end and a NaN gives 0, on every machine (LLVM leaves both undefined, Metal documents the saturation of its GPUs).
func f64ToS(d float64, w uint64) int64 {
	lim := math.Ldexp(1, int(w)-1)
	switch {
	case d != d:
		return 0
	case d >= lim:
		return int64(widthMask(w) >> 1)
	case d <= -lim:
		return int64(-(uint64(1) << (w - 1)) & widthMask(w))
	}
	return int64(uint64(int64(d)) & widthMask(w))
}

func f64ToU(d float64, w uint64) uint64 {
	switch {
	case !(d > 0):
		return 0
	case d >= math.Ldexp(1, int(w)):
		return widthMask(w)
	case d >= 1<<63:
		return uint64(d-1<<63) | 1<<63
	}
	return uint64(int64(d))
}

// The rounding directions of conversions other than to nearest.
const (
	roundZero = 1
	roundUp   = 2
	roundDown = 3
)

// direct corrects a value rounded to nearest, whose exact value in float64 is back and whose pattern in a
// sign-magnitude format is b, to the direction dir.
func direct(d, back float64, b, sign uint32, dir uint64) uint32 {
	if back == d || d != d {
		return b
	}
	neg := b&sign != 0
	if back > d && (dir == roundDown || dir == roundZero && !neg) || back < d && (dir == roundUp || dir == roundZero && neg) {
		// One step towards d: away from zero or towards it.
		if (back > d) == neg {
			return b + 1
		}
		return b - 1
	}
	return b
}

func f64ToF32Dir(d float64, dir uint64) uint32 {
	f := float32(d)
	return direct(d, float64(f), math.Float32bits(f), 1<<31, dir)
}

func f64ToHalfDir(d float64, dir uint64) uint32 {
	h := f64ToHalf(d)
	return direct(d, float64(math.Float32frombits(halfToF32(h))), h, 1<<15, dir)
}

func f64ToBFloatDir(d float64, dir uint64) uint32 {
	h := f64ToBFloat(d)
	return direct(d, float64(math.Float32frombits(h<<16)), h, 1<<15, dir)
}

// fma32 is a*b+c with one rounding. The product is exact in double precision; the sum is rounded to odd so that the
// final rounding is the only one.
func fma32(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	z := float64(c)
	s := p + z
	if s-s != 0 { // infinite or not a number
		return float32(s)
	}
	// The error of the sum, exactly (Knuth's two-sum).
	t := s - p
	e := (p - (s - t)) + (z - t)
	if e != 0 && math.Float64bits(s)&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

// fmaRounds tells whether the sum s in double precision of an exact product and a float must not simply be rounded to
// single precision: when it lies halfway between two floats (it may have been rounded to there), and when it is too small
// for a normal one.
func fmaRounds(s float64) bool {
	b := math.Float64bits(s)
	return b&0x1fffffff == 0x10000000 || b>>52&0x7ff-1 < 896
}

// fmin32 and fmax32 ignore a NaN operand, as Metal's fmin and fmax do.
func fmin32(a, b float32) float32 {
	if b < a || a != a {
		return b
	}
	return a
}

func fmax32(a, b float32) float32 {
	if b > a || a != a {
		return b
	}
	return a
}

func fmod32(a, b float32) float32 { return float32(math.Mod(float64(a), float64(b))) }

func fract32(a float32) float32 {
	f := a - float32(math.Floor(float64(a)))
	if f >= 1 { // the difference of a tiny negative number rounded up
		return math.Float32frombits(0x3f7fffff)
	}
	return f
}

func sign32(a float32) float32 {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	case a == 0:
		return a
	}
	return 0
}

func fdim32(a, b float32) float32 {
	if a <= b {
		return 0
	}
	return a - b
}

func ldexp32(a float32, e int32) float32 {
	// Large exponents are clamped where the result is settled; float64 holds every intermediate exactly.
	e = max(-400, min(400, e))
	return float32(math.Ldexp(float64(a), int(e)))
}

func frexpMant(a float32) float32 {
	m, _ := math.Frexp(float64(a))
	return float32(m)
}

func frexpExp(a float32) int32 {
	_, e := math.Frexp(float64(a))
	return int32(e)
}

func ilogb32(a float32) int32 {
	switch {
	case a == 0:
		return math.MinInt32
	case a-a != 0:
		return math.MaxInt32
	}
	_, e := math.Frexp(float64(a))
	return int32(e) - 1
}
