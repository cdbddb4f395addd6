package quant_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime/half"
)

func TestBlockSizes(t *testing.T) {
	want := map[string][2]int{"Q4_0": {32, 18}, "Q5_0": {32, 22}, "Q8_0": {32, 34}, "IQ4_NL": {32, 18}, "Q4_K": {256, 144},
		"Q5_K": {256, 176}, "Q6_K": {256, 210}}
	got := map[string][2]int{}
	for _, f := range quant.BlockFormats() {
		got[f.String()] = [2]int{f.Values(), f.Bytes()}
		n, err := f.Size(3 * f.Values())
		require.NoError(t, err)
		require.Equal(t, 3*f.Bytes(), n)
		n, err = f.Size(0)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	require.Equal(t, want, got)
}

// TestBlockDecodeByHand has blocks whose weights were worked out by hand from the definitions.
func TestBlockDecodeByHand(t *testing.T) {
	one, two := "003c", "0040" // float16
	zeros := func(n int) string { return strings.Repeat("00", n) }
	for _, c := range []struct {
		f     quant.BlockFormat
		block string
		want  map[int]float32 // the others are rest
		rest  float32
	}{
		// The low half of a byte is a weight of the first sixteen, the high half one of the last.
		{quant.BlockQ4_0, two + "f0" + zeros(14) + "08", map[int]float32{16: 14, 15: 0}, -16},
		// The fifth bits are those of a 32-bit number: of weights 0, 17 and 31.
		{quant.BlockQ5_0, one + "01000280" + "01" + zeros(15), map[int]float32{0: 1, 17: 0, 31: 0}, -16},
		{quant.BlockQ8_0, two + "7f" + "80" + zeros(30), map[int]float32{0: 254, 1: -256}, 0},
		{quant.BlockIQ4_NL, one + "8f" + zeros(15), map[int]float32{0: 113, 16: 1}, -127},
		// Scale 0 is 63, scale 7 is 0x21: its low bits are in byte 11, its high ones on top of byte 3. Offset 0 is 2, offset 7 is 0x13.
		{quant.BlockQ4_K, one + two + "3f000080" + "02000040" + "00000031" + "0f" + zeros(127),
			map[int]float32{0: 63*15 - 4}, math.MaxFloat32},
		{quant.BlockQ6_K, "21" + zeros(127) + "31" + zeros(63) + "02" + zeros(15) + one,
			// weight 0: low 1, high 1; 32: low 0, high 0; 64: low 2, high 3; 96: low 0, high 0
			map[int]float32{0: 2 * (17 - 32)}, math.MaxFloat32},
	} {
		b, err := hex.DecodeString(c.block)
		require.NoError(t, err, c.f)
		got := make([]float32, c.f.Values())
		require.NoError(t, c.f.Decode(got, b), c.f)
		for i, v := range got {
			want, ok := c.want[i]
			if !ok {
				want = c.rest
			}
			if ok || want != math.MaxFloat32 {
				require.Equal(t, want, v, "%v: weight %d", c.f, i)
			}
		}
	}
}

// kBlock is a block in a K format from its parts, built bit by bit from the definition, and its weights.
func kBlock(rng *rand.Rand, bits int) (block []byte, want []float64) {
	d, dmin := half.Float16FromFloat32(rng.Float32()+0.01), half.Float16FromFloat32(rng.Float32()+0.01)
	block = binary.LittleEndian.AppendUint16(nil, uint16(d))
	block = binary.LittleEndian.AppendUint16(block, uint16(dmin))
	packed, high, codes := make([]byte, 12), make([]byte, 32), make([]byte, 128)
	want = make([]float64, 256)
	bit := func(b []byte, at, value int) { b[at/8] |= byte(value&1) << (at % 8) }
	for j := range 8 {
		scale, offset := rng.IntN(64), rng.IntN(64)
		for k := range 6 {
			switch {
			case j < 4:
				bit(packed, 8*j+k, scale>>k)
				bit(packed, 8*(j+4)+k, offset>>k)
			case k < 4:
				bit(packed, 8*(j+4)+k, scale>>k)
				bit(packed, 8*(j+4)+4+k, offset>>k)
			default:
				bit(packed, 8*(j-4)+6+k-4, scale>>k)
				bit(packed, 8*j+6+k-4, offset>>k)
			}
		}
		for i := range 32 {
			q := rng.IntN(1 << bits)
			for k := range 4 {
				bit(codes, 8*(32*(j/2)+i)+4*(j%2)+k, q>>k)
			}
			bit(high, 8*i+j, q>>4)
			want[32*j+i] = float64(d.Float32())*float64(scale)*float64(q) - float64(dmin.Float32())*float64(offset)
		}
	}
	block = append(block, packed...)
	if bits == 5 {
		block = append(block, high...)
	}
	return append(block, codes...), want
}

func q6Block(rng *rand.Rand) (block []byte, want []float64) {
	d := half.Float16FromFloat32(rng.Float32() + 0.01)
	low, high, scales := make([]byte, 128), make([]byte, 64), make([]byte, 16)
	for i := range scales {
		scales[i] = byte(rng.IntN(256))
	}
	for i := range 256 {
		q := rng.IntN(64)
		in, part := i%32, i/128
		switch i / 32 % 4 {
		case 0:
			low[64*part+in] |= byte(q & 15)
			high[32*part+in] |= byte(q >> 4)
		case 1:
			low[64*part+32+in] |= byte(q & 15)
			high[32*part+in] |= byte(q>>4) << 2
		case 2:
			low[64*part+in] |= byte(q&15) << 4
			high[32*part+in] |= byte(q>>4) << 4
		case 3:
			low[64*part+32+in] |= byte(q&15) << 4
			high[32*part+in] |= byte(q>>4) << 6
		}
		want = append(want, float64(d.Float32())*float64(int8(scales[i/16]))*float64(q-32))
	}
	block = append(append(append(block, low...), high...), scales...)
	return binary.LittleEndian.AppendUint16(block, uint16(d)), want
}

func TestBlockDecodeKFormats(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		for f, build := range map[quant.BlockFormat]func() ([]byte, []float64){
			quant.BlockQ4_K: func() ([]byte, []float64) { return kBlock(rng, 4) },
			quant.BlockQ5_K: func() ([]byte, []float64) { return kBlock(rng, 5) },
			quant.BlockQ6_K: func() ([]byte, []float64) { return q6Block(rng) },
		} {
			block, want := build()
			require.Len(t, block, f.Bytes())
			got := make([]float32, 256)
			require.NoError(t, f.Decode(got, block))
			for i, v := range want {
				require.Equal(t, float32(v), got[i], "%v: weight %d", f, i)
			}
		}
	}
}

// blockErrors limit the root mean square of the error over that of the weights, which are normally distributed. Even steps
// leave 1/sqrt(12) of a step. A step is the greatest of 32 weights (2.2 deviations) over 8, 16 or 127: 0.079, 0.040, 0.0050; in
// Q4_K and Q5_K the range of 32 (4.2) over 15 or 31: 0.081, 0.039; in Q6_K the greatest of 16 (1.9) over 32: 0.017. Up to a
// fifth is added for the spread of that range, the clipped end and stored scales; the search of the K formats makes up for it. IQ4_NL
// must be better than Q4_0 is.
var blockErrors = map[quant.BlockFormat]float64{quant.BlockQ4_0: 0.095, quant.BlockQ5_0: 0.046, quant.BlockQ8_0: 0.0059, quant.BlockIQ4_NL: 0.08,
	quant.BlockQ4_K: 0.081, quant.BlockQ5_K: 0.039, quant.BlockQ6_K: 0.018}

func TestBlockEncode(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, f := range quant.BlockFormats() {
		n := 64 * 256
		w, got := make([]float32, n), make([]float32, n)
		for i := range w {
			w[i] = float32(rng.NormFloat64() * 0.02)
		}
		size, err := f.Size(n)
		require.NoError(t, err)
		b := make([]byte, size)
		require.NoError(t, f.Encode(b, w))
		require.NoError(t, f.Decode(got, b))
		var sum, all float64
		for i := range w {
			e := float64(got[i]) - float64(w[i])
			sum, all = sum+e*e, all+float64(w[i])*float64(w[i])
		}
		rel := math.Sqrt(sum / all)
		t.Logf("%v: %d weights, relative error %.5f", f, n, rel)
		require.Less(t, rel, blockErrors[f], f)

	}
}

// TestBlockCodesAreNearest changes each code of a block in turn: no other has less of an error.
func TestBlockCodesAreNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for f, codes := range map[quant.BlockFormat][2]int{quant.BlockQ4_0: {2, 18}, quant.BlockQ5_0: {6, 22}, quant.BlockQ8_0: {2, 34},
		quant.BlockIQ4_NL: {2, 18}, quant.BlockQ4_K: {16, 144}, quant.BlockQ5_K: {48, 176}, quant.BlockQ6_K: {0, 128}} {
		w, got, b := make([]float32, f.Values()), make([]float32, f.Values()), make([]byte, f.Bytes())
		for i := range w {
			w[i] = float32(rng.NormFloat64())
		}
		require.NoError(t, f.Encode(b, w))
		square := func() (sum float64) {
			require.NoError(t, f.Decode(got, b))
			for i := range w {
				e := float64(got[i]) - float64(w[i])
				sum += e * e
			}
			return
		}
		least := square()
		for i := codes[0]; i < codes[1]; i++ {
			was := b[i]
			for other := range 16 {
				for _, b[i] = range []byte{was&0xf0 | byte(other), was&15 | byte(other)<<4} {
					require.GreaterOrEqual(t, square(), least-1e-6, "%v: byte %d as %#x", f, i, b[i])
				}
			}
			b[i] = was
		}
	}
}

// TestBlockEncodeExact has weights that the formats hold exactly: they come back as they were.
func TestBlockEncodeExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for f, build := range map[quant.BlockFormat]func() []float32{
		quant.BlockQ4_0: func() []float32 { return codesOf(rng, 32, 0.25, -8, 7) },
		quant.BlockQ5_0: func() []float32 { return codesOf(rng, 32, 0.25, -16, 15) },
		quant.BlockQ8_0: func() []float32 { return codesOf(rng, 32, 0.25, -127, 127) },
		quant.BlockIQ4_NL: func() []float32 {
			w := make([]float32, 32)
			for i := range w {
				w[i] = 0.5 * []float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}[rng.IntN(16)]
			}
			w[3], w[4] = -63.5, 0.5*113
			return w
		},
		quant.BlockQ6_K: func() []float32 {
			var w []float32
			for range 16 {
				w = append(w, codesOf(rng, 16, 0.5, -32, 31)...)
			}
			return w
		},
		quant.BlockQ4_K: func() []float32 {
			var w []float32
			for range 8 {
				v := codesOf(rng, 32, 0.5, -8, 7)
				v[0], v[1] = -4, 3.5
				w = append(w, v...)
			}
			return w
		},
	} {
		for range 20 {
			w := build()
			b, got := make([]byte, f.Bytes()), make([]float32, len(w))
			require.NoError(t, f.Encode(b, w))
			require.NoError(t, f.Decode(got, b))
			if f == quant.BlockQ4_K { // the scales are sixty-thirds of a float16
				require.InDeltaSlice(t, w, got, 0.01)
				continue
			}
			require.Equal(t, w, got, f)
		}
	}
}

// codesOf are n weights d times low .. high, with both ends among them.
func codesOf(rng *rand.Rand, n int, d float32, low, high int) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = d * float32(low+rng.IntN(high-low+1))
	}
	i := rng.IntN(n - 1)
	w[i], w[i+1] = d*float32(low), d*float32(high)
	return w
}

func TestBlockEncodeExtremes(t *testing.T) {
	for _, f := range quant.BlockFormats() {
		b, got := make([]byte, f.Bytes()), make([]float32, f.Values())
		w := make([]float32, f.Values())
		for i := range b {
			b[i] = 0xff // what was there before does not matter
		}
		require.NoError(t, f.Encode(b, w))
		require.NoError(t, f.Decode(got, b))
		for i, v := range got {
			require.Zero(t, v, "%v: weight %d of zeros", f, i)
		}
		for _, v := range []float32{1, -1, 300, -0.05} { // whose scales are not subnormal
			for i := range w {
				w[i] = v
			}
			require.NoError(t, f.Encode(b, w))
			require.NoError(t, f.Decode(got, b))
			for i := range got {
				require.InEpsilon(t, v, got[i], 0.02, "%v: weight %d of a constant %g", f, i, v)
			}
		}
		for i := range w {
			w[i] = 1e-12 // scales below float16
		}
		require.NoError(t, f.Encode(b, w))
		require.NoError(t, f.Decode(got, b))
		for _, v := range got {
			require.Zero(t, v)
		}
		w[5] = math.MaxFloat32
		require.ErrorIs(t, f.Encode(b, w), quant.ErrValue, f)
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
			w[5] = bad
			err := f.Encode(b, w)
			require.ErrorIs(t, err, quant.ErrValue, f)
			require.ErrorContains(t, err, "index 5")
		}
	}
}

func TestBlockErrors(t *testing.T) {
	none := quant.BlockFormat(0)
	require.Equal(t, "BlockFormat(0)", none.String())
	require.Equal(t, "BlockFormat(99)", quant.BlockFormat(99).String())
	require.Zero(t, none.Values())
	require.Zero(t, quant.BlockFormat(8).Bytes())
	for _, bad := range []quant.BlockFormat{0, 8, 255} {
		_, err := bad.Size(32)
		require.ErrorIs(t, err, quant.ErrValue)
		require.ErrorIs(t, bad.Decode(nil, nil), quant.ErrValue)
		require.ErrorIs(t, bad.Encode(nil, nil), quant.ErrValue)
	}
	for _, f := range quant.BlockFormats() {
		for _, n := range []int{-f.Values(), 1, f.Values() - 1, f.Values() + 1} {
			_, err := f.Size(n)
			require.ErrorIs(t, err, quant.ErrShape)
		}
		if f.Values() < f.Bytes() { // what takes more bytes than there are weights may not fit
			_, err := f.Size(math.MaxInt / 256 * 256)
			require.ErrorIs(t, err, quant.ErrShape)
		}
		w := make([]float32, 2*f.Values())
		for _, n := range []int{0, f.Bytes(), 2*f.Bytes() - 1, 2*f.Bytes() + 1} {
			require.ErrorIs(t, f.Decode(w, make([]byte, n)), quant.ErrShape)
			require.ErrorIs(t, f.Encode(make([]byte, n), w), quant.ErrShape)
		}
		require.ErrorIs(t, f.Decode(w[1:], make([]byte, 2*f.Bytes())), quant.ErrShape)
		var e *quant.Error
		require.True(t, errors.As(f.Encode(nil, w[1:]), &e))
		require.Equal(t, "BlockFormat.Encode", e.Func)
		require.NoError(t, f.Decode(nil, nil))
		require.NoError(t, f.Encode(nil, nil))
	}
}

func TestBlockDecodeAllocatesNothing(t *testing.T) {
	for _, f := range quant.BlockFormats() {
		w, b := make([]float32, 4*f.Values()), make([]byte, 4*f.Bytes())
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if f.Decode(w, b) != nil {
				panic("refused")
			}
		}), f)
	}
}

// FuzzBlockDecode decodes any bytes: weights are finite if the scales are, and what can be encoded again decodes to something.
func FuzzBlockDecode(f *testing.F) {
	for i := range quant.BlockFormats() {
		f.Add(uint8(i), []byte("some bytes that are a block or two of weights in one of the smaller formats"))
		f.Add(uint8(i), make([]byte, 210))
	}
	f.Fuzz(func(t *testing.T, i uint8, b []byte) {
		format := quant.BlockFormats()[int(i)%len(quant.BlockFormats())]
		n := len(b) / format.Bytes()
		w := make([]float32, n*format.Values())
		require.NoError(t, format.Decode(w, b[:n*format.Bytes()]))
		again := make([]byte, n*format.Bytes())
		if err := format.Encode(again, w); err != nil {
			require.ErrorIs(t, err, quant.ErrValue)
			return
		}
		require.NoError(t, format.Decode(w, again))
		for _, v := range w {
			require.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0))
		}
	})
}

func BenchmarkBlockDecode(b *testing.B) {
	for _, f := range quant.BlockFormats() {
		b.Run(f.String(), func(b *testing.B) {
			w := make([]float32, 4096)
			src := make([]byte, 4096/f.Values()*f.Bytes())
			b.SetBytes(4 * 4096)
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Decode(w, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
