package quant

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var q8Shapes = [][3]int{
	{1, 1, 1}, {1, 2, 1}, {3, 5, 5}, {2, 6, 3}, {4, 16, 4}, {5, 40, 8}, {7, 33, 11}, {2, 64, 32}, {3, 128, 128}, {9, 24, 2}, {33, 10, 10}, {2, 768, 256},
}

func TestCheckQ8(t *testing.T) {
	for _, s := range q8Shapes {
		if err := CheckQ8(s[0], s[1], s[2]); err != nil {
			t.Error(err)
		}
		codes, groups, err := Q8Sizes(s[0], s[1], s[2])
		if err != nil || codes != s[0]*s[1] || groups != s[0]*s[1]/s[2] {
			t.Error(s, codes, groups, err)
		}
	}
	for _, c := range []struct {
		rows, cols, group int
		part              string
	}{
		{1, 64, 0, "group size"}, {1, 64, -1, "group size"}, {0, 64, 8, "rows"}, {-1, 64, 8, "rows"}, {math.MaxInt32 + 1, 64, 8, "rows"},
		{1, 0, 8, "columns"}, {1, math.MaxInt32 + 1, 1, "columns"}, {1, 9, 8, "multiple of the group size 8"}, {1, 4, 8, "multiple of the group size 8"},
	} {
		refused(t, CheckQ8(c.rows, c.cols, c.group), "CheckQ8", ErrShape, c.part)
		_, _, err := Q8Sizes(c.rows, c.cols, c.group)
		refused(t, err, "Q8Sizes", ErrShape, c.part)
		_, err = QuantizeQ8(nil, c.rows, c.cols, c.group)
		refused(t, err, "QuantizeQ8", ErrShape, c.part)
	}
}

// Every weight comes back within half a step and the zero point's rounding.
func TestQuantizeQ8(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for i, s := range q8Shapes {
		for _, offset := range []float64{0, 1, -30, 1e4, -1e6} {
			scale := math.Pow(10, float64(i%5-2))
			w := random(r, s[0]*s[1], scale)
			for j := range w {
				w[j] = float32(float64(w[j]) + offset*scale)
			}
			q, err := QuantizeQ8(w, s[0], s[1], s[2])
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
				allowed := step*(0.5+(math.Abs(zero)+128)*0x1p-23) + math.Abs(float64(w[j]))*0x1p-23
				if e := math.Abs(float64(back[j]) - float64(w[j])); e > allowed {
					t.Fatalf("%v offset %g: weight %d: %v for %v: off by %g, allowed %g", s, offset, j, back[j], w[j], e, allowed)
				}
			}
		}
	}
}

// The ends of a range are codes -128 and 127, and a group of one value comes back as it was.
func TestQuantizeQ8Ends(t *testing.T) {
	for _, c := range [][2]float32{{-1, 1}, {0, 255}, {-127, 128}, {-math.MaxFloat32, math.MaxFloat32}, {0, 4e-36}} {
		q, err := QuantizeQ8([]float32{c[0], c[1], c[0]}, 1, 3, 3)
		if err != nil {
			t.Fatal(c, err)
		}
		if !slices.Equal(q.Codes, []int8{-128, 127, -128}) {
			t.Errorf("%v: codes %v", c, q.Codes)
		}
	}
	for _, v := range []float32{0, 1, -1, 0.1, -3e38, 1e-44} {
		q, err := QuantizeQ8([]float32{v, v}, 1, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		back := make([]float32, 2)
		if err := q.Dequantize(back); err != nil || back[0] != v || back[1] != v {
			t.Errorf("%v came back as %v %v", v, back, err)
		}
	}
}

func TestQ8Refuses(t *testing.T) {
	w := make([]float32, 16)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		w[11] = float32(bad)
		_, err := QuantizeQ8(w, 2, 8, 8)
		refused(t, err, "QuantizeQ8", ErrValue, "index 11")
	}
	w[11] = 1e-37
	_, err := QuantizeQ8(w, 2, 8, 8)
	refused(t, err, "QuantizeQ8", ErrValue, "index 8")
	_, err = QuantizeQ8(w[1:], 2, 8, 8)
	refused(t, err, "QuantizeQ8", ErrShape, "15 numbers")

	good, err := QuantizeQ8(random(rand.New(rand.NewPCG(3, 8)), 3*16, 1), 3, 16, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change   func(q *Q8)
		sentinel error
		part     string
	}{
		{func(q *Q8) { q.GroupSize = 0 }, ErrShape, "group size"},
		{func(q *Q8) { q.Rows = 0 }, ErrShape, "rows"},
		{func(q *Q8) { q.Codes = q.Codes[1:] }, ErrShape, "codes"},
		{func(q *Q8) { q.Scales = q.Scales[1:] }, ErrShape, "scales"},
		{func(q *Q8) { q.Zeros = append(slices.Clone(q.Zeros), 0) }, ErrShape, "zeros"},
		{func(q *Q8) { q.Scales = slices.Clone(q.Scales); q.Scales[2] = float32(math.Inf(1)) }, ErrValue, "index 2"},
		{func(q *Q8) { q.Zeros = slices.Clone(q.Zeros); q.Zeros[3] = float32(math.NaN()) }, ErrValue, "index 3"},
	} {
		q := good
		c.change(&q)
		refused(t, q.Validate(), "Q8.Validate", c.sentinel, c.part)
		if c.sentinel == ErrShape {
			refused(t, q.Dequantize(make([]float32, 48)), "Q8.Dequantize", ErrShape, c.part)
			_, err := q.RowRange(0, 1)
			refused(t, err, "Q8.RowRange", ErrShape, c.part)
		}
	}
	refused(t, good.Dequantize(make([]float32, 47)), "Q8.Dequantize", ErrShape, "47")
	for _, c := range [][2]int{{-1, 2}, {2, 2}, {3, 1}, {0, 4}} {
		_, err := good.RowRange(c[0], c[1])
		refused(t, err, "Q8.RowRange", ErrShape, "3 rows")
	}
	all, part := make([]float32, 48), make([]float32, 16)
	middle, err := good.RowRange(1, 2)
	if err != nil || good.Dequantize(all) != nil || middle.Dequantize(part) != nil || !slices.Equal(part, all[16:32]) {
		t.Error("rows 1 to 2 are not the middle", err)
	}
}
