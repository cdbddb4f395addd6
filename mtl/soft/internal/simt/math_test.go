package simt

import (
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mathCase compares a function of single precision with package math in double precision.
type mathCase struct {
	op     op
	f      func(x float64) float64
	lo, hi float64 // arguments, or their binary exponents if logs
	logs   bool
}

var mathCases = []mathCase{
	{opExp32, math.Exp, -105, 90, false},
	{opExp232, math.Exp2, -150, 129, false},
	{opExp1032, func(x float64) float64 { return math.Pow(10, x) }, -46, 39, false},
	{opExpm132, math.Expm1, -20, 89, false},
	{opExpm132, math.Expm1, -30, 1, true},
	{opLog32, math.Log, -149, 128, true},
	{opLog32, math.Log, 0.5, 2, false},
	{opLog232, math.Log2, -149, 128, true},
	{opLog1032, math.Log10, -149, 128, true},
	{opLog1p32, math.Log1p, -40, 100, true},
	{opSin32, math.Sin, -40, 128, true},
	{opCos32, math.Cos, -40, 128, true},
	{opTan32, math.Tan, -40, 128, true},
	{opSin32, math.Sin, -10, 10, false},
	{opCos32, math.Cos, -10, 10, false},
	{opSinPi32, func(x float64) float64 { return math.Sin(math.Pi * math.Mod(x, 2)) }, -1, 1, false},
	{opCosPi32, func(x float64) float64 { return math.Sin(math.Pi * (0.5 - math.Mod(x, 2))) }, 0.2, 0.8, false},
	{opTanPi32, func(x float64) float64 { return math.Tan(math.Pi * x) }, -0.4, 0.4, false},
	{opAsin32, math.Asin, -1, 1, false},
	{opAcos32, math.Acos, -1, 1, false},
	{opAtan32, math.Atan, -60, 60, true},
	{opAtan32, math.Atan, -3, 3, false},
	{opSinh32, math.Sinh, -89, 89, false},
	{opSinh32, math.Sinh, -30, 1, true},
	{opCosh32, math.Cosh, -89, 89, false},
	{opTanh32, math.Tanh, -12, 12, false},
	{opTanh32, math.Tanh, -30, 1, true},
	{opAsinh32, math.Asinh, -40, 100, true},
	{opAcosh32, math.Acosh, 1, 100, false},
	{opAtanh32, math.Atanh, -1, 1, false},
	{opSqrt32, math.Sqrt, -149, 128, true},
	{opRsqrt32, func(x float64) float64 { return 1 / math.Sqrt(x) }, -149, 128, true},
	{opRound32, math.Round, -30, 40, true},
	{opRint32, math.RoundToEven, -1000, 1000, false},
	{opFloor32, math.Floor, -1000, 1000, false},
	{opCeil32, math.Ceil, -1000, 1000, false},
	{opTruncF32, math.Trunc, -1000, 1000, false},
}

// ulps is the distance of got from the exact value in units of the last place of single precision.
func ulps(got float32, want float64) float64 {
	if got == float32(want) {
		return 0
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

func call1(o op, x float32) float32 {
	return math.Float32frombits(uint32(laneOps[o].eval(uint64(math.Float32bits(x)), 0, 0, 0)))
}

func TestMathAccuracy(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for _, c := range mathCases {
		name := laneOps[c.op].name
		for i := 0; i < 4000; i++ {
			x := c.lo + rng.Float64()*(c.hi-c.lo)
			if c.logs {
				x = math.Exp2(x)
				if rng.Intn(2) == 0 && !(c.op >= opLog32 && c.op <= opLog1p32) && c.op != opSqrt32 && c.op != opRsqrt32 {
					x = -x
				}
			}
			f := float32(x)
			want := c.f(float64(f))
			got := call1(c.op, f)
			if math.IsNaN(want) {
				require.True(t, got != got, "%s(%g)", name, f)
				continue
			}
			// package math is itself off by some units of double precision.
			if u := ulps(got, want); u > 0.501 {
				t.Fatalf("%s(%b) = %g is %.4f ulp from %g", name, f, got, u, want)
			}
		}
	}
}

func TestMathBinary(t *testing.T) {
	rng := rand.New(rand.NewSource(6))
	call2 := func(o op, x, y float32) float32 {
		return math.Float32frombits(uint32(laneOps[o].eval(uint64(math.Float32bits(x)), uint64(math.Float32bits(y)), 0, 0)))
	}
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 2, -2, 3, -3, 0.5, -0.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32,
		math.SmallestNonzeroFloat32, 1e10, -1e10}
	check := func(o op, f func(x, y float64) float64, x, y float32) {
		got, want := call2(o, x, y), f(float64(x), float64(y))
		if math.IsNaN(want) {
			require.True(t, got != got, "%s(%g, %g) = %g, want NaN", laneOps[o].name, x, y, got)
			return
		}
		require.LessOrEqual(t, ulps(got, want), 0.501, "%s(%g, %g) = %g, want %g", laneOps[o].name, x, y, got, want)
		require.Equal(t, math.Signbit(want), math.Signbit(float64(got)), "sign of %s(%g, %g)", laneOps[o].name, x, y)
	}
	fs := map[op]func(x, y float64) float64{opPow32: math.Pow, opAtan232: math.Atan2, opFMod32: math.Mod, opRemainder32: math.Remainder, opHypot32: nil, opFDim32: nil}
	for o, f := range fs {
		if f == nil {
			continue
		}
		for _, x := range special {
			for _, y := range special {
				check(o, f, x, y)
			}
		}
		for i := 0; i < 4000; i++ {
			x, y := float32(rng.NormFloat64()*3), float32(rng.NormFloat64()*3)
			if o == opPow32 {
				x, y = float32(math.Abs(float64(x))), y*5
			}
			check(o, f, x, y)
		}
	}
	for i := 0; i < 2000; i++ {
		x, y := float32(rng.NormFloat64()), float32(rng.NormFloat64())
		require.LessOrEqual(t, ulps(call2(opHypot32, x, y), math.Hypot(float64(x), float64(y))), 0.501)
		require.Equal(t, max(x-y, 0), call2(opFDim32, x, y))
	}
	nan := float32(math.NaN())
	require.Equal(t, float32(2), call2(opFMin32, nan, 2))
	require.Equal(t, float32(2), call2(opFMin32, 2, nan))
	require.Equal(t, float32(2), call2(opFMax32, nan, 2))
	require.Equal(t, float32(3), call2(opFMax32, 2, 3))
	require.True(t, call2(opPowr32, -1, 2) != call2(opPowr32, -1, 2))
	require.Equal(t, float32(8), call2(opPowr32, 2, 3))
}

func TestMathSpecial(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	type m = map[float32]float32
	for o, cases := range map[op]m{
		opExp32: {0: 1, inf: inf, -inf: 0, 100: inf, -200: 0}, opExp232: {0: 1, 10: 1024, -1: 0.5, inf: inf, -inf: 0}, opExp1032: {0: 1, 2: 100, -inf: 0, 5: 1e5},
		opLog32: {1: 0, 0: -inf, inf: inf, -1: nan}, opLog232: {8: 3, 0: -inf, 0.125: -3}, opLog1032: {1000: 3, 1: 0}, opLog1p32: {0: 0, -1: -inf, -2: nan},
		opSin32: {0: 0, inf: nan}, opCos32: {0: 1, -inf: nan}, opTan32: {0: 0, inf: nan}, opSinPi32: {1: 0, 0.5: 1, -0.5: -1, inf: nan, 1 << 30: 0}, opCosPi32: {1: -1, 0.5: 0, 1 << 30: 1},
		opAsin32: {2: nan, 0: 0}, opAcos32: {1: 0, -2: nan}, opAtan32: {0: 0, inf: math.Pi / 2, -inf: -math.Pi / 2}, opTanh32: {inf: 1, -inf: -1, 0: 0},
		opSinh32: {inf: inf, -inf: -inf}, opCosh32: {0: 1, -inf: inf}, opAcosh32: {1: 0, 0: nan, inf: inf}, opAtanh32: {1: inf, -1: -inf, 2: nan}, opAsinh32: {inf: inf, 0: 0},
		opFract32: {1.25: 0.25, -0.25: 0.75, -1e-20: 0x1.fffffep-1, 3: 0}, opFSign32: {5: 1, -5: -1, 0: 0, nan: 0}, opSqrt32: {4: 2, -1: nan, inf: inf}, opRsqrt32: {4: 0.5, 0: inf},
		opRound32: {0.5: 1, -0.5: -1, 2.5: 3}, opRint32: {0.5: 0, 1.5: 2, 2.5: 2},
	} {
		for x, want := range cases {
			got := call1(o, x)
			if want != want {
				require.True(t, got != got, "%s(%g) = %g", laneOps[o].name, x, got)
				continue
			}
			require.Equal(t, want, got, "%s(%g)", laneOps[o].name, x)
		}
		if o != opFSign32 {
			require.True(t, call1(o, nan) != call1(o, nan), laneOps[o].name)
		}
	}
	require.Equal(t, int32(3), int32(eIlogb32(uint64(math.Float32bits(12)), 0, 0, 0)))
	require.Equal(t, float32(0.75), frexpMant(12))
	require.Equal(t, int32(4), frexpExp(12))
	require.Equal(t, float32(96), ldexp32(12, 3))
	require.Equal(t, float32(0), ldexp32(12, -1000000))
	require.Equal(t, float32(math.SmallestNonzeroFloat32), ldexp32(1, -149))
}
