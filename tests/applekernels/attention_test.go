package applekernels

import (
	"encoding/binary"
	"math"
	"math/rand"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlashAttention runs attention with simdgroup matrices in half precision, masked, with fewer heads of keys than of
// queries.
func TestFlashAttention(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(8))
	const d, scale = 64, 0.125
	for _, c := range []struct{ queries, heads, kvHeads, cache int }{{8, 2, 1, 64}, {5, 4, 2, 160}} {
		q := random(rng, c.heads*c.queries*d)
		k := fromHalf(toHalf(random(rng, c.kvHeads*c.cache*d)))
		v := fromHalf(toHalf(random(rng, c.kvHeads*c.cache*d)))
		padded := (c.queries + 7) / 8 * 8
		mask := make([]float32, padded*c.cache)
		for i := range mask {
			if rng.Intn(3) == 0 {
				mask[i] = float32(math.Inf(-1))
			}
		}
		dst := make([]byte, 4*len(q))
		kvHead := 2 * c.cache * d
		r.run("kernel_flash_attn_ext_f16_h64", args{"q": encode(q), "k": toHalf(k), "v": toHalf(v), "mask": toHalf(mask), "dst": dst,
			"ne01": c.queries, "ne02": c.heads, "ne03": 1, "nb01": 4 * d, "nb02": 4 * d * c.queries, "nb03": 4 * d * c.queries * c.heads,
			"ne11": c.cache, "ne12": c.kvHeads, "ne13": 1, "nb11": 2 * d, "nb12": kvHead, "nb13": kvHead * c.kvHeads,
			"nb21": 2 * d, "nb22": kvHead, "nb23": kvHead * c.kvHeads, "nb31": 2 * c.cache, "ne1": c.heads, "ne2": c.queries,
			"scale": scale, "max_bias": 0.0, "m0": 1.0, "m1": 1.0, "n_head_log2": c.heads}, 6144,
			size(uint(padded/8), uint(c.heads)), size(32, 4))
		var want []float64
		for i := 0; i < c.queries; i++ {
			for h := 0; h < c.heads; h++ {
				row := q[(h*c.queries+i)*d:][:d]
				kv := h / (c.heads / c.kvHeads) * c.cache * d
				w := make([]float64, c.cache)
				top, sum := math.Inf(-1), 0.0
				for j := range w {
					for e := range row {
						w[j] += float64(row[e]) * float64(k[kv+j*d+e])
					}
					w[j] = w[j]*scale + float64(mask[i*c.cache+j])
					top = math.Max(top, w[j])
				}
				out := make([]float64, d)
				for j := range w {
					p := math.Exp(w[j] - top)
					sum += p
					for e := range out {
						out[e] += p * float64(v[kv+j*d+e])
					}
				}
				for e := range out {
					want = append(want, out[e]/sum)
				}
			}
		}
		near(t, want, decode(dst), 4e-3, 1)
	}
}

// TestArgSort sorts by a bitonic network in threadgroup memory.
func TestArgSort(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(9))
	for _, n := range []int{1, 2, 30, 64, 500} {
		padded := 1
		for padded < n {
			padded *= 2
		}
		const count = 3
		x := random(rng, count*n)
		for _, order := range []string{"asc", "desc"} {
			dst := make([]byte, 4*len(x))
			r.run("kernel_argsort_f32_i32_"+order, args{"x": encode(x), "dst": dst, "ncols": n, "ncols_pad": padded}, uint(max(16, 4*padded)), size(1, count), size(uint(padded)))
			for row := 0; row < count; row++ {
				v := x[row*n : (row+1)*n]
				want := make([]int, n)
				for i := range want {
					want[i] = i
				}
				sort.Slice(want, func(i, j int) bool { return (v[want[i]] < v[want[j]]) == (order == "asc") })
				for i := range want {
					require.EqualValues(t, want[i], binary.LittleEndian.Uint32(dst[4*(row*n+i):]), "%s of %d, row %d, place %d", order, n, row, i)
				}
			}
		}
	}
}
