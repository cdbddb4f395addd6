package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
)

func TestEmbedLookupQ4MLX(t *testing.T) {
	rt, r := open(t), source(1)
	var w worst
	for _, s := range []struct{ vocab, hidden, group, tokens int }{
		{1, 32, 32, 1}, {7, 64, 32, 3}, {5, 96, 32, 5}, {100, 128, 64, 17}, {33, 128, 128, 2}, {9, 320, 64, 4}, {12, 256, 256, 3},
		{3, 512, 512, 9}, {1024, 128, 64, 1}, {2, 1024, 512, 2}, {50, 160, 32, 65}, {4, 2560, 64, 1}, {17, 32, 32, 130},
		{8, 64, 64, 0}, // nothing to do
	} {
		where := fmt.Sprintf("%+v", s)
		m := randomBank(t, rt, r, s.vocab, s.hidden, s.group)
		ids := make([]uint32, s.tokens)
		for i := range ids {
			switch r.IntN(8) {
			case 0:
				ids[i] = uint32(s.vocab) // just past the table
			case 1:
				ids[i] = math.MaxUint32
			default:
				ids[i] = uint32(r.IntN(s.vocab))
			}
		}
		in, out := newBuffer(t, rt, ids), output[float32](t, rt, s.tokens*s.hidden)
		scale := float32(math.Sqrt(float64(s.hidden)))
		count := min(s.tokens, 1)
		encode(t, rt, count, func(p *runtime.Pass) error {
			return EmbedLookupQ4MLX(p, out.s, m.bank, in.s, s.tokens, scale)
		})
		want := oracle.EmbedQ4(m.o, ids, float64(scale))
		// The weight is rounded once and the product once: 2^-24 relative each.
		w.compare(t, where, widen(out.written()), want, func(i int) float64 { return 1.01 * math.Abs(want[i]) / (1 << 23) })
	}
	w.log(t, "2^-23 of the value", "EmbedLookupQ4MLX")
}

func TestEmbedLookupQ4MLXRecorded(t *testing.T) {
	rt, r := open(t), source(2)
	m := randomBank(t, rt, r, 40, 128, 64)
	ids, out := newBuffer(t, rt, make([]uint32, 3)), output[float32](t, rt, 3*128)
	call := func(p *runtime.Pass) error { return EmbedLookupQ4MLX(p, out.s, m.bank, ids.s, 3, 11.3) }
	replays(t, rt, []target{out}, func(i int) { ids.set([]uint32{uint32(i), 39 - uint32(i), 38 + uint32(i)}) }, call)
	twin(t, rt, []target{out},
		[]scalar{{slot: 5, u: 128}, {slot: 6, u: 64}, {slot: 7, u: 40}, {slot: 8, u: 3}, {slot: 9, f: 11.3, float: true}}, call,
		func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
			return UnsafeEmbedLookupQ4MLX(p, out.s, m.bank, ids.s, 3, 11.3, bind)
		})
}

func TestEmbedLookupQ4MLXRefuses(t *testing.T) {
	rt, r := open(t), source(3)
	m := randomBank(t, rt, r, 4, 64, 64)
	foreign := open(t)
	theirs, theirIDs := output[float32](t, foreign, 128), output[uint32](t, foreign, 2)
	ids, out := output[uint32](t, rt, 2), output[float32](t, rt, 128)
	call := func(o runtime.Slice[float32], b Q4MLXBank, in runtime.Slice[uint32], tokens int, scale float32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return EmbedLookupQ4MLX(p, o, b, in, tokens, scale) }
	}
	released, err := runtime.NewSlice[float32](rt, 128)
	if err != nil {
		t.Fatal(err)
	}
	if err := released.Release(); err != nil {
		t.Fatal(err)
	}
	refuses(t, rt, "nn.EmbedLookupQ4MLX", []target{out, ids}, []refusal{
		{"no pass", func(*runtime.Pass) error { return EmbedLookupQ4MLX(nil, out.s, m.bank, ids.s, 2, 1) }, runtime.ErrMisuse, nil},
		{"scale NaN", call(out.s, m.bank, ids.s, 2, float32(math.NaN())), runtime.ErrScalar, []string{"scale", "NaN"}},
		{"scale infinite", call(out.s, m.bank, ids.s, 2, float32(math.Inf(1))), runtime.ErrScalar, []string{"scale", "+Inf"}},
		{"zero bank", call(out.s, Q4MLXBank{}, ids.s, 2, 1), runtime.ErrShape, []string{"table", "zero bank"}},
		{"tokens -1", call(out.s, m.bank, ids.s, -1, 1), runtime.ErrShape, []string{"tokens", "-1"}},
		{"tokens huge", call(out.s, m.bank, ids.s, math.MaxInt, 1), runtime.ErrShape, []string{"tokens"}},
		{"grid beyond 32 bits", call(out.s, m.bank, ids.s, math.MaxInt32, 1), runtime.ErrLimit, []string{"tokens * threads of a row"}},
		{"out short", call(out.s.Slice(0, 127), m.bank, ids.s, 2, 1), runtime.ErrShape, []string{"out", "127", "128"}},
		{"ids short", call(out.s, m.bank, ids.s.Slice(0, 1), 2, 1), runtime.ErrShape, []string{"ids", "1 elements"}},
		{"out zero", call(runtime.Slice[float32]{}, m.bank, ids.s, 2, 1), runtime.ErrShape, []string{"out"}},
		{"out out of range", call(out.s.Slice(3, 300), m.bank, ids.s, 2, 1), runtime.ErrShape, []string{"out"}},
		{"out released", call(released, m.bank, ids.s, 2, 1), runtime.ErrClosed, []string{"out"}},
		{"out foreign", call(theirs.s, m.bank, ids.s, 2, 1), runtime.ErrForeign, []string{"out"}},
		{"ids foreign", call(out.s, m.bank, theirIDs.s, 2, 1), runtime.ErrForeign, []string{"ids"}},
	})
}
