package simt

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

// An icase is an intrinsic with an oracle on the patterns of its arguments.
type icase struct {
	name string
	ret  string // types as in names: f32, i8, v2f16 …
	args []string
	want func(a []uint64) uint64
}

// typeOf reads a type's name.
func typeOf(m *air.Module, s string) *air.Type {
	var n uint64
	if s[0] == 'v' {
		fmt.Sscanf(s[1:], "%d", &n)
		k := 2
		if n > 9 {
			k = 3
		}
		return m.Vector(typeOf(m, s[k:]), n)
	}
	switch s {
	case "f16":
		return m.Half()
	case "bf16":
		return m.BFloat()
	case "f32":
		return m.Float()
	case "f64":
		return m.Double()
	}
	fmt.Sscanf(s[1:], "%d", &n)
	return m.Int(int(n))
}

func sx(v uint64, w int) int64 { return int64(v<<(64-w)) >> (64 - w) }
func f32(v uint64) float64     { return float64(math.Float32frombits(uint32(v))) }
func f16(v uint64) float64     { return toFloat(kindHalf, v) }
func b16(v uint64) float64     { return toFloat(kindBFloat, v) }
func to32f(d float64) uint64   { return uint64(math.Float32bits(float32(d))) }

func clampInt(x *big.Int, w int, signed bool) uint64 {
	lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(w))
	if signed {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	if x.Cmp(lo) < 0 {
		x = lo
	}
	if x.Cmp(hi) > 0 {
		x = hi
	}
	return wrap(x, w).Uint64()
}

func bigOf(v uint64, w int, signed bool) *big.Int {
	if signed {
		return big.NewInt(sx(v, w))
	}
	return new(big.Int).SetUint64(v)
}

func intrinsicCases() []icase {
	var cs []icase
	add := func(name, ret string, want func(a []uint64) uint64, args ...string) {
		cs = append(cs, icase{name, ret, args, want})
	}
	mask := func(w int) uint64 { return ^uint64(0) >> (64 - w) }
	for _, w := range []int{8, 16, 32, 64} {
		t := fmt.Sprintf("i%d", w)
		for _, sg := range []bool{true, false} {
			k := map[bool]string{true: "s", false: "u"}[sg]
			pick := func(less bool) func(a []uint64) uint64 {
				return func(a []uint64) uint64 {
					if (bigOf(a[0], w, sg).Cmp(bigOf(a[1], w, sg)) < 0) == less {
						return a[0]
					}
					return a[1]
				}
			}
			mn, mx := pick(true), pick(false)
			add("air.min."+k+"."+t, t, mn, t, t)
			add("air.max."+k+"."+t, t, mx, t, t)
			add("llvm."+k+"min."+t, t, mn, t, t)
			add("llvm."+k+"max."+t, t, mx, t, t)
			add("air.min3."+k+"."+t, t, func(a []uint64) uint64 { return mn([]uint64{mn(a[:2]), a[2]}) }, t, t, t)
			add("air.max3."+k+"."+t, t, func(a []uint64) uint64 { return mx([]uint64{mx(a[:2]), a[2]}) }, t, t, t)
			add("air.clamp."+k+"."+t, t, func(a []uint64) uint64 { return mn([]uint64{mx(a[:2]), a[2]}) }, t, t, t)
			add("air.median3."+k+"."+t, t, func(a []uint64) uint64 {
				lo, hi := mn(a[:2]), mx(a[:2])
				return mx([]uint64{lo, mn([]uint64{hi, a[2]})})
			}, t, t, t)
			add("air.mul_hi."+k+"."+t, t, func(a []uint64) uint64 {
				p := new(big.Int).Mul(bigOf(a[0], w, sg), bigOf(a[1], w, sg))
				return wrap(p.Rsh(p, uint(w)), w).Uint64()
			}, t, t)
			add("air.mad_hi."+k+"."+t, t, func(a []uint64) uint64 {
				p := new(big.Int).Mul(bigOf(a[0], w, sg), bigOf(a[1], w, sg))
				return (p.Rsh(p, uint(w)).Add(p, new(big.Int).SetUint64(a[2]))).And(p, new(big.Int).SetUint64(mask(w))).Uint64()
			}, t, t, t)
			add("air.mad_sat."+k+"."+t, t, func(a []uint64) uint64 {
				p := new(big.Int).Mul(bigOf(a[0], w, sg), bigOf(a[1], w, sg))
				return clampInt(p.Add(p, bigOf(a[2], w, sg)), w, sg)
			}, t, t, t)
			addSat := func(a []uint64) uint64 {
				return clampInt(new(big.Int).Add(bigOf(a[0], w, sg), bigOf(a[1], w, sg)), w, sg)
			}
			subSat := func(a []uint64) uint64 {
				return clampInt(new(big.Int).Sub(bigOf(a[0], w, sg), bigOf(a[1], w, sg)), w, sg)
			}
			add("air.add_sat."+k+"."+t, t, addSat, t, t)
			add("air.sub_sat."+k+"."+t, t, subSat, t, t)
			add("llvm."+k+"add.sat."+t, t, addSat, t, t)
			add("llvm."+k+"sub.sat."+t, t, subSat, t, t)
			add("air.hadd."+k+"."+t, t, func(a []uint64) uint64 {
				s := new(big.Int).Add(bigOf(a[0], w, sg), bigOf(a[1], w, sg))
				return wrap(s.Rsh(s, 1), w).Uint64()
			}, t, t)
			add("air.rhadd."+k+"."+t, t, func(a []uint64) uint64 {
				s := new(big.Int).Add(bigOf(a[0], w, sg), bigOf(a[1], w, sg))
				return wrap(s.Rsh(s.Add(s, big.NewInt(1)), 1), w).Uint64()
			}, t, t)
			add("air.absdiff."+k+"."+t, t, func(a []uint64) uint64 {
				d := new(big.Int).Sub(bigOf(a[0], w, sg), bigOf(a[1], w, sg))
				return wrap(d.Abs(d), w).Uint64()
			}, t, t)
		}
		add("air.abs.s."+t, t, func(a []uint64) uint64 { return wrap(new(big.Int).Abs(big.NewInt(sx(a[0], w))), w).Uint64() }, t)
		add("air.popcount."+t, t, func(a []uint64) uint64 { return uint64(bits.OnesCount64(a[0])) }, t)
		add("llvm.ctpop."+t, t, func(a []uint64) uint64 { return uint64(bits.OnesCount64(a[0])) }, t)
		add("air.clz."+t, t, func(a []uint64) uint64 { return uint64(bits.LeadingZeros64(a[0]) - 64 + w) }, t, "=i1")
		add("air.ctz."+t, t, func(a []uint64) uint64 { return uint64(min(bits.TrailingZeros64(a[0]), w)) }, t, "=i1")
		add("air.reverse_bits."+t, t, func(a []uint64) uint64 { return bits.Reverse64(a[0]) >> (64 - w) }, t)
		rot := func(a []uint64) uint64 {
			s := a[2] % uint64(w)
			v := new(big.Int).Or(new(big.Int).Lsh(new(big.Int).SetUint64(a[0]), uint(w)), new(big.Int).SetUint64(a[1]))
			return wrap(v.Rsh(v, uint(uint64(w)-s)), w).Uint64()
		}
		add("llvm.fshl."+t, t, rot, t, t, t)
		add("llvm.fshr."+t, t, func(a []uint64) uint64 {
			v := new(big.Int).Or(new(big.Int).Lsh(new(big.Int).SetUint64(a[0]), uint(w)), new(big.Int).SetUint64(a[1]))
			return wrap(v.Rsh(v, uint(a[2]%uint64(w))), w).Uint64()
		}, t, t, t)
		add("air.rotate."+t, t, func(a []uint64) uint64 { return rot([]uint64{a[0], a[0], a[1]}) }, t, t)
		// Conversions.
		for _, sg := range []bool{true, false} {
			k := map[bool]string{true: "s", false: "u"}[sg]
			prec := map[string]uint{"f32": 24, "f16": 11, "bf16": 8}
			for ft, p := range prec {
				add("air.convert.f."+ft+"."+k+"."+t, ft, func(a []uint64) uint64 {
					f, _ := new(big.Float).SetPrec(p).SetMode(big.ToNearestEven).SetInt(bigOf(a[0], w, sg)).Float64()
					kind := map[string]uint32{"f32": kindFloat, "f16": kindHalf, "bf16": kindBFloat}[ft]
					return fromFloat(kind, f)
				}, t)
				from := map[string]func(uint64) float64{"f32": f32, "f16": f16, "bf16": b16}[ft]
				toInt := func(round func(float64) float64) func(a []uint64) uint64 {
					return func(a []uint64) uint64 {
						d := from(a[0])
						if d != d {
							return 0
						}
						if math.IsInf(d, 0) {
							d = math.Copysign(1e300, d)
						}
						x, _ := big.NewFloat(round(d)).Int(nil)
						return clampInt(x, w, sg)
					}
				}
				add("air.convert."+k+"."+t+".f."+ft, t, toInt(math.Trunc), ft)
				add("air.convert."+k+"."+t+".f."+ft+".rtp", t, toInt(math.Ceil), ft)
				add("air.convert."+k+"."+t+".f."+ft+".rtn", t, toInt(math.Floor), ft)
				add("air.convert."+k+"."+t+".f."+ft+".rtz", t, toInt(math.Trunc), ft)
			}
			for _, w2 := range []int{8, 16, 32, 64} {
				t2 := fmt.Sprintf("i%d", w2)
				add("air.convert."+k+"."+t2+"."+k+"."+t, t2, func(a []uint64) uint64 { return wrap(bigOf(a[0], w, sg), w2).Uint64() }, t)
				for _, sg2 := range []bool{true, false} {
					k2 := map[bool]string{true: "s", false: "u"}[sg2]
					add("air.convert."+k2+"."+t2+"."+k+"."+t+".sat", t2, func(a []uint64) uint64 { return clampInt(bigOf(a[0], w, sg), w2, sg2) }, t)
				}
			}
		}
	}
	add("air.convert.f.f32.u.i1", "f32", func(a []uint64) uint64 { return to32f(float64(a[0])) }, "i1")
	add("air.convert.u.i1.f.f32", "i1", func(a []uint64) uint64 { return uint64(b2u(f32(a[0]) != 0)) }, "f32")
	add("air.convert.f.f16.f.bf16", "f16", func(a []uint64) uint64 { return fromFloat(kindHalf, b16(a[0])) }, "bf16")
	add("air.convert.f.bf16.f.f16", "bf16", func(a []uint64) uint64 { return fromFloat(kindBFloat, f16(a[0])) }, "f16")
	add("air.mul24.u.i32", "i32", func(a []uint64) uint64 { return uint64(uint32((a[0] & 0xffffff) * (a[1] & 0xffffff))) }, "i32", "i32")
	add("air.mad24.s.i32", "i32", func(a []uint64) uint64 { return uint64(uint32(sx(a[0], 24)*sx(a[1], 24) + int64(a[2]))) }, "i32", "i32", "i32")
	add("llvm.bswap.i16", "i16", func(a []uint64) uint64 { return uint64(bits.ReverseBytes16(uint16(a[0]))) }, "i16")
	add("llvm.bswap.i64", "i64", func(a []uint64) uint64 { return bits.ReverseBytes64(a[0]) }, "i64")
	add("air.normalize_function_constant_predicate.i8", "i8", func(a []uint64) uint64 { return uint64(b2u(a[0] != 0)) }, "i8")

	// Functions of floating-point numbers, in all three formats and vectors.
	type ff func(x []float64) float64
	minnum := func(a, b float64) float64 {
		if a != a || b < a {
			return b
		}
		return a
	}
	maxnum := func(a, b float64) float64 {
		if a != a || b > a {
			return b
		}
		return a
	}
	for name, c := range map[string]struct {
		n int
		f ff
	}{
		"fabs": {1, func(x []float64) float64 { return math.Abs(x[0]) }}, "floor": {1, func(x []float64) float64 { return math.Floor(x[0]) }},
		"ceil": {1, func(x []float64) float64 { return math.Ceil(x[0]) }}, "trunc": {1, func(x []float64) float64 { return math.Trunc(x[0]) }},
		"round": {1, func(x []float64) float64 { return math.Round(x[0]) }}, "rint": {1, func(x []float64) float64 { return math.RoundToEven(x[0]) }},
		"sqrt": {1, func(x []float64) float64 { return math.Sqrt(x[0]) }},
		"fmin": {2, func(x []float64) float64 { return minnum(x[0], x[1]) }}, "fmax": {2, func(x []float64) float64 { return maxnum(x[0], x[1]) }},
		"fmin3": {3, func(x []float64) float64 { return minnum(minnum(x[0], x[1]), x[2]) }}, "fmax3": {3, func(x []float64) float64 { return maxnum(maxnum(x[0], x[1]), x[2]) }},
		"clamp": {3, func(x []float64) float64 { return minnum(maxnum(x[0], x[1]), x[2]) }}, "saturate": {1, func(x []float64) float64 { return minnum(maxnum(x[0], 0), 1) }},
		"sign": {1, func(x []float64) float64 {
			if x[0] != x[0] {
				return 0
			}
			if x[0] == 0 {
				return x[0]
			}
			return math.Copysign(1, x[0])
		}},
		"copysign": {2, func(x []float64) float64 { return math.Copysign(x[0], x[1]) }},
		"step": {2, func(x []float64) float64 {
			if x[1] < x[0] {
				return 0
			}
			return 1
		}},
	} {
		args := func(t string) (a []string) {
			for range c.n {
				a = append(a, t)
			}
			return a
		}
		add("air."+name+".f16", "f16", func(a []uint64) uint64 { return fromFloat(kindHalf, c.f(mapTo(a, f16))) }, args("f16")...)
		add("air."+name+".bf16", "bf16", func(a []uint64) uint64 { return fromFloat(kindBFloat, c.f(mapTo(a, b16))) }, args("bf16")...)
		add("air."+name+".f32", "f32", func(a []uint64) uint64 { return to32f(c.f(mapTo(a, f32))) }, args("f32")...)
		add("air.fast_"+name+".v3f32", "v3f32", func(a []uint64) uint64 { return to32f(c.f(mapTo(a, f32))) }, args("v3f32")...)
	}
	for _, p := range []string{"llvm.minnum.", "llvm.maxnum."} {
		f := map[string]func(a, b float64) float64{"llvm.minnum.": minnum, "llvm.maxnum.": maxnum}[p]
		add(p+"f16", "f16", func(a []uint64) uint64 { return fromFloat(kindHalf, f(f16(a[0]), f16(a[1]))) }, "f16", "f16")
		add(p+"bf16", "bf16", func(a []uint64) uint64 { return fromFloat(kindBFloat, f(b16(a[0]), b16(a[1]))) }, "bf16", "bf16")
	}
	fma := func(p uint, e int, from func(uint64) float64, kind uint32) func(a []uint64) uint64 {
		return func(a []uint64) uint64 {
			x, y, z := from(a[0]), from(a[1]), from(a[2])
			if d := math.FMA(x, y, z); d-d != 0 || d == 0 {
				return fromFloat(kind, d)
			}
			s := new(big.Float).SetPrec(3000).SetFloat64(x)
			s.Mul(s, new(big.Float).SetPrec(3000).SetFloat64(y)).Add(s, new(big.Float).SetPrec(3000).SetFloat64(z))
			return fromFloat(kind, roundBig(s, p, e, big.ToNearestEven))
		}
	}
	add("air.fma.f32", "f32", fma(24, -149, f32, kindFloat), "f32", "f32", "f32")
	add("air.fma.f16", "f16", fma(11, -24, f16, kindHalf), "f16", "f16", "f16")
	add("air.fma.bf16", "bf16", fma(8, -133, b16, kindBFloat), "bf16", "bf16", "bf16")
	add("llvm.fmuladd.f32", "f32", func(a []uint64) uint64 {
		return to32f(float64(float32(f32(a[0])*f32(a[1]))) + f32(a[2]))
	}, "f32", "f32", "f32")
	add("air.mix.f32", "f32", func(a []uint64) uint64 {
		d := float32(f32(a[1]) - f32(a[0]))
		return to32f(f32(a[0]) + float64(float32(float64(d)*f32(a[2]))))
	}, "f32", "f32", "f32")
	add("air.isnan.f32", "i1", func(a []uint64) uint64 { return uint64(b2u(math.IsNaN(f32(a[0])))) }, "f32")
	add("air.isinf.f16", "i1", func(a []uint64) uint64 { return uint64(b2u(math.IsInf(f16(a[0]), 0))) }, "f16")
	add("air.isfinite.f32", "i1", func(a []uint64) uint64 { return uint64(b2u(f32(a[0])-f32(a[0]) == 0)) }, "f32")
	add("air.signbit.f32", "i1", func(a []uint64) uint64 { return a[0] >> 31 }, "f32")
	return cs
}

func mapTo(a []uint64, f func(uint64) float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = f(a[i])
	}
	return out
}

// TestIntrinsics runs each with random and special arguments, different in every lane and the same in all.
func TestIntrinsics(t *testing.T) {
	rng := rand.New(rand.NewSource(10))
	seen := map[string]bool{}
	for _, c := range intrinsicCases() {
		seen[c.name] = true
		for _, uniform := range []bool{false, true} {
			b := newBld()
			rt := typeOf(b.m, c.ret)
			out := b.buffer("out", 0)
			bufs := [][]byte{nil}
			i := air.Value(b.c(0))
			threads := 64
			if uniform {
				threads = 1
			}
			var args []air.Value
			var ins []*air.Arg
			for k, a := range c.args {
				if a[0] != '=' {
					ins = append(ins, b.buffer(fmt.Sprint("in", k), len(bufs)))
					bufs = append(bufs, nil)
				}
			}
			if !uniform {
				i = b.builtin("thread_position_in_grid")
			}
			n := 0
			for _, a := range c.args {
				if a[0] == '=' { // a constant flag
					args = append(args, b.cn(1, 0))
					continue
				}
				at := typeOf(b.m, a)
				size := int(air.Size(at))
				mem := make([]byte, size*threads)
				eb := at.ScalarBits()
				for e := 0; e < threads; e++ {
					for l := 0; l < at.Lanes(); l++ {
						v := interesting(rng)
						if at.Scalar().IsFloat() && eb == 16 && rng.Intn(2) == 0 {
							v = rng.Uint64()
						}
						if eb < 64 {
							v &= 1<<eb - 1
						}
						var w [8]byte
						binary.LittleEndian.PutUint64(w[:], v)
						copy(mem[e*size+l*eb/8:], w[:max(1, eb/8)])
					}
				}
				bufs[n+1] = mem
				args = append(args, b.at(at, ins[n], i))
				n++
			}
			b.put(b.call(c.name, rt, args...), out, i)
			b.ret()
			rs := int(air.Size(rt))
			bufs[0] = make([]byte, rs*threads)
			require.NoError(t, launch(b.compile(t), 1, uint32(threads), bufs...), c.name)
			for e := 0; e < threads; e++ {
				for l := 0; l < rt.Lanes(); l++ {
					var a []uint64
					n := 0
					for _, name := range c.args {
						if name[0] == '=' {
							continue
						}
						at := typeOf(b.m, name)
						a = append(a, elementOf(bufs[n+1], at, e, l))
						n++
					}
					got, want := elementOf(bufs[0], rt, e, l), c.want(a)
					if got != want && !(rt.Scalar().IsFloat() && nanOf(rt, got) && nanOf(rt, want)) && !zeros(rt, got, want) {
						t.Fatalf("%s(%#x) = %#x, want %#x", c.name, a, got, want)
					}
				}
			}
		}
	}
	t.Logf("%d intrinsics", len(seen))
}

// zeros: the sign of a zero is not defined where fmin and fmax choose between two.
func zeros(t *air.Type, a, b uint64) bool {
	m := uint64(1)<<(t.ScalarBits()-1) - 1
	return t.Scalar().IsFloat() && a&m == 0 && b&m == 0
}

func nanOf(t *air.Type, v uint64) bool {
	switch t.Scalar().Kind {
	case air.HalfKind:
		return math.IsNaN(f16(v))
	case air.BFloatKind:
		return math.IsNaN(b16(v))
	}
	return math.IsNaN(f32(v))
}

func elementOf(mem []byte, t *air.Type, e, l int) uint64 {
	eb := t.ScalarBits()
	var w [8]byte
	copy(w[:max(1, eb/8)], mem[e*int(air.Size(t))+l*eb/8:])
	return binary.LittleEndian.Uint64(w[:])
}

// TestBitFields has arguments of its own ranges.
func TestBitFields(t *testing.T) {
	for off := 0; off < 32; off++ {
		for n := 0; n <= 32-off; n++ {
			x := uint64(0xdeadbeef)
			want := x >> off & (1<<n - 1)
			require.Equal(t, want, eUExtractBits(x, uint64(off), uint64(n), 32))
			if n > 0 {
				require.Equal(t, uint64(uint32(sx(want, n))), eSExtractBits(x, uint64(off), uint64(n), 32))
			}
			require.Equal(t, uint64(1<<n-1)<<off, eBitsMask(uint64(off), uint64(n), 0, 32))
		}
	}
	b := newBld()
	out := b.buffer("out", 0)
	b.put(b.call("air.insert_bits.u.i32", b.i(32), b.c(0x11223344), b.c(0xff), b.c(8), b.c(12)), out, b.c(0))
	v := b.load(b.i(32), out)
	b.put(b.call("air.insert_bits.u.i32", b.i(32), v, b.c(5), b.c(4), b.c(4)), out, b.c(1))
	b.put(b.call("air.extract_bits.s.i32", b.i(32), v, b.c(4), b.c(8)), out, b.c(2))
	all := b.call("air.all.v2i1", b.i(1), &air.Const{Kind: air.DataConst, Ty: b.m.Vector(b.i(1), 2), Data: []uint64{1, 0}})
	any := b.call("air.any.v2i1", b.i(1), &air.Const{Kind: air.DataConst, Ty: b.m.Vector(b.i(1), 2), Data: []uint64{1, 0}})
	b.put(b.cast(air.OpZExt, b.i(32), all), out, b.c(3))
	b.put(b.cast(air.OpZExt, b.i(32), any), out, b.c(4))
	b.ret()
	mem := make([]byte, 20)
	require.NoError(t, launch(b.compile(t), 1, 1, mem))
	le := binary.LittleEndian
	require.Equal(t, []uint32{0x1120ff44, 0x1120ff54, 0xfffffff4, 0, 1}, []uint32{le.Uint32(mem), le.Uint32(mem[4:]), le.Uint32(mem[8:]), le.Uint32(mem[12:]), le.Uint32(mem[16:])})
}

// TestMathIntrinsics goes through names, formats and vectors to the functions that TestMathAccuracy measures.
func TestMathIntrinsics(t *testing.T) {
	for stem, f := range map[string]func(float64) float64{"exp": math.Exp, "exp2": math.Exp2, "log": math.Log, "log2": math.Log2, "sin": math.Sin, "cos": math.Cos, "tanh": math.Tanh,
		"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) }, "atan": math.Atan, "sinh": math.Sinh} {
		for _, form := range []string{"f32", "v4f32", "f16", "v2f16"} {
			b := newBld()
			out, in := b.buffer("out", 0), b.buffer("in", 1)
			i := b.builtin("thread_position_in_grid")
			typ := typeOf(b.m, form)
			name := "air."
			if typ.Scalar() == b.m.Float() && stem != "tanh" {
				name += "fast_"
			}
			b.put(b.call(name+stem+"."+form, typ, b.at(typ, in, i)), out, i)
			b.ret()
			const threads = 33
			size := int(air.Size(typ))
			src, dst := make([]byte, size*threads), make([]byte, size*threads)
			rng := rand.New(rand.NewSource(3))
			for k := 0; k < threads*typ.Lanes(); k++ {
				x := float32(rng.Float64()*3 + 0.1)
				if typ.Scalar() == b.m.Half() {
					binary.LittleEndian.PutUint16(src[2*k:], uint16(f32ToHalf(math.Float32bits(x))))
				} else {
					binary.LittleEndian.PutUint32(src[4*k:], math.Float32bits(x))
				}
			}
			require.NoError(t, launch(b.compile(t), 1, threads, dst, src))
			for k := 0; k < threads*typ.Lanes(); k++ {
				if typ.Scalar() == b.m.Half() {
					x, got := f16(uint64(binary.LittleEndian.Uint16(src[2*k:]))), f16(uint64(binary.LittleEndian.Uint16(dst[2*k:])))
					require.InEpsilon(t, f(x), got, 0x1p-10, "%s.%s(%g)", stem, form, x)
					continue
				}
				x, got := f32(uint64(binary.LittleEndian.Uint32(src[4*k:]))), decodeF32(dst[4*k:])
				require.LessOrEqual(t, ulps(got, f(x)), 0.501, "%s.%s(%g)", stem, form, x)
			}
		}
	}
	// Those with a second result.
	b := newBld()
	out := b.buffer("out", 0)
	x := b.at(b.m.Float(), out, b.c(0))
	fl := b.m.Float()
	slot := func(k int) air.Value { return b.gep(b.i(32), out, b.c(k)) }
	b.store(b.call("air.sincos.f32", fl, x, slot(2)), slot(1))
	b.store(b.call("air.modf.f32", fl, x, slot(4)), slot(3))
	b.store(b.call("air.frexp.f32", fl, x, slot(6)), slot(5))
	b.store(b.call("air.ldexp.f32", fl, x, b.c(3)), slot(7))
	b.store(b.call("air.dot.v2f32", fl, b.load(b.m.Vector(fl, 2), slot(0)), b.load(b.m.Vector(fl, 2), slot(0))), slot(8))
	b.ret()
	mem := make([]byte, 36)
	binary.LittleEndian.PutUint32(mem, math.Float32bits(-2.75))
	require.NoError(t, launch(b.compile(t), 1, 1, mem))
	s, c := math.Sincos(-2.75)
	dot := 2.75*2.75 + float64(float32(s))*float64(float32(s))
	for k, want := range []float64{-2.75, s, c, -0.75, -2, -0.6875, 0, -22, dot} {
		if k == 6 {
			require.EqualValues(t, 2, binary.LittleEndian.Uint32(mem[24:]))
			continue
		}
		require.InDelta(t, want, decodeF32(mem[4*k:]), 1e-6, "value %d", k)
	}
}
