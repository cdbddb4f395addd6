package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var q4Shapes = [][3]int{
	{1, 8, 8}, {1, 16, 8}, {1, 24, 24}, {3, 40, 8}, {2, 32, 32}, {5, 64, 16}, {7, 96, 48}, {1, 512, 512}, {4, 1024, 1024}, {33, 72, 24}, {2, 120, 40}, {64, 64, 64},
}

func TestCheckQ4(t *testing.T) {
	for _, s := range q4Shapes {
		if err := CheckQ4(s[0], s[1], s[2]); err != nil {
			t.Error(err)
		}
		words, groups, err := Q4Sizes(s[0], s[1], s[2])
		if err != nil || words != s[0]*s[1]/8 || groups != s[0]*s[1]/s[2] {
			t.Error(s, words, groups, err)
		}
	}
	for _, c := range []struct {
		rows, cols, group int
		part              string
	}{
		{1, 64, 0, "group size"}, {1, 64, -8, "group size"}, {1, 64, 4, "group size"}, {1, 64, 12, "group size"}, {1, 64, math.MinInt, "group size"},
		{0, 64, 8, "rows"}, {-1, 64, 8, "rows"}, {math.MaxInt32 + 1, 64, 8, "rows"},
		{1, 0, 8, "columns"}, {1, -8, 8, "columns"}, {1, math.MaxInt32 + 1, 8, "columns"},
		{1, 9, 8, "multiple of the group size 8"}, {1, 24, 16, "multiple of the group size 16"}, {1, 8, 16, "multiple of the group size 16"},
	} {
		refused(t, CheckQ4(c.rows, c.cols, c.group), "CheckQ4", ErrShape, c.part)
		_, _, err := Q4Sizes(c.rows, c.cols, c.group)
		refused(t, err, "Q4Sizes", ErrShape, c.part)
		_, err = QuantizeQ4(nil, c.rows, c.cols, c.group)
		refused(t, err, "QuantizeQ4", ErrShape, c.part)
	}
}

func TestPackSignedCodes(t *testing.T) {
	codes := []int8{0, 1, 7, -8, -1, -2, 3, -7, -8, -8, -8, -8, 7, 7, 7, 7}
	words := []uint32{0xffffffff, 0xffffffff}
	if err := PackSignedCodes(words, codes); err != nil || words[0] != 0x93ef8710 || words[1] != 0x77778888 {
		t.Fatalf("%#x %v", words, err)
	}
	back := make([]int8, 16)
	if err := UnpackSignedCodes(back, words); err != nil || !slices.Equal(back, codes) {
		t.Fatal(back, err)
	}
	refused(t, PackSignedCodes(words, codes[:15]), "PackSignedCodes", ErrShape)
	refused(t, PackSignedCodes(words[:1], codes), "PackSignedCodes", ErrShape)
	refused(t, UnpackSignedCodes(back[:9], words), "UnpackSignedCodes", ErrShape)
	refused(t, UnpackSignedCodes(back, words[:1]), "UnpackSignedCodes", ErrShape)
	for _, bad := range []int8{8, -9, 127, -128} {
		codes[5] = bad
		refused(t, PackSignedCodes(words, codes), "PackSignedCodes", ErrValue, "index 5")
	}
}

// Every weight comes back within half a step and the zero point's rounding, and the ends of a group within the latter.
func TestQuantizeQ4(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, s := range q4Shapes {
		for _, offset := range []float64{0, 1, -30, 1e4, -1e6} {
			scale := math.Pow(10, float64(i%5-2))
			w := random(r, s[0]*s[1], scale)
			for j := range w {
				w[j] = float32(float64(w[j]) + offset*scale)
			}
			q, err := QuantizeQ4(w, s[0], s[1], s[2])
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
			for j := range w {
				step, zero := float64(q.Scales[j/s[2]]), float64(q.Zeros[j/s[2]])
				// The rounding of the result is one of |w| / 2^24.
				allowed := step*(0.5+(math.Abs(zero)+8)*0x1p-23) + math.Abs(float64(w[j]))*0x1p-23
				if e := math.Abs(float64(back[j]) - float64(w[j])); e > allowed {
					t.Fatalf("%v offset %g: weight %d: %v for %v: off by %g, allowed %g", s, offset, j, back[j], w[j], e, allowed)
				}
			}
		}
	}
}

func TestQuantizeQ4Constant(t *testing.T) {
	for _, v := range []float32{0, 1, -1, 0.1, -3e38, math.MaxFloat32, 1e-38, 1e-44} {
		w := make([]float32, 16)
		for i := range w {
			w[i] = v
		}
		q, err := QuantizeQ4(w, 1, 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		back := make([]float32, 16)
		if err := q.Dequantize(back); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(back, w) {
			t.Errorf("%v came back as %v", v, back)
		}
	}
}

// The ends of the range are codes -8 and 7, the greatest ranges included.
func TestQuantizeQ4Ends(t *testing.T) {
	for _, c := range [][2]float32{{-1, 1}, {0, 15}, {-7, 8}, {100, 115}, {-math.MaxFloat32, math.MaxFloat32}, {0, 2e-37}, {1, math.Nextafter32(1, 2)}} {
		w := []float32{c[0], c[1], c[0], c[0], c[0], c[0], c[0], c[1]}
		q, err := QuantizeQ4(w, 1, 8, 8)
		if err != nil {
			t.Fatal(c, err)
		}
		if err := q.Validate(); err != nil {
			t.Fatal(err)
		}
		codes := make([]int8, 8)
		if err := UnpackSignedCodes(codes, q.Packed); err != nil {
			t.Fatal(err)
		}
		if want := int8(7); c[0] != 1 && (codes[1] != want || codes[0] != -8) {
			t.Errorf("%v: codes %v", c, codes)
		}
	}
}

func TestQuantizeQ4Refuses(t *testing.T) {
	w := make([]float32, 16)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		w[11] = float32(bad)
		_, err := QuantizeQ4(w, 2, 8, 8)
		refused(t, err, "QuantizeQ4", ErrValue, "index 11")
	}
	w[11] = 1e-39
	_, err := QuantizeQ4(w, 2, 8, 8)
	refused(t, err, "QuantizeQ4", ErrValue, "index 8")
	_, err = QuantizeQ4(w[1:], 2, 8, 8)
	refused(t, err, "QuantizeQ4", ErrShape, "15 numbers")
}

func TestQ4Validate(t *testing.T) {
	fresh := func() Q4 {
		q, err := QuantizeQ4(random(rand.New(rand.NewPCG(3, 4)), 3*16, 1), 3, 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	for _, c := range []struct {
		change   func(q *Q4)
		sentinel error
		part     string
	}{
		{func(q *Q4) { q.GroupSize = 4 }, ErrShape, "group size"},
		{func(q *Q4) { q.Rows = 0 }, ErrShape, "rows"},
		{func(q *Q4) { q.Packed = q.Packed[1:] }, ErrShape, "packed"},
		{func(q *Q4) { q.Scales = q.Scales[1:] }, ErrShape, "scales"},
		{func(q *Q4) { q.Zeros = append(q.Zeros, 0) }, ErrShape, "zeros"},
		{func(q *Q4) { q.Scales[2] = float32(math.Inf(1)) }, ErrValue, "index 2"},
		{func(q *Q4) { q.Zeros[3] = float32(math.NaN()) }, ErrValue, "index 3"},
	} {
		q := fresh()
		c.change(&q)
		refused(t, q.Validate(), "Q4.Validate", c.sentinel, c.part)
		if c.sentinel == ErrShape {
			refused(t, q.Dequantize(make([]float32, 48)), "Q4.Dequantize", ErrShape, c.part)
			_, err := q.RowRange(0, 1)
			refused(t, err, "Q4.RowRange", ErrShape, c.part)
		}
	}
	refused(t, fresh().Dequantize(make([]float32, 47)), "Q4.Dequantize", ErrShape, "47")
}

func TestQ4RowRange(t *testing.T) {
	q, err := QuantizeQ4(random(rand.New(rand.NewPCG(5, 6)), 5*24, 1), 5, 24, 8)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]float32, 5*24)
	if err := q.Dequantize(all); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 5; i++ {
		for j := i + 1; j <= 5; j++ {
			part, err := q.RowRange(i, j)
			if err != nil {
				t.Fatal(err)
			}
			rows := make([]float32, (j-i)*24)
			if err := part.Dequantize(rows); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(rows, all[i*24:j*24]) {
				t.Fatal(i, j)
			}
		}
	}
	for _, c := range [][2]int{{-1, 2}, {2, 2}, {3, 1}, {0, 6}} {
		_, err := q.RowRange(c[0], c[1])
		refused(t, err, "Q4.RowRange", ErrShape, fmt.Sprint(c[0]))
	}
}
