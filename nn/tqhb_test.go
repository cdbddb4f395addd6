package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

func init() {
	for _, d := range []int{64, 128, 256, 512} {
		kernelSlots[fmt.Sprint("tqhb_encode_h", d)] = "0r 1w 2w 3r 4u 5u 6u 7u 8f 9u"
		if d < 512 {
			kernelSlots[fmt.Sprintf("flash_attn_prefill_precise_d%d_v32", d)] = "0r 1r 2r 3w 4p 5p 6r 7r 8r 9p"
			kernelSlots[fmt.Sprintf("flash_attn_prefill_precise_d%d_v16", d)] = "0r 1r 2r 3w 4p 5p 6r 7r 8r 9p"
			kernelSlots[fmt.Sprintf("flash_attn_prefill_precise_d%d_vcodes", d)] = "0r 1r 2r 3w 4p 5p 6r 7r 8r 9p 10r"
		}
	}
	kernelSlots["flash_attn_prefill_precise_d512_v32"] = "0r 1r 2r 3w 4p 8r 9p"
	kernelSlots["flash_attn_prefill_precise_d512_v16"] = "0r 1r 2r 3w 4p 8r 9p"
	kernelSlots["flash_attn_prefill_precise_d512_vcodes"] = "0r 1r 2r 3w 4p 8r 9p 10r"
	kernelSlots["flash_attn_prefill_blk"] = "0r 1w 2u 3u 4u 5u"
	kernelSlots["tqhb_dequantize"] = "0r 1r 2w 3u 4u 5u 6f"
	for _, f := range []string{"v32", "v16", "vcodes"} {
		for _, d := range []int{64, 128, 256} {
			kernelConstants[fmt.Sprintf("flash_attn_prefill_precise_d%d_%s", d, f)] =
				"200 bool, 201 bool, 300 bool, 301 bool, 303 bool, 310 bool, 311 bool, 312 bool"
		}
		kernelConstants["flash_attn_prefill_precise_d512_"+f] = "200 bool, 201 bool, 301 bool, 310 bool, 311 bool, 312 bool"
	}
}

func tqhbCodecs() (all []quant.TQHB) {
	for _, d := range []int{64, 128, 256, 512} {
		for _, bits := range []int{5, 6, 8} {
			all = append(all, quant.TQHB{Dim: d, Bits: bits})
		}
	}
	return append(all, quant.TQHB{Dim: 512, Bits: 8, Factor: 0.75})
}

// TestTQHBEncode compares with the host's codec. Norms are summed in another order: a code may be the neighbour's where the number is
// within some roundings of the middle between two levels, and a norm off by as much as a sum of 16 terms in a lane and one over 32 lanes.
func TestTQHBEncode(t *testing.T) {
	numbersOnly(t)
	var norm worst
	rt, r := open(t), source(521)
	for i, codec := range tqhbCodecs() {
		for _, c := range []struct {
			tokens, heads, capacity int
			start                   uint32
			ring                    bool
		}{{1, 1, 1, 0, false}, {3, 2, 8, 4, false}, {5, 1, 7, 4, false}, {4, 3, 5, 3, true}, {2, 2, 4, 1 << 31, true}, {3, 1, 4, math.MaxUint32, false}} {
			tokens, heads, dim, norms := c.tokens, c.heads, codec.Dim, codec.Norms()
			x := normals(r, tokens*heads*dim, math.Pow(10, float64(i%5-2)))
			cache := TQHBCache{Capacity: c.capacity, Codec: codec}
			codes, sizes := output[uint8](t, rt, heads*c.capacity*dim), output[float32](t, rt, heads*c.capacity*norms)
			cache.Codes, cache.Norms = codes.s, sizes.s
			in, live := newBuffer(t, rt, x), newBuffer(t, rt, []uint32{c.start})
			call := func(p *runtime.Pass) error { return TQHBEncode(p, cache, in.s, live.s, tokens, heads, c.ring) }
			norm.cases++
			encode(t, rt, 1, call)
			gotCodes, gotNorms := codes.get(), sizes.get()
			wantCodes, wantNorms := make([]byte, len(x)), make([]float32, tokens*heads*norms)
			if err := codec.Encode(wantCodes, wantNorms, x); err != nil { // rotates x
				t.Fatal(err)
			}
			written := make([]bool, heads*c.capacity)
			for v := range tokens * heads {
				pos := uint64(c.start) + uint64(v/heads)
				if c.ring {
					pos %= uint64(c.capacity)
				}
				if pos >= uint64(c.capacity) {
					continue
				}
				at := v%heads*c.capacity + int(pos)
				written[at] = true
				for b := range norms {
					got, want := gotNorms[at*norms+b], wantNorms[v*norms+b]
					norm.cases-- // it is the call's
					norm.compare(t, fmt.Sprintf("%+v, %+v: norm of vector %d", codec, c, v), []float64{float64(got)}, []float64{float64(want)},
						func(int) float64 { return 4e-7 * float64(want) })
				}
				levels := codec.Levels()
				for i := range dim {
					got, want := gotCodes[at*dim+i], wantCodes[v*dim+i]
					if got == want {
						continue
					}
					n := wantNorms[v*norms+i*norms/dim]
					number := float64(x[v*dim+i]) / float64(n) * float64(codec.Divisor())
					middle := (float64(levels[min(got, want)]) + float64(levels[min(got, want)+1])) / 2
					if max(got, want)-min(got, want) != 1 || math.Abs(number-middle) > 2e-6 {
						t.Fatalf("%+v, %+v: number %d of vector %d, %v: code %d, want %d", codec, c, i, v, number, got, want)
					}
				}
			}
			for at, is := range written {
				for b := range norms {
					if s := sizes.image[pad+at*norms+b]; !is && bitsOf(gotNorms[at*norms+b]) != bitsOf(s) {
						t.Fatalf("%+v, %+v: norm at %d was written", codec, c, at)
					}
				}
				for i := range dim {
					if !is && gotCodes[at*dim+i] != sentinel[uint8]() {
						t.Fatalf("%+v, %+v: code %d at %d was written", codec, c, i, at)
					}
				}
			}
			if c.capacity == 8 {
				replays(t, rt, []target{codes, sizes}, func(i int) { live.set([]uint32{uint32(2 * i)}); in.set(normals(r, in.n, 1)) }, call)
				twin(t, rt, []target{codes, sizes}, []scalar{{slot: 4, u: uint32(tokens)}, {slot: 5, u: uint32(heads)}, {slot: 6, u: uint32(c.capacity)},
					{slot: 7, u: uint32(codec.Bits)}, {slot: 8, f: codec.Divisor(), float: true}, {slot: 9}}, call,
					func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
						return UnsafeTQHBEncode(p, cache, in.s, live.s, tokens, heads, c.ring, bind)
					})
			}
		}
	}
	norm.log(t, "4e-7 of the norm", "TQHBEncode")
}

// Vectors of zeros, of one number, and with numbers that are not finite.
func TestTQHBEncodeExtremes(t *testing.T) {
	rt := open(t)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, codec := range tqhbCodecs() {
		levels := codec.Levels()
		for _, v := range []float32{0, 1e-12, 3, nan, inf} {
			x := make([]float32, codec.Dim)
			x[codec.Dim/2] = v
			codes, norms := output[uint8](t, rt, codec.Dim), output[float32](t, rt, codec.Norms())
			in, live := newBuffer(t, rt, x), newBuffer(t, rt, []uint32{0})
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return TQHBEncode(p, TQHBCache{codes.s, norms.s, 1, codec}, in.s, live.s, 1, 1, false)
			})
			for _, n := range norms.written() {
				if finite := n-n == 0; finite == (v-v != 0) {
					t.Errorf("%+v of %v: norm %v", codec, v, n)
				}
			}
			for _, c := range codes.get() {
				if int(c) >= len(levels) || v < 1e-10 && int(c) != len(levels)/2-1 {
					t.Errorf("%+v of %v: code %d", codec, v, c)
				}
			}
		}
	}
}

// TestTQHBDequantize gives the bits of the host's codec.
func TestTQHBDequantize(t *testing.T) {
	defer logExact(t, "TQHBDequantize")()
	rt, r := open(t), source(523)
	for _, codec := range tqhbCodecs() {
		for _, n := range []int{1, 3, 17} {
			codes, norms := make([]byte, n*codec.Dim), normals(r, n*codec.Norms(), 3)
			for i := range codes {
				codes[i] = byte(r.IntN(len(codec.Levels())))
			}
			want := make([]float32, len(codes))
			if err := codec.Decode(want, codes, norms); err != nil {
				t.Fatal(err)
			}
			in, sizes, out := newBuffer(t, rt, codes), newBuffer(t, rt, norms), output[float32](t, rt, len(codes))
			call := func(p *runtime.Pass) error { return TQHBDequantize(p, out.s, in.s, sizes.s, codec, n) }
			exactCases++
			encode(t, rt, 1, call)
			for i, v := range out.written() {
				if math.Float32bits(v) != math.Float32bits(want[i]) {
					t.Fatalf("%+v: number %d: %v, want %v", codec, i, v, want[i])
				}
			}
			if n != 3 {
				continue
			}
			replays(t, rt, []target{out}, func(i int) { sizes.set(normals(r, sizes.n, 1)) }, call)
			twin(t, rt, []target{out}, []scalar{{slot: 3, u: uint32(len(codes))}, {slot: 4, u: uint32(codec.Dim / codec.Norms())}, {slot: 5, u: uint32(codec.Bits)},
				{slot: 6, f: codec.Divisor(), float: true}}, call, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
				return UnsafeTQHBDequantize(p, out.s, in.s, sizes.s, codec, n, bind)
			})
			if len(codec.Levels()) < 256 { // codes beyond the codebook count as its last
				codes[0], codes[1] = byte(len(codec.Levels())), 255
				in.set(codes)
				last := codec.Levels()[len(codec.Levels())-1] * (norms[0] / codec.Divisor())
				sizes.set(norms)
				encode(t, rt, 1, call)
				if got := out.written(); got[0] != last || got[1] != last {
					t.Fatalf("%+v: codes beyond the codebook: %v and %v, want %v", codec, got[0], got[1], last)
				}
			}
		}
	}
}

func TestTQHBRefuses(t *testing.T) {
	rt, other := open(t), open(t)
	codec := quant.TQHB{Dim: 64, Bits: 6}
	codes, norms := output[uint8](t, rt, 2*4*64), output[float32](t, rt, 2*4)
	x, live, out := newBuffer(t, rt, make([]float32, 2*2*64)), newBuffer(t, rt, []uint32{0}), output[float32](t, rt, 8*64)
	foreign := newBuffer(t, other, make([]float32, 2*2*64))
	cache := TQHBCache{codes.s, norms.s, 4, codec}
	with := func(change func(c *TQHBCache)) TQHBCache {
		c := cache
		change(&c)
		return c
	}
	var list []refusal
	for _, b := range []struct {
		name     string
		cache    TQHBCache
		x        runtime.Slice[float32]
		tokens   int
		heads    int
		ring     bool
		sentinel error
		parts    []string
	}{
		{"dim", with(func(c *TQHBCache) { c.Codec.Dim = 96 }), x.s, 2, 2, false, runtime.ErrShape, []string{"Codec.dim", "96"}},
		{"bits", with(func(c *TQHBCache) { c.Codec.Bits = 4 }), x.s, 2, 2, false, runtime.ErrScalar, []string{"Codec.bits", "4"}},
		{"tokens", cache, x.s, -1, 2, false, runtime.ErrShape, []string{"tokens"}},
		{"heads", cache, x.s, 2, -1, false, runtime.ErrShape, []string{"heads"}},
		{"capacity", with(func(c *TQHBCache) { c.Capacity = 0 }), x.s, 2, 2, false, runtime.ErrShape, []string{"Capacity"}},
		{"ring", with(func(c *TQHBCache) { c.Capacity = 1 }), x.s, 2, 2, true, runtime.ErrShape, []string{"tokens", "ring"}},
		{"short codes", with(func(c *TQHBCache) { c.Capacity = 5 }), x.s, 2, 2, false, runtime.ErrShape, []string{"Codes"}},
		{"short norms", with(func(c *TQHBCache) { c.Norms = c.Norms.Slice(0, 7) }), x.s, 2, 2, false, runtime.ErrShape, []string{"Norms"}},
		{"short x", cache, x.s, 3, 2, false, runtime.ErrShape, []string{"x"}},
		{"foreign", cache, foreign.s, 2, 2, false, runtime.ErrForeign, []string{"x"}},
		{"overlap", with(func(c *TQHBCache) { c.Norms = x.s }), x.s, 2, 2, false, runtime.ErrOverlap, []string{"Norms", "x"}},
		{"closed", with(func(c *TQHBCache) { c.Codes = runtime.Slice[uint8]{} }), x.s, 2, 2, false, runtime.ErrShape, []string{"Codes"}},
		{"too many", cache, x.s, math.MaxInt32, 2, false, runtime.ErrLimit, []string{"tokens"}},
	} {
		list = append(list, refusal{b.name, func(p *runtime.Pass) error { return TQHBEncode(p, b.cache, b.x, live.s, b.tokens, b.heads, b.ring) }, b.sentinel, b.parts})
	}
	refuses(t, rt, "nn.TQHBEncode", []target{codes, norms}, list)
	refuses(t, rt, "nn.TQHBDequantize", []target{out}, []refusal{
		{"codec", func(p *runtime.Pass) error {
			return TQHBDequantize(p, out.s, codes.s, norms.s, quant.TQHB{Dim: 64}, 8)
		}, runtime.ErrScalar, []string{"codec.bits", "0"}},
		{"n", func(p *runtime.Pass) error { return TQHBDequantize(p, out.s, codes.s, norms.s, codec, -1) }, runtime.ErrShape, []string{"n"}},
		{"short out", func(p *runtime.Pass) error {
			return TQHBDequantize(p, out.s.Slice(0, 8*64-1), codes.s, norms.s, codec, 8)
		}, runtime.ErrShape, []string{"out"}},
		{"short codes", func(p *runtime.Pass) error {
			return TQHBDequantize(p, out.s, codes.s.Slice(1, 512), norms.s, codec, 8)
		}, runtime.ErrShape, []string{"codes"}},
		{"short norms", func(p *runtime.Pass) error {
			return TQHBDequantize(p, out.s, codes.s, norms.s.Slice(1, 8), codec, 8)
		}, runtime.ErrShape, []string{"norms"}},
		{"overlap", func(p *runtime.Pass) error { return TQHBDequantize(p, x.s, codes.s, x.s, codec, 4) }, runtime.ErrOverlap, []string{"out", "norms"}},
		{"foreign", func(p *runtime.Pass) error { return TQHBDequantize(p, foreign.s, codes.s, norms.s, codec, 4) }, runtime.ErrForeign, []string{"out"}},
	})
	encode(t, rt, 0, func(p *runtime.Pass) error { return TQHBEncode(p, cache, x.s, live.s, 0, 2, false) })
	encode(t, rt, 0, func(p *runtime.Pass) error { return TQHBDequantize(p, out.s, codes.s, norms.s, codec, 0) })
}

// preciseCalls are calls of precise attention and of the codec of caches.
func preciseCalls(t testing.TB, rt *runtime.Runtime) (calls []productCall) {
	r := source(524)
	s := newPrecise(t, rt, r, preciseCase{d: 64, b: 1, h: 1, hkv: 1, tq: 9, tk: 20, capacity: 20, form: PreciseCodes, bits: 6, mask: "blocks"})
	wide := newPrecise(t, rt, r, preciseCase{d: 512, b: 1, h: 1, hkv: 1, tq: 9, tk: 20, capacity: 20, offset: 11, causal: true, form: PreciseF16})
	x, live := newBuffer(t, rt, normals(r, 64, 1)), newBuffer(t, rt, []uint32{0})
	cache := TQHBCache{s.v.Codes, s.v.Norms, 20, s.v.Codec}
	return []productCall{{"FlashAttnPrecise", s.call}, {"FlashAttnPrecise, D 512", wide.call},
		{"PreciseBlocks", func(p *runtime.Pass) error { return PreciseBlocks(p, s.blk.s, s.mask.s, 64, 9, 20) }},
		{"TQHBEncode", func(p *runtime.Pass) error { return TQHBEncode(p, cache, x.s, live.s, 1, 1, false) }},
		{"TQHBDequantize", func(p *runtime.Pass) error { return TQHBDequantize(p, x.s, s.v.Codes, s.v.Norms, s.v.Codec, 1) }}}
}

func TestPreciseCalls(t *testing.T) {
	rt := open(t)
	callsAllocateNothing(t, rt, preciseCalls(t, rt))
}

func BenchmarkEncodePrecise(b *testing.B) {
	rt := open(b)
	for _, c := range preciseCalls(b, rt) {
		b.Run(c.name, func(b *testing.B) { encodeMany(b, rt, c.call) })
	}
}
