package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
)

// argmaxOf runs one argmax.
func argmaxOf(t *testing.T, rt *runtime.Runtime, logits []float32, limit float32) (uint32, float32) {
	t.Helper()
	in, capacity := newBuffer(t, rt, logits), newBuffer(t, rt, []float32{limit})
	token, value := output[uint32](t, rt, 1), output[float32](t, rt, 1)
	encode(t, rt, 1, func(p *runtime.Pass) error { return SoftcapArgmax(p, token.s, value.s, in.s, capacity.s, len(logits)) })
	in.untouched()
	return token.written()[0], value.written()[0]
}

func checkArgmax(t *testing.T, rt *runtime.Runtime, w *worst, where string, logits []float32, limit float32) {
	t.Helper()
	want, capped, _ := oracle.SoftcapArgmax(logits, float64(limit))
	got, value := argmaxOf(t, rt, logits, limit)
	if got != want {
		t.Fatalf("%s: token %d, want %d", where, got, want)
	}
	// One division, one tanh of a few units in the last place, one product.
	w.compare(t, where, []float64{float64(value)}, []float64{capped}, func(int) float64 { return 5e-7 * math.Abs(capped) })
}

func TestSoftcapArgmax(t *testing.T) {
	rt, r := open(t), source(31)
	var w worst
	for i, n := range []int{1, 2, 31, 32, 33, 100, 128, 129, 1000, 1024, 1025, 4096, 4097, 10000, 65537} {
		for _, limit := range []float32{30, 0, 1e-3} {
			checkArgmax(t, rt, &w, fmt.Sprintf("n %d cap %g", n, limit), normals(r, n, math.Pow(10, float64(i%4-1))), limit)
		}
	}
	w.log(t, "5e-7 of the value", "SoftcapArgmax")
}

// The winner at every place that another thread, simdgroup or round handles; ties go to the lowest index.
func TestSoftcapArgmaxPlacesAndTies(t *testing.T) {
	rt, r := open(t), source(32)
	var w worst
	for _, at := range []int{0, 1, 31, 32, 63, 255, 256, 1023, 1024, 1500, 2999} {
		logits := normals(r, 3000, 1)
		logits[at] = 20
		checkArgmax(t, rt, &w, fmt.Sprint("at ", at), logits, 30)
		logits[2999], logits[(at+1777)%3000] = 20, 20
		checkArgmax(t, rt, &w, fmt.Sprint("ties with ", at), logits, 30)
	}
	equal := make([]float32, 777)
	checkArgmax(t, rt, &w, "all zero", equal, 30)
	equal[5], equal[6] = float32(math.Copysign(0, -1)), -1
	checkArgmax(t, rt, &w, "minus zero", equal, 30)
}

func TestSoftcapArgmaxExtremes(t *testing.T) {
	rt := open(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	var w worst
	for _, c := range []struct {
		name   string
		logits []float32
		limit  float32
	}{
		{"largest", []float32{-math.MaxFloat32, math.MaxFloat32, 1}, 30},
		{"least only", []float32{-math.MaxFloat32, -math.MaxFloat32}, 30},
		{"least after NaN", []float32{nan, inf, -math.MaxFloat32}, 0},
		{"NaN first", []float32{nan, 1, 2}, 30},
		{"infinite", []float32{1, inf, -inf, 3, nan}, 30},
		{"all NaN", []float32{nan, nan, nan}, 30},
		{"all infinite", []float32{inf, -inf}, 30},
		{"saturated", []float32{3000, 2000, 4000}, 30},
		{"negative", []float32{-3000, -2000, -4000}, 30},
		{"cap NaN", []float32{1, 2}, nan},
		{"cap infinite", []float32{1, 2}, inf},
		{"cap negative", []float32{1, 2}, -3},
		{"cap huge", []float32{1, 2}, math.MaxFloat32},
		{"cap small", []float32{1, 2}, 1e-30},
	} {
		checkArgmax(t, rt, &w, c.name, c.logits, c.limit)
	}
	many := make([]float32, 5000)
	for i := range many {
		many[i] = nan
	}
	checkArgmax(t, rt, &w, "many NaN", many, 30)
	many[4321] = -7
	checkArgmax(t, rt, &w, "one number", many, 30)
}

func TestSoftcapArgmaxRecorded(t *testing.T) {
	rt, r := open(t), source(33)
	logits, limit := newBuffer(t, rt, normals(r, 1500, 10)), newBuffer(t, rt, []float32{30})
	token, value := output[uint32](t, rt, 1), output[float32](t, rt, 1)
	call := func(p *runtime.Pass) error { return SoftcapArgmax(p, token.s, value.s, logits.s, limit.s, 1500) }
	replays(t, rt, []target{token, value}, func(i int) {
		logits.set(normals(r, 1500, 10))
		limit.set([]float32{float32(10 * i)}) // the cap lives on the device
	}, call)
	twin(t, rt, []target{token, value}, []scalar{{slot: 3, u: 1500}}, call, func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error {
		return UnsafeSoftcapArgmax(p, token.s, value.s, logits.s, limit.s, 1500, bind)
	})
}

func TestSoftcapArgmaxRefuses(t *testing.T) {
	rt, foreign := open(t), open(t)
	logits, limit, token, value := output[float32](t, rt, 8), output[float32](t, rt, 1), output[uint32](t, rt, 1), output[float32](t, rt, 1)
	fl, ft := output[float32](t, foreign, 8), output[uint32](t, foreign, 1)
	type slice = runtime.Slice[float32]
	call := func(tok runtime.Slice[uint32], val, in, limit slice, n int) func(*runtime.Pass) error {
		return func(p *runtime.Pass) error { return SoftcapArgmax(p, tok, val, in, limit, n) }
	}
	refuses(t, rt, "nn.SoftcapArgmax", []target{logits, limit, token, value}, []refusal{
		{"no pass", func(*runtime.Pass) error { return SoftcapArgmax(nil, token.s, value.s, logits.s, limit.s, 8) }, runtime.ErrMisuse, nil},
		{"n 0", call(token.s, value.s, logits.s, limit.s, 0), runtime.ErrShape, []string{"n"}},
		{"n negative", call(token.s, value.s, logits.s, limit.s, -8), runtime.ErrShape, []string{"n"}},
		{"n huge", call(token.s, value.s, logits.s, limit.s, math.MaxInt), runtime.ErrShape, []string{"n"}},
		{"logits short", call(token.s, value.s, logits.s, limit.s, 9), runtime.ErrShape, []string{"logits", "8", "9"}},
		{"token empty", call(token.s.Slice(0, 0), value.s, logits.s, limit.s, 8), runtime.ErrShape, []string{"token"}},
		{"value empty", call(token.s, value.s.Slice(1, 1), logits.s, limit.s, 8), runtime.ErrShape, []string{"value"}},
		{"cap zero", call(token.s, value.s, logits.s, slice{}, 8), runtime.ErrShape, []string{"softcap"}},
		{"value in logits", call(token.s, logits.s.Slice(3, 4), logits.s, limit.s, 8), runtime.ErrOverlap, []string{"value", "logits"}},
		{"value is cap", call(token.s, limit.s, logits.s, limit.s, 8), runtime.ErrOverlap, []string{"value", "softcap"}},
		{"logits foreign", call(token.s, value.s, fl.s, limit.s, 8), runtime.ErrForeign, []string{"logits"}},
		{"token foreign", call(ft.s, value.s, logits.s, limit.s, 8), runtime.ErrForeign, []string{"token"}},
	})
}
