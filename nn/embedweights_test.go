package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

func init() {
	for _, name := range embedLookupKernels {
		if name != "" {
			kernelSlots[name] = "0r 1r 2w 3u 4u 5u 6f"
		}
	}
}

// embedWant is what a lookup gives, to the bit: the weights as the codec decodes them, times scale.
func (w *rowExactWeights) embedWant(ids []uint32, scale float32) []float32 {
	out := make([]float32, 0, len(ids)*w.o.Cols)
	for _, id := range ids {
		for c := range w.o.Cols {
			v := float32(0)
			if int(id) < w.o.Rows {
				v = scale * w.o.Data[int(id)*w.o.Cols+c]
			}
			out = append(out, v)
		}
	}
	return out
}

func TestEmbedLookup(t *testing.T) {
	defer logExact(t, "EmbedLookup")()
	rt := open(t)
	for _, wt := range WeightTypes() {
		t.Run(wt.String(), func(t *testing.T) {
			r := source(700 + uint64(wt))
			unit := wt.info().values
			for _, s := range []struct{ vocab, cols, tokens int }{
				{1, 1, 1}, {7, 2, 3}, {5, 3, 5}, {100, 4, 17}, {33, 5, 2}, {9, 9, 4}, {12, 8, 3}, {3, 16, 9}, {200, 1, 70}, {2, 7, 2}, {50, 2, 65}, {4, 10, 1},
				{8, 2, 0}, // nothing to do
			} {
				cols := s.cols * unit
				if unit == 1 {
					cols = []int{s.cols, 37 * s.cols, 64 * s.cols}[s.tokens%3] // no multiple of anything is needed
				}
				m := randomRowExact(t, rt, r, wt, s.vocab, cols)
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
				for _, scale := range []float32{1, float32(math.Sqrt(float64(cols))), -1e-3, 0} {
					in, out := newBuffer(t, rt, ids), output[float32](t, rt, s.tokens*cols)
					encode(t, rt, min(s.tokens, 1), func(p *runtime.Pass) error { return m.embed(p, out.s, in.s, s.tokens, scale) })
					all := out.written()
					for i, want := range m.embedWant(ids, scale) {
						if got := all[i]; bitsOf(got) != bitsOf(want) {
							t.Fatalf("%+v, scale %v: token %d (id %d), column %d: %v, want %v", s, scale, i/cols, ids[i/cols], i%cols, got, want)
						}
					}
					exactCases++
				}
			}
		})
	}
}

// Banks that start anywhere in memory, as far as their type lets them.
func TestEmbedLookupOffsets(t *testing.T) {
	rt, r := open(t), source(711)
	ids, out := newBuffer(t, rt, []uint32{1, 0, 2}), output[float32](t, rt, 3*256)
	for _, wt := range WeightTypes() {
		m := randomRowExact(t, rt, r, wt, 7, 256)
		part, err := m.rows(3, 6)
		if err != nil {
			t.Fatal(err)
		}
		out.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error { return part.embed(p, out.s, ids.s, 3, 0.5) })
		if want := part.embedWant([]uint32{1, 0, 2}, 0.5); !slices.Equal(out.written(), want) {
			t.Errorf("%v: not the rows that were asked for", wt)
		}
	}
	odd := newBuffer(t, rt, half.Float16s(normals(r, 3*5+1, 1)))
	bank, err := NewDenseBank(odd.s.Slice(1, 16), 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	five := output[float32](t, rt, 3*5)
	encode(t, rt, 1, func(p *runtime.Pass) error { return EmbedLookup(p, five.s, bank, ids.s, 3, 1) })
	numbers := odd.get()
	for i, v := range five.written() {
		row := []int{1, 0, 2}[i/5]
		if want := numbers[1+row*5+i%5].Float32(); v != want {
			t.Fatalf("element %d: %v, want %v", i, v, want)
		}
	}
}

func TestEmbedLookupRecorded(t *testing.T) {
	rt, r := open(t), source(712)
	for _, wt := range []WeightType{WeightQ5_K, WeightBF16} {
		m := randomRowExact(t, rt, r, wt, 40, 256)
		ids, out := newBuffer(t, rt, make([]uint32, 3)), output[float32](t, rt, 3*256)
		call := func(p *runtime.Pass) error { return m.embed(p, out.s, ids.s, 3, 11.3) }
		replays(t, rt, []target{out}, func(i int) { ids.set([]uint32{uint32(i), 39 - uint32(i), 38 + uint32(i)}) }, call)
		twin(t, rt, []target{out}, []scalar{{slot: 3, u: 256}, {slot: 4, u: 40}, {slot: 5, u: 3}, {slot: 6, f: 11.3, float: true}}, call,
			func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
				return m.embedTwin(p, out.s, ids.s, 3, 11.3, bind)
			})
		unsafeEmbedFewer(t, rt, m, ids, out)
	}
}

// unsafeEmbedFewer replays UnsafeEmbedLookup with a number of tokens that was lowered: the rest of out stays.
func unsafeEmbedFewer(t *testing.T, rt *runtime.Runtime, m rowExactWeights, ids *buffer[uint32], out *buffer[float32]) {
	t.Helper()
	pool, err := runtime.NewScalarPool(rt, 4)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := runtime.NewScalar[uint32](pool, 3)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := rt.Record(func(p *runtime.Pass) error {
		return m.embedTwin(p, out.s, ids.s, 3, 1, func(b *runtime.ScalarBinder) error {
			for _, s := range []scalar{{slot: 3, u: 256}, {slot: 4, u: 40}, {slot: 6, f: 1, float: true}} {
				if err := s.bind(b, pool); err != nil {
					return err
				}
			}
			return b.Uint32(5, tokens)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	out.reset()
	if err := tokens.Set(2); err != nil {
		t.Fatal(err)
	}
	if err := prog.Run(); err != nil {
		t.Fatal(err)
	}
	for i, v := range out.get() {
		if untouched := bitsOf(v) == bitsOf(sentinel[float32]()); untouched != (i >= 2*256) {
			t.Fatalf("element %d: %v", i, v)
		}
	}
	if err := prog.Release(); err != nil {
		t.Error(err)
	}
	if err := pool.Release(); err != nil {
		t.Error(err)
	}
}

func TestEmbedLookupRefuses(t *testing.T) {
	rt, foreign, r := open(t), open(t), source(713)
	m, theirs := randomRowExact(t, rt, r, WeightQ4_0, 4, 64), randomRowExact(t, foreign, r, WeightQ4_0, 4, 64)
	f, fi := output[float32](t, foreign, 128), output[uint32](t, foreign, 2)
	ids, out := output[uint32](t, rt, 2), output[float32](t, rt, 128)
	call := func(o vec32, w rowExactWeights, in runtime.Slice[uint32], tokens int, scale float32) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return w.embed(p, o, in, tokens, scale) }
	}
	gone, err := UploadDense(rt, make([]float32, 64), 1, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Release(); err != nil {
		t.Fatal(err)
	}
	shared, err := NewDenseBank(out.s.Slice(64, 128), 1, 64)
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, rt, "nn.EmbedLookup", []target{out, ids}, []refusal{
		{"no pass", func(*runtime.Pass) error { return m.embed(nil, out.s, ids.s, 2, 1) }, runtime.ErrMisuse, nil},
		{"scale NaN", call(out.s, m, ids.s, 2, float32(math.NaN())), runtime.ErrScalar, []string{"scale", "NaN"}},
		{"scale infinite", call(out.s, m, ids.s, 2, float32(math.Inf(1))), runtime.ErrScalar, []string{"scale", "+Inf"}},
		{"zero bank", call(out.s, rowExactOf(rt, BlockBank{}, m.o), ids.s, 2, 1), runtime.ErrShape, []string{"table", "zero bank", "NewBlockBank"}},
		{"zero bank of numbers", call(out.s, rowExactOf(rt, DenseBank[half.BFloat16]{}, m.o), ids.s, 2, 1), runtime.ErrShape, []string{"table", "NewDenseBank"}},
		{"tokens -1", call(out.s, m, ids.s, -1, 1), runtime.ErrShape, []string{"tokens", "-1"}},
		{"tokens huge", call(out.s, m, ids.s, math.MaxInt, 1), runtime.ErrShape, []string{"tokens"}},
		{"out short", call(out.s.Slice(0, 127), m, ids.s, 2, 1), runtime.ErrShape, []string{"out", "127", "128"}},
		{"ids short", call(out.s, m, ids.s.Slice(0, 1), 2, 1), runtime.ErrShape, []string{"ids", "1 elements"}},
		{"out zero", call(vec32{}, m, ids.s, 2, 1), runtime.ErrShape, []string{"out"}},
		{"out foreign", call(f.s, m, ids.s, 2, 1), runtime.ErrForeign, []string{"out"}},
		{"ids foreign", call(out.s, m, fi.s, 2, 1), runtime.ErrForeign, []string{"ids"}},
		{"bank foreign", call(out.s, theirs, ids.s, 2, 1), runtime.ErrForeign, []string{"table"}},
		{"bank released", call(out.s, rowExactOf(rt, gone, m.o), ids.s, 1, 1), runtime.ErrClosed, []string{"table"}},
		{"out in the table", call(out.s.Slice(1, 65), rowExactOf(rt, shared, m.o), ids.s, 1, 1), runtime.ErrOverlap, []string{"out", "the table"}},
	})
}

// A thread for each column of numbers, and for each four of blocks; a row of threadgroups for each token.
func TestEmbedLookupGeometry(t *testing.T) {
	for _, c := range []struct {
		t            WeightType
		tokens, cols int
		groups       runtime.Size
	}{
		{WeightF32, 3, 64, runtime.D2(1, 3)}, {WeightF16, 3, 65, runtime.D2(2, 3)}, {WeightBF16, 1, 1, runtime.D2(1, 1)}, {WeightQ4_K, 7, 256, runtime.D2(1, 7)},
		{WeightQ5_0, 7, 288, runtime.D2(2, 7)}, {WeightQ8_0, 1, 32, runtime.D2(1, 1)},
	} {
		groups, threads := EmbedLookupGeometry(c.t, c.tokens, c.cols)
		if groups != c.groups || threads != runtime.D1(64) {
			t.Errorf("%+v: %v of %v", c, groups, threads)
		}
	}
	for t0, name := range embedLookupKernels {
		if t0 > 0 && !slices.Contains(metallib.DefaultInfo().Kernels, name) {
			t.Errorf("the library has no %s", name)
		}
	}
}

// embedLookupCalls are lookups for which nothing may be allocated and nothing be taken after the pass.
func embedLookupCalls(t testing.TB, rt *runtime.Runtime) map[string]func(p *runtime.Pass) error {
	t.Helper()
	r := source(714)
	q, f := randomRowExact(t, rt, r, WeightQ6_K, 4, 256), randomRowExact(t, rt, r, WeightF16, 4, 256)
	ids, out := newBuffer(t, rt, []uint32{1, 3}), output[float32](t, rt, 512)
	return map[string]func(p *runtime.Pass) error{
		"EmbedLookup":        func(p *runtime.Pass) error { return q.embed(p, out.s, ids.s, 2, 8) },
		"EmbedLookup, dense": func(p *runtime.Pass) error { return f.embed(p, out.s, ids.s, 2, 8) },
	}
}
