package simt

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

// lanesTest runs out[i] = f(in[i], ...) for one simdgroup of n threads, in a branch that the lanes of skip do not take.
// Results of up to 64 bits are stored as such.
func lanesTest(t testing.TB, n uint32, skip uint32, in []uint32, f func(b *bld, x *air.Instr, lane air.Value) air.Value) []uint64 {
	t.Helper()
	b := newBld()
	out, src := b.buffer("out", 0), b.buffer("in", 1)
	i := b.builtin("thread_index_in_simdgroup")
	then, end := b.block("then"), b.block("end")
	bit := b.op(air.OpAnd, b.op(air.OpLShr, b.c(int(int32(skip))), i), b.c(1))
	x := b.at(b.i(32), src, i)
	b.condBr(b.cmp(air.ICmpEQ, bit, b.c(0)), then, end)
	b.b = then
	v := f(b, x, i)
	switch {
	case v.Type() == b.m.Float():
		v = b.cast(air.OpBitCast, b.i(32), v)
	case v.Type() == b.m.Half():
		v = b.cast(air.OpBitCast, b.i(16), v)
	}
	if v.Type().Bits < 64 {
		v = b.cast(air.OpZExt, b.i(64), v)
	}
	b.put(v, out, i)
	b.br(end)
	b.b = end
	b.ret()
	mem, inb := make([]byte, 8*32), make([]byte, 4*32)
	for k := range mem {
		mem[k] = 0xcd
	}
	for k, v := range in {
		binary.LittleEndian.PutUint32(inb[4*k:], v)
	}
	require.NoError(t, launch(b.compile(t), 1, n, mem, inb))
	r := make([]uint64, 32)
	for k := range r {
		r[k] = binary.LittleEndian.Uint64(mem[8*k:])
	}
	return r
}

var activeSets = []struct{ n, skip uint32 }{{32, 0}, {32, 0x0000ff00}, {32, 0x55555555}, {13, 0}, {29, 0x00010031}, {1, 0}, {32, 0xfffffffe}, {32, 0x7fffffff}}

// eachActive compares the lanes that ran and checks that the others stored nothing.
func eachActive(t testing.TB, name string, n, skip uint32, got []uint64, want func(l int) (uint64, bool)) {
	t.Helper()
	for l := range got {
		if l >= int(n) || skip>>l&1 == 1 {
			require.EqualValues(t, uint64(0xcdcdcdcdcdcdcdcd), got[l], "%s: lane %d ran", name, l)
			continue
		}
		if w, ok := want(l); ok && got[l] != w {
			t.Fatalf("%s, %d threads without %#x: lane %d has %#x, want %#x", name, n, skip, l, got[l], w)
		}
	}
}

func randomLanes(seed int64) []uint32 {
	rng := rand.New(rand.NewSource(seed))
	v := make([]uint32, 32)
	for i := range v {
		v[i] = rng.Uint32() >> rng.Intn(20)
	}
	return v
}

func TestReductions(t *testing.T) {
	for seed, set := range activeSets {
		active := uint32(1<<set.n-1) &^ set.skip
		in := randomLanes(int64(seed))
		type fold struct {
			name string
			f    func(a, b int64) int64
			s    bool
		}
		for _, c := range []fold{
			{"sum.u.i32", func(a, b int64) int64 { return a + b }, false}, {"product.s.i32", func(a, b int64) int64 { return int64(int32(a)) * int64(int32(b)) }, true},
			{"min.s.i32", func(a, b int64) int64 { return min(a, b) }, true}, {"max.s.i32", func(a, b int64) int64 { return max(a, b) }, true},
			{"min.u.i32", func(a, b int64) int64 { return min(a, b) }, false}, {"max.u.i32", func(a, b int64) int64 { return max(a, b) }, false},
			{"and.u.i32", func(a, b int64) int64 { return a & b }, false}, {"or.s.i32", func(a, b int64) int64 { return a | b }, false}, {"xor.u.i32", func(a, b int64) int64 { return a ^ b }, false},
		} {
			read := func(v uint32) int64 {
				if c.s {
					return int64(int32(v))
				}
				return int64(v)
			}
			for _, kind := range []string{"simd", "quad"} {
				got := lanesTest(t, set.n, set.skip, in, func(b *bld, x *air.Instr, _ air.Value) air.Value {
					return b.call("air."+kind+"_"+c.name, b.i(32), x)
				})
				eachActive(t, kind+c.name, set.n, set.skip, got, func(l int) (uint64, bool) {
					first := true
					var acc int64
					for k := 0; k < 32; k++ {
						if active>>k&1 == 0 || kind == "quad" && k/4 != l/4 {
							continue
						}
						if first {
							acc, first = read(in[k]), false
						} else {
							acc = c.f(acc, read(in[k]))
						}
					}
					return uint64(uint32(acc)), true
				})
			}
		}
		// Floating point: small whole numbers, so that the order does not matter.
		small := make([]uint32, 32)
		for k := range small {
			small[k] = math.Float32bits(float32(int(in[k]%17) - 8))
		}
		for _, c := range []struct {
			name string
			f    func(a, b float64) float64
		}{{"sum", func(a, b float64) float64 { return a + b }}, {"min", math.Min}, {"max", math.Max}} {
			fold := func() float64 {
				acc, first := 0.0, true
				for k := 0; k < 32; k++ {
					if active>>k&1 == 0 {
						continue
					}
					v := float64(math.Float32frombits(small[k]))
					if first {
						acc, first = v, false
					} else {
						acc = c.f(acc, v)
					}
				}
				return acc
			}
			got := lanesTest(t, set.n, set.skip, small, func(b *bld, x *air.Instr, _ air.Value) air.Value {
				return b.call("air.simd_"+c.name+".f32", b.m.Float(), b.cast(air.OpBitCast, b.m.Float(), x))
			})
			eachActive(t, c.name+".f32", set.n, set.skip, got, func(int) (uint64, bool) { return uint64(math.Float32bits(float32(fold()))), true })
			got = lanesTest(t, set.n, set.skip, small, func(b *bld, x *air.Instr, _ air.Value) air.Value {
				return b.call("air.simd_"+c.name+".f16", b.m.Half(), b.cast(air.OpFPTrunc, b.m.Half(), b.cast(air.OpBitCast, b.m.Float(), x)))
			})
			eachActive(t, c.name+".f16", set.n, set.skip, got, func(int) (uint64, bool) {
				return uint64(f32ToHalf(math.Float32bits(float32(fold())))), true
			})
		}
	}
}

func TestShuffles(t *testing.T) {
	for seed, set := range activeSets {
		active := uint32(1<<set.n-1) &^ set.skip
		in := randomLanes(int64(seed))
		at := func(k int) (uint64, bool) { // a lane that does not run gives 0
			if active>>k&1 == 0 {
				return 0, true
			}
			return uint64(in[k]), true
		}
		own := func(l int) (uint64, bool) { return uint64(in[l]), true }
		for _, d := range []int{0, 1, 3, 5, 16, 31} {
			for _, c := range []struct {
				name string
				want func(l int) (uint64, bool)
			}{
				{"simd_shuffle", func(int) (uint64, bool) { return at(d) }},
				{"simd_broadcast", func(int) (uint64, bool) { return at(d) }},
				{"simd_shuffle_xor", func(l int) (uint64, bool) { return at(l ^ d) }},
				{"simd_shuffle_up", func(l int) (uint64, bool) {
					if l < d {
						return own(l)
					}
					return at(l - d)
				}},
				{"simd_shuffle_down", func(l int) (uint64, bool) {
					if l+d > 31 {
						return own(l)
					}
					return at(l + d)
				}},
				{"simd_shuffle_rotate_up", func(l int) (uint64, bool) { return at((l - d + 32) % 32) }},
				{"simd_shuffle_rotate_down", func(l int) (uint64, bool) { return at((l + d) % 32) }},
				{"quad_shuffle_xor", func(l int) (uint64, bool) { return at(l&^3 | (l^d)&3) }},
				{"quad_broadcast", func(l int) (uint64, bool) { return at(l&^3 | d&3) }},
				{"quad_shuffle_rotate_down", func(l int) (uint64, bool) { return at(l&^3 | (l+d)&3) }},
				{"quad_shuffle_up", func(l int) (uint64, bool) {
					if l&3 < d {
						return own(l)
					}
					return at(l - d)
				}},
			} {
				got := lanesTest(t, set.n, set.skip, in, func(b *bld, x *air.Instr, _ air.Value) air.Value {
					return b.call("air."+c.name+".u.i32", b.i(32), x, b.cn(16, uint64(d)))
				})
				eachActive(t, fmt.Sprint(c.name, " by ", d), set.n, set.skip, got, c.want)
			}
			// A lane chosen by each lane, of a vector.
			v := func(b *bld) *air.Type { return b.m.Vector(b.i(32), 2) }
			got := lanesTest(t, set.n, set.skip, in, func(b *bld, x *air.Instr, lane air.Value) air.Value {
				var vec air.Value = &air.Const{Kind: air.UndefConst, Ty: v(b)}
				vec = b.add(&air.Instr{Op: air.OpInsertElement, Ty: v(b), Args: []air.Value{vec, b.op(air.OpXor, x, b.c(1)), b.c(0)}})
				vec = b.add(&air.Instr{Op: air.OpInsertElement, Ty: v(b), Args: []air.Value{vec, x, b.c(1)}})
				l := b.cast(air.OpTrunc, b.i(16), b.op(air.OpAnd, b.op(air.OpMul, lane, b.c(d)), b.c(31)))
				r := b.call("air.simd_shuffle.u.v2i32", v(b), vec, l)
				return b.add(&air.Instr{Op: air.OpExtractElement, Ty: b.i(32), Args: []air.Value{r, b.c(1)}})
			})
			eachActive(t, "vector shuffle", set.n, set.skip, got, func(l int) (uint64, bool) { return at(l * d % 32) })
		}
		first := bits.TrailingZeros32(active)
		got := lanesTest(t, set.n, set.skip, in, func(b *bld, x *air.Instr, _ air.Value) air.Value {
			return b.call("air.simd_broadcast_first.u.i32", b.i(32), x)
		})
		eachActive(t, "broadcast_first", set.n, set.skip, got, func(int) (uint64, bool) { return at(first) })
		got = lanesTest(t, set.n, set.skip, in, func(b *bld, x *air.Instr, _ air.Value) air.Value {
			return b.call("air.quad_broadcast_first.u.i32", b.i(32), x)
		})
		eachActive(t, "quad_broadcast_first", set.n, set.skip, got, func(l int) (uint64, bool) {
			return at(l&^3 + bits.TrailingZeros32(active>>(l&^3)&15))
		})
		// Shuffles that fill, in segments.
		for _, seg := range []int{32, 8} {
			for _, d := range []int{1, 3} {
				for _, up := range []bool{true, false} {
					name := map[bool]string{true: "up", false: "down"}[up]
					got := lanesTest(t, set.n, set.skip, in, func(b *bld, x *air.Instr, _ air.Value) air.Value {
						return b.call("air.simd_shuffle_and_fill_"+name+".u.i32", b.i(32), x, b.op(air.OpXor, x, b.c(-1)), b.cn(16, uint64(d)), b.cn(16, uint64(seg)))
					})
					eachActive(t, "fill "+name, set.n, set.skip, got, func(l int) (uint64, bool) {
						s := l / seg * seg
						k := l - d
						if !up {
							k = l + d
						}
						if k >= s && k < s+seg {
							return at(k)
						}
						k = s + (k-s+seg)%seg
						v, _ := at(k)
						if active>>k&1 == 1 {
							v = uint64(^uint32(v))
						}
						return v, true
					})
				}
			}
		}
	}
}

func TestVotes(t *testing.T) {
	for seed, set := range activeSets {
		all := uint32(1<<set.n - 1)
		active := all &^ set.skip
		for round, in := range [][]uint32{randomLanes(int64(seed)), make([]uint32, 32)} {
			var set1 uint32
			for k := range in {
				if in[k]&1 == 1 && active>>k&1 == 1 {
					set1 |= 1 << k
				}
			}
			bit := func(b *bld, x *air.Instr) air.Value { return b.cast(air.OpTrunc, b.i(1), x) }
			run := func(name string, ret int, f func(b *bld, x *air.Instr) []air.Value, want func(l int) uint64) {
				got := lanesTest(t, set.n, set.skip, in, func(b *bld, x *air.Instr, _ air.Value) air.Value {
					var args []air.Value
					if f != nil {
						args = f(b, x)
					}
					return b.call("air."+name, b.i(ret), args...)
				})
				eachActive(t, fmt.Sprint(name, round), set.n, set.skip, got, func(l int) (uint64, bool) { return want(l), true })
			}
			one := func(b *bld, x *air.Instr) []air.Value { return []air.Value{bit(b, x)} }
			truth := func(ok bool) uint64 { return uint64(b2u(ok)) }
			run("simd_ballot.i64", 64, one, func(int) uint64 { return uint64(set1) })
			run("simd_all", 1, one, func(int) uint64 { return truth(set1 == active) })
			run("simd_any", 1, one, func(int) uint64 { return truth(set1 != 0) })
			run("simd_active_threads_mask.i64", 64, nil, func(int) uint64 { return uint64(active) })
			run("simd_is_first", 1, nil, func(l int) uint64 { return truth(l == bits.TrailingZeros32(active)) })
			run("simd_is_helper_thread", 1, nil, func(int) uint64 { return 0 })
			run("get_simdgroup_size.i16", 16, nil, func(int) uint64 { return 32 })
			quad := func(v uint32, l int) uint64 { return uint64(v >> (l &^ 3) & 15) }
			run("quad_ballot.i16", 16, one, func(l int) uint64 { return quad(set1, l) })
			run("quad_all", 1, one, func(l int) uint64 { return truth(quad(set1, l) == quad(active, l)) })
			run("quad_any", 1, one, func(l int) uint64 { return truth(quad(set1, l) != 0) })
			run("quad_is_first", 1, nil, func(l int) uint64 { return truth(l == l&^3+bits.TrailingZeros64(quad(active, l))) })
			run("quad_active_threads_mask.i16", 16, nil, func(l int) uint64 { return quad(active, l) })
			ballot := func(b *bld, x *air.Instr) []air.Value {
				return []air.Value{b.call("air.simd_ballot.i64", b.i(64), bit(b, x))}
			}
			run("simd_vote_all.i64", 1, ballot, func(int) uint64 { return truth(set1 == all) })
			run("simd_vote_any.i64", 1, ballot, func(int) uint64 { return truth(set1 != 0) })
			uniform := true
			for k := range in {
				if active>>k&1 == 1 && in[k] != in[bits.TrailingZeros32(active)] {
					uniform = false
				}
			}
			run("is_uniform.i32", 1, func(b *bld, x *air.Instr) []air.Value { return []air.Value{x} }, func(int) uint64 { return truth(uniform) })
		}
	}
}

func TestPrefix(t *testing.T) {
	for seed, set := range activeSets {
		active := uint32(1<<set.n-1) &^ set.skip
		in := randomLanes(int64(seed))
		for k := range in {
			in[k] = in[k]%3 + 1
		}
		for _, product := range []bool{false, true} {
			for _, inclusive := range []bool{false, true} {
				for _, quad := range []bool{false, true} {
					want := func(l int) uint32 {
						acc := b2u(product)
						for k := 0; k <= l; k++ {
							if active>>k&1 == 0 || quad && k/4 != l/4 || k == l && !inclusive {
								continue
							}
							if product {
								acc *= in[k]
							} else {
								acc += in[k]
							}
						}
						return acc
					}
					name := map[bool]string{true: "air.quad_prefix_", false: "air.simd_prefix_"}[quad] + map[bool]string{true: "inclusive_", false: "exclusive_"}[inclusive] +
						map[bool]string{true: "product", false: "sum"}[product]
					got := lanesTest(t, set.n, set.skip, in, func(b *bld, x *air.Instr, _ air.Value) air.Value { return b.call(name+".u.i32", b.i(32), x) })
					eachActive(t, name, set.n, set.skip, got, func(l int) (uint64, bool) { return uint64(want(l)), true })
					if want(31) > 1<<24 {
						continue
					}
					got = lanesTest(t, set.n, set.skip, in, func(b *bld, x *air.Instr, _ air.Value) air.Value {
						return b.call(name+".f32", b.m.Float(), b.cast(air.OpUIToFP, b.m.Float(), x))
					})
					eachActive(t, name+".f32", set.n, set.skip, got, func(l int) (uint64, bool) {
						return uint64(math.Float32bits(float32(want(l)))), want(l) < 1<<24
					})
				}
			}
		}
	}
}
