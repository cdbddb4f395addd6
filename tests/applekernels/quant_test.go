package applekernels

import (
	"encoding/binary"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime/half"
)

func toHalf(v []float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint16(b, uint16(half.Float16FromFloat32(x)))
	}
	return b
}

func fromHalf(b []byte) []float32 {
	v := make([]float32, len(b)/2)
	for i := range v {
		v[i] = half.Float16(binary.LittleEndian.Uint16(b[2*i:])).Float32()
	}
	return v
}

// A format is a block format of ggml: random blocks and their meaning.
type format struct {
	name  string
	block int // elements per block
	bytes int
	// values gives the elements of a block.
	values func(b []byte) []float64
	// scaleAt are the offsets of half-precision scales, which random bytes would make infinite.
	scaleAt []int
}

func halfAt(b []byte, off int) float64 { return float64(fromHalf(b[off : off+2])[0]) }

var formats = []format{
	{"q4_0", 32, 18, func(b []byte) []float64 {
		v := make([]float64, 32)
		for i := 0; i < 16; i++ {
			v[i] = halfAt(b, 0) * float64(int(b[2+i]&15)-8)
			v[i+16] = halfAt(b, 0) * float64(int(b[2+i]>>4)-8)
		}
		return v
	}, []int{0}},
	{"q4_1", 32, 20, func(b []byte) []float64 {
		v := make([]float64, 32)
		for i := 0; i < 16; i++ {
			v[i] = halfAt(b, 0)*float64(b[4+i]&15) + halfAt(b, 2)
			v[i+16] = halfAt(b, 0)*float64(b[4+i]>>4) + halfAt(b, 2)
		}
		return v
	}, []int{0, 2}},
	{"q5_0", 32, 22, func(b []byte) []float64 {
		v := make([]float64, 32)
		high := binary.LittleEndian.Uint32(b[2:])
		for i := 0; i < 16; i++ {
			v[i] = halfAt(b, 0) * float64(int(b[6+i]&15)+int(high>>i&1)*16-16)
			v[i+16] = halfAt(b, 0) * float64(int(b[6+i]>>4)+int(high>>(i+16)&1)*16-16)
		}
		return v
	}, []int{0}},
	{"q8_0", 32, 34, func(b []byte) []float64 {
		v := make([]float64, 32)
		for i := range v {
			v[i] = halfAt(b, 0) * float64(int8(b[2+i]))
		}
		return v
	}, []int{0}},
	{"q6_K", 256, 210, func(b []byte) []float64 {
		v := make([]float64, 256)
		ql, qh, sc, d := b[:128], b[128:192], b[192:208], halfAt(b, 208)
		for i := range v {
			n, l := i/128, i%128 // each half has four runs of 32
			low := ql[n*64+l%64] >> (4 * (l / 64)) & 15
			high := qh[n*32+l%32] >> (2 * (l / 32)) & 3
			v[i] = d * float64(int8(sc[i/16])) * float64(int(low)|int(high)<<4-32)
		}
		return v
	}, []int{208}},
}

func formatOf(t testing.TB, name string) format {
	for _, f := range formats {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("no format %s", name)
	return format{}
}

// random makes n blocks.
func (f format) random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n*f.bytes)
	rng.Read(b)
	for i := 0; i < n; i++ {
		for _, off := range f.scaleAt {
			copy(b[i*f.bytes+off:], toHalf([]float32{float32(rng.NormFloat64() * 0.05)}))
		}
	}
	return b
}

func (f format) all(b []byte) []float64 {
	var v []float64
	for i := 0; i < len(b); i += f.bytes {
		v = append(v, f.values(b[i:i+f.bytes])...)
	}
	return v
}

func TestGetRows(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(4))
	for _, f := range formats {
		for _, blocks := range []int{1, 3} {
			dim, vocab := blocks*f.block, 7
			table := f.random(rng, vocab*blocks)
			ids := []int32{3, 0, 6, 6, 2}
			idBytes, err := binary.Append(nil, binary.LittleEndian, ids)
			require.NoError(t, err)
			dst := make([]byte, 4*dim*len(ids))
			r.run("kernel_get_rows_"+f.name, args{"src0": table, "src1": idBytes, "dst": dst, "ne00": dim, "nb01": blocks * f.bytes, "nb02": vocab * blocks * f.bytes,
				"ne10": len(ids), "nb10": 4, "nb11": 4 * len(ids), "nb1": 4 * dim, "nb2": 4 * dim * len(ids)}, 0, size(uint(len(ids))), size(32))
			var want []float64
			for _, id := range ids {
				want = append(want, f.all(table[int(id)*blocks*f.bytes:][:blocks*f.bytes])...)
			}
			if f.name == "q8_0" { // its elements are products in half precision
				near(t, want, decode(dst), 0x1p-11, 0x1p-14)
				continue
			}
			// The kernels divide the scale by 16 in half precision, where a small one loses bits: half of the least half,
			// times a code of up to 16*15.
			near(t, want, decode(dst), 2e-6, 0x1p-25*240/2e-6)
		}
	}
}

// TestGetRowsAgainstQuant compares what Apple's compilation of ggml's dequantisers writes with nn/quant, bit for bit. Scales are 2^-6 and
// more, so that where a kernel divides them by 16 in half precision they stay exact.
func TestGetRowsAgainstQuant(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(7))
	scaleAt := map[quant.BlockFormat][]int{quant.BlockQ4_K: {0, 2}, quant.BlockQ5_K: {0, 2}, quant.BlockQ6_K: {208}}
	for _, f := range quant.BlockFormats() {
		const rows, blocks = 5, 3
		dim := blocks * f.Values()
		table := make([]byte, rows*blocks*f.Bytes())
		rng.Read(table)
		at := scaleAt[f]
		if at == nil {
			at = []int{0}
		}
		for i := 0; i < len(table); i += f.Bytes() {
			for _, off := range at {
				copy(table[i+off:], toHalf([]float32{(0x1p-6 + rng.Float32()) * float32(1-2*rng.Intn(2))}))
			}
		}
		ids, err := binary.Append(nil, binary.LittleEndian, []int32{4, 0, 1, 2, 3})
		require.NoError(t, err)
		dst := make([]byte, 4*dim*rows)
		r.run("kernel_get_rows_"+strings.Replace(strings.ToLower(f.String()), "_k", "_K", 1), args{"src0": table, "src1": ids, "dst": dst, "ne00": dim,
			"nb01": blocks * f.Bytes(), "nb02": len(table), "ne10": rows, "nb10": 4, "nb11": 4 * rows, "nb1": 4 * dim, "nb2": 4 * dim * rows},
			0, size(rows), size(32))
		want := make([]float32, dim*rows)
		require.NoError(t, f.Decode(want, table))
		want = append(want[4*dim:], want[:4*dim]...)
		if f == quant.BlockQ8_0 { // the kernel's elements are products in half precision
			for i, v := range want {
				want[i] = half.Float16FromFloat32(v).Float32()
			}
		}
		require.Equal(t, want, decode(dst), f)
	}
}

// matrixArgs are the arguments that ggml's matrix kernels share: src0 [n, k] times src1 [m, k].
func matrixArgs(src0, src1, dst []byte, k, n, m, rowBytes int) args {
	return args{"src0": src0, "src1": src1, "dst": dst, "ne00": k, "ne01": n, "ne02": 1, "nb00": 2, "nb01": rowBytes, "nb02": rowBytes * n, "nb03": rowBytes * n,
		"ne10": k, "ne11": m, "ne12": 1, "nb10": 4, "nb11": 4 * k, "nb12": 4 * k * m, "nb13": 4 * k * m, "ne0": n, "ne1": m, "r2": 1, "r3": 1}
}

// product is the oracle: want[j, i] = sum of w[i, :] * x[j, :], and the sum of the sizes of the terms.
func product(w []float64, x []float32, k, n, m int) (want []float64, scale float64) {
	for j := 0; j < m; j++ {
		for i := 0; i < n; i++ {
			var sum, size float64
			for c := 0; c < k; c++ {
				p := w[i*k+c] * float64(x[j*k+c])
				sum += p
				size += math.Abs(p)
			}
			want = append(want, sum)
			scale = math.Max(scale, size)
		}
	}
	return want, scale
}

func TestMulMatVec(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(5))
	for _, c := range []struct {
		format          string
		perGroup, x, y  uint
		blocks, rows, m int
	}{
		{"q4_0", 8, 8, 8, 1, 8, 1}, {"q4_0", 8, 8, 8, 64, 16, 2}, {"q4_1", 8, 8, 8, 5, 8, 1}, {"q5_0", 8, 8, 8, 40, 8, 3},
		{"q8_0", 8, 8, 8, 33, 16, 2}, {"q6_K", 2, 2, 32, 3, 10, 2},
	} {
		f := formatOf(t, c.format)
		k := c.blocks * f.block
		w := f.random(rng, c.blocks*c.rows)
		x := random(rng, k*c.m)
		dst := make([]byte, 4*c.rows*c.m)
		r.run("kernel_mul_mv_"+c.format+"_f32", matrixArgs(w, encode(x), dst, k, c.rows, c.m, c.blocks*f.bytes), 0,
			size((uint(c.rows)+c.perGroup-1)/c.perGroup, uint(c.m)), size(c.x, c.y))
		want, scale := product(f.all(w), x, k, c.rows, c.m)
		near(t, want, decode(dst), 2e-6, scale)
	}
}

// TestMulMat multiplies with simdgroup matrices: 64 rows by 32 columns per threadgroup, in half precision.
func TestMulMat(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewSource(6))
	for _, c := range []struct {
		format       string
		blocks, n, m int
	}{{"q4_0", 2, 64, 32}, {"q4_0", 3, 70, 37}, {"q8_0", 4, 33, 5}, {"q6_K", 1, 64, 33}} {
		f := formatOf(t, c.format)
		k := c.blocks * f.block
		w := f.random(rng, c.blocks*c.n)
		x := random(rng, k*c.m)
		dst := make([]byte, 4*c.n*c.m)
		r.run("kernel_mul_mm_"+c.format+"_f32", matrixArgs(w, encode(x), dst, k, c.n, c.m, c.blocks*f.bytes), 8192,
			size(uint(c.m+31)/32, uint(c.n+63)/64), size(128))
		want, scale := product(f.all(w), x, k, c.n, c.m)
		near(t, want, decode(dst), 1e-3, scale)
	}
}
