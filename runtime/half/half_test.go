package half

import (
	"math"
	"math/rand/v2"
	"testing"
)

// format describes a type for tests that hold for both.
type format struct {
	name     string
	from     func(float32) uint16
	to       func(uint16) float32
	isNaN    func(uint16) bool
	isInf    func(uint16, int) bool
	inf      uint16
	fraction int // fraction bits
	minExp   int // exponent of the smallest normal number
	max      float64
}

var formats = []format{
	{"Float16", func(f float32) uint16 { return uint16(Float16FromFloat32(f)) }, func(b uint16) float32 { return Float16(b).Float32() },
		func(b uint16) bool { return Float16(b).IsNaN() }, func(b uint16, s int) bool { return Float16(b).IsInf(s) }, 0x7c00, 10, -14, MaxFloat16},
	{"BFloat16", func(f float32) uint16 { return uint16(BFloat16FromFloat32(f)) }, func(b uint16) float32 { return BFloat16(b).Float32() },
		func(b uint16) bool { return BFloat16(b).IsNaN() }, func(b uint16, s int) bool { return BFloat16(b).IsInf(s) }, 0x7f80, 7, -126, MaxBFloat16},
}

// value is the number with bits b, from the definition of the format, for finite numbers.
func (f format) value(b uint16) float64 {
	fraction := float64(b & (1<<f.fraction - 1))
	exponent := int(b&0x7fff) >> f.fraction
	v := math.Ldexp(fraction, f.minExp-f.fraction)
	if exponent > 0 {
		v = math.Ldexp(fraction+float64(int(1)<<f.fraction), f.minExp-f.fraction+exponent-1)
	}
	if b&0x8000 != 0 {
		return -v
	}
	return v
}

// round is x rounded to the format in float64 arithmetic: another way than the package's integer arithmetic.
func (f format) round(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	_, e := math.Frexp(x)
	ulp := math.Ldexp(1, max(e-1, f.minExp)-f.fraction)
	r := math.RoundToEven(x/ulp) * ulp
	if math.Abs(r) > f.max {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return r
}

func TestEveryValue(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			for i := range 1 << 16 {
				b := uint16(i)
				got := f.to(b)
				switch abs := b & 0x7fff; {
				case abs > f.inf:
					if !math.IsNaN(float64(got)) || !f.isNaN(b) {
						t.Fatalf("%#04x: %v, IsNaN %v", b, got, f.isNaN(b))
					}
					quiet := b | 1<<(f.fraction-1)
					if back := f.from(got); back != quiet {
						t.Fatalf("%#04x: NaN came back as %#04x, want %#04x", b, back, quiet)
					}
					continue
				case abs == f.inf:
					sign := 1
					if b&0x8000 != 0 {
						sign = -1
					}
					if !math.IsInf(float64(got), sign) || !f.isInf(b, sign) || !f.isInf(b, 0) || f.isInf(b, -sign) {
						t.Fatalf("%#04x: %v", b, got)
					}
				default:
					if float64(got) != f.value(b) || f.isInf(b, 0) || f.isNaN(b) {
						t.Fatalf("%#04x: %v, want %v", b, got, f.value(b))
					}
				}
				if back := f.from(got); back != b {
					t.Fatalf("%#04x: %v came back as %#04x", b, got, back)
				}
			}
		})
	}
}

// Between each two neighbours, the midpoint goes to the even one and the float32 numbers beside it to the nearer one.
// Since rounding is monotonic this covers every float32 number of the format's range.
func TestEveryTie(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			for b := uint16(0); b < f.inf; b++ {
				low := f.value(b)
				high := f.value(b + 1)
				if b+1 == f.inf {
					high = f.max + (f.max - f.value(b-1)) // what the next number would be
				}
				mid := float32((low + high) / 2)
				if float64(mid) != (low+high)/2 {
					t.Fatalf("%#04x: the midpoint is no float32", b)
				}
				even := b + b&1
				for _, c := range []struct {
					x    float32
					want uint16
				}{{math.Nextafter32(mid, 0), b}, {mid, even}, {math.Nextafter32(mid, math.MaxFloat32), b + 1}} {
					if got := f.from(c.x); got != c.want {
						t.Fatalf("%v: %#04x, want %#04x", c.x, got, c.want)
					}
					if got := f.from(-c.x); got != c.want|0x8000 {
						t.Fatalf("%v: %#04x, want %#04x", -c.x, got, c.want|0x8000)
					}
				}
			}
		})
	}
}

func TestRandomAgainstFloat64(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			for range 1 << 20 {
				x := math.Float32frombits(r.Uint32())
				got := f.to(f.from(x))
				if x != x {
					if got == got {
						t.Fatalf("NaN became %v", got)
					}
					continue
				}
				if want := f.round(float64(x)); float64(got) != want || math.Signbit(float64(got)) != math.Signbit(float64(x)) {
					t.Fatalf("%v (%#08x): %v, want %v", x, math.Float32bits(x), got, want)
				}
			}
		})
	}
}

// A NaN whose payload is all in the bits that are dropped must not become infinite, nor one with every payload bit set
// wrap to a zero.
func TestNaNPayloads(t *testing.T) {
	for _, f := range formats {
		for _, bits := range []uint32{0x7f800001, 0x7f800fff, 0x7fffffff, 0x7fbfffff, 0x7fc00000, 0xff800001, 0xffffffff} {
			b := f.from(math.Float32frombits(bits))
			if !f.isNaN(b) || b&(1<<(f.fraction-1)) == 0 || uint32(b)>>15 != bits>>31 {
				t.Errorf("%s: NaN %#08x became %#04x", f.name, bits, b)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		what string
		got  float32
		want float64
	}{
		{"MaxFloat16", Float16(0x7bff).Float32(), MaxFloat16},
		{"SmallestNormalFloat16", Float16(0x0400).Float32(), SmallestNormalFloat16},
		{"SmallestNonzeroFloat16", Float16(1).Float32(), SmallestNonzeroFloat16},
		{"MaxBFloat16", BFloat16(0x7f7f).Float32(), MaxBFloat16},
		{"SmallestNormalBFloat16", BFloat16(0x0080).Float32(), SmallestNormalBFloat16},
		{"SmallestNonzeroBFloat16", BFloat16(1).Float32(), SmallestNonzeroBFloat16},
	} {
		if float64(c.got) != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestString(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Float16FromFloat32(1.5).String(), "1.5"}, {Float16(0xfc00).String(), "-Inf"}, {Float16(0x7e00).String(), "NaN"},
		{BFloat16FromFloat32(-0.25).String(), "-0.25"}, {BFloat16(0x7f80).String(), "+Inf"}, {BFloat16(0x8000).String(), "-0"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestSlices(t *testing.T) {
	src := []float32{0, 1, -2.5, 65504, 1e30, float32(math.Inf(-1)), 3.140625}
	f16, bf16 := Float16s(src), BFloat16s(src)
	for i, x := range src {
		if f16[i] != Float16FromFloat32(x) || bf16[i] != BFloat16FromFloat32(x) {
			t.Errorf("%v: %v %v", x, f16[i], bf16[i])
		}
	}
	for i, x := range Float32s(f16) {
		if x != f16[i].Float32() {
			t.Errorf("element %d: %v", i, x)
		}
	}
	for i, x := range Float32s(bf16) {
		if x != bf16[i].Float32() {
			t.Errorf("element %d: %v", i, x)
		}
	}
	// The shorter side decides, and what is beyond stays as it was.
	short, long := []float32{7, 8}, []float32{-1, -1, -1}
	d16, db := []Float16{1, 1, 1}, []BFloat16{1, 1, 1}
	if n := EncodeFloat16(d16, short); n != 2 || d16[2] != 1 || d16[1].Float32() != 8 {
		t.Error(n, d16)
	}
	if n := EncodeBFloat16(db, short); n != 2 || db[2] != 1 || db[1].Float32() != 8 {
		t.Error(n, db)
	}
	if n := DecodeFloat16(long, d16[:2]); n != 2 || long[2] != -1 || long[0] != 7 {
		t.Error(n, long)
	}
	if n := DecodeBFloat16(long, db[:1]); n != 1 || long[2] != -1 || long[0] != 7 {
		t.Error(n, long)
	}
	if n := EncodeFloat16(nil, short) + EncodeBFloat16(nil, short) + DecodeFloat16(nil, d16) + DecodeBFloat16(nil, db); n != 0 {
		t.Error(n)
	}
}

func TestConversionsAllocateNothing(t *testing.T) {
	src, f16, bf16 := make([]float32, 64), make([]Float16, 64), make([]BFloat16, 64)
	if n := testing.AllocsPerRun(100, func() {
		EncodeFloat16(f16, src)
		EncodeBFloat16(bf16, src)
		DecodeFloat16(src, f16)
		DecodeBFloat16(src, bf16)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEncode(b *testing.B) {
	src := make([]float32, 4096)
	for i := range src {
		src[i] = float32(i) * 0.01
	}
	b.Run("Float16", func(b *testing.B) {
		dst := make([]Float16, len(src))
		b.SetBytes(int64(4 * len(src)))
		for b.Loop() {
			EncodeFloat16(dst, src)
		}
	})
	b.Run("BFloat16", func(b *testing.B) {
		dst := make([]BFloat16, len(src))
		b.SetBytes(int64(4 * len(src)))
		for b.Loop() {
			EncodeBFloat16(dst, src)
		}
	})
}
