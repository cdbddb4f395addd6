package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// Mistakes that other libraries of such kernels made and recorded, each with the test that would have shown it.

// A row wider than a threadgroup, of which a loop over the first elements, or by one thread, sees a part: every element
// counts, one at a time.
func TestRegressionNormSeesEveryElement(t *testing.T) {
	rt := open(t)
	const dim = 4200
	weight := make([]float32, dim)
	for i := range weight {
		weight[i] = 1
	}
	wt, x, out := newBuffer(t, rt, weight), newBuffer(t, rt, make([]float32, dim)), output[half.BFloat16](t, rt, dim)
	for _, at := range []int{0, 31, 32, 63, 64, 127, 1023, 1024, 1025, 2047, 3071, 4095, 4096, 4199} {
		row := make([]float32, dim)
		row[at] = 100
		x.set(row)
		out.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error { return RMSNormBF16(p, out.s, x.s, wt.s, 1, dim, 1e-9) })
		want := math.Sqrt(dim) // 100 / sqrt(100^2 / dim)
		for i, v := range out.written() {
			if i == at && math.Abs(float64(v.Float32())-want) > want/256 || i != at && v != 0 {
				t.Fatalf("element %d is %v with one at %d, want %v there", i, v, at, want)
			}
		}
	}
}

// A row of a tile whose keys are all masked, beside rows that have some: exp(-inf - -inf) would be NaN.
func TestRegressionFullyMaskedRow(t *testing.T) {
	rt, r := open(t), source(81)
	// Rows 0 to 2 come before all keys, row 3 sees one; a later simdgroup sees more.
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 6, h: 1, hkv: 1, capacity: 4, tkv: 4, qPos: 0, kvPos: 3})
	o := output[float32](t, rt, 6*AttnHeadDim)
	encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
	got := o.written()
	for i, v := range got[:3*AttnHeadDim] {
		if v != 0 {
			t.Fatalf("element %d of a row without keys is %v", i, v)
		}
	}
	for i, v := range got[3*AttnHeadDim : 4*AttnHeadDim] {
		if math.Abs(float64(v)-float64(s.host.V[i])) > 1e-6 {
			t.Fatalf("element %d of the row with one key is %v, want %v", i, v, s.host.V[i])
		}
	}
}

// Scores that are all far below zero: a maximum that starts at 0 would make every weight vanish.
func TestRegressionAllScoresNegative(t *testing.T) {
	rt, r := open(t), source(87)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 3, h: 1, hkv: 1, capacity: 9, tkv: 9, qPos: 6})
	for i := range s.host.K {
		s.host.K[i] = -4
	}
	for i := range s.host.Q {
		s.host.Q[i] = float32(4 + i%3)
	}
	s.k.set(s.host.K)
	s.q.set(s.host.Q)
	o := output[float32](t, rt, 3*AttnHeadDim)
	encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
	var w worst
	w.compare(t, "negative scores", widen(o.written()), s.host.Rows(), s.allowed())
}

// A bfloat16 output is half as long in bytes: that must be enough, and nothing may be written beyond it.
func TestRegressionBFloatOutputIsHalfAsLong(t *testing.T) {
	rt, r := open(t), source(82)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 1, hkv: 1, capacity: 2, tkv: 2, qPos: 1})
	exact, err := runtime.NewSlice[half.BFloat16](rt, AttnHeadDim)
	if err != nil {
		t.Fatal(err)
	}
	encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, exact, s.q.s, s.k.s, s.v.s, s.live, s.d) })
	m := randomBank(t, rt, r, 1, 32, 32)
	x := newBuffer(t, rt, half.BFloat16s(normals(r, 32, 1)))
	one, err := runtime.NewSlice[half.BFloat16](rt, 1)
	if err != nil {
		t.Fatal(err)
	}
	encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ4MLXGateUpGELU(p, one, m.bank, m.bank, x.s) })
}

// A tanh that overflows to NaN, or an outer factor that is clamped with the inner one: GELU of large gates is the gate.
func TestRegressionGELUOfLargeGates(t *testing.T) {
	rt := open(t)
	for _, g := range []float32{-1e30, -1e4, -300, -64, -21, -20, -11, -10, -5, -1e-3, 0, 1e-3, 5, 10, 11, 20, 21, 64, 300, 1e4, 1e30} {
		// A gate of g and an up of 1: one weight 1, the rest 0, times x = (g, 0, ...) and (1 for up's column 1).
		gate, up := unitRow(t, rt, 0), unitRow(t, rt, 1)
		x := make([]float32, 32)
		x[0], x[1] = half.BFloat16FromFloat32(g).Float32(), 1
		in, mid := newBuffer(t, rt, half.BFloat16s(x)), output[float32](t, rt, 1)
		encode(t, rt, 1, func(p *runtime.Pass) error {
			return GEMVQ4MLXGateUpGELU(p, mid.s, gate.bank, up.bank, in.s)
		})
		want := oracle.GELUTanh(float64(x[0]))
		if got := float64(mid.written()[0]); math.Abs(got-want) > 1e-6*math.Abs(want)+1e-30 {
			t.Errorf("gelu(%v) = %v, want %v", x[0], got, want)
		}
	}
}

// unitRow is a bank of one row with a 1 at one column and zeros elsewhere.
func unitRow(t testing.TB, rt *runtime.Runtime, col int) matrix {
	t.Helper()
	q := quant.Q4MLX{Rows: 1, Cols: 32, GroupSize: 32, Packed: make([]uint32, 4), ScalesBiases: []half.BFloat16{half.BFloat16FromFloat32(1), 0}}
	q.Packed[col/8] = 1 << (4 * (col % 8))
	return upload(t, rt, q)
}

// Banks that end where their memory ends: no padding is assumed. Every group size, ragged rows.
func TestRegressionBanksAreNotPadded(t *testing.T) {
	rt, r := open(t), source(83)
	for _, group := range []int{32, 64, 128, 256, 512} {
		for _, rows := range []int{1, 3, 4, 5, 7, 9, 15} {
			q, err := quant.QuantizeQ4MLX(normals(r, rows*group, 1), rows, group, group)
			if err != nil {
				t.Fatal(err)
			}
			bank, err := UploadQ4MLX(rt, q) // the allocations hold the bank and nothing else
			if err != nil {
				t.Fatal(err)
			}
			x := half.BFloat16s(normals(r, group, 1))
			in, err := runtime.SliceOf(rt, x)
			if err != nil {
				t.Fatal(err)
			}
			y, err := runtime.NewSlice[float32](rt, rows)
			if err != nil {
				t.Fatal(err)
			}
			encode(t, rt, 1, func(p *runtime.Pass) error { return GEMVQ4MLX(p, y, bank, in) })
			got, want := make([]float32, rows), make([]float64, rows)
			if err := y.Read(got); err != nil {
				t.Fatal(err)
			}
			if err := q.MulVec(want, x); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if math.Abs(float64(got[i])-want[i]) > 1e-4*float64(group) {
					t.Fatalf("%d rows in groups of %d: row %d: %v, want %v", rows, group, i, got[i], want[i])
				}
			}
		}
	}
}

// The residual has rows * dim elements, each row its own.
func TestRegressionResidualPerRow(t *testing.T) {
	rt := open(t)
	const rows, dim = 5, 48
	resid := make([]float32, rows*dim)
	for i := range resid {
		resid[i] = float32(i)
	}
	io, x, weight := newBuffer(t, rt, resid), newBuffer(t, rt, make([]float32, rows*dim)), newBuffer(t, rt, make([]float32, dim))
	encode(t, rt, 1, func(p *runtime.Pass) error { return RMSNormResidualAddF32(p, io.s, x.s, weight.s, rows, dim, 1, 2) })
	for i, v := range io.get() {
		if v != 2*float32(i) {
			t.Fatalf("element %d is %v, want %v", i, v, 2*i)
		}
	}
}

// The simdgroups that pad the last threadgroup have no row: every number of head rows from 1 to 17.
func TestRegressionPaddingSimdgroups(t *testing.T) {
	rt, r := open(t), source(84)
	var w worst
	for hq := 1; hq <= 15; hq++ {
		newRope(t, rt, r, ropeCase{t: 1, hq: hq, hkv: 1, d: 8, rotary: 8, pos: 2, offset: 4, capacity: 16}).check(t, rt, &w)
	}
}

// Offsets near the end of 32 bits must not wrap round to the start of the cache, and the capacity, not the live count,
// is the distance from batch to batch.
func TestRegressionOffsetsDoNotWrap(t *testing.T) {
	rt, r := open(t), source(85)
	for back := uint32(1); back <= 200; back += 7 {
		s := newRope(t, rt, r, ropeCase{t: 1, hq: 1, hkv: 1, d: 64, rotary: 64, offset: -back, capacity: 128})
		encode(t, rt, 1, func(p *runtime.Pass) error { return RMSQKVRoPEKVStore(p, s.a) })
		for _, b := range s.targets() {
			b.untouched()
		}
	}
	s := newAttn(t, rt, r, attnCase{b: 3, tq: 1, h: 1, hkv: 1, capacity: 10, tkv: 4, qPos: 3})
	o := output[float32](t, rt, 3*AttnHeadDim)
	encode(t, rt, 1, func(p *runtime.Pass) error { return FlashAttnRows(p, o.s, s.q.s, s.k.s, s.v.s, s.live, s.d) })
	var w worst
	w.compare(t, "batches", widen(o.written()), s.host.Rows(), s.allowed())
}

// NaN logits must not choose token 0, and the cap is applied once.
func TestRegressionArgmaxOfNaN(t *testing.T) {
	rt := open(t)
	nan := float32(math.NaN())
	logits := make([]float32, 300)
	for i := range logits {
		logits[i] = nan
	}
	if token, value := argmaxOf(t, rt, logits, 30); token != NoToken || value != 0 {
		t.Errorf("token %d, value %v of nothing", token, value)
	}
	logits[200] = 30
	token, value := argmaxOf(t, rt, logits, 30)
	if want := 30 * math.Tanh(1); token != 200 || math.Abs(float64(value)-want) > 1e-5 {
		t.Errorf("token %d, value %v; want 200, %v", token, value, want)
	}
}

// Frequencies come from the host, sine and cosine are the precise ones: at large positions the error stays that of one
// float32 product.
func TestRegressionRoPEAtLargePositions(t *testing.T) {
	rt, r := open(t), source(86)
	var w worst
	for _, pos := range []uint32{1, 1000, 8191, 32767, 131071, 1 << 20} {
		newRope(t, rt, r, ropeCase{t: 1, hq: 2, hkv: 1, d: 128, rotary: 128, pos: pos, capacity: 128}).check(t, rt, &w)
	}
	w.log(t, "1e-6 of a pair and 2^-23 of the angle", "RMSQKVRoPEKVStore")
}
