package simt

import (
	"math"
	"math/bits"
)

// The mathematical functions work in double precision and are rounded to single precision once, so they are within
// 0.51 units in the last place: closer than Metal asks of its precise functions, and used for the fast ones as well.
// They are written out here, with every product rounded explicitly, because package math has assembly for some
// machines and lets the compiler fuse operations on others: results must not depend on the machine.

const (
	ln2Hi = 6.93147180369123816490e-01 // the top 32 bits, so that k*ln2Hi is exact
	ln2Lo = 1.90821492927058770002e-10
	ln2   = 0.693147180559945309417232121458176568
	log2e = 1.44269504088896340735992468100189214
	// ln10Hi has 27 bits.
	ln10Hi = 2.3025850653648376
	ln10Lo = 2.7629208037533617e-08
	log102 = 3.32192809488736234787031942948939018
)

// horner is c[0] + x*(c[1] + x*(c[2] + …)).
func horner(x float64, c []float64) float64 {
	p := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		p = float64(p*x) + c[i]
	}
	return p
}

// factorials are 1/n!.
var factorials = func() (f [20]float64) {
	f[0] = 1
	n := 1.0
	for i := 1; i < len(f); i++ {
		n *= float64(i)
		f[i] = 1 / n
	}
	return
}()

// scale is p times 2 to the k.
func scale(p float64, k int) float64 {
	if k > -1000 && k < 1000 {
		return p * math.Float64frombits(uint64(1023+k)<<52)
	}
	return math.Ldexp(p, k)
}

func exp(x float64) float64 {
	switch {
	case x != x || x > 1e308:
		return x
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	k := math.RoundToEven(float64(x * log2e))
	r := x - float64(k*ln2Hi) - float64(k*ln2Lo)
	return scale(horner(r, factorials[:14]), int(k))
}

func exp2(x float64) float64 {
	switch {
	case x != x || x > 1e308:
		return x
	case x > 1025:
		return math.Inf(1)
	case x < -1076:
		return 0
	}
	k := math.RoundToEven(x)
	return scale(horner(float64((x-k)*ln2), factorials[:14]), int(k))
}

func exp10(x float64) float64 {
	switch {
	case x != x || x > 1e308:
		return x
	case x > 310:
		return math.Inf(1)
	case x < -325:
		return 0
	}
	k := math.RoundToEven(float64(x * log102))
	r := float64(x*ln10Hi) - float64(k*ln2Hi) + (float64(x*ln10Lo) - float64(k*ln2Lo))
	return scale(horner(r, factorials[:14]), int(k))
}

func expm1(x float64) float64 {
	if math.Abs(x) < 0.4 {
		return float64(x * horner(x, factorials[1:16]))
	}
	return exp(x) - 1
}

// atanhSeries are 1/(2n+1).
var atanhSeries = func() (c [13]float64) {
	for i := range c {
		c[i] = 1 / float64(2*i+1)
	}
	return
}()

// logRatio is log((1+s)/(1-s)) for small s.
func logRatio(s float64) float64 { return float64(2 * s * horner(float64(s*s), atanhSeries[:])) }

// logParts splits log(x) of a positive finite x into k, to be multiplied by ln 2, and a small rest.
func logParts(x float64) (k, rest float64) {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	return float64(e), logRatio((m - 1) / (m + 1))
}

// logSpecial answers for arguments without a finite logarithm.
func logSpecial(x float64) (float64, bool) {
	switch {
	case x != x || x > math.MaxFloat64:
		return x, true
	case x < 0:
		return math.NaN(), true
	case x == 0:
		return math.Inf(-1), true
	}
	return 0, false
}

func log(x float64) float64 {
	if v, ok := logSpecial(x); ok {
		return v
	}
	k, r := logParts(x)
	return float64(k*ln2Hi) + (r + float64(k*ln2Lo))
}

func log2(x float64) float64 {
	if v, ok := logSpecial(x); ok {
		return v
	}
	k, r := logParts(x)
	return k + float64(r*log2e)
}

func log10(x float64) float64 {
	if v, ok := logSpecial(x); ok {
		return v
	}
	return float64(log(x) * (1 / math.Ln10))
}

func log1p(x float64) float64 {
	if x > -0.25 && x < 0.4 {
		if x == 0 {
			return x
		}
		return logRatio(x / (2 + x))
	}
	return log(1 + x)
}

// The bits of π/2 in three parts of 33 bits, and what is left.
const (
	pio2a = 1.57079632673412561417e+00
	pio2b = 6.07710050630396597660e-11
	pio2c = 2.02226624871116645580e-21
	pio2d = 8.47842766036889956997e-32
)

// fourOverPi are the bits of 4/π, the most significant first.
var fourOverPi = [20]uint64{
	0x0000000000000001, 0x45f306dc9c882a53, 0xf84eafa3ea69bb81, 0xb6c52b3278872083, 0xfca2c757bd778ac3,
	0x6e48dc74849ba5c0, 0x0c925dd413a32439, 0xfc3bd63962534e7d, 0xd1046bea5d768909, 0xd338e04d68befc82,
	0x7323ac7306a673e9, 0x3908bf177bf25076, 0x3ff12fffbc0b301f, 0xde5e2316b414da3e, 0xda6cfd9e4f96136e,
	0x9e8c7ecd3cbfd45a, 0xea4f758fd7cbe2f6, 0x7a0e73ef14a525d4, 0xd7f6bf623f1aba10, 0xac06608df8f6d757,
}

// reduce finds the quadrant q and the rest r in [-π/4, π/4] of an angle x = q·π/2 + r.
func reduce(x float64) (q uint, r float64) {
	if math.Abs(x) < 1<<19 {
		k := math.RoundToEven(float64(x * (2 / math.Pi)))
		r = x - float64(k*pio2a)
		r -= float64(k * pio2b)
		r -= float64(k * pio2c)
		r -= float64(k * pio2d)
		return uint(int64(k)) & 3, r
	}
	// Payne and Hanek: the product of the significand and the bits of 4/π that matter.
	neg := x < 0
	b := math.Float64bits(math.Abs(x))
	e := int(b>>52) - 1023 - 52
	b = b&(1<<52-1) | 1<<52
	digit, shift := uint(e+61)/64, uint(e+61)%64
	word := func(i uint) uint64 {
		return fourOverPi[digit+i]<<shift | fourOverPi[digit+i+1]>>(64-shift)
	}
	z2hi, _ := bits.Mul64(word(2), b)
	z1hi, z1lo := bits.Mul64(word(1), b)
	z0 := word(0) * b
	lo, c := bits.Add64(z1lo, z2hi, 0)
	hi, _ := bits.Add64(z0, z1hi, c)
	// The top three bits are the octant; pairs of octants make a quadrant centred on its multiple of π/2.
	oct := uint(hi >> 61)
	hi = hi<<3 | lo>>61
	lo <<= 3
	q = oct >> 1
	frac := float64(hi>>11)*0x1p-53 + float64(lo>>11)*0x1p-117
	if hi>>11 == 0 {
		frac = float64(lo) * 0x1p-128
	}
	if oct&1 == 1 {
		q++
		// 1 - fraction, exactly from the bits.
		nlo, borrow := bits.Sub64(0, lo, 0)
		nhi, _ := bits.Sub64(0, hi, borrow)
		frac = -(float64(nhi>>11)*0x1p-53 + float64(nhi&(1<<11-1))*0x1p-64 + float64(nlo>>11)*0x1p-117)
	}
	r = float64(frac * (math.Pi / 4))
	if neg {
		return -q & 3, -r
	}
	return q & 3, r
}

var sinSeries, cosSeries = func() (s, c [9]float64) {
	sign := 1.0
	for i := range s {
		s[i], c[i] = sign*factorials[2*i+1], sign*factorials[2*i]
		sign = -sign
	}
	return
}()

// quadrant is the sine of q·π/2 + r.
func quadrant(q uint, r float64) float64 {
	var v float64
	if q&1 == 0 {
		v = float64(r * horner(float64(r*r), sinSeries[:]))
	} else {
		v = horner(float64(r*r), cosSeries[:])
	}
	if q&2 != 0 {
		return -v
	}
	return v
}

func sin(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	if x == 0 {
		return x
	}
	return quadrant(reduce(x))
}

func cos(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	q, r := reduce(x)
	return quadrant(q+1, r)
}

func tan(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	if x == 0 {
		return x
	}
	q, r := reduce(x)
	return quadrant(q, r) / quadrant(q+1, r)
}

// halfTurns splits x = q/2 + r with |r| ≤ 1/4, exactly.
func halfTurns(x float64) (q uint, r float64) {
	x = math.Mod(x, 2)
	k := math.RoundToEven(2 * x)
	return uint(int64(k)) & 3, float64((x - k/2) * math.Pi)
}

func sinpi(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	if x == 0 {
		return x
	}
	return quadrant(halfTurns(x))
}

func cospi(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	q, r := halfTurns(x)
	return quadrant(q+1, r)
}

func tanpi(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	if x == 0 {
		return x
	}
	q, r := halfTurns(x)
	return quadrant(q, r) / quadrant(q+1, r)
}

func atan(x float64) float64 {
	switch {
	case x != x || x == 0:
		return x
	case x > 1:
		return math.Pi/2 - atanUnit(1/x)
	case x < -1:
		return atanUnit(-1/x) - math.Pi/2
	}
	return atanUnit(x)
}

// atanUnit is the arc tangent on [-1, 1]: the angle is halved three times, then a series.
func atanUnit(x float64) float64 {
	for i := 0; i < 3; i++ {
		x /= 1 + math.Sqrt(1+float64(x*x))
	}
	return float64(8 * x * horner(-float64(x*x), atanhSeries[:10]))
}

func atan2(y, x float64) float64 {
	switch {
	case x != x || y != y:
		return math.NaN()
	case y == 0:
		if x > 0 || x == 0 && !math.Signbit(x) {
			return y
		}
		return math.Copysign(math.Pi, y)
	case math.IsInf(x, 1) && math.IsInf(y, 0):
		return math.Copysign(math.Pi/4, y)
	case math.IsInf(x, -1) && math.IsInf(y, 0):
		return math.Copysign(3*math.Pi/4, y)
	}
	a := math.Pi / 2
	if x != 0 {
		a = atan(math.Abs(y / x))
	}
	if x < 0 {
		a = math.Pi - a
	}
	return math.Copysign(a, y)
}

func asin(x float64) float64 {
	if !(x >= -1 && x <= 1) {
		return math.NaN()
	}
	return atan2(x, math.Sqrt(float64((1-x)*(1+x))))
}

func acos(x float64) float64 {
	if !(x >= -1 && x <= 1) {
		return math.NaN()
	}
	return atan2(math.Sqrt(float64((1-x)*(1+x))), x)
}

func sinh(x float64) float64 {
	a := math.Abs(x)
	var v float64
	if a < 1 {
		e := expm1(a)
		v = (e + e/(e+1)) / 2
	} else {
		e := exp(a)
		v = (e - 1/e) / 2
	}
	return math.Copysign(v, x)
}

func cosh(x float64) float64 {
	e := exp(math.Abs(x))
	return (e + 1/e) / 2
}

func tanh(x float64) float64 {
	a := math.Abs(x)
	v := 1.0
	if a < 22 || a != a {
		e := expm1(2 * a)
		v = e / (e + 2)
	}
	return math.Copysign(v, x)
}

func asinh(x float64) float64 {
	a := math.Abs(x)
	if a > 1e150 {
		return x
	}
	s := float64(a * a)
	return math.Copysign(log1p(a+s/(math.Sqrt(s+1)+1)), x)
}

func acosh(x float64) float64 {
	if x < 1 {
		return math.NaN()
	}
	t := x - 1
	return log1p(t + math.Sqrt(float64(t*t)+2*t))
}

func atanh(x float64) float64 {
	if x < -1 || x > 1 {
		return math.NaN()
	}
	a := math.Abs(x)
	return math.Copysign(log1p(2*a/(1-a))/2, x)
}

// pow follows C: a negative base has a power only for whole exponents.
func pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return math.NaN()
	}
	neg := false
	if math.Signbit(x) {
		whole := math.Floor(y) == y
		neg = whole && !math.IsInf(y, 0) && math.Mod(y, 2) != 0
		if !whole && x != 0 && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			return math.NaN()
		}
		x = -x
	}
	v := powAbs(x, y)
	if neg {
		return -v
	}
	return v
}

func powAbs(x, y float64) float64 {
	switch {
	case x == 1:
		return 1
	case x == 0 || math.IsInf(x, 1):
		if (x == 0) == (y > 0) {
			return 0
		}
		return math.Inf(1)
	case math.IsInf(y, 0):
		if (x > 1) == (y > 0) {
			return math.Inf(1)
		}
		return 0
	}
	return exp(float64(y * log(x)))
}

// powr is pow for bases that are not negative; 0 to the 0 and infinity to the 0 have no value.
func powr(x, y float64) float64 {
	if x < 0 || x != x || y != y || y == 0 && (x == 0 || math.IsInf(x, 1)) {
		return math.NaN()
	}
	return pow(x, y)
}
