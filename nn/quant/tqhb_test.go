package quant_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/nn/quant"
)

func codecs() (all []quant.TQHB) {
	for _, dim := range []int{64, 128, 256, 512} {
		for _, bits := range []int{5, 6, 8} {
			all = append(all, quant.TQHB{Dim: dim, Bits: bits})
		}
	}
	return append(all, quant.TQHB{Dim: 512, Bits: 6, Factor: 1.25})
}

func normal(rng *rand.Rand, n int, deviation float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * deviation)
	}
	return x
}

// TestTQHBRotate compares with the definition: the entry of the Hadamard matrix is -1 to the number of common bits of row and
// column. Signs come out of rotating unit vectors.
func TestTQHBRotate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, dim := range []int{64, 128, 256, 512} {
		c := quant.TQHB{Dim: dim, Bits: 5}
		signs, minus := make([]float64, dim), 0
		for i := range signs {
			x := make([]float32, dim)
			x[i] = 1
			require.NoError(t, c.Rotate(x))
			signs[i] = float64(x[0]) * math.Sqrt(float64(dim)) // the first row has no minus
			require.InDelta(t, 1, math.Abs(signs[i]), 1e-6)
			if signs[i] < 0 {
				minus++
			}
		}
		require.InDelta(t, dim/2, minus, 2*math.Sqrt(float64(dim)), "signs are balanced")
		x := normal(rng, 2*dim, 1)
		got := append([]float32(nil), x...)
		require.NoError(t, c.Rotate(got))
		for v := range 2 {
			for row := range dim {
				var sum, size float64
				for i := range dim {
					h := 1 - 2*float64(bits.OnesCount(uint(row&i))%2)
					sum += h * signs[i] * float64(x[v*dim+i])
					size += math.Abs(float64(x[v*dim+i]))
				}
				// A sum of Dim numbers in pairs rounds log2(Dim) times.
				bound := size / math.Sqrt(float64(dim)) * 0x1p-24 * 12
				require.InDelta(t, sum/math.Sqrt(float64(dim)), got[v*dim+row], bound)
			}
		}
		require.NoError(t, c.Unrotate(got))
		for i := range x {
			require.InDelta(t, x[i], got[i], 1e-5)
		}
	}
}

// TestTQHBError measures the mean squared error over the mean square: that of the codebook for normally distributed vectors, and hardly
// more for vectors that are not, which is what the rotation is for.
func TestTQHBError(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	mse := map[int]float64{5: 2.504668e-3, 6: 6.442397e-4, 8: 4.118508e-5}
	for _, c := range codecs() {
		const vectors = 400
		for name, x := range map[string][]float32{"normal": normal(rng, vectors*c.Dim, 3), "lopsided": lopsided(rng, vectors, c.Dim)} {
			was := append([]float32(nil), x...)
			codes, norms := make([]byte, len(x)), make([]float32, vectors*c.Norms())
			require.NoError(t, c.Encode(codes, norms, x))
			got := make([]float32, len(x))
			require.NoError(t, c.Decode(got, codes, norms))
			require.NoError(t, c.Unrotate(got))
			var sum, all float64
			for i := range was {
				e := float64(got[i]) - float64(was[i])
				sum, all = sum+e*e, all+float64(was[i])*float64(was[i])
			}
			rel := sum / all
			t.Logf("dim %d, %d bits, factor %g, %s: %.3e of %.3e", c.Dim, c.Bits, c.Factor, name, rel, mse[c.Bits])
			if c.Factor != 0 { // the numbers are spread wider than the codebook is made for
				require.Less(t, rel, 3*mse[c.Bits])
				continue
			}
			// Numbers over the size of their own vector spread a little less than normal ones, the more so the fewer
			// there are: up to 5.5 % at 64, as measured; the tails make the sample noisy by 2 %.
			require.Less(t, rel, 1.01*mse[c.Bits])
			if name == "normal" {
				require.Greater(t, rel, 0.93*mse[c.Bits])
			}
		}
	}
}

// lopsided vectors have a few large numbers.
func lopsided(rng *rand.Rand, vectors, dim int) []float32 {
	x := normal(rng, vectors*dim, 0.1)
	for v := range vectors {
		for range dim / 8 {
			x[v*dim+rng.IntN(dim)] += float32(rng.ExpFloat64() * 5)
		}
	}
	return x
}

// TestTQHBNearest looks for a level that is nearer than the one chosen.
func TestTQHBNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, c := range codecs() {
		x := normal(rng, 8*c.Dim, 2)
		codes, norms := make([]byte, len(x)), make([]float32, 8*c.Norms())
		require.NoError(t, c.Encode(codes, norms, x))
		levels := c.Levels()
		block := c.Dim / c.Norms()
		for i, e := range x { // rotated
			var sum float64
			for _, v := range x[i/block*block:][:block] {
				sum += float64(v) * float64(v)
			}
			v := float64(e) / math.Sqrt(sum) * math.Sqrt(float64(block))
			norm := math.Sqrt(sum)
			if c.Dim == 512 {
				norm = math.Sqrt(sum / 256)
				if c.Factor != 0 {
					v *= float64(c.Factor)
				}
			}
			require.InEpsilon(t, norm, norms[i/block], 1e-6)
			chosen := math.Abs(v - float64(levels[codes[i]]))
			least := math.Inf(1)
			for _, l := range levels {
				least = min(least, math.Abs(v-float64(l)))
			}
			require.LessOrEqual(t, chosen, least+1e-6)
		}
	}
}

// TestTQHBLevels pins the codebooks' ends and asks of each level that it is the mean of its cell.
func TestTQHBLevels(t *testing.T) {
	for bits, ends := range map[int][2]float64{5: {0.0658897, 3.2607325}, 6: {0.0334095, 3.7441013}, 8: {0.0084462, 4.6035356}} {
		levels := quant.TQHB{Bits: bits}.Levels()
		n := len(levels)
		require.Equal(t, 1<<bits, n)
		require.InDelta(t, ends[0], levels[n/2], 5e-8)
		require.InDelta(t, ends[1], levels[n-1], 5e-7)
		for i, c := range levels {
			require.Equal(t, -levels[n-1-i], c)
			a, b := math.Inf(-1), math.Inf(1)
			if i > 0 {
				a = (float64(levels[i-1]) + float64(c)) / 2
			}
			if i+1 < n {
				b = (float64(c) + float64(levels[i+1])) / 2
			}
			density := func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }
			p := (math.Erfc(a/math.Sqrt2) - math.Erfc(b/math.Sqrt2)) / 2
			require.InDelta(t, (density(a)-density(b))/p, c, 2e-6) // levels are rounded to float32, cells are narrow
		}
	}
}

func TestTQHBExtremes(t *testing.T) {
	for _, c := range codecs() {
		n := len(c.Levels())
		x, codes, norms := make([]float32, c.Dim), make([]byte, c.Dim), make([]float32, c.Norms())
		require.NoError(t, c.Encode(codes, norms, x))
		for _, code := range codes {
			require.EqualValues(t, n/2-1, code, "the code below the middle")
		}
		require.NoError(t, c.Decode(x, codes, norms))
		for _, v := range x {
			require.Zero(t, v)
		}
		for i := range codes {
			codes[i] = byte(n - 1)
		}
		require.NoError(t, c.Decode(x, codes, norms))
		if n < 256 {
			codes[7] = byte(n)
			err := c.Decode(x, codes, norms)
			require.ErrorIs(t, err, quant.ErrValue)
			require.ErrorContains(t, err, "at index 7")
		}
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
			x := make([]float32, c.Dim)
			for i := range x {
				x[i] = bad
			}
			require.ErrorIs(t, c.Encode(codes, norms, x), quant.ErrValue)
		}
	}
}

func TestTQHBErrors(t *testing.T) {
	for _, bad := range []quant.TQHB{{}, {Dim: 96, Bits: 8}, {Dim: 1024, Bits: 8}, {Dim: -64, Bits: 8}} {
		require.ErrorIs(t, bad.Validate(), quant.ErrShape)
		require.ErrorIs(t, bad.Rotate(nil), quant.ErrShape)
	}
	nan := float32(math.NaN())
	for _, bad := range []quant.TQHB{{Dim: 64}, {Dim: 64, Bits: 7}, {Dim: 512, Bits: 8, Factor: -1}, {Dim: 512, Bits: 8, Factor: nan},
		{Dim: 512, Bits: 8, Factor: float32(math.Inf(1))}} {
		require.ErrorIs(t, bad.Validate(), quant.ErrValue)
		require.ErrorIs(t, bad.Encode(nil, nil, nil), quant.ErrValue)
		require.ErrorIs(t, bad.Decode(nil, nil, nil), quant.ErrValue)
		require.ErrorIs(t, bad.Unrotate(nil), quant.ErrValue)
	}
	require.Nil(t, quant.TQHB{Bits: 7}.Levels())
	for c, want := range map[quant.TQHB]float32{{Dim: 64}: 8, {Dim: 128}: 11.3137085, {Dim: 256, Factor: 3}: 16, {Dim: 512}: 1, {Dim: 512, Factor: 3}: 3} {
		require.Equal(t, want, c.Divisor())
	}
	for _, c := range codecs() {
		require.NoError(t, c.Validate())
		x, codes, norms := make([]float32, 2*c.Dim), make([]byte, 2*c.Dim), make([]float32, 2*c.Norms())
		for _, f := range []func(codes []byte, norms, x []float32) error{c.Encode,
			func(codes []byte, norms, x []float32) error { return c.Decode(x, codes, norms) }} {
			require.ErrorIs(t, f(codes, norms, x[1:]), quant.ErrShape)
			require.ErrorIs(t, f(codes[1:], norms, x), quant.ErrShape)
			require.ErrorIs(t, f(codes, norms[1:], x), quant.ErrShape)
			require.NoError(t, f(codes, norms, x))
			require.NoError(t, f(nil, nil, nil))
		}
		require.ErrorIs(t, c.Rotate(x[1:]), quant.ErrShape)
		require.ErrorIs(t, c.Unrotate(x[1:]), quant.ErrShape)
	}
}

func ExampleTQHB() {
	c := quant.TQHB{Dim: 64, Bits: 8}
	x := make([]float32, 64)
	x[3] = 10
	codes, norms := make([]byte, 64), make([]float32, 1)
	if err := c.Encode(codes, norms, x); err != nil { // rotates x
		fmt.Println(err)
		return
	}
	if err := c.Decode(x, codes, norms); err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Unrotate(x); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("norm %.2f, x[3] %.0f\n", norms[0], x[3])
	// Output: norm 10.00, x[3] 10
}

func FuzzTQHBDecode(f *testing.F) {
	f.Add(uint8(0), []byte("codes of a vector"), float32(3))
	f.Add(uint8(12), []byte{255, 0, 31, 63}, float32(math.Inf(1)))
	f.Fuzz(func(t *testing.T, which uint8, some []byte, norm float32) {
		c := codecs()[int(which)%len(codecs())]
		codes, norms, x := make([]byte, c.Dim), make([]float32, c.Norms()), make([]float32, c.Dim)
		copy(codes, some)
		norms[0] = norm
		if err := c.Decode(x, codes, norms); err != nil {
			require.ErrorIs(t, err, quant.ErrValue)
		}
	})
}
