package nn

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// preciseCase is a call of FlashAttnPrecise.
type preciseCase struct {
	d, b, h, hkv, tq, tk, capacity int
	offset, window                 int
	causal                         bool
	mask                           string // "", "shared", "heads" or "blocks"
	softcap, sinks                 bool
	form                           PreciseForm
	bits                           int
	factor                         float32
}

// preciseSetup is a call, its memory and the same for the oracle.
type preciseSetup struct {
	out  *buffer[float32]
	q, k *buffer[half.Float16]
	v    PreciseV
	d    PreciseDims
	host oracle.Precise
	mask *buffer[half.Float16]
	blk  *buffer[uint8]
}

func halves(x []float32) []half.Float16 {
	out := make([]half.Float16, len(x))
	for i, v := range x {
		out[i] = half.Float16FromFloat32(v)
	}
	return out
}

func newPrecise(t testing.TB, rt *runtime.Runtime, r *rand.Rand, c preciseCase) *preciseSetup {
	t.Helper()
	s := &preciseSetup{}
	// Rows from Tk on are poison: they must not be read.
	poison := func(x []float32, rows, d int) []float32 {
		for i := range x {
			if i/d%rows >= c.tk {
				x[i] = float32(math.NaN())
			}
		}
		return x
	}
	q := halves(normals(r, c.b*c.h*c.tq*c.d, 1))
	k := halves(poison(normals(r, c.b*c.hkv*c.capacity*c.d, 1), c.capacity, c.d))
	s.q, s.k, s.out = newBuffer(t, rt, q), newBuffer(t, rt, k), output[float32](t, rt, c.b*c.h*c.tq*c.d)
	s.host = oracle.Precise{Q: widen(q), K: widen(k), B: c.b, H: c.h, Hkv: c.hkv, D: c.d, Tq: c.tq, Tk: c.tk, Capacity: c.capacity, VRows: c.capacity,
		Offset: c.offset, Window: c.window, Causal: c.causal, Scale: float64(float32(1 / math.Sqrt(float64(c.d))))}
	s.d = PreciseDims{Batch: c.b, Heads: c.h, HeadsKV: c.hkv, HeadDim: c.d, Tq: c.tq, Tk: c.tk, Capacity: c.capacity, QOffset: c.offset, Window: c.window,
		Causal: c.causal, Scale: float32(s.host.Scale)}
	switch c.form {
	case PreciseF32:
		s.host.VRows = c.tk
		v := normals(r, c.b*c.hkv*c.tk*c.d, 1)
		s.v.F32, s.host.V = newBuffer(t, rt, v).s, widen(v)
	case PreciseF16:
		v := halves(poison(normals(r, c.b*c.hkv*c.capacity*c.d, 1), c.capacity, c.d))
		s.v.F16, s.host.V = newBuffer(t, rt, v).s, widen(v)
	case PreciseCodes:
		s.v.Codec = quant.TQHB{Dim: c.d, Bits: c.bits, Factor: c.factor}
		codes, norms, x := make([]byte, c.b*c.hkv*c.capacity*c.d), make([]float32, c.b*c.hkv*c.capacity*s.v.Codec.Norms()), normals(r, c.b*c.hkv*c.capacity*c.d, 1)
		if err := s.v.Codec.Encode(codes, norms, x); err != nil {
			t.Fatal(err)
		}
		if err := s.v.Codec.Decode(x, codes, norms); err != nil {
			t.Fatal(err)
		}
		s.host.V = widen(poison(x, c.capacity, c.d))
		s.v.Codes, s.v.Norms = newBuffer(t, rt, codes).s, newBuffer(t, rt, poison(norms, c.capacity, s.v.Codec.Norms())).s
	}
	if c.softcap {
		s.host.Softcap, s.d.Softcap = 1.5, 1.5
	}
	if c.sinks {
		sinks := normals(r, c.h, 1)
		s.host.Sinks, s.d.Sinks = widen(sinks), newBuffer(t, rt, sinks).s
	}
	if c.mask != "" {
		n := c.tq * c.tk
		if c.mask == "heads" {
			n *= c.b * c.h
		}
		mask := make([]float32, n)
		for i := range mask {
			t, j := i/c.tk%c.tq, i%c.tk
			switch {
			case t/32%2 == 0 && j/16%3 == 0: // whole tiles, hidden and not
				mask[i] = float32(math.Inf(-1))
			case j/16%3 == 1:
			case r.IntN(3) == 0 || t%7 == 3: // and rows that see little
				mask[i] = float32(math.Inf(-1))
			case r.IntN(2) == 0: // and numbers that are added
				mask[i] = float32(r.IntN(17)-8) / 4
			}
		}
		s.mask = newBuffer(t, rt, halves(mask))
		s.d.Mask, s.host.Mask, s.host.PerHead = s.mask.s, widen(mask), c.mask == "heads"
		if c.mask == "blocks" {
			rows, keys := PreciseBlocksShape(c.d, c.tq, c.tk)
			s.blk = output[uint8](t, rt, rows*keys)
			encode(t, rt, min(n, 1), func(p *runtime.Pass) error { return PreciseBlocks(p, s.blk.s, s.mask.s, c.d, c.tq, c.tk) })
			s.d.Blocks = s.blk.s
		}
	}
	return s
}

// allowed is what an element may be off, relative to the sum of magnitudes, whatever the form of V, whose values are exact: roundings
// of sums of up to Tk terms and of exponentials and the last product, and the error of the scores, whose dot products of normal
// numbers have D roundings, random in sign, of numbers up to sqrt(D), times the scale 1/sqrt(D).
func (s *preciseSetup) allowed(magnitude []float64) func(i int) float64 {
	score := math.Sqrt(float64(s.d.HeadDim)) * 0x1p-25
	return func(i int) float64 { return magnitude[i]*(math.Sqrt(float64(s.d.Tk))*0x1p-25+3e-7+score) + 1e-37 }
}

func (s *preciseSetup) call(p *runtime.Pass) error {
	return FlashAttnPrecise(p, s.out.s, s.q.s, s.k.s, s.v, s.d)
}

// preciseCases are shapes for a head dimension and a form of V.
func preciseCases(d int) []preciseCase {
	cases := []preciseCase{
		{b: 1, h: 1, hkv: 1, tq: 1, tk: 1, capacity: 1},
		{b: 1, h: 2, hkv: 1, tq: 7, tk: 65, capacity: 70, offset: 58, causal: true},
		{b: 1, h: 1, hkv: 1, tq: 8, tk: 64, capacity: 64, offset: 56, causal: true},
		{b: 2, h: 4, hkv: 2, tq: 33, tk: 40, capacity: 48, offset: 7, causal: true, window: 9},
		{b: 1, h: 3, hkv: 1, tq: 32, tk: 32, capacity: 32, causal: true, window: 1},
		{b: 1, h: 1, hkv: 1, tq: 40, tk: 130, capacity: 131, offset: 90, causal: true, window: 50},
		{b: 1, h: 2, hkv: 2, tq: 5, tk: 17, capacity: 20},
		{b: 1, h: 2, hkv: 1, tq: 9, tk: 33, capacity: 33, softcap: true, sinks: true, causal: true, offset: 24},
		{b: 1, h: 1, hkv: 1, tq: 3, tk: 20, capacity: 20, window: 6, offset: 17, sinks: true},
	}
	if d < 512 {
		cases = append(cases, preciseCase{b: 2, h: 2, hkv: 1, tq: 37, tk: 52, capacity: 60, mask: "shared"},
			preciseCase{b: 2, h: 2, hkv: 1, tq: 20, tk: 35, capacity: 35, mask: "heads", softcap: true},
			preciseCase{b: 1, h: 2, hkv: 1, tq: 70, tk: 100, capacity: 100, mask: "blocks", sinks: true},
			preciseCase{b: 1, h: 1, hkv: 1, tq: 64, tk: 64, capacity: 64, mask: "blocks"})
	}
	for i := range cases {
		cases[i].d = d
	}
	return cases
}

func TestFlashAttnPrecise(t *testing.T) {
	rt, r := open(t), source(501)
	for _, form := range []PreciseForm{PreciseF32, PreciseF16, PreciseCodes} {
		var w worst
		for _, d := range []int{64, 128, 256, 512} {
			for i, c := range preciseCases(d) {
				if testing.Short() && (i+d/64)%3 != 0 {
					continue
				}
				c.form, c.bits = form, []int{5, 6, 8}[i%3]
				if i%2 == 0 {
					c.factor = 1.3
				}
				s := newPrecise(t, rt, r, c)
				encode(t, rt, 1, s.call)
				want, magnitude := s.host.Rows()
				w.compare(t, fmt.Sprintf("%+v", c), widen(s.out.written()), want, s.allowed(magnitude))
			}
		}
		w.log(t, "sums' and scores' errors", "FlashAttnPrecise")
	}
}

// What a tile has in it, for masks with every kind, against a loop over the mask.
func TestPreciseBlocks(t *testing.T) {
	defer logExact(t, "PreciseBlocks")()
	rt, r := open(t), source(502)
	inf := half.Float16FromFloat32(float32(math.Inf(-1)))
	for _, c := range [][2]int{{1, 1}, {32, 16}, {33, 17}, {64, 100}, {5, 200}, {97, 3}} {
		tq, tk := c[0], c[1]
		mask := make([]half.Float16, tq*tk)
		for i := range mask {
			switch kind := (i/tk/32 + i%tk/16) % 4; {
			case kind == 0 || kind == 2 && r.IntN(2) == 0:
				mask[i] = inf
			case kind == 3:
				mask[i] = 0x8000 // minus zero
			}
		}
		if tq*tk > 40 {
			mask[tk-1] = 0x3c00 // another number
		}
		m := newBuffer(t, rt, mask)
		rows, keys := PreciseBlocksShape(128, tq, tk)
		out := output[uint8](t, rt, rows*keys)
		exactCases++
		encode(t, rt, 1, func(p *runtime.Pass) error { return PreciseBlocks(p, out.s, m.s, 128, tq, tk) })
		for i, got := range out.get() {
			hidden, clear := true, true
			for row := i / keys * 32; row < min(tq, i/keys*32+32); row++ {
				for key := i % keys * 16; key < min(tk, i%keys*16+16); key++ {
					v := mask[row*tk+key].Float32()
					hidden, clear = hidden && math.IsInf(float64(v), -1), clear && v == 0
				}
			}
			want := uint8(1)
			if hidden {
				want = 0
			} else if clear {
				want = 2
			}
			if got != want {
				t.Fatalf("%v: tile %d is %d, want %d", c, i, got, want)
			}
		}
		twin(t, rt, []target{out}, []scalar{{slot: 2, u: uint32(tq)}, {slot: 3, u: uint32(tk)}, {slot: 4, u: 32}, {slot: 5, u: 16}},
			func(p *runtime.Pass) error { return PreciseBlocks(p, out.s, m.s, 128, tq, tk) },
			func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
				return UnsafePreciseBlocks(p, out.s, m.s, 128, tq, tk, bind)
			})
	}
}

// Tiles of one number each: the neighbours of minus infinity and of zero are other numbers.
func TestPreciseBlocksOfNeighbours(t *testing.T) {
	rt := open(t)
	numbers := []half.Float16{0xfc00, 0xfbff, 0xfc01, 0xfe00, 0x7c00, 0x0000, 0x8000, 0x0001, 0x8001}
	want := []uint8{0, 1, 1, 1, 1, 2, 2, 1, 1}
	keys := 16 * len(numbers)
	mask := make([]half.Float16, 32*keys)
	for i := range mask {
		mask[i] = numbers[i%keys/16]
	}
	m, out := newBuffer(t, rt, mask), output[uint8](t, rt, len(numbers))
	encode(t, rt, 1, func(p *runtime.Pass) error { return PreciseBlocks(p, out.s, m.s, 128, 32, keys) })
	for i, got := range out.get() {
		if got != want[i] {
			t.Errorf("a tile of %#x is %d, want %d", uint16(numbers[i]), got, want[i])
		}
	}
}

// A row is the same bits in whatever calls it is computed: alone, with others, in another batch item, with blocks or without,
// in a recorded program.
func TestFlashAttnPreciseRowsAreTheSame(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(503)
	for _, d := range []int{64, 256, 512} {
		c := preciseCase{d: d, b: 1, h: 2, hkv: 1, tq: 35, tk: 67, capacity: 70, offset: 32, causal: true, window: 40, form: PreciseF16}
		s := newPrecise(t, rt, r, c)
		encode(t, rt, 1, s.call)
		all := s.out.written()
		q := s.q.get()
		for _, cut := range []int{1, 8, 20} {
			for h := range 2 {
				// The last `cut` rows of a head alone: its keys end where they did.
				from := (h*c.tq + c.tq - cut) * d
				part, out := newBuffer(t, rt, q[from:(h+1)*c.tq*d]), output[float32](t, rt, cut*d)
				dims := s.d
				dims.Heads, dims.Tq, dims.QOffset = 1, cut, c.offset+c.tq-cut
				encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnPrecise(p, out.s, part.s, s.k.s, s.v, dims) })
				for i, v := range out.written() {
					if v != all[from+i] {
						t.Fatalf("dim %d, the last %d rows of head %d: element %d: %v, want %v", d, cut, h, i, v, all[from+i])
					}
				}
			}
		}
		replays(t, rt, []target{s.out}, func(i int) { s.q.set(halves(normals(r, s.q.n, 1))) }, s.call)
	}
	c := preciseCase{d: 128, b: 1, h: 2, hkv: 2, tq: 70, tk: 90, capacity: 90, mask: "blocks", form: PreciseF32}
	s := newPrecise(t, rt, r, c)
	encode(t, rt, 1, s.call)
	with := s.out.bits()
	s.d.Blocks = runtime.Slice[uint8]{}
	s.out.reset()
	encode(t, rt, 1, s.call)
	for i, b := range s.out.bits() {
		if b != with[i] {
			t.Fatalf("element %d: %#x without blocks, %#x with", i, b, with[i])
		}
	}
}

// Rows that see nothing are exactly zero, with sinks and without; a sink above all scores leaves little.
func TestFlashAttnPreciseFullyMasked(t *testing.T) {
	rt, r := open(t), source(504)
	for _, sinks := range []bool{false, true} {
		s := newPrecise(t, rt, r, preciseCase{d: 64, b: 1, h: 2, hkv: 1, tq: 40, tk: 20, capacity: 20, mask: "shared", form: PreciseF16, sinks: sinks})
		mask := make([]half.Float16, 40*20)
		for i := range mask {
			if row := i / 20; row%3 == 0 || row >= 32 {
				mask[i] = half.Float16FromFloat32(float32(math.Inf(-1)))
			}
		}
		s.mask.set(mask)
		encode(t, rt, 1, s.call)
		for i, v := range s.out.written() {
			if row := i / 64 % 40; (row%3 == 0 || row >= 32) != (v == 0) {
				t.Fatalf("row %d: element %d is %v", row, i, v)
			}
		}
	}
}

// Each form of V that is the same numbers gives the same bits: codes in the kernel are what TQHBDequantize makes of them.
func TestFlashAttnPreciseCodesAreDequantised(t *testing.T) {
	numbersOnly(t)
	rt, r := open(t), source(505)
	for _, d := range []int{64, 128, 256, 512} {
		for _, bits := range []int{5, 6, 8} {
			c := preciseCase{d: d, b: 1, h: 2, hkv: 1, tq: 9, tk: 37, capacity: 37, offset: 28, causal: true, form: PreciseCodes, bits: bits, factor: 0.9}
			s := newPrecise(t, rt, r, c)
			encode(t, rt, 1, s.call)
			codes := s.out.bits()
			plain := output[float32](t, rt, c.tk*d)
			encode(t, rt, 1, func(p *runtime.Pass) error {
				return TQHBDequantize(p, plain.s, s.v.Codes, s.v.Norms, s.v.Codec, c.tk)
			})
			s.v = PreciseV{F32: plain.s}
			s.out.reset()
			encode(t, rt, 1, s.call)
			for i, b := range s.out.bits() {
				if b != codes[i] {
					t.Fatalf("dim %d, %d bits: element %d: %#x with codes, %#x with their values", d, bits, i, codes[i], b)
				}
			}
		}
	}
}

func TestFlashAttnPreciseRefuses(t *testing.T) {
	rt, r := open(t), source(506)
	other := open(t)
	c := preciseCase{d: 128, b: 1, h: 4, hkv: 2, tq: 6, tk: 20, capacity: 24, offset: 14, causal: true, form: PreciseF16}
	s := newPrecise(t, rt, r, c)
	masked := newPrecise(t, rt, r, preciseCase{d: 128, b: 1, h: 4, hkv: 2, tq: 6, tk: 20, capacity: 24, mask: "blocks", form: PreciseF16})
	coded := newPrecise(t, rt, r, preciseCase{d: 128, b: 1, h: 4, hkv: 2, tq: 6, tk: 20, capacity: 24, form: PreciseCodes, bits: 6})
	foreign := newPrecise(t, other, r, c)
	type args = preciseSetup
	nan := float32(math.NaN())
	var list []refusal
	for _, b := range []struct {
		name     string
		from     *preciseSetup
		change   func(a *args)
		sentinel error
		parts    []string
	}{
		{"head dimension", s, func(a *args) { a.d.HeadDim = 96 }, runtime.ErrShape, []string{"HeadDim", "96", "128"}},
		{"heads", s, func(a *args) { a.d.HeadsKV = 3 }, runtime.ErrShape, []string{"HeadsKV", "divisor"}},
		{"no heads of keys", s, func(a *args) { a.d.HeadsKV = 0 }, runtime.ErrShape, []string{"HeadsKV"}},
		{"no keys", s, func(a *args) { a.d.Tk = 0 }, runtime.ErrShape, []string{"Tk"}},
		{"negative rows", s, func(a *args) { a.d.Tq = -1 }, runtime.ErrShape, []string{"Tq"}},
		{"negative batch", s, func(a *args) { a.d.Batch = -1 }, runtime.ErrShape, []string{"Batch"}},
		{"negative window", s, func(a *args) { a.d.Window = -1 }, runtime.ErrShape, []string{"Window"}},
		{"negative offset", s, func(a *args) { a.d.QOffset = -1 }, runtime.ErrShape, []string{"QOffset"}},
		{"scale 0", s, func(a *args) { a.d.Scale = 0 }, runtime.ErrScalar, []string{"Scale"}},
		{"scale NaN", s, func(a *args) { a.d.Scale = nan }, runtime.ErrScalar, []string{"Scale"}},
		{"scale negative", s, func(a *args) { a.d.Scale = -1 }, runtime.ErrScalar, []string{"Scale"}},
		{"softcap", s, func(a *args) { a.d.Softcap = -1 }, runtime.ErrScalar, []string{"Softcap"}},
		{"capacity", s, func(a *args) { a.d.Capacity = 19 }, runtime.ErrShape, []string{"Capacity", "at least Tk"}},
		{"offset", s, func(a *args) { a.d.QOffset = 15 }, runtime.ErrShape, []string{"QOffset", "at most Tk"}},
		{"offset, window", s, func(a *args) { a.d.Causal, a.d.Window, a.d.QOffset = false, 3, 15 }, runtime.ErrShape, []string{"QOffset"}},
		{"no V", s, func(a *args) { a.v = PreciseV{} }, runtime.ErrShape, []string{"V", "0 of"}},
		{"two V", s, func(a *args) { a.v.F32 = a.out.s }, runtime.ErrShape, []string{"V", "2 of"}},
		{"short q", s, func(a *args) { a.d.Tq = 7; a.d.QOffset = 0 }, runtime.ErrShape, []string{"q", "elements"}},
		{"short k", s, func(a *args) { a.d.Capacity = 25 }, runtime.ErrShape, []string{"k", "elements"}},
		{"misaligned q", s, func(a *args) { q := *a.q; q.s = q.whole.Slice(pad-1, pad-1+q.n); a.q = &q }, runtime.ErrShape, []string{"q", "multiple of 8"}},
		{"window with a mask", masked, func(a *args) { a.d.Window = 3 }, runtime.ErrShape, []string{"Mask"}},
		{"causal with a mask", masked, func(a *args) { a.d.Causal = true }, runtime.ErrShape, []string{"Mask"}},
		{"mask of another size", masked, func(a *args) { a.d.Mask = a.d.Mask.Slice(0, 119) }, runtime.ErrShape, []string{"Mask", "119"}},
		{"blocks of another size", masked, func(a *args) { a.d.Blocks = a.d.Blocks.Slice(0, 1) }, runtime.ErrShape, []string{"Blocks"}},
		{"blocks without a mask", masked, func(a *args) { a.d.Mask = runtime.Slice[half.Float16]{} }, runtime.ErrShape, []string{"Blocks"}},
		{"codec", coded, func(a *args) { a.v.Codec.Dim = 256 }, runtime.ErrShape, []string{"V.Codec"}},
		{"codec's bits", coded, func(a *args) { a.v.Codec.Bits = 7 }, runtime.ErrScalar, []string{"V.Codec.bits", "7"}},
		{"no norms", coded, func(a *args) { a.v.Norms = runtime.Slice[float32]{} }, runtime.ErrShape, []string{"V.Norms"}},
		{"foreign q", s, func(a *args) { a.q = foreign.q }, runtime.ErrForeign, []string{"q"}},
		{"foreign V", s, func(a *args) { a.v = foreign.v }, runtime.ErrForeign, []string{"V"}},
		{"foreign sinks", s, func(a *args) { a.d.Sinks = foreign.out.s.Slice(0, 4) }, runtime.ErrForeign, []string{"Sinks"}},
		{"short sinks", s, func(a *args) { a.d.Sinks = newBuffer(t, rt, []float32{1, 2, 3}).s }, runtime.ErrShape, []string{"Sinks"}},
	} {
		a := *b.from
		b.change(&a)
		list = append(list, refusal{b.name, func(p *runtime.Pass) error { return FlashAttnPrecise(p, a.out.s, a.q.s, a.k.s, a.v, a.d) }, b.sentinel, b.parts})
	}
	over := newPrecise(t, rt, r, preciseCase{d: 128, b: 1, h: 2, hkv: 2, tq: 4, tk: 4, capacity: 4, form: PreciseF32})
	list = append(list, refusal{"out over V", func(p *runtime.Pass) error {
		return FlashAttnPrecise(p, over.v.F32, over.q.s, over.k.s, over.v, over.d)
	}, runtime.ErrOverlap, []string{"out", "V"}})
	refuses(t, rt, "nn.FlashAttnPrecise", []target{s.out, over.out}, list)
	d512 := masked.d
	d512.HeadDim = 512
	checkRefused(t, "nn.ValidateFlashAttnPrecise", refusal{"mask, 512", nil, runtime.ErrShape, []string{"Mask"}},
		ValidateFlashAttnPrecise(rt, s.out.s, s.q.s, s.k.s, masked.v, d512))
	if err := ValidateFlashAttnPrecise(rt, s.out.s, s.q.s, s.k.s, s.v, s.d); err != nil {
		t.Error(err)
	}
	old := openOn(t, soft.Options{Families: []mtl.GPUFamily{mtl.GPUFamilyMac2, mtl.GPUFamilyCommon1, mtl.GPUFamilyCommon2, mtl.GPUFamilyCommon3}})
	none := newPrecise(t, old, r, c)
	checkRefused(t, "nn.ValidateFlashAttnPrecise", refusal{"no matrices", nil, runtime.ErrLimit, []string{"device", "simdgroup matrices"}},
		ValidateFlashAttnPrecise(old, none.out.s, none.q.s, none.k.s, none.v, none.d))
	for _, change := range []func(d *PreciseDims){func(d *PreciseDims) { d.Tq = 0 }, func(d *PreciseDims) { d.Heads = 0 }, func(d *PreciseDims) { d.Batch = 0 }} {
		d := s.d
		change(&d)
		encode(t, rt, 0, func(p *runtime.Pass) error { return FlashAttnPrecise(p, s.out.s, s.q.s, s.k.s, s.v, d) })
	}
}

func TestPrecisePipeline(t *testing.T) {
	for _, c := range []struct {
		p    PrecisePipeline
		want string
	}{
		{PrecisePipeline{HeadDim: 256, V: PreciseF16, AlignQ: true, Causal: true, Window: true},
			"flash_attn_prefill_precise_d256_v16|200:b1|201:b0|300:b0|301:b1|303:b0|310:b1"},
		{PrecisePipeline{HeadDim: 256, V: PreciseF32, AlignK: true, Mask: true, Blocks: true},
			"flash_attn_prefill_precise_d256_v32|200:b0|201:b1|300:b1|301:b0|303:b1|310:b0"},
		{PrecisePipeline{HeadDim: 512, V: PreciseCodes, Causal: true}, "flash_attn_prefill_precise_d512_vcodes|200:b0|201:b0|300:b0|301:b1|303:b0"},
		{PrecisePipeline{HeadDim: 64, V: PreciseCodes, Softcap: true, Sinks: true},
			"flash_attn_prefill_precise_d64_vcodes|200:b0|201:b0|300:b0|301:b0|303:b0|310:b0|311:b1|312:b1"},
	} {
		if got := c.p.Label(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.p, got, c.want)
		}
	}
	if k := (PrecisePipeline{HeadDim: 96, V: PreciseF16}).Kernel(); k != "" {
		t.Error(k)
	}
	if s := PreciseForm(9).String(); s != "PreciseForm(9)" {
		t.Error(s)
	}
	for d, want := range map[int][2]int{64: {32, 16}, 128: {32, 16}, 256: {32, 16}, 512: {8, 64}, 96: {}} {
		if r, k := PreciseTile(d); [2]int{r, k} != want {
			t.Error(d, r, k)
		}
	}
	if r, k := PreciseBlocksShape(100, 5, 5); r != 0 || k != 0 {
		t.Error(r, k)
	}
}

// All pipelines of a call are there afterwards, whatever its numbers of rows and keys; one that cannot be made leaves no labels.
func TestPrewarmFlashAttnPrecise(t *testing.T) {
	rt, r := open(t), source(507)
	want := PrecisePipeline{HeadDim: 64, V: PreciseF16, Causal: true, Window: true}
	labels, err := PrewarmFlashAttnPrecise(t.Context(), rt, want, PrecisePipeline{HeadDim: 512, V: PreciseF32, Causal: true})
	if err != nil {
		t.Fatal(err)
	}
	made := rt.Stats().Pipelines
	for _, align := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		tq, tk := 33, 65
		if align[0] {
			tq = 32
		}
		if align[1] {
			tk = 64
		}
		s := newPrecise(t, rt, r, preciseCase{d: 64, b: 1, h: 1, hkv: 1, tq: tq, tk: tk, capacity: tk, offset: tk - tq, window: 9, causal: true, form: PreciseF16})
		encode(t, rt, 1, s.call)
		want.AlignQ, want.AlignK = align[0], align[1]
		if len(labels) != 8 || !slices.Contains(labels, want.Label()) {
			t.Errorf("no %s in %v", want.Label(), labels)
		}
	}
	if n := rt.Stats().Pipelines; made != 8 || n != made {
		t.Errorf("%d pipelines at first, %d later", made, n)
	}
	refused := openOn(t, soft.Options{RefuseKernels: []string{"flash_attn_prefill_precise_d256_v32"}, RefuseSource: "no compiler"})
	labels, err = PrewarmFlashAttnPrecise(t.Context(), refused, PrecisePipeline{HeadDim: 64, V: PreciseF16}, PrecisePipeline{HeadDim: 256, V: PreciseF32})
	if labels != nil || !errors.Is(err, runtime.ErrDevice) {
		t.Error(labels, err)
	}
	_, err = PrewarmFlashAttnPrecise(t.Context(), rt, PrecisePipeline{HeadDim: 80, V: PreciseF16})
	checkRefused(t, "nn.PrewarmFlashAttnPrecise", refusal{"head dimension", nil, runtime.ErrShape, []string{"pipelines", "80"}}, err)
	for _, none := range []PrecisePipeline{
		{HeadDim: 512, V: PreciseF16, Mask: true}, {HeadDim: 64, V: PreciseF16, Mask: true, Causal: true}, {HeadDim: 64, V: PreciseF16, Mask: true, Window: true},
		{HeadDim: 64, V: PreciseF16, Blocks: true},
	} {
		labels, err = PrewarmFlashAttnPrecise(t.Context(), rt, PrecisePipeline{HeadDim: 64, V: PreciseF32}, none)
		checkRefused(t, "nn.PrewarmFlashAttnPrecise", refusal{none.Label(), nil, runtime.ErrShape, []string{"pipelines", "1: " + none.Label()}}, err)
		if labels != nil {
			t.Error(labels)
		}
	}
	if n := rt.Stats().Pipelines; n != made {
		t.Errorf("%d pipelines of refused calls", n-made)
	}
	old := openOn(t, soft.Options{Families: []mtl.GPUFamily{mtl.GPUFamilyMac2}})
	_, err = PrewarmFlashAttnPrecise(t.Context(), old, PrecisePipeline{HeadDim: 64, V: PreciseF16})
	checkRefused(t, "nn.PrewarmFlashAttnPrecise", refusal{"no matrices", nil, runtime.ErrLimit, []string{"device", "simdgroup matrices"}}, err)
	_, err = PrewarmFlashAttnPrecise(t.Context(), nil)
	checkRefused(t, "nn.PrewarmFlashAttnPrecise", refusal{"no runtime", nil, runtime.ErrMisuse, []string{"rt"}}, err)
}

// Keys that end where their memory does, within a block of eight.
func TestFlashAttnPreciseKeysInExactMemory(t *testing.T) {
	rt, r := open(t), source(511)
	for _, tk := range []int{1, 7, 63, 71} {
		for _, d := range []int{64, 512} {
			s := newPrecise(t, rt, r, preciseCase{d: d, b: 1, h: 1, hkv: 1, tq: 2, tk: tk, capacity: tk, form: PreciseF32})
			k, err := runtime.SliceOf(rt, s.k.get())
			if err != nil {
				t.Fatal(err)
			}
			encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnPrecise(p, s.out.s, s.q.s, k, s.v, s.d) })
			var w worst
			want, magnitude := s.host.Rows()
			w.compare(t, fmt.Sprint(d, tk), widen(s.out.written()), want, s.allowed(magnitude))
		}
	}
}
