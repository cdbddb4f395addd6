package applekernels

import (
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCopyToHalf transposes while it converts: the source's innermost dimension has a stride.
func TestCopyToHalf(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(7))
	for _, d := range [][4]int{{5, 1, 1, 1}, {33, 4, 3, 2}, {128, 7, 1, 1}} {
		n := d[0] * d[1] * d[2] * d[3]
		x := random(rng, n)
		x[0] = 65520 // rounds to infinity
		dst := make([]byte, 2*n)
		// The source holds dimension 1 innermost.
		r.run("kernel_cpy_f32_f16", args{"src0": encode(x), "dst": dst,
			"ne00": d[0], "ne01": d[1], "ne02": d[2], "ne03": d[3], "nb00": 4 * d[1], "nb01": 4, "nb02": 4 * d[0] * d[1], "nb03": 4 * d[0] * d[1] * d[2],
			"ne0": d[0], "ne1": d[1], "ne2": d[2], "ne3": d[3], "nb0": 2, "nb1": 2 * d[0], "nb2": 2 * d[0] * d[1], "nb3": 2 * d[0] * d[1] * d[2]},
			0, size(uint(d[1]), uint(d[2]), uint(d[3])), size(32))
		got := fromHalf(dst)
		for i3 := 0; i3 < d[2]*d[3]; i3++ {
			for i1 := 0; i1 < d[1]; i1++ {
				for i0 := 0; i0 < d[0]; i0++ {
					v := x[i3*d[0]*d[1]+i0*d[1]+i1]
					want := fromHalf(toHalf([]float32{v}))[0]
					require.Equal(t, math.Float32bits(want), math.Float32bits(got[(i3*d[1]+i1)*d[0]+i0]), "%v", d)
				}
			}
		}
	}
}

// TestPipelines makes a pipeline of every kernel of the library.
func TestPipelines(t *testing.T) {
	r := newRig(t)
	for _, f := range r.file.Functions {
		p, err := r.pipeline(f.Name)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		p.Release()
	}
	t.Logf("%d kernels", len(r.file.Functions))
}
