package oracle

import (
	"math"
	"testing"
)

func TestSiLU(t *testing.T) {
	equal(t, 0.0, SiLU(0))
	near1(t, math.Ln2*2/3, SiLU(math.Ln2), 1e-15) // e^−x is ½
	near1(t, -math.Ln2/3, SiLU(-math.Ln2), 1e-15) // e^−x is 2
	equal(t, 1000.0, SiLU(1000))
	equal(t, 0.0, math.Abs(SiLU(-1000)))
	equal(t, inf, SiLU(inf))
	equal(t, 0.0, SiLU(-inf))
	equal(t, true, math.IsNaN(SiLU(nan)))
}

func TestActivation(t *testing.T) {
	for _, c := range []struct {
		act              Activation
		minus, zero, two float64
	}{
		{ActNone, -1, 0, 2},
		{ActReLU, 0, 0, 2},
		{ActGELU, -0.15880800939172324, 0, 1.954597694087775},
		{ActSiLU, -1 / (1 + math.E), 0, 2 / (1 + math.Exp(-2))},
	} {
		near(t, []float64{c.minus, c.zero, c.two}, []float64{c.act.Apply(-1), c.act.Apply(0), c.act.Apply(2)}, 1e-15)
		equal(t, true, math.IsNaN(c.act.Apply(nan)))
		steepest := 0.0
		for x := -8.0; x < 8; x += 0x1p-10 {
			steepest = max(steepest, math.Abs(c.act.Apply(x+0x1p-10)-c.act.Apply(x))*0x1p10)
		}
		if s := c.act.Slope(); steepest > s || steepest < s*0.99 {
			t.Fatalf("activation %d: slope %v, bound %v", c.act, steepest, s)
		}
	}
}

func TestElementwise(t *testing.T) {
	gate, up := []float32{0, 100, -100, 2}, []float64{5, 3, 3, -1}
	near(t, []float64{0, 300, 0, -1.954597694087775}, Gated(gate, up, ActGELU), 1e-15)
	near(t, []float64{0, 300, 0, -2 / (1 + math.Exp(-2))}, Gated(gate, up, ActSiLU), 1e-13)
	equal(t, []float64{0, -50, 50, -1}, Scale(gate, -0.5))
	equal(t, []float64{5, 103, -97, 1}, Add(gate, up))
	equal(t, []float32{0, 100, -100, 2}, gate)
}
