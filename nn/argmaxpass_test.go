package nn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
)

func TestArgmaxGeometry(t *testing.T) {
	for _, c := range []struct{ n, groups, passes, scratch int }{
		{1, 1, 1, 0}, {255, 1, 1, 0}, {256, 1, 1, 0}, {257, 2, 2, 2}, {512, 2, 2, 2}, {513, 3, 2, 3}, {65536, 256, 2, 256}, {65537, 257, 3, 259},
		{262144, 1024, 3, 1028}, {1 << 24, 1 << 16, 3, 1<<16 + 256}, {1<<24 + 1, 1<<16 + 1, 4, 1<<16 + 1 + 257 + 2}, {math.MaxInt32, 1 << 23, 4, 1<<23 + 1<<15 + 128},
	} {
		if g, p, s := ArgmaxGroups(c.n), ArgmaxPasses(c.n), ArgmaxScratch(c.n); g != c.groups || p != c.passes || s != c.scratch {
			t.Errorf("%d: %d groups, %d passes, scratch %d; want %d, %d, %d", c.n, g, p, s, c.groups, c.passes, c.scratch)
		}
		if g := ElementGroups(c.n); g != c.groups {
			t.Errorf("ElementGroups(%d) = %d", c.n, g)
		}
	}
}

// logitsWith are logits with ties, numbers that are not finite, and the extremes of float32 among them.
func logitsWith(n int, seed uint64) []float32 {
	r := source(seed)
	x := normals(r, n, 3)
	odd := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), -math.MaxFloat32, 0, 5, 5, 5}
	for i := range x {
		if r.IntN(5) == 0 {
			x[i] = odd[r.IntN(len(odd))]
		}
	}
	return x
}

func TestArgmaxPass(t *testing.T) {
	rt := open(t)
	var w worst
	for i, n := range []int{1, 2, 31, 32, 33, 100, 255, 256, 257, 511, 512, 513, 1000, 5000, 65537} {
		for mode := range 4 {
			where := fmt.Sprintf("n %d mode %d", n, mode)
			x := logitsWith(n, uint64(250+i))
			a := ArgmaxOperands{N: n}
			values, index, value := newBuffer(t, rt, x), output[uint32](t, rt, ArgmaxGroups(n)), output[float32](t, rt, ArgmaxGroups(n))
			a.Values, a.Index, a.Value = values.s, index.s, value.s
			var ids []uint32
			if mode&1 != 0 { // names in no order, some of nothing
				r := source(uint64(300 + i))
				for range n {
					id := uint32(r.Uint32())
					if r.IntN(6) == 0 {
						id = NoToken
					}
					ids = append(ids, id)
				}
				a.Indices = newBuffer(t, rt, ids).s
			}
			limit := 0.0
			if mode&2 != 0 {
				limit = 30
				a.Softcap = newBuffer(t, rt, []float32{30}).s
			}
			encode(t, rt, 1, func(p *runtime.Pass) error { return ArgmaxPass(p, a) })
			wantIndex, wantValue, _ := oracle.ArgmaxPass(x, ids, limit)
			for g, got := range index.get() {
				if got != wantIndex[g] {
					t.Fatalf("%s: group %d chose %d, want %d", where, g, got, wantIndex[g])
				}
			}
			// Without a cap the value is the logit itself.
			w.compare(t, where, widen(value.written()), wantValue, func(i int) float64 {
				if limit == 0 {
					return 0
				}
				return 5e-7 * math.Abs(wantValue[i])
			})
			values.untouched()
		}
	}
	w.log(t, "5e-7 of the value", "ArgmaxPass")
}

// multi are the operands of a complete argmax, its scratch as long as needed between sentinels.
type multi struct {
	a      ArgmaxArgs
	logits *buffer[float32]
	limit  *buffer[float32]
	token  *buffer[uint32]
	value  *buffer[float32]
}

func newMulti(t *testing.T, rt *runtime.Runtime, logits []float32, limit float32) multi {
	t.Helper()
	n := len(logits)
	m := multi{logits: newBuffer(t, rt, logits), limit: newBuffer(t, rt, []float32{limit}), token: output[uint32](t, rt, 1), value: output[float32](t, rt, 1)}
	m.a = ArgmaxArgs{Token: m.token.s, Value: m.value.s, Logits: m.logits.s, Softcap: m.limit.s, N: n}
	if s := ArgmaxScratch(n); s > 0 {
		index, value := output[uint32](t, rt, s), output[float32](t, rt, s)
		m.a.ScratchIndex, m.a.ScratchValue = index.s, value.s
		t.Cleanup(func() { index.get(); value.get() })
	}
	return m
}

// check holds a complete argmax against the formula and, bit for bit, against the one in a single pass.
func (m multi) check(t *testing.T, rt *runtime.Runtime, w *worst, where string, logits []float32, limit float32) {
	t.Helper()
	m.logits.set(logits)
	m.limit.set([]float32{limit})
	encode(t, rt, ArgmaxPasses(len(logits)), func(p *runtime.Pass) error { return Argmax(p, m.a) })
	token, value := m.token.written()[0], m.value.written()[0]
	want, capped, _ := oracle.SoftcapArgmax(logits, float64(limit))
	if token != want {
		t.Fatalf("%s: token %d, want %d", where, token, want)
	}
	w.compare(t, where, []float64{float64(value)}, []float64{capped}, func(int) float64 { return 5e-7 * math.Abs(capped) })
	one, oneValue := argmaxOf(t, rt, logits, limit)
	if token != one || math.Float32bits(value) != math.Float32bits(oneValue) {
		t.Fatalf("%s: %d, %v in several passes, %d, %v in one", where, token, value, one, oneValue)
	}
	m.logits.untouched()
}

func TestArgmax(t *testing.T) {
	rt := open(t)
	var w worst
	for i, n := range []int{1, 2, 33, 255, 256, 257, 300, 511, 512, 513, 1000, 4097, 65536, 65537, 70001} {
		logits := logitsWith(n, uint64(270+i))
		m := newMulti(t, rt, logits, 30)
		m.check(t, rt, &w, fmt.Sprint("n ", n), logits, 30)
		if n < 5000 {
			m.check(t, rt, &w, fmt.Sprint("uncapped, n ", n), logits, 0)
		}
	}
	w.log(t, "5e-7 of the value", "Argmax")
	// Without a cap at all.
	logits := logitsWith(600, 269)
	m := newMulti(t, rt, logits, 0)
	m.a.Softcap = runtime.Slice[float32]{}
	m.check(t, rt, &w, "no cap", logits, 0)
}

// The winner at every place that another thread, group or pass handles; ties, saturated ones included, go to the lowest
// index; nothing finite gives no token.
func TestArgmaxPlacesAndTies(t *testing.T) {
	rt, r := open(t), source(271)
	var w worst
	const n = 3000
	base := normals(r, n, 1)
	m := newMulti(t, rt, base, 30)
	for _, at := range []int{0, 1, 31, 32, 255, 256, 257, 511, 512, 1023, 2047, 2816, n - 1} {
		logits := append([]float32{}, base...)
		logits[at] = 20
		m.check(t, rt, &w, fmt.Sprint("at ", at), logits, 30)
		logits[n-1], logits[(at+1777)%n] = 20, 20
		m.check(t, rt, &w, fmt.Sprint("ties with ", at), logits, 30)
		logits[n-1], logits[at] = 4000, 3000 // tanh is 1 for both: the greater one still wins
		m.check(t, rt, &w, fmt.Sprint("saturated ", at), logits, 30)
	}
	for i := range base {
		base[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[i%3]
	}
	m.check(t, rt, &w, "nothing finite", base, 30)
	base[2900] = -math.MaxFloat32
	m.check(t, rt, &w, "the least number only", base, 0)
}

// Few threads per threadgroup choose the same.
func TestArgmaxFewThreads(t *testing.T) {
	for _, threads := range []int{32, 96, 1000} {
		rt := openOn(t, soft.Options{MaxThreads: threads})
		var w worst
		logits := logitsWith(1500, 272)
		newMulti(t, rt, logits, 30).check(t, rt, &w, fmt.Sprint(threads), logits, 30)
		token, capped := sampleOf(t, rt, logits[:256], 30)
		if want, _, _ := oracle.SoftcapArgmax(logits[:256], 30); token != want || len(capped) != 256 {
			t.Errorf("%d threads: token %d, want %d", threads, token, want)
		}
	}
}

func TestArgmaxRecorded(t *testing.T) {
	rt := open(t)
	const n = 1500
	m := newMulti(t, rt, logitsWith(n, 273), 30)
	vary := func(i int) {
		m.logits.set(logitsWith(n, uint64(274+i)))
		m.limit.set([]float32{float32(20 * i)}) // the cap lives on the device
	}
	replaysMany(t, rt, 2, []target{m.token, m.value}, vary, func(p *runtime.Pass) error { return Argmax(p, m.a) })

	index, value, ids := output[uint32](t, rt, ArgmaxGroups(n)), output[float32](t, rt, ArgmaxGroups(n)), newBuffer(t, rt, make([]uint32, n))
	a := ArgmaxOperands{Index: index.s, Value: value.s, Values: m.logits.s, N: n}
	for _, c := range []struct {
		ids        runtime.Slice[uint32]
		limit      runtime.Slice[float32]
		has5, has7 uint32
	}{{}, {limit: m.limit.s, has7: 1}, {ids: ids.s, has5: 1}, {ids.s, m.limit.s, 1, 1}} {
		a.Indices, a.Softcap = c.ids, c.limit
		call := func(p *runtime.Pass) error { return ArgmaxPass(p, a) }
		replays(t, rt, []target{index, value}, vary, call)
		twin(t, rt, []target{index, value}, []scalar{{slot: 3, u: n}, {slot: 5, u: c.has5}, {slot: 7, u: c.has7}}, call,
			func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
				return UnsafeArgmaxPass(p, a, bind)
			})
	}
}

// All passes with scalars of the caller's own: as Argmax, again with a smaller N, and all or none.
func TestUnsafeArgmax(t *testing.T) {
	rt := open(t)
	const n, smaller = 70000, 69900 // three passes of the same sizes
	logits := logitsWith(n, 277)
	logits[smaller+1] = 1e6
	m := newMulti(t, rt, logits, 30)
	encode(t, rt, 3, func(p *runtime.Pass) error { return Argmax(p, m.a) })
	token, value := m.token.bits(), m.value.bits()

	pool, err := runtime.NewScalarPool(rt, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Release() })
	lengths := []uint32{n, uint32(ArgmaxGroups(n)), uint32(ArgmaxGroups(ArgmaxGroups(n)))}
	var counts [3]runtime.Scalar[uint32]
	called := []int{}
	bind := func(wrong int) func(pass int, b *runtime.ScalarBinder) error {
		return func(pass int, b *runtime.ScalarBinder) error {
			called = append(called, pass)
			n := lengths[pass]
			if pass == wrong {
				n--
			}
			values := [3]uint32{n, flagOf(pass > 0), flagOf(pass == 2)}
			for i, v := range values {
				s, err := runtime.NewScalar(pool, v)
				if err != nil {
					return err
				}
				if i == 0 {
					counts[pass] = s
				}
				if err := b.Uint32([3]int{3, 5, 7}[i], s); err != nil {
					return err
				}
			}
			return nil
		}
	}
	prog, err := rt.Record(func(p *runtime.Pass) error { return UnsafeArgmax(p, m.a, bind(-1)) })
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Release()
	if !slices.Equal(called, []int{0, 1, 2}) || prog.Stats().Commands != 3 {
		t.Errorf("bind was called for passes %v, %d commands", called, prog.Stats().Commands)
	}
	m.token.reset()
	m.value.reset()
	if err := prog.Run(); err != nil {
		t.Fatal(err)
	}
	if got := m.token.bits(); got[0] != token[0] || got[0] != smaller+1 || m.value.bits()[0] != value[0] {
		t.Errorf("token %v, want %v", got, token)
	}
	if err := counts[0].Set(smaller); err != nil {
		t.Fatal(err)
	}
	if err := prog.Run(); err != nil {
		t.Fatal(err)
	}
	if want, _, _ := oracle.SoftcapArgmax(logits[:smaller], 30); m.token.get()[0] != want {
		t.Errorf("of fewer logits token %d, want %d", m.token.get()[0], want)
	}

	m.token.reset()
	m.value.reset()
	encode(t, rt, 3, func(p *runtime.Pass) error { return UnsafeArgmax(p, m.a, nil) })
	if m.token.bits()[0] != token[0] {
		t.Errorf("without bind token %v", m.token.bits())
	}
	var refusals []refusal
	for pass := range 3 {
		refusals = append(refusals, refusal{fmt.Sprintf("pass %d", pass), func(p *runtime.Pass) error { return UnsafeArgmax(p, m.a, bind(pass)) },
			runtime.ErrScalar, []string{"the value that was validated"}})
	}
	refuses(t, rt, "", []target{m.token, m.value}, refusals)
	refuses(t, rt, "nn.UnsafeArgmax", []target{m.token, m.value}, []refusal{
		{"no pass", func(*runtime.Pass) error { return UnsafeArgmax(nil, m.a, bind(-1)) }, runtime.ErrMisuse, nil},
		{"N 0", func(p *runtime.Pass) error { a := m.a; a.N = 0; return UnsafeArgmax(p, a, bind(-1)) }, runtime.ErrShape, []string{"N"}},
	})
}

func TestArgmaxRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	const n = 600
	m := newMulti(t, rt, make([]float32, n), 30)
	f, fi := output[float32](t, foreign, n), output[uint32](t, foreign, n)
	index, value, ids := output[uint32](t, rt, 3), output[float32](t, rt, 3), newBuffer(t, rt, make([]uint32, n))
	good := ArgmaxOperands{Index: index.s, Value: value.s, Values: m.logits.s, Indices: ids.s, Softcap: m.limit.s, N: n}
	pass := func(change func(a *ArgmaxOperands)) func(*runtime.Pass) error {
		a := good
		change(&a)
		return func(p *runtime.Pass) error { return ArgmaxPass(p, a) }
	}
	refuses(t, rt, "nn.ArgmaxPass", []target{m.logits, index, value, ids, m.limit}, []refusal{
		{"no pass", func(*runtime.Pass) error { return ArgmaxPass(nil, good) }, runtime.ErrMisuse, nil},
		{"N 0", pass(func(a *ArgmaxOperands) { a.N = 0 }), runtime.ErrShape, []string{"N"}},
		{"N huge", pass(func(a *ArgmaxOperands) { a.N = math.MaxInt }), runtime.ErrShape, []string{"N"}},
		{"values short", pass(func(a *ArgmaxOperands) { a.Values = a.Values.Slice(0, 599) }), runtime.ErrShape, []string{"Values", "599"}},
		{"index short", pass(func(a *ArgmaxOperands) { a.Index = a.Index.Slice(0, 2) }), runtime.ErrShape, []string{"Index", "2 elements"}},
		{"value short", pass(func(a *ArgmaxOperands) { a.Value = a.Value.Slice(0, 2) }), runtime.ErrShape, []string{"Value", "2 elements"}},
		{"indices short", pass(func(a *ArgmaxOperands) { a.Indices = a.Indices.Slice(0, 599) }), runtime.ErrShape, []string{"Indices", "599"}},
		{"indices out of range", pass(func(a *ArgmaxOperands) { a.Indices = a.Indices.Slice(0, 601) }), runtime.ErrShape, []string{"Indices"}},
		{"indices out of range of nothing", pass(func(a *ArgmaxOperands) { a.Indices = runtime.Slice[uint32]{}.Slice(0, 1) }), runtime.ErrShape, []string{"Indices"}},
		{"cap empty", pass(func(a *ArgmaxOperands) { a.Softcap = a.Softcap.Slice(1, 1) }), runtime.ErrShape, []string{"Softcap"}},
		{"values zero", pass(func(a *ArgmaxOperands) { a.Values = runtime.Slice[float32]{} }), runtime.ErrShape, []string{"Values"}},
		{"values foreign", pass(func(a *ArgmaxOperands) { a.Values = f.s }), runtime.ErrForeign, []string{"Values"}},
		{"indices foreign", pass(func(a *ArgmaxOperands) { a.Indices = fi.s }), runtime.ErrForeign, []string{"Indices"}},
		{"cap foreign", pass(func(a *ArgmaxOperands) { a.Softcap = f.s }), runtime.ErrForeign, []string{"Softcap"}},
		{"value in values", pass(func(a *ArgmaxOperands) { a.Value = a.Values.Slice(0, 3) }), runtime.ErrOverlap, []string{"Value", "Values"}},
		{"index in indices", pass(func(a *ArgmaxOperands) { a.Index = a.Indices.Slice(597, 600) }), runtime.ErrOverlap, []string{"Index", "Indices"}},
		{"cap in value", pass(func(a *ArgmaxOperands) { a.Softcap = a.Value.Slice(0, 1) }), runtime.ErrOverlap, []string{"Value", "Softcap"}},
	})
	full := func(change func(a *ArgmaxArgs)) func(*runtime.Pass) error {
		a := m.a
		change(&a)
		return func(p *runtime.Pass) error {
			err := Argmax(p, a)
			if v := ValidateArgmax(rt, a); (v == nil) != (err == nil) {
				t.Errorf("ValidateArgmax says %v, Argmax %v", v, err)
			}
			return err
		}
	}
	refuses(t, rt, "nn.Argmax", []target{m.logits, m.token, m.value, m.limit}, []refusal{
		{"no pass", func(*runtime.Pass) error { return Argmax(nil, m.a) }, runtime.ErrMisuse, nil},
		{"N 0", full(func(a *ArgmaxArgs) { a.N = 0 }), runtime.ErrShape, []string{"N"}},
		{"logits short", full(func(a *ArgmaxArgs) { a.N = n + 1 }), runtime.ErrShape, []string{"Logits", "600", "601"}},
		{"no scratch", full(func(a *ArgmaxArgs) { a.ScratchIndex = runtime.Slice[uint32]{} }), runtime.ErrShape, []string{"ScratchIndex"}},
		{"scratch short", full(func(a *ArgmaxArgs) { a.ScratchValue = a.ScratchValue.Slice(0, 2) }), runtime.ErrShape, []string{"ScratchValue", "2 elements", "3"}},
		{"token empty", full(func(a *ArgmaxArgs) { a.Token = a.Token.Slice(0, 0) }), runtime.ErrShape, []string{"Token"}},
		{"value foreign", full(func(a *ArgmaxArgs) { a.Value = f.s }), runtime.ErrForeign, []string{"Value"}},
		{"scratch foreign", full(func(a *ArgmaxArgs) { a.ScratchIndex = fi.s }), runtime.ErrForeign, []string{"ScratchIndex"}},
		{"cap empty", full(func(a *ArgmaxArgs) { a.Softcap = a.Softcap.Slice(0, 0) }), runtime.ErrShape, []string{"Softcap"}},
		{"scratch in logits", full(func(a *ArgmaxArgs) { a.ScratchValue = a.Logits.Slice(0, 3) }), runtime.ErrOverlap, []string{"ScratchValue", "Logits"}},
		{"value in scratch", full(func(a *ArgmaxArgs) { a.Value = a.ScratchValue.Slice(2, 3) }), runtime.ErrOverlap, []string{"Value", "ScratchValue"}},
		{"token in scratch", full(func(a *ArgmaxArgs) { a.Token = a.ScratchIndex.Slice(0, 1) }), runtime.ErrOverlap, []string{"Token", "ScratchIndex"}},
		{"value is the cap", full(func(a *ArgmaxArgs) { a.Value = a.Softcap }), runtime.ErrOverlap, []string{"Value", "Softcap"}},
	})
	if err := ValidateArgmax(rt, m.a); err != nil {
		t.Error(err)
	}
	checkRefused(t, "nn.ValidateArgmax", refusal{"no runtime", nil, runtime.ErrMisuse, nil}, ValidateArgmax(nil, m.a))
}

// sampleOf runs one SoftcapSample.
func sampleOf(t *testing.T, rt *runtime.Runtime, logits []float32, limit float32) (uint32, []float32) {
	t.Helper()
	io, capacity, token := newBuffer(t, rt, logits), newBuffer(t, rt, []float32{limit}), output[uint32](t, rt, 1)
	encode(t, rt, 1, func(p *runtime.Pass) error { return SoftcapSample(p, token.s, io.s, capacity.s, len(logits)) })
	return token.written()[0], io.get()
}

func TestSoftcapSample(t *testing.T) {
	rt, r := open(t), source(275)
	var w worst
	check := func(where string, logits []float32, limit float32) {
		t.Helper()
		token, capped := sampleOf(t, rt, logits, limit)
		want, index, _ := oracle.SoftcapSample(logits, float64(limit))
		if token != index {
			t.Fatalf("%s: token %d, want %d", where, token, index)
		}
		w.compare(t, where, widen(capped), want, func(i int) float64 { return 5e-7 * math.Abs(want[i]) })
	}
	for i, n := range []int{1, 2, 31, 32, 33, 63, 64, 65, 100, 128, 200, 255, 256} {
		for _, limit := range []float32{30, 0, 0.5} {
			check(fmt.Sprintf("n %d cap %g", n, limit), logitsWith(n, uint64(276+i)), limit)
			check(fmt.Sprintf("plain, n %d cap %g", n, limit), normals(r, n, 20), limit)
		}
		bad := make([]float32, n)
		for j := range bad {
			bad[j] = float32(math.NaN())
		}
		check("all NaN", bad, 30)
		bad[n-1] = -1000 // saturated
		check("one number", bad, 30)
		bad[0] = -999
		check("two saturated", bad, 30)
	}
	w.log(t, "5e-7 of the value", "SoftcapSample")
	// Longer slices: 30 of 40 logits.
	io, capacity, token := newBuffer(t, rt, normals(r, 40, 10)), newBuffer(t, rt, []float32{1}), output[uint32](t, rt, 1)
	encode(t, rt, 1, func(p *runtime.Pass) error { return SoftcapSample(p, token.s, io.s, capacity.s, 30) })
	for i, v := range io.get() {
		if i >= 30 && v != io.image[pad+i] {
			t.Fatalf("element %d of 30 changed", i)
		}
	}
}

func TestSoftcapSampleRecorded(t *testing.T) {
	rt, r := open(t), source(277)
	io, limit, token := newBuffer(t, rt, normals(r, 200, 10)), newBuffer(t, rt, []float32{30}), output[uint32](t, rt, 1)
	call := func(p *runtime.Pass) error { return SoftcapSample(p, token.s, io.s, limit.s, 200) }
	replays(t, rt, []target{io, token}, func(i int) {
		io.set(normals(r, 200, 10))
		limit.set([]float32{float32(7 * i)})
	}, call)
	twin(t, rt, []target{io, token}, []scalar{{slot: 3, u: 200}}, call, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeSoftcapSample(p, token.s, io.s, limit.s, 200, bind)
	})
}

func TestSoftcapSampleRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	io, limit, token, f := output[float32](t, rt, 300), output[float32](t, rt, 1), output[uint32](t, rt, 1), output[float32](t, foreign, 8)
	type slice = runtime.Slice[float32]
	call := func(tok runtime.Slice[uint32], in, limit slice, n int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return SoftcapSample(p, tok, in, limit, n) }
	}
	refuses(t, rt, "nn.SoftcapSample", []target{io, limit, token}, []refusal{
		{"no pass", func(*runtime.Pass) error { return SoftcapSample(nil, token.s, io.s, limit.s, 8) }, runtime.ErrMisuse, nil},
		{"n 0", call(token.s, io.s, limit.s, 0), runtime.ErrShape, []string{"n"}},
		{"n negative", call(token.s, io.s, limit.s, -1), runtime.ErrShape, []string{"n"}},
		{"n 257", call(token.s, io.s, limit.s, 257), runtime.ErrShape, []string{"n", "257", "256"}},
		{"logits short", call(token.s, io.s.Slice(0, 7), limit.s, 8), runtime.ErrShape, []string{"logits", "7", "8"}},
		{"token empty", call(token.s.Slice(0, 0), io.s, limit.s, 8), runtime.ErrShape, []string{"token"}},
		{"no cap", call(token.s, io.s, slice{}, 8), runtime.ErrShape, []string{"softcap"}},
		{"cap in logits", call(token.s, io.s, io.s.Slice(7, 8), 8), runtime.ErrOverlap, []string{"logits", "softcap"}},
		{"logits foreign", call(token.s, f.s, limit.s, 8), runtime.ErrForeign, []string{"logits"}},
	})
}
