package oracle

import (
	"fmt"
	"math"
	"reflect"
	"testing"
)

// equal fails the test unless got is what was worked out by hand; of says what was computed, where a table needs it.
func equal(t *testing.T, want, got any, of ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%v: got %v, want %v", of, got, want)
	}
}

func near(t *testing.T, want, got []float64, delta float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if !(math.Abs(want[i]-got[i]) <= delta) {
			t.Fatalf("element %d: got %v, want %v within %g", i, got, want, delta)
		}
	}
}

func near1(t *testing.T, want, got, delta float64, of ...any) {
	t.Helper()
	if !(math.Abs(want-got) <= delta) {
		t.Fatalf("%v: got %v, want %v within %g", of, got, want, delta)
	}
}

var inf, nan = math.Inf(1), math.NaN()

func TestRoundBF16(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{0, 0}, {1, 1}, {-3, -3}, {inf, inf}, {-inf, -inf},
		{1 + 1.0/256, 1},                               // half way between 1 and 1+2⁻⁷: to the even one
		{1 + 3.0/256, 1 + 1.0/64},                      // half way between 1+2⁻⁷ and 1+2⁻⁶: up to the even one
		{1 + 1.01/256, 1 + 1.0/128},                    // just above half
		{-(1 + 1.01/256), -1.0078125},                  // signs are symmetric
		{math.Pi, 3.140625},                            // 0x4049
		{1.9999, 2},                                    // carries into the exponent
		{math.MaxFloat32, inf},                         // nearer to 2¹²⁸ than to the largest
		{3.3895313892515355e38, 3.3895313892515355e38}, // the largest, 0x7f7f
		{math.Ldexp(1, -133), math.Ldexp(1, -133)},     // the least positive, 0x0001
		{math.Ldexp(1, -134), 0},                       // half of it: to even
		{math.Ldexp(3, -134), math.Ldexp(2, -133)},
	} {
		equal(t, c.want, RoundBF16(c.x), c.x)
	}
	equal(t, true, math.IsNaN(RoundBF16(nan)))
	equal(t, true, math.Signbit(RoundBF16(math.Copysign(0, -1))))
	equal(t, []float64{1, 3.140625}, RoundBF16s([]float32{1, math.Pi}))
	equal(t, 3.140625, BF16(0x4049))
	equal(t, -2.0, BF16(0xc000))

	// Every finite bfloat16 is its own rounding, and a number just past the middle of two neighbours goes to the farther.
	for bits := range uint16(0x7f80) {
		equal(t, BF16(bits), RoundBF16(BF16(bits)))
		if bits < 0x7f7f {
			a, b := BF16(bits), BF16(bits+1)
			mid := a + (b-a)/2
			even := a
			if bits&1 == 1 {
				even = b
			}
			equal(t, even, RoundBF16(mid), bits)
			equal(t, a, RoundBF16(math.Nextafter(mid, 0)), bits)
			equal(t, b, RoundBF16(math.Nextafter(mid, inf)), bits)
		}
	}
}

// bank is two rows of sixteen columns in groups of eight. Row 0 holds the codes 0…7, 8…15; row 1 all ones and all twos.
func bank() Q4 {
	return Q4{
		Words:  []uint32{0x76543210, 0xfedcba98, 0x11111111, 0x22222222},
		Scales: []float64{1, 0.5, 2, -1},
		Biases: []float64{0, 1, 10, 3},
		Rows:   2, Cols: 16, Group: 8,
	}
}

func TestQ4(t *testing.T) {
	m := bank()
	equal(t, uint32(9), m.Code(0, 9))
	equal(t, []float64{
		0, 1, 2, 3, 4, 5, 6, 7, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5,
		12, 12, 12, 12, 12, 12, 12, 12, 1, 1, 1, 1, 1, 1, 1, 1,
	}, m.Dense())
	low, high := SplitBF16x2([]uint32{0x40003f80, 0xbf80_4049})
	equal(t, []float64{1, 3.140625}, low)
	equal(t, []float64{2, -1}, high)
}

func TestEmbedQ4(t *testing.T) {
	out := EmbedQ4(bank(), []uint32{1, 2, 0xffffffff, 0}, 2)
	equal(t, 64, len(out))
	equal(t, 24.0, out[0])
	equal(t, 2.0, out[15])
	equal(t, make([]float64, 32), out[16:48]) // ids beyond the table
	equal(t, 17.0, out[63])
}

func TestGEMVQ4(t *testing.T) {
	x := make([]float32, 16)
	for i := range x {
		x[i] = 1
	}
	x[15] = -2
	// Row 0: 28 + (5+5.5+6+6.5+7+7.5+8) − 2·8.5 = 28 + 45.5 − 17; row 1: 96 + 7 − 2.
	want := []float64{56.5, 101}
	equal(t, want, GEMVQ4(bank(), x))
	// Row 0, apart: 28 + ½·(8+…+14+2·15) + 1·9 = 28 + 53.5 + 9; row 1: 8·2+8·10 + 2·9+3·9.
	equal(t, []float64{90.5, 141}, GEMVQ4Magnitude(bank(), x))

	short := bank()
	short.Rows = 1
	q, k, v := GEMVQ4QKV(bank(), short, short, x)
	equal(t, want, q)
	equal(t, want[:1], k)
	equal(t, want[:1], v)

	mid := GEMVQ4GateUpGELU(bank(), bank(), x)
	equal(t, []float64{56.5 * 56.5, 101 * 101}, mid) // gelu of a large number is the number
}

func TestGELUTanh(t *testing.T) {
	equal(t, 0.0, GELUTanh(0))
	near1(t, 0.8411919906082768, GELUTanh(1), 1e-15)
	near1(t, -0.15880800939172324, GELUTanh(-1), 1e-15)
	near1(t, 1.954597694087775, GELUTanh(2), 1e-15)
	equal(t, 1000.0, GELUTanh(1000))
	equal(t, 0.0, math.Abs(GELUTanh(-1000)))
	equal(t, inf, GELUTanh(inf))
	equal(t, 0.0, GELUTanh(-inf))
	equal(t, true, math.IsNaN(GELUTanh(nan)))
}

func TestSoftcapArgmax(t *testing.T) {
	near1(t, 30*math.Tanh(0.1), Softcap(3, 30), 1e-15)
	for _, none := range []float64{0, -1, inf, nan} {
		equal(t, 3.0, Softcap(3, none))
	}
	for _, c := range []struct {
		logits        []float32
		cap           float64
		index         uint32
		value, margin float64
	}{
		{[]float32{1, 3, 2}, 0, 1, 3, 1},
		{[]float32{2, 3, 3}, 0, 1, 3, 0}, // the lowest of equals
		{[]float32{-5}, 0, 0, -5, inf},
		{[]float32{float32(nan), -5, float32(inf), -4}, 0, 3, -4, 1},
		{[]float32{float32(nan), float32(-inf)}, 0, NoToken, 0, inf},
		{nil, 0, NoToken, 0, inf},
		{[]float32{10, 20}, 10, 1, 10 * math.Tanh(2), 10 * (math.Tanh(2) - math.Tanh(1))},
		{[]float32{1e38, 3e38}, 30, 1, 30, 0}, // both are at the cap
	} {
		index, value, margin := SoftcapArgmax(c.logits, c.cap)
		equal(t, c.index, index, c)
		near1(t, c.value, value, 1e-14, c)
		if math.IsInf(c.margin, 1) {
			equal(t, c.margin, margin)
		} else {
			near1(t, c.margin, margin, 1e-14, c)
		}
	}
}

func TestRMSNorm(t *testing.T) {
	// Row 0: mean of squares (9+16)/2 = 12.5; with eps 3.5 the root is 4. Row 1: zeros stay zeros.
	x, w := []float32{3, 4, 0, 0}, []float32{2, 10}
	equal(t, []float64{1.5, 10, 0, 0}, RMSNorm(x, w, 2, 2, 3.5))
	equal(t, []float64{3.140625, 10, 0, 0}, RoundBF16s(RMSNorm(x, []float32{math.Pi * 4 / 3, 10}, 2, 2, 3.5)))

	r := []float32{1, -20, 5, 6}
	equal(t, []float64{1.25, -5, 2.5, 3}, RMSNormResidualAdd(r, x, w, 2, 2, 3.5, 0.5))
	equal(t, []float32{1, -20, 5, 6}, r) // inputs are left alone
}

func TestRoPE(t *testing.T) {
	// A quarter turn of pair (0, 2); pair (1, 3) is beyond rotaryDim.
	head := []float64{1, 2, 3, 4}
	RoPE(head, []float64{math.Pi / 4}, 2, 2)
	near(t, []float64{-3, 2, 1, 4}, head, 1e-15)
	// Both pairs, one turning half as fast.
	head = []float64{1, 2, 3, 4}
	RoPE(head, []float64{math.Pi / 2, math.Pi}, 4, 1)
	near(t, []float64{-3, -2, 1, -4}, head, 1e-15)
}

func qkv() QKV {
	return QKV{
		// Two positions, two query heads and one key/value head of dimension 2. Each head has the mean square 1.
		Q: []float32{1, 1, -1, 1, 1, -1, 1, 1}, K: []float32{1, 1, -1, -1}, V: []float32{7, 8, 9, 10},
		QWeight: []float32{1, 2}, KWeight: []float32{3, 4},
		T: 2, Hq: 2, Hkv: 1, D: 2, RotaryDim: 2,
		Position: 1, InvFreq: []float32{math.Pi / 2},
	}
}

func TestQKVStore(t *testing.T) {
	s := qkv()
	// Position 1 turns (a, b) to (−b, a), position 2 to (−a, −b).
	wantQ := []float64{-2, 1, -2, -1, -1, 2, -1, -2}
	wantK := []float64{-4, 3, 3, 4}
	r := s.RoPE()
	near(t, wantQ, r.Q, 1e-6)
	near(t, wantK, r.K, 1e-6)
	equal(t, []float64{7, 8, 9, 10}, r.V)
	equal(t, true, r.CacheK == nil)

	cache := []float32{50, 51, 52, 53, 54, 55, 56}
	r = s.Store(cache, cache, 2, 7)
	equal(t, false, r.Skipped)
	near(t, wantQ, r.Q, 1e-6)
	near(t, []float64{50, 51, -4, 3, 3, 4, 56}, r.CacheK, 1e-6)
	equal(t, []float64{50, 51, 7, 8, 9, 10, 56}, r.CacheV)
	equal(t, float32(52), cache[2])

	equal(t, false, s.Store(cache, cache, 3, 7).Skipped) // the last place
	for _, offset := range []uint64{4, 7, 8, math.MaxUint32, math.MaxUint64 - 2} {
		r = s.Store(cache, cache, offset, 7)
		equal(t, true, r.Skipped)
		equal(t, widen(s.Q), r.Q)
		equal(t, widen(s.K), r.K)
		equal(t, widen(cache), r.CacheK)
		equal(t, widen(cache), r.CacheV)
	}
	equal(t, true, s.Store(cache[:3], cache[:3], 0, 3).Skipped)
	s.Position = math.MaxUint32
	equal(t, true, s.Store(cache, cache, 0, 7).Skipped) // its second position has no number
	s.Position--
	equal(t, false, s.Store(cache, cache, 0, 7).Skipped)

	s.VWeight = []float32{1, 1}
	r = s.RoPE()
	rms := math.Sqrt((49 + 64) / 2.0)
	near(t, []float64{7 / rms, 8 / rms}, r.V[:2], 1e-15)
}

func TestAttentionVisible(t *testing.T) {
	a := Attention{Capacity: 8, Tkv: 6, QPos: 10, KVPos: 7}
	visible := func(t int) (out []int) {
		for j := range 12 {
			if a.Visible(t, j) {
				out = append(out, j)
			}
		}
		return out
	}
	equal(t, []int{0, 1, 2, 3}, visible(0)) // keys 7…10
	equal(t, []int{0, 1, 2, 3, 4, 5}, visible(3))
	a.Window = 2
	equal(t, []int{2, 3}, visible(0))
	equal(t, []int{5}, visible(3)) // 12; 13 is not filled
	equal(t, 0, len(visible(5)))   // 14 and 15 are not filled
	a.Window, a.Tkv = 0, math.MaxUint32
	equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, visible(9)) // Tkv counts as the capacity
	a.Window, a.QPos, a.KVPos = 64, 3, 0                // a window that reaches back before the start
	equal(t, []int{0, 1, 2, 3}, visible(0))
}

func TestAttentionRows(t *testing.T) {
	// Two query heads share each of two key/value heads; D is 1 for the arithmetic's sake.
	a := Attention{
		Q: []float32{0, 1, 2, 3, 1, 1, 1, 1}, // [1][2][4][1]
		K: []float32{1, 5, 2, 6, 9, 9}, V: []float32{10, 100, 20, 300, 7, 7},
		B: 1, Tq: 2, H: 4, Hkv: 2, D: 1, Capacity: 3, Tkv: 2, Scale: math.Ln2,
	}
	out := a.Rows()
	near(t, []float64{10, 10, 100, 100}, out[:4], 1e-12) // position 0 sees one key
	// Position 1: scores ln2·(1, 2) give weights 1:2, ln2·(5, 6) as well.
	near(t, []float64{50. / 3, 50. / 3, 700. / 3, 700. / 3}, out[4:], 1e-12)

	a.Tkv = 0
	equal(t, make([]float64, 8), a.Rows())
	a.Tkv, a.KVPos = 3, 100 // keys all in the future
	equal(t, make([]float64, 8), a.Rows())

	// The capacity is the stride from batch to batch; large scores do not overflow.
	a = Attention{
		Q: []float32{1000, 1000}, K: []float32{1000, 0, 0, 1000}, V: []float32{1, 2, 3, 4},
		B: 2, Tq: 1, H: 1, Hkv: 1, D: 1, Capacity: 2, Tkv: 2, QPos: 1, Scale: 1,
	}
	equal(t, []float64{1, 4}, a.Rows())
	a.Window = 1
	equal(t, []float64{2, 4}, a.Rows())
}

func TestDecode(t *testing.T) {
	d := StartDecode([]uint32{2, 5, 6}, 4, 100, 128, 1, 7)
	want := d
	step := func(argmax uint32) {
		t.Helper()
		d.Advance(argmax)
		equal(t, want, d)
	}
	equal(t, uint32(2), d.Token)
	equal(t, uint32(1), d.KVLength)
	want.Token, want.Position, want.KVLength, want.CacheOffset = 5, 1, 2, 128
	step(1) // the prompt goes on: an end token that the model would choose does not count
	want.Token, want.Position, want.KVLength, want.CacheOffset = 6, 2, 3, 256
	step(NoToken)
	want.Token, want.Position, want.KVLength, want.CacheOffset, want.Output = 92, 3, 4, 384, []uint32{92}
	step(92)
	full := d

	want.Status, want.Output = EndToken, []uint32{92, 7}
	step(7)
	step(93) // nothing more happens

	d, want = full, full
	want.Status = NothingToChoose
	step(NoToken)

	// The token that fills the output is still produced; an end token in the last place is an end token.
	d, want = full, full
	want.Status, want.OutputCapacity, want.Output = OutputFull, 2, []uint32{92, 93}
	d.OutputCapacity = 2
	step(93)
	d, want = full, full
	want.Status, want.OutputCapacity, want.Output = EndToken, 2, []uint32{92, 1}
	d.OutputCapacity = 2
	step(1)
	d, want = full, full
	want.Status, want.OutputCapacity = OutputFull, 1
	d.OutputCapacity = 1
	step(93)

	// The cache: position 3 is the last of four, in the prompt and after it.
	d, want = full, full
	want.Status, want.KVCapacity, want.Output = CacheFull, 4, []uint32{92, 93}
	d.KVCapacity = 4
	step(93)
	d = StartDecode([]uint32{2, 5}, 4, 1, 8)
	want = d
	want.Status = CacheFull
	step(3)

	equal(t, uint32(0), StartDecode(nil, 1, 1, 1).Token)
}

func Example() {
	// The row 0.5·q − 1 for the codes 0…7, times a vector of ones.
	w := Q4{Words: []uint32{0x76543210}, Scales: []float64{0.5}, Biases: []float64{-1}, Rows: 1, Cols: 8, Group: 8}
	x := []float32{1, 1, 1, 1, 1, 1, 1, 1}
	fmt.Println(w.Dense(), GEMVQ4(w, x))
	// Output: [-1 -0.5 0 0.5 1 1.5 2 2.5] [6]
}
