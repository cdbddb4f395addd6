package applekernels

import (
	"math"
	"math/rand"
	"testing"
)

// rows applies f to each row of a matrix whose rows lie stride floats apart.
func rows(x []float32, n, dim, stride int, f func(row []float32) []float64) []float64 {
	var out []float64
	for r := 0; r < n; r++ {
		out = append(out, f(x[r*stride:r*stride+dim])...)
	}
	return out
}

func TestRMSNorm(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(1))
	for _, c := range []struct{ rows, dim, stride, threads int }{{1, 4, 4, 32}, {3, 64, 64, 32}, {5, 4096, 4096, 1024}, {4, 1000, 1024, 256}, {2, 36, 40, 64}} {
		const eps = 1e-5
		x := random(rng, c.rows*c.stride)
		dst := make([]byte, 4*c.rows*c.dim)
		r.run("kernel_rms_norm", args{"src0": encode(x), "dst": dst, "ne00": c.dim, "nb01": 4 * c.stride, "eps": eps}, 128,
			size(uint(c.rows)), size(uint(c.threads)))
		near(t, rows(x, c.rows, c.dim, c.stride, func(row []float32) []float64 {
			var sum float64
			for _, v := range row {
				sum += float64(v) * float64(v)
			}
			out := make([]float64, len(row))
			for i, v := range row {
				out[i] = float64(v) / math.Sqrt(sum/float64(len(row))+eps)
			}
			return out
		}), decode(dst), 3e-6, 1e-3)
	}
}

func TestNorm(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(2))
	for _, c := range []struct{ rows, dim, stride, threads int }{{1, 3, 3, 32}, {3, 64, 64, 64}, {2, 4096, 4096, 256}, {4, 777, 800, 512}} {
		const eps = 1e-5
		x := random(rng, c.rows*c.stride)
		dst := make([]byte, 4*c.rows*c.dim)
		r.run("kernel_norm", args{"src0": encode(x), "dst": dst, "ne00": c.dim, "nb01": 4 * c.stride, "eps": eps}, uint(4*c.threads),
			size(uint(c.rows)), size(uint(c.threads)))
		near(t, rows(x, c.rows, c.dim, c.stride, func(row []float32) []float64 {
			var mean, sq float64
			for _, v := range row {
				mean += float64(v) / float64(len(row))
			}
			for _, v := range row {
				sq += (float64(v) - mean) * (float64(v) - mean) / float64(len(row))
			}
			out := make([]float64, len(row))
			for i, v := range row {
				out[i] = (float64(v) - mean) / math.Sqrt(sq+eps)
			}
			return out
		}), decode(dst), 1e-5, 0.1)
	}
}

func TestSoftMax(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(3))
	for _, c := range []struct {
		kernel             string
		dim, rows, heads   int
		threads            int
		mask, half, biased bool
	}{
		{"kernel_soft_max_f32", 33, 3, 2, 32, false, false, false},
		{"kernel_soft_max_f32", 500, 2, 3, 256, true, false, false},
		{"kernel_soft_max_f32_4", 1024, 3, 2, 256, true, false, true},
		{"kernel_soft_max_f32_4", 20, 1, 1, 32, false, false, false},
		{"kernel_soft_max_f16", 77, 2, 4, 64, true, true, true},
		{"kernel_soft_max_f16_4", 512, 2, 4, 128, true, true, false},
	} {
		const scale, m0, m1, headLog2 = 0.125, 0.5, 0.25, 2
		x := random(rng, c.dim*c.rows*c.heads)
		for i := range x {
			x[i] *= 20
		}
		maskValues := random(rng, c.dim*c.rows)
		for i := range maskValues {
			if i%5 == 4 {
				maskValues[i] = float32(math.Inf(-1))
			}
		}
		mask := encode(maskValues)
		if c.half {
			mask = toHalf(maskValues)
			maskValues = fromHalf(mask)
		}
		src := encode(x)
		dst := make([]byte, len(src))
		bias := 0.0
		if c.biased {
			bias = 8
		}
		a := args{"src0": src, "src1": mask, "dst": dst, "ne00": c.dim, "ne01": c.rows, "ne02": c.heads, "scale": scale, "max_bias": bias,
			"m0": m0, "m1": m1, "n_head_log2": headLog2}
		if !c.mask {
			a["src1"] = alias("src0")
		}
		r.run(c.kernel, a, 128, size(uint(c.rows*c.heads)), size(uint(c.threads)))
		var want []float64
		for h := 0; h < c.heads; h++ {
			slope := 1.0
			if c.biased {
				slope = math.Pow(m0, float64(h+1))
				if h >= headLog2 {
					slope = math.Pow(m1, float64(2*(h-headLog2)+1))
				}
			}
			for q := 0; q < c.rows; q++ {
				row := x[(h*c.rows+q)*c.dim:][:c.dim]
				e := make([]float64, c.dim)
				top, sum := math.Inf(-1), 0.0
				for i, v := range row {
					e[i] = float64(v) * scale
					if c.mask {
						e[i] += slope * float64(maskValues[q*c.dim+i])
					}
					top = math.Max(top, e[i])
				}
				for i := range e {
					e[i] = math.Exp(e[i] - top)
					sum += e[i]
				}
				for i := range e {
					want = append(want, e[i]/sum)
				}
			}
		}
		near(t, want, decode(dst), 1e-5, 1e-4)
	}
}
