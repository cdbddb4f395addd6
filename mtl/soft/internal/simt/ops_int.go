package simt

import (
	"math/bits"
)

// Division by zero has no defined result in Metal; here the quotient is 0 and the remainder is the dividend, on every
// machine. The quotient of the least integer and -1 wraps around.

func udiv32(a, b uint32) uint32 {
	if b == 0 {
		return 0
	}
	return a / b
}

func urem32(a, b uint32) uint32 {
	if b == 0 {
		return a
	}
	return a % b
}

func sdiv32(a, b int32) int32 {
	if b == 0 {
		return 0
	}
	return a / b
}

func srem32(a, b int32) int32 {
	if b == 0 {
		return a
	}
	return a % b
}

func udiv64(a, b uint64) uint64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func urem64(a, b uint64) uint64 {
	if b == 0 {
		return a
	}
	return a % b
}

func sdiv64(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func srem64(a, b int64) int64 {
	if b == 0 {
		return a
	}
	return a % b
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func sel32(c, a, b uint32) uint32 {
	if c != 0 {
		b = a
	}
	return b
}

func sel64(c uint32, a, b uint64) uint64 {
	if c != 0 {
		b = a
	}
	return b
}

func umulhi64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

func smulhi64(a, b int64) int64 {
	hi, _ := bits.Mul64(uint64(a), uint64(b))
	return int64(hi) - (a>>63)&b - (b>>63)&a
}

func usubsat32(a, b uint32) uint32 {
	if a < b {
		return 0
	}
	return a - b
}

func usubsat64(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}

// widthMask has the low w bits set.
func widthMask(w uint64) uint64 { return ^uint64(0) >> (64 - w) }

func sext(a, w uint64) int64 { return int64(a<<(64-w)) >> (64 - w) }

func uaddsat(a, b, w uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	if carry != 0 || s > widthMask(w) {
		return widthMask(w)
	}
	return s
}

// clampSigned saturates the 128-bit signed value hi:lo to w bits.
func clampSigned(hi int64, lo, w uint64) uint64 {
	maxv := widthMask(w) >> 1
	switch {
	case hi > 0 || hi == 0 && lo > maxv:
		return maxv
	case hi < -1 || hi == -1 && lo < ^maxv:
		return ^maxv & widthMask(w)
	}
	return lo & widthMask(w)
}

func saddsat(a, b, w uint64) uint64 {
	x, y := sext(a, w), sext(b, w)
	lo, carry := bits.Add64(uint64(x), uint64(y), 0)
	return clampSigned(x>>63+y>>63+int64(carry), lo, w)
}

func ssubsat(a, b, w uint64) uint64 {
	x, y := sext(a, w), sext(b, w)
	lo, borrow := bits.Sub64(uint64(x), uint64(y), 0)
	return clampSigned(x>>63-y>>63-int64(borrow), lo, w)
}

// umadsat is the saturated a*b+c.
func umadsat(a, b, c, w uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, c, 0)
	if hi+carry != 0 || lo > widthMask(w) {
		return widthMask(w)
	}
	return lo
}

func smadsat(a, b, c, w uint64) uint64 {
	x, y, z := sext(a, w), sext(b, w), sext(c, w)
	hi := smulhi64(x, y)
	lo, carry := bits.Add64(uint64(x)*uint64(y), uint64(z), 0)
	return clampSigned(hi+z>>63+int64(carry), lo, w)
}

// fshl and fshr are LLVM's funnel shifts of the 2w-bit value a:b.
func fshl(a, b, c, w uint64) uint64 {
	s := c % w
	if s == 0 {
		return a
	}
	return (a<<s | b>>(w-s)) & widthMask(w)
}

func fshr(a, b, c, w uint64) uint64 {
	s := c % w
	if s == 0 {
		return b
	}
	return (a<<(w-s) | b>>s) & widthMask(w)
}

// uextract and sextract take n bits of a w-bit value from bit off up; bits beyond the value are zero.
func uextract(a uint64, off, n uint32, w uint64) uint64 {
	if n == 0 || uint64(off) >= w {
		return 0
	}
	a >>= off
	if n >= 64 {
		return a
	}
	return a & widthMask(uint64(n))
}

func sextract(a uint64, off, n uint32, w uint64) uint64 {
	v := uextract(a, off, n, w)
	if n == 0 || n >= 64 {
		return v & widthMask(w)
	}
	return uint64(sext(v, uint64(n))) & widthMask(w)
}

// bitsMask has n bits set from bit off up, within w bits.
func bitsMask(off, n uint32, w uint64) uint64 {
	if n == 0 || uint64(off) >= w {
		return 0
	}
	return widthMask(min(uint64(n), 64)) << off & widthMask(w)
}
