package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

func TestEmbedLookupAffine(t *testing.T) {
	rt, r := open(t), source(1540)
	var w worst
	for i, f := range affineFormats() {
		vocab, hidden, tokens := 1+r.IntN(60), f.GroupSize*(1+i%4), 1+(i*5)%70
		scale := []float32{1, float32(math.Sqrt(float64(hidden))), -1e-3}[i%3]
		m := randomAffine(t, rt, r, f, vocab, hidden)
		ids := make([]uint32, tokens)
		for i := range ids {
			switch r.IntN(8) {
			case 0:
				ids[i] = uint32(vocab) // just past the table
			case 1:
				ids[i] = math.MaxUint32
			default:
				ids[i] = uint32(r.IntN(vocab))
			}
		}
		in, out := newBuffer(t, rt, ids), output[float32](t, rt, tokens*hidden)
		encode(t, rt, 1, func(p *runtime.Pass) error { return EmbedLookupAffine(p, out.s, m.bank, in.s, tokens, scale) })
		want, got := oracle.Embed(m.o, ids, float64(scale)), out.written()
		where := fmt.Sprintf("%v, %d of %d, scale %g", f, tokens, hidden, scale)
		// Two roundings of 2^-24: the weight, the scaled weight.
		w.compare(t, where, widen(got), want, func(i int) float64 { return 2.01 * math.Abs(want[i]) / (1 << 24) })
		if scale == 1 { // the weights themselves, to the bit
			dense := make([]float32, vocab*hidden)
			if err := m.host.Dequantize(dense); err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if id := ids[i/hidden]; int64(id) < int64(vocab) && v != dense[int(id)*hidden+i%hidden] {
					t.Fatalf("%s: element %d: %v, want %v", where, i, v, dense[int(id)*hidden+i%hidden])
				}
			}
		}
	}
	w.log(t, "2 * 2^-24 of the value", "EmbedLookupAffine")
}

func TestEmbedLookupAffineRecorded(t *testing.T) {
	rt, r := open(t), source(1541)
	m := randomAffine(t, rt, r, quant.AffineFormat{Bits: 6, GroupSize: 32, Scale: quant.ScaleBF16}, 40, 96)
	ids, out := newBuffer(t, rt, make([]uint32, 3)), output[float32](t, rt, 3*96)
	call := func(p *runtime.Pass) error { return EmbedLookupAffine(p, out.s, m.bank, ids.s, 3, 11.3) }
	replays(t, rt, []target{out}, func(i int) { ids.set([]uint32{uint32(i), 39 - uint32(i), 38 + uint32(i)}) }, call)
	twin(t, rt, []target{out},
		[]scalar{{slot: 5, u: 96}, {slot: 6, u: 32}, {slot: 7, u: 40}, {slot: 8, u: 3}, {slot: 9, f: 11.3, float: true}}, call,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeEmbedLookupAffine(p, out.s, m.bank, ids.s, 3, 11.3, bind)
		})
}

func TestEmbedLookupAffineRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(1542)
	f := quant.AffineFormat{Bits: 8, GroupSize: 64, Scale: quant.ScaleF32}
	m, theirs := randomAffine(t, rt, r, f, 4, 64), randomAffine(t, foreign, r, f, 4, 64)
	fo, fi := output[float32](t, foreign, 128), output[uint32](t, foreign, 2)
	ids, out := output[uint32](t, rt, 2), output[float32](t, rt, 128)
	call := func(o runtime.Slice[float32], b AffineBank, in runtime.Slice[uint32], tokens int, scale float32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return EmbedLookupAffine(p, o, b, in, tokens, scale) }
	}
	refuses(t, rt, "nn.EmbedLookupAffine", []target{out, ids}, []refusal{
		{"no pass", func(*runtime.Pass) error { return EmbedLookupAffine(nil, out.s, m.bank, ids.s, 2, 1) }, runtime.ErrMisuse, nil},
		{"scale NaN", call(out.s, m.bank, ids.s, 2, float32(math.NaN())), runtime.ErrScalar, []string{"scale", "NaN"}},
		{"scale infinite", call(out.s, m.bank, ids.s, 2, float32(math.Inf(-1))), runtime.ErrScalar, []string{"scale", "-Inf"}},
		{"zero bank", call(out.s, AffineBank{}, ids.s, 2, 1), runtime.ErrShape, []string{"table", "zero bank", "NewAffineBank"}},
		{"tokens -1", call(out.s, m.bank, ids.s, -1, 1), runtime.ErrShape, []string{"tokens", "-1"}},
		{"tokens huge", call(out.s, m.bank, ids.s, math.MaxInt, 1), runtime.ErrShape, []string{"tokens"}},
		{"grid beyond 32 bits", call(out.s, m.bank, ids.s, math.MaxInt32, 1), runtime.ErrLimit, []string{"tokens * threads of a row"}},
		{"out short", call(out.s.Slice(0, 127), m.bank, ids.s, 2, 1), runtime.ErrShape, []string{"out", "127", "128"}},
		{"ids short", call(out.s, m.bank, ids.s.Slice(0, 1), 2, 1), runtime.ErrShape, []string{"ids", "1 elements"}},
		{"out zero", call(runtime.Slice[float32]{}, m.bank, ids.s, 2, 1), runtime.ErrShape, []string{"out"}},
		{"out foreign", call(fo.s, m.bank, ids.s, 2, 1), runtime.ErrForeign, []string{"out"}},
		{"ids foreign", call(out.s, m.bank, fi.s, 2, 1), runtime.ErrForeign, []string{"ids"}},
		{"bank foreign", call(out.s, theirs.bank, ids.s, 2, 1), runtime.ErrForeign, []string{"table"}},
	})
	encode(t, rt, 0, call(out.s, m.bank, ids.s, 0, 1)) // no tokens are no work
	out.untouched()
}
