package nn

import (
	"math"
	"testing"

	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// More of the mistakes that other libraries of such kernels made and recorded; see regression_test.go.

// A loop over the row that ends early, in the float32 kernels: every element counts, one at a time, in rows wider than a
// threadgroup.
func TestRegressionRowsSeeEveryElement(t *testing.T) {
	rt := open(t)
	const cols = 4200
	weight := make([]float32, cols)
	for i := range weight {
		weight[i] = 1
	}
	wt, x, out, one := newBuffer(t, rt, weight), newBuffer(t, rt, make([]float32, cols)), output[float32](t, rt, cols), output[float32](t, rt, 1)
	for _, at := range []int{0, 31, 32, 63, 64, 127, 1023, 1024, 1025, 2047, 3071, 4095, 4096, 4199} {
		row := make([]float32, cols)
		row[at] = 100
		x.set(row)
		out.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error { return RMSNormF32(p, out.s, x.s, wt.s, 1, cols, 1e-9) })
		want := math.Sqrt(cols) // 100 / sqrt(100^2 / cols)
		for i, v := range out.written() {
			if i == at && math.Abs(float64(v)-want) > 1e-5*want || i != at && v != 0 {
				t.Fatalf("norm: element %d is %v with one at %d, want %v there", i, v, at, want)
			}
		}
		for name, call := range map[string]func(p *runtime.Pass, out, x runtime.Slice[float32], rows, cols int) error{"sum": RowSumF32, "max": RowMaxF32} {
			one.reset()
			encode(t, rt, 1, func(p *runtime.Pass) error { return call(p, one.s, x.s, 1, cols) })
			if v := one.written()[0]; v != 100 {
				t.Fatalf("%s: %v with one at %d", name, v, at)
			}
		}
		out.reset()
		encode(t, rt, 1, func(p *runtime.Pass) error { return SoftmaxRowsF32(p, out.s, x.s, 1, cols) })
		for i, v := range out.written() {
			if (v == 1) != (i == at) {
				t.Fatalf("softmax: element %d is %v with one at %d", i, v, at)
			}
		}
	}
}

// A bfloat16 output is half as long in bytes: that must be enough for every kernel that has one, and nothing may be written
// beyond it.
func TestRegressionBFloatElementsAreHalfAsLong(t *testing.T) {
	rt, r := open(t), source(410)
	const n = 65
	x, offset := newBuffer(t, rt, normals(r, n, 1)), newBuffer(t, rt, []uint32{0})
	exactly := func() runtime.Slice[half.BFloat16] {
		s, err := runtime.NewSlice[half.BFloat16](rt, n) // the allocation holds the result and nothing else
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, call := range map[string]func(p *runtime.Pass, out runtime.Slice[half.BFloat16]) error{
		"silu": func(p *runtime.Pass, out runtime.Slice[half.BFloat16]) error { return MLPSiLU(p, out, x.s, x.s, n) },
		"gelu": func(p *runtime.Pass, out runtime.Slice[half.BFloat16]) error {
			return MLPGELUTanh(p, out, x.s, x.s, n)
		},
		"cast": func(p *runtime.Pass, out runtime.Slice[half.BFloat16]) error { return Cast(p, out, x.s, n) },
		"store": func(p *runtime.Pass, out runtime.Slice[half.BFloat16]) error {
			return KVStoreTimestep(p, out, x.s, offset.s, n, n)
		},
	} {
		// Between sentinels, in which a store of 32 bits would show, and in an allocation of its own.
		out, own := output[half.BFloat16](t, rt, n), exactly()
		encode(t, rt, 2, func(p *runtime.Pass) error {
			if err := call(p, out.s); err != nil {
				return err
			}
			return call(p, own)
		})
		got := make([]half.BFloat16, n)
		if err := own.Read(got); err != nil {
			t.Fatal(err)
		}
		for i, v := range out.written() {
			if v != got[i] {
				t.Fatalf("%s: element %d is %v and %v", name, i, v, got[i])
			}
		}
	}
}

// exp of more than 88 overflows, and a row that is masked throughout has no maximum to subtract: it is uniform, not NaN.
func TestRegressionSoftmaxOfLargeAndMaskedRows(t *testing.T) {
	rt := open(t)
	inf := float32(math.Inf(-1))
	for _, cols := range []int{1, 2, 33, 1025} {
		x := make([]float32, 3*cols)
		for i := range cols {
			x[i], x[cols+i], x[2*cols+i] = 89+float32(i%3), inf, 3e38
		}
		in, out := newBuffer(t, rt, x), output[float32](t, rt, len(x))
		encode(t, rt, 1, func(p *runtime.Pass) error { return SoftmaxRowsF32(p, out.s, in.s, 3, cols) })
		want := oracle.SoftmaxRows(x, 3, cols)
		for i, v := range out.written() {
			if math.Abs(float64(v)-want[i]) > 1e-5*want[i] || want[i] == 0 {
				t.Fatalf("%d columns: element %d is %v, want %v", cols, i, v, want[i])
			}
		}
		if uniform := out.get()[cols]; float64(uniform) != float64(float32(1)/float32(cols)) {
			t.Errorf("a masked row of %d has %v", cols, uniform)
		}
	}
}

// Offsets near the end of 32 bits must not wrap round to the start of the cache, nor a ring's start to another slot.
func TestRegressionStoresDoNotWrap(t *testing.T) {
	rt, r := open(t), source(411)
	const n, capacity = 64, 128
	src, offset := newBuffer(t, rt, normals(r, n, 1)), newBuffer(t, rt, []uint32{0})
	k, v := newBuffer(t, rt, normals(r, capacity, 1)), newBuffer(t, rt, normals(r, capacity, 1))
	for back := uint32(1); back <= 200; back += 7 {
		offset.set([]uint32{-back})
		encode(t, rt, 2, func(p *runtime.Pass) error {
			if err := KVStoreTimestep(p, k.s, src.s, offset.s, n, capacity); err != nil {
				return err
			}
			return KVStoreTimestepPair(p, KVPair[float32]{CacheK: k.s, CacheV: v.s, K: src.s, V: src.s, Offset: offset.s, N: n, Capacity: capacity})
		})
		k.untouched()
		v.untouched()
	}
	// 2^32 - 1 is slot 0 of three; one further is slot 1, as 0 would be if the sum wrapped.
	ring, dense, filled, begin := newBuffer(t, rt, []float32{10, 11, 12}), output[float32](t, rt, 3), newBuffer(t, rt, []uint32{3}), newBuffer(t, rt, []uint32{math.MaxUint32})
	encode(t, rt, 1, func(p *runtime.Pass) error {
		return KVRingDensify(p, KVRing[float32]{Dst: dense.s, Src: ring.s, Filled: filled.s, Start: begin.s, Slot: 1, Capacity: 3})
	})
	for i, want := range []float32{10, 11, 12} {
		if got := dense.written()[i]; got != want {
			t.Errorf("slot %d is %v, want %v", i, got, want)
		}
	}
}

// NaN logits must not choose token 0 in any of the ways to choose one, and the cap is applied once, however many passes there
// are.
func TestRegressionArgmaxPassesCapOnce(t *testing.T) {
	rt := open(t)
	logits := make([]float32, 1000)
	for i := range logits {
		logits[i] = float32(math.NaN())
	}
	m := newMulti(t, rt, logits, 30)
	call := func() (uint32, float32) {
		encode(t, rt, 2, func(p *runtime.Pass) error { return Argmax(p, m.a) })
		return m.token.written()[0], m.value.written()[0]
	}
	if token, value := call(); token != NoToken || value != 0 {
		t.Errorf("token %d, value %v of nothing", token, value)
	}
	if token, _ := sampleOf(t, rt, logits[:200], 30); token != NoToken {
		t.Errorf("sampled token %d of nothing", token)
	}
	logits[700] = 30
	m.logits.set(logits)
	token, value := call()
	if want := 30 * math.Tanh(1); token != 700 || math.Abs(float64(value)-want) > 1e-5 { // twice would be 30 tanh(tanh 1)
		t.Errorf("token %d, value %v; want 700, %v", token, value, want)
	}
	// A cap in the first pass of two, by hand, is applied once as well.
	index, val := output[uint32](t, rt, 4), output[float32](t, rt, 4)
	encode(t, rt, 2, func(p *runtime.Pass) error {
		if err := ArgmaxPass(p, ArgmaxOperands{Index: index.s, Value: val.s, Values: m.logits.s, Softcap: m.limit.s, N: 1000}); err != nil {
			return err
		}
		return ArgmaxPass(p, ArgmaxOperands{Index: m.token.s, Value: m.value.s, Values: val.s, Indices: index.s, N: 4})
	})
	if m.token.get()[0] != token || m.value.get()[0] != value {
		t.Errorf("by hand: token %d, value %v; want %d, %v", m.token.get()[0], m.value.get()[0], token, value)
	}
}

// A NaN whose payload lies in the bits that bfloat16 does not have stays NaN, not an infinity; what a float16 and a bfloat16
// have in common is their size, not their bits.
func TestRegressionCastOfSmallPayloadNaN(t *testing.T) {
	rt := open(t)
	var x []float32
	for _, payload := range []uint32{1, 2, 0x7fff, 0x8000, 0xffff, 0x10000, 0x3fffff, 0x400000, 0x400001, 0x7fffff} {
		x = append(x, math.Float32frombits(0x7f800000|payload), math.Float32frombits(0xff800000|payload))
	}
	in, b, h := newBuffer(t, rt, x), output[half.BFloat16](t, rt, len(x)), output[half.Float16](t, rt, len(x))
	encode(t, rt, 2, func(p *runtime.Pass) error {
		if err := Cast(p, b.s, in.s, len(x)); err != nil {
			return err
		}
		return Cast(p, h.s, in.s, len(x))
	})
	for i, v := range b.get() {
		if !v.IsNaN() || v != half.BFloat16FromFloat32(x[i]) {
			t.Errorf("%#x became bfloat16 %#x", math.Float32bits(x[i]), v)
		}
		if v := h.get()[i]; !v.IsNaN() {
			t.Errorf("%#x became float16 %#x", math.Float32bits(x[i]), v)
		}
	}
	one, out := newBuffer(t, rt, []half.Float16{half.Float16FromFloat32(1.5)}), output[half.BFloat16](t, rt, 1)
	encode(t, rt, 1, func(p *runtime.Pass) error { return Cast(p, out.s, one.s, 1) })
	if v := out.written()[0]; v.Float32() != 1.5 {
		t.Errorf("float16 1.5 became bfloat16 %v", v)
	}
}
