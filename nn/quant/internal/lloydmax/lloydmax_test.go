package lloydmax

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSolve checks both conditions with the error function, which the solver does not use within cells, and the mean squared errors with
// the literature: 1 bit has level sqrt(2/pi); Max's table I, whose last digits are
// off, has 0.1175 for 4 levels, 0.03454 for 8, 0.009497 for 16, 0.002499 for 32; Panter
// and Dite's limit for many levels is pi sqrt(3)/2 / n^2.
func TestSolve(t *testing.T) {
	levels, mse, err := Solve(1)
	require.NoError(t, err)
	require.InDelta(t, math.Sqrt(2/math.Pi), levels[0], 1e-14)
	require.InDelta(t, 1-2/math.Pi, mse, 1e-14)
	known := map[int]float64{2: 0.1175, 3: 0.03454, 4: 0.009497, 5: 0.002499}
	for bits := 1; bits <= 10; bits++ {
		levels, mse, err := Solve(bits)
		require.NoError(t, err)
		require.Len(t, levels, 1<<(bits-1))
		for i, c := range levels {
			a, b := bounds(levels, i)
			require.True(t, a < c && c < b)
			p := (math.Erf(b/math.Sqrt2) - math.Erf(a/math.Sqrt2)) / 2
			if b > 1 {
				p = (math.Erfc(a/math.Sqrt2) - math.Erfc(b/math.Sqrt2)) / 2
			}
			mean := (density(a) - density(b)) / p
			require.InDelta(t, mean, c, 1e-12, "%d bits, level %d", bits, i)
		}
		if want, ok := known[bits]; ok {
			require.InEpsilon(t, want, mse, 3e-3, "%d bits", bits)
		}
		if bits >= 5 {
			limit := math.Pi * math.Sqrt(3) / 2 / math.Pow(4, float64(bits))
			require.InEpsilon(t, limit, mse, 0.12*math.Pow(2, float64(5-bits))+0.005, "%d bits", bits)
		}
		t.Logf("%2d bits: first %.7f, last %.7f, mean squared error %.6e", bits, levels[0], levels[len(levels)-1], mse)
	}
	for _, bits := range []int{-1, 0, 11} {
		_, _, err := Solve(bits)
		require.Error(t, err)
	}
}

func ExampleSolve() {
	levels, mse, err := Solve(2)
	fmt.Printf("%.4f %.4f %v\n", levels, mse, err)
	// Output: [0.4528 1.5104] 0.1175 <nil>
}
