package simt

import (
	"math"
	"math/big"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/runtime/half"
)

// interesting is a random pattern, often a special one.
func interesting(rng *rand.Rand) uint64 {
	special := []uint64{0, 1, 2, 31, 32, 33, 63, 64, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64,
		0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x00800000, 0x33800000, 0x4b800000, 0x4f000000, 0x7f7fffff,
		math.Float64bits(1), math.Float64bits(-2.5), math.Float64bits(1e300), math.Float64bits(math.Inf(-1)), math.Float64bits(1e-310)}
	switch rng.Intn(4) {
	case 0:
		return special[rng.Intn(len(special))]
	case 1:
		return uint64(math.Float32bits(float32(rng.NormFloat64() * math.Pow(10, rng.Float64()*20-10))))
	}
	return rng.Uint64() >> rng.Intn(64)
}

// sameBits compares two patterns; all NaNs are alike.
func sameBits(a, b uint64) bool {
	nan := func(v uint64) bool { return v>>32 == 0 && uint32(v)&0x7fffffff > 0x7f800000 }
	nan64 := func(v uint64) bool { return math.IsNaN(math.Float64frombits(v)) }
	return a == b || nan(a) && nan(b) || nan64(a) && nan64(b)
}

// TestLaneForms compares every loop over lanes, with every mix of uniform arguments, with the scalar evaluator.
func TestLaneForms(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	w := &warp{file: make([]uint64, 1024)}
	w.setBase()
	for o := op(1); o < opLaneOps; o++ {
		info := &laneOps[o]
		for round := 0; round < 6; round++ {
			m := uint64(1 + rng.Intn(32))
			switch o {
			case opUMaskMul32, opUMaskMulAdd32:
				m = uint64(rng.Uint32())
			case opUMaskFMA32:
				m = uint64(rng.Uint32() >> 8)
			case opF64ToF32Dir, opF64ToHalfDir, opF64ToBFloatDir:
				m = uint64(1 + rng.Intn(3))
			}
			for shape, fn := range info.vec {
				if fn == nil {
					continue
				}
				var args [3][32]uint64
				in := &inst{d: 0, a: 512, b: 1024, c: 1536, imm: m}
				for k := 0; k < info.nargs; k++ {
					off := []uint32{in.a, in.b, in.c}[k]
					for l := range args[k] {
						x := interesting(rng)
						if shape>>k&1 != 0 && l > 0 {
							x = args[k][0]
						}
						if !info.argWide[k] {
							x = uint64(uint32(x))
						}
						args[k][l] = x
						if info.argWide[k] {
							w.u64(off)[l] = x
						} else {
							w.u32(off)[l] = uint32(x)
						}
					}
				}
				read := func(l int) uint64 {
					if info.wide {
						return w.u64(0)[l]
					}
					return uint64(w.u32(0)[l])
				}
				fn(w, in)
				for l := 0; l < 32; l++ {
					want := info.eval(args[0][l], args[1][l], args[2][l], m)
					if !sameBits(want, read(l)) {
						t.Fatalf("%s form %b lane %d (%#x %#x %#x, m %#x): got %#x, want %#x", info.name, shape, l, args[0][l], args[1][l], args[2][l], m, read(l), want)
					}
				}
				info.uni(w, in)
				if want := info.eval(args[0][0], args[1][0], args[2][0], m); !sameBits(want, read(0)) {
					t.Fatalf("%s uniform: got %#x, want %#x", info.name, read(0), want)
				}
			}
		}
	}
}

// TestConversions compares the narrow formats with another implementation, on every pattern or many.
func TestConversions(t *testing.T) {
	for h := uint32(0); h < 1<<16; h++ {
		got, want := math.Float32frombits(halfToF32(h)), half.Float16(h).Float32()
		if got != want && (got == got || want == want) {
			t.Fatalf("half %#x: %g, want %g", h, got, want)
		}
		if back := f32ToHalf(halfToF32(h)); h&0x7fff <= 0x7c00 && back != h {
			t.Fatalf("half %#x comes back as %#x", h, back)
		}
	}
	rng := rand.New(rand.NewSource(2))
	for i := 0; i < 1000000; i++ {
		b := rng.Uint32()
		if i%2 == 0 { // near the half range, on and beside ties
			b = math.Float32bits(float32(math.Ldexp(float64(rng.Intn(4096)*2+rng.Intn(2)), rng.Intn(45)-35))) + uint32(rng.Intn(3)) - 1
		}
		f := math.Float32frombits(b)
		if got, want := f32ToHalf(b), uint32(half.Float16FromFloat32(f)); got != want {
			t.Fatalf("%g to half: %#x, want %#x", f, got, want)
		}
		if got, want := f32ToBFloat(b), uint32(half.BFloat16FromFloat32(f)); got != want {
			t.Fatalf("%g to bfloat: %#x, want %#x", f, got, want)
		}
	}
}

// roundBig rounds an exact value to a binary format of p bits with the least exponent e (of the last bit of denormals).
func roundBig(x *big.Float, p uint, e int, mode big.RoundingMode) float64 {
	if x.Sign() == 0 {
		return 0
	}
	exp := x.MantExp(nil) // x = m * 2^exp, m in [0.5, 1)
	if last := exp - int(p); last < e {
		q := new(big.Float).SetPrec(2000).SetMantExp(x, -e)
		prec := exp - e
		if prec <= 0 { // below the least number: compare with half of it
			m := new(big.Float).Abs(q)
			up := m.Cmp(big.NewFloat(0.5)) > 0
			switch mode {
			case big.ToZero:
				up = false
			case big.ToPositiveInf:
				up = x.Sign() > 0
			case big.ToNegativeInf:
				up = x.Sign() < 0
			}
			r := 0.0
			if up {
				r = math.Ldexp(1, e)
			}
			return math.Copysign(r, float64(x.Sign()))
		}
		p = uint(prec)
	}
	f, _ := new(big.Float).SetPrec(p).SetMode(mode).Set(x).Float64()
	return f
}

func TestRounding(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	modes := map[uint64]big.RoundingMode{roundZero: big.ToZero, roundUp: big.ToPositiveInf, roundDown: big.ToNegativeInf}
	for i := 0; i < 20000; i++ {
		d := math.Ldexp(rng.Float64()*2-1, rng.Intn(320)-165)
		if i%3 == 0 { // few bits: ties and exact values
			d = math.Ldexp(float64(rng.Intn(1<<14)-1<<13), rng.Intn(40)-30)
		}
		if i%3 == 1 {
			d = math.Ldexp(rng.Float64()*2-1, rng.Intn(40)-26)
		}
		x := new(big.Float).SetFloat64(d)
		limit := func(f, m float64) bool { return math.Abs(f) > m } // overflow is tested elsewhere
		if want := roundBig(x, 11, -24, big.ToNearestEven); !limit(want, 65504) {
			require.Equal(t, want, toFloat(kindHalf, uint64(f64ToHalf(d))), "half of %b", d)
		}
		if want := roundBig(x, 8, -133, big.ToNearestEven); !limit(want, 3.3e38) {
			require.Equal(t, want, toFloat(kindBFloat, uint64(f64ToBFloat(d))), "bfloat of %b", d)
		}
		for dir, mode := range modes {
			if want := roundBig(x, 11, -24, mode); !limit(want, 65504) {
				require.Equal(t, want, toFloat(kindHalf, uint64(f64ToHalfDir(d, dir))), "half of %b in direction %d", d, dir)
			}
			if want := roundBig(x, 24, -149, mode); !limit(want, 3.4e38) {
				require.Equal(t, want, float64(math.Float32frombits(f64ToF32Dir(d, dir))), "float of %b in direction %d", d, dir)
			}
		}
	}
	require.Equal(t, uint32(0x7bff), f64ToHalfDir(1e9, roundZero))
	require.Equal(t, uint32(0x7c00), f64ToHalfDir(1e9, roundUp))
	require.Equal(t, uint32(0xfbff), f64ToHalfDir(-1e9, roundUp))
}

func TestFMA(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	w := &warp{file: make([]uint64, 1024)}
	w.setBase()
	for i := 0; i < 50000; i++ {
		a := float32(math.Ldexp(rng.Float64()*2-1, rng.Intn(100)-50))
		b := float32(math.Ldexp(rng.Float64()*2-1, rng.Intn(100)-50))
		c := float32(math.Ldexp(rng.Float64()*2-1, rng.Intn(160)-90))
		switch i % 4 {
		case 1: // ties
			a, b = float32(rng.Intn(1<<24)), float32(rng.Intn(1<<13))
			c = float32(math.Ldexp(1, rng.Intn(60)-40))
		case 2: // denormal results
			a, b = float32(math.Ldexp(float64(rng.Intn(1<<24)), -100)), float32(math.Ldexp(float64(rng.Intn(1<<24)), -95))
			c = math.Float32frombits(uint32(rng.Intn(1 << 24)))
		case 3:
			c = -a * b
		}
		x := new(big.Float).SetPrec(2000).SetFloat64(float64(a))
		x.Mul(x, new(big.Float).SetPrec(2000).SetFloat64(float64(b)))
		x.Add(x, new(big.Float).SetPrec(2000).SetFloat64(float64(c)))
		want := float32(roundBig(x, 24, -149, big.ToNearestEven))
		require.Equal(t, want, fma32(a, b, c), "%b * %b + %b", a, b, c)
		w.f32(128)[5], w.f32(256)[5], w.f32(384)[5] = a, b, c
		vFMA32(w, &inst{a: 128, b: 256, c: 384})
		require.Equal(t, want, w.f32(0)[5], "%b * %b + %b in the lane loop", a, b, c)
	}
	inf := float32(math.Inf(1))
	require.Equal(t, inf, fma32(inf, 2, -1))
	require.True(t, fma32(inf, 0, 1) != fma32(inf, 0, 1))
	require.Equal(t, -inf, fma32(math.MaxFloat32, -math.MaxFloat32, 1))
}
