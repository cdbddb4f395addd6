package quant

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/runtime/half"
)

// refused fails unless err is an *Error of function fn over the sentinel whose text has all of the given parts.
func refused(t *testing.T, err error, fn string, sentinel error, parts ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if e.Func != fn || !errors.Is(err, sentinel) || e.Arg == "" || e.Have == "" || e.Need == "" {
		t.Errorf("got %+v, want function %s over %v", e, fn, sentinel)
	}
	for _, p := range append(parts, fn, e.Have, e.Need) {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
}

func random(r *rand.Rand, n int, scale float64) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(r.NormFloat64() * scale)
	}
	return w
}

// shapes for all tests: rows, columns, group size.
var shapes = [][3]int{
	{1, 32, 32}, {1, 64, 64}, {1, 128, 128}, {1, 256, 256}, {1, 512, 512}, {3, 96, 32}, {7, 320, 64}, {2, 384, 128},
	{5, 512, 256}, {33, 64, 32}, {17, 128, 64}, {64, 1024, 512}, {9, 160, 32},
}

func TestCheckQ4MLX(t *testing.T) {
	for _, s := range shapes {
		if err := CheckQ4MLX(s[0], s[1], s[2]); err != nil {
			t.Error(err)
		}
		words, sb, err := Q4MLXSizes(s[0], s[1], s[2])
		if err != nil || words != s[0]*s[1]/8 || sb != 2*s[0]*s[1]/s[2] {
			t.Error(s, words, sb, err)
		}
	}
	for _, c := range []struct {
		rows, cols, group int
		part              string
	}{
		{1, 64, 0, "group size"}, {1, 64, -32, "group size"}, {1, 64, 16, "group size"}, {1, 96, 48, "group size"},
		{1, 96, 96, "group size"}, {1, 1024, 1024, "group size"}, {1, 64, math.MinInt, "group size"},
		{0, 64, 32, "rows"}, {-1, 64, 32, "rows"}, {math.MaxInt32 + 1, 64, 32, "rows"},
		{1, 0, 32, "columns"}, {1, -32, 32, "columns"}, {1, math.MaxInt32 + 1, 32, "columns"},
		{1, 33, 32, "multiple of the group size 32"}, {1, 96, 64, "multiple of the group size 64"},
	} {
		refused(t, CheckQ4MLX(c.rows, c.cols, c.group), "CheckQ4MLX", ErrShape, c.part)
		_, _, err := Q4MLXSizes(c.rows, c.cols, c.group)
		refused(t, err, "Q4MLXSizes", ErrShape, c.part)
	}
}

func TestPackCodes(t *testing.T) {
	codes := []byte{1, 2, 3, 4, 5, 6, 7, 8, 15, 0, 15, 0, 9, 10, 11, 12}
	words := make([]uint32, 2)
	if err := PackCodes(words, codes); err != nil || words[0] != 0x87654321 || words[1] != 0xcba90f0f {
		t.Fatalf("%#x %v", words, err)
	}
	back := make([]byte, 16)
	if err := UnpackCodes(back, words); err != nil || string(back) != string(codes) {
		t.Fatal(back, err)
	}
	refused(t, PackCodes(words, codes[:15]), "PackCodes", ErrShape)
	refused(t, PackCodes(words[:1], codes), "PackCodes", ErrShape)
	refused(t, UnpackCodes(back[:15], words), "UnpackCodes", ErrShape)
	refused(t, UnpackCodes(back[:8], words), "UnpackCodes", ErrShape)
	words[0], codes[5] = 77, 16
	refused(t, PackCodes(words, codes), "PackCodes", ErrValue, "16 at index 5")
	if words[0] != 77 {
		t.Error("a refused call wrote")
	}
	if err := PackCodes(nil, nil); err != nil {
		t.Error(err)
	}
	// All pairs of a code and a place.
	for place := range 8 {
		for code := range byte(16) {
			c := make([]byte, 8)
			c[place] = code
			if err := PackCodes(words[:1], c); err != nil || words[0] != uint32(code)<<(4*place) {
				t.Fatalf("code %d at %d: %#x %v", code, place, words[0], err)
			}
		}
	}
}

// Quantising and back stays within half a step where codes reach, and within one step and what rounding scale and bias to
// bfloat16 costs at the ends.
func TestQuantizeError(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	worst := 0.0
	for _, s := range shapes {
		for _, scale := range []float64{1e-3, 1, 1e4} {
			w := random(r, s[0]*s[1], scale)
			q, err := QuantizeQ4MLX(w, s[0], s[1], s[2])
			if err != nil {
				t.Fatal(s, err)
			}
			if err := q.Validate(); err != nil {
				t.Fatal(err)
			}
			back := make([]float32, len(w))
			if err := q.Dequantize(back); err != nil {
				t.Fatal(err)
			}
			for i := range w {
				a, b := q.group(i / s[2])
				a, b = math.Abs(a), math.Abs(b)
				allowed := a*(1+1.0/256) + (15*a+b)/512
				if code := q.Packed[i/8] >> (4 * (i % 8)) & 15; code > 0 && code < 15 {
					allowed = a / 2 * (1 + 1e-5)
				}
				e := math.Abs(float64(w[i]) - float64(back[i]))
				if e > allowed {
					t.Fatalf("%v: weight %d is %v, came back as %v; step %v", s, i, w[i], back[i], a)
				}
				worst = max(worst, e/a)
			}
		}
	}
	t.Logf("worst error: %.3f steps", worst)
}

// What the rule does at its corners, worked out by hand.
func TestQuantizeRule(t *testing.T) {
	fill := func(v ...float32) []float32 {
		w := make([]float32, 32)
		for i := range w {
			w[i] = v[i%len(v)]
		}
		return w
	}
	for _, c := range []struct {
		name        string
		w           []float32
		scale, bias float32
		codes       []byte // of the first weights
	}{
		{"zeros", fill(0), -1e-7, 0, []byte{0, 0}},
		{"constant positive", fill(3), 3.0 / -3e7, 3, []byte{0, 0}}, // q0 = 3 / -1e-7
		{"constant negative", fill(-3), -3.0 / 3e7, -3, []byte{0}},  // not |min| > |max|
		{"tiny", fill(1e-9, -1e-9), -1e-7, 0, []byte{0, 0}},
		{"minimum dominates", fill(-15, 0, -7, -1), 1, -15, []byte{0, 15, 8, 14}},
		{"maximum dominates", fill(15, 0, 7, 1), -1, 15, []byte{0, 15, 8, 14}},
		{"equal magnitudes take the maximum", fill(7.5, -7.5), -7.5 / 8, 7.5, []byte{0, 15}}, // q0 = -7.5, to even -8
		{"offset", fill(101, 116), -116.0 / 116, 116, []byte{15, 0}},
		{"ties to even", fill(-16, -15.5, -14.5, -1), 1, -16, []byte{0, 0, 2, 15}},
	} {
		q, err := QuantizeQ4MLX(c.w, 1, 32, 32)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if q.ScalesBiases[0] != half.BFloat16FromFloat32(c.scale) || q.ScalesBiases[1] != half.BFloat16FromFloat32(c.bias) {
			t.Errorf("%s: scale %v, bias %v; want %v, %v", c.name, q.ScalesBiases[0], q.ScalesBiases[1], c.scale, c.bias)
		}
		got := make([]byte, 32)
		if err := UnpackCodes(got, q.Packed); err != nil {
			t.Fatal(err)
		}
		if string(got[:len(c.codes)]) != string(c.codes) {
			t.Errorf("%s: codes %v, want %v", c.name, got[:len(c.codes)], c.codes)
		}
	}
}

func TestQuantizeRefuses(t *testing.T) {
	w := make([]float32, 64)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		w[37] = float32(bad)
		_, err := QuantizeQ4MLX(w, 1, 64, 32)
		refused(t, err, "QuantizeQ4MLX", ErrValue, "index 37")
	}
	w[37] = math.MaxFloat32 // rounds to infinity in bfloat16
	_, err := QuantizeQ4MLX(w, 1, 64, 32)
	refused(t, err, "QuantizeQ4MLX", ErrValue, "group at index 32")
	w[37], w[38] = 3e38, -3e38 // the range overflows
	_, err = QuantizeQ4MLX(w, 1, 64, 32)
	refused(t, err, "QuantizeQ4MLX", ErrValue, "group at index 32")
	w[37], w[38] = half.MaxBFloat16, 0
	if _, err = QuantizeQ4MLX(w, 1, 64, 32); err != nil {
		t.Error(err)
	}
	_, err = QuantizeQ4MLX(w, 1, 65, 32)
	refused(t, err, "QuantizeQ4MLX", ErrShape)
	_, err = QuantizeQ4MLX(w[:63], 1, 64, 32)
	refused(t, err, "QuantizeQ4MLX", ErrShape, "63 numbers")
	_, err = QuantizeQ4MLX(nil, math.MaxInt32, math.MaxInt32/512*512, 32)
	refused(t, err, "QuantizeQ4MLX", ErrShape)
}

// Weights that are on the grid come back exactly.
func TestQuantizeExact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range shapes {
		w := make([]float32, s[0]*s[1])
		for i := range w {
			w[i] = float32(r.IntN(16)-8) * 0.25
			if i%s[2] == 0 {
				w[i] = -2
			}
			if i%s[2] == 1 {
				w[i] = 1.75
			}
		}
		q, err := QuantizeQ4MLX(w, s[0], s[1], s[2])
		if err != nil {
			t.Fatal(err)
		}
		back := make([]float32, len(w))
		if err := q.Dequantize(back); err != nil {
			t.Fatal(err)
		}
		for i := range w {
			if w[i] != back[i] {
				t.Fatalf("%v: weight %d: %v, want %v", s, i, back[i], w[i])
			}
		}
	}
}

func TestRowRangeAndConcat(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	w := random(r, 12*96, 1)
	q, err := QuantizeQ4MLX(w, 12, 96, 32)
	if err != nil {
		t.Fatal(err)
	}
	var parts []Q4MLX
	for _, c := range [][2]int{{0, 5}, {5, 6}, {6, 12}} {
		p, err := q.RowRange(c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		own, err := QuantizeQ4MLX(w[c[0]*96:c[1]*96], c[1]-c[0], 96, 32)
		if err != nil {
			t.Fatal(err)
		}
		same(t, own, p)
		parts = append(parts, p)
	}
	all, err := ConcatRows(parts...)
	if err != nil {
		t.Fatal(err)
	}
	same(t, q, all)
	if &all.Packed[0] == &q.Packed[0] {
		t.Error("ConcatRows shares memory")
	}

	for _, c := range [][2]int{{-1, 3}, {3, 3}, {4, 3}, {0, 13}} {
		_, err := q.RowRange(c[0], c[1])
		refused(t, err, "Q4MLX.RowRange", ErrShape)
	}
	_, err = ConcatRows()
	refused(t, err, "ConcatRows", ErrShape)
	other, _ := QuantizeQ4MLX(w[:96*2], 3, 64, 32)
	_, err = ConcatRows(q, other)
	refused(t, err, "ConcatRows", ErrShape, "part 1")
	bad := q
	bad.Packed = bad.Packed[1:]
	_, err = ConcatRows(q, bad)
	refused(t, err, "ConcatRows", ErrShape, "packed of part 1")
	_, err = bad.RowRange(0, 1)
	refused(t, err, "Q4MLX.RowRange", ErrShape)
}

func same(t *testing.T, want, got Q4MLX) {
	t.Helper()
	if want.Rows != got.Rows || want.Cols != got.Cols || want.GroupSize != got.GroupSize || len(want.Packed) != len(got.Packed) || len(want.ScalesBiases) != len(got.ScalesBiases) {
		t.Fatalf("shape %d*%d/%d, want %d*%d/%d", got.Rows, got.Cols, got.GroupSize, want.Rows, want.Cols, want.GroupSize)
	}
	for i := range want.Packed {
		if want.Packed[i] != got.Packed[i] {
			t.Fatalf("word %d: %#x, want %#x", i, got.Packed[i], want.Packed[i])
		}
	}
	for i := range want.ScalesBiases {
		if want.ScalesBiases[i] != got.ScalesBiases[i] {
			t.Fatalf("scale or bias %d: %v, want %v", i, got.ScalesBiases[i], want.ScalesBiases[i])
		}
	}
}

func TestValidate(t *testing.T) {
	q, err := QuantizeQ4MLX(make([]float32, 128), 2, 64, 32)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Q4MLX){
		"packed":             func(q *Q4MLX) { q.Packed = q.Packed[1:] },
		"scales and biases":  func(q *Q4MLX) { q.ScalesBiases = append(q.ScalesBiases, 0) },
		"rows":               func(q *Q4MLX) { q.Rows = 0 },
		"multiple":           func(q *Q4MLX) { q.Cols++ },
		"NaN at index 3":     func(q *Q4MLX) { q.ScalesBiases = []half.BFloat16{0, 0, 0, 0x7fc0, 0, 0, 0, 0} },
		"+Inf at index 0":    func(q *Q4MLX) { q.ScalesBiases = []half.BFloat16{0x7f80, 0, 0, 0, 0, 0, 0, 0} },
		"group size: have 8": func(q *Q4MLX) { q.GroupSize = 8 },
	} {
		bad := q
		change(&bad)
		err := bad.Validate()
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused(t, Q4MLX{}.Validate(), "Q4MLX.Validate", ErrShape)
}

// MulVec against the dequantised matrix.
func TestMulVec(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, s := range shapes {
		q, err := QuantizeQ4MLX(random(r, s[0]*s[1], 1), s[0], s[1], s[2])
		if err != nil {
			t.Fatal(err)
		}
		x := half.BFloat16s(random(r, s[1], 1))
		y, dense := make([]float64, s[0]), make([]float32, s[0]*s[1])
		if err := q.MulVec(y, x); err != nil {
			t.Fatal(err)
		}
		if err := q.Dequantize(dense); err != nil {
			t.Fatal(err)
		}
		for i := range y {
			want, size := 0.0, 0.0
			for c, b := range x {
				p := float64(dense[i*s[1]+c]) * float64(b.Float32())
				want += p
				size += math.Abs(p)
			}
			if math.Abs(y[i]-want) > 1e-7*size { // Dequantize rounds to float32
				t.Errorf("%v: row %d: %v, want %v", s, i, y[i], want)
			}
		}
	}
	q, _ := QuantizeQ4MLX(make([]float32, 64), 2, 32, 32)
	refused(t, q.MulVec(make([]float64, 2), make([]half.BFloat16, 31)), "Q4MLX.MulVec", ErrShape, "31")
	refused(t, q.MulVec(make([]float64, 3), make([]half.BFloat16, 32)), "Q4MLX.MulVec", ErrShape, "3 numbers")
	refused(t, q.Dequantize(make([]float32, 63)), "Q4MLX.Dequantize", ErrShape, "63")
	refused(t, Q4MLX{}.MulVec(nil, nil), "Q4MLX.MulVec", ErrShape)
	refused(t, Q4MLX{}.Dequantize(nil), "Q4MLX.Dequantize", ErrShape)
}

func BenchmarkQuantize(b *testing.B) {
	w := random(rand.New(rand.NewPCG(1, 1)), 256*1024, 1)
	b.SetBytes(int64(4 * len(w)))
	for b.Loop() {
		if _, err := QuantizeQ4MLX(w, 256, 1024, 64); err != nil {
			b.Fatal(err)
		}
	}
}
