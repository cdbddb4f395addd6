package oracle

import (
	"math"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
)

// rotary is rotary position embedding: frequencies of pairs of elements. Frequencies and angles are float32 numbers, rounded
// where the original implementations round them: they are part of what a model was trained with.
type rotary struct {
	frequencies []float32
	factor      float64 // of queries and keys
	neighbours  bool
}

func newRotary(r checkpoint.RoPE) rotary {
	out := rotary{factor: 1, neighbours: r.Neighbours}
	for p := range r.Dim / 2 {
		f := 1 / float32(math.Pow(r.Theta, 2*float64(p)/float64(r.Dim)))
		f /= float32(r.Scaling.Factor)
		out.frequencies = append(out.frequencies, f)
	}
	return out
}

// turn turns a head: element 2p together with 2p + 1, or p together with that which is half of what turns further on.
func (r rotary) turn(x []float64, position int) {
	half := len(r.frequencies)
	for p, f := range r.frequencies {
		i, j := p, p+half
		if r.neighbours {
			i, j = 2*p, 2*p+1
		}
		sin, cos := math.Sincos(float64(float32(position) * f))
		a, b := x[i]*r.factor, x[j]*r.factor
		x[i], x[j] = a*cos-b*sin, b*cos+a*sin
	}
}
