package quant

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/runtime/half"
)

// affineFormats are all combinations.
func affineFormats() (list []AffineFormat) {
	for _, bits := range []int{4, 6, 8} {
		for _, group := range []int{32, 64, 128, 256, 512} {
			for _, scale := range []ScaleType{ScaleF32, ScaleF16, ScaleBF16} {
				list = append(list, AffineFormat{bits, group, scale})
			}
		}
	}
	return list
}

func TestAffineFormat(t *testing.T) {
	for _, f := range affineFormats() {
		if err := f.Check(3, 1024); err != nil {
			t.Error(f, err)
		}
		weight, scales, err := f.Sizes(3, 1024)
		if err != nil || weight != 3*1024*f.Bits/8 || scales != 3*1024/f.GroupSize*f.Scale.Bytes() {
			t.Error(f, weight, scales, err)
		}
	}
	good := AffineFormat{6, 64, ScaleF16}
	for _, c := range []struct {
		f          AffineFormat
		rows, cols int
		part       string
	}{
		{AffineFormat{5, 64, ScaleF16}, 1, 64, "bits"}, {AffineFormat{0, 64, ScaleF16}, 1, 64, "bits"}, {AffineFormat{2, 64, ScaleF16}, 1, 64, "bits"}, {AffineFormat{16, 64, ScaleF16}, 1, 64, "bits"},
		{AffineFormat{6, 16, ScaleF16}, 1, 64, "group size"}, {AffineFormat{6, 96, ScaleF16}, 1, 96, "group size"}, {AffineFormat{6, 0, ScaleF16}, 1, 64, "group size"},
		{AffineFormat{6, 1024, ScaleF16}, 1, 1024, "group size"}, {AffineFormat{6, 64, 0}, 1, 64, "scale type"}, {AffineFormat{6, 64, 4}, 1, 64, "scale type"},
		{good, 0, 64, "rows"}, {good, -1, 64, "rows"}, {good, 1 << 31, 64, "rows"}, {good, 1, 0, "columns"}, {good, 1, 65, "columns"}, {good, 1, 1 << 31, "columns"},
		{good, 1<<31 - 1, 1<<31 - 64, "rows * columns"},
	} {
		refused(t, c.f.Check(c.rows, c.cols), "AffineFormat.Check", ErrShape, c.part)
		_, _, err := c.f.Sizes(c.rows, c.cols)
		refused(t, err, "AffineFormat.Sizes", ErrShape, c.part)
		refused(t, Affine{Format: c.f, Rows: c.rows, Cols: c.cols}.Validate(), "Affine.Validate", ErrShape, c.part)
		_, err = QuantizeAffine(nil, c.rows, c.cols, c.f)
		refused(t, err, "QuantizeAffine", ErrShape, c.part)
	}
	if good.String() != "6-bit codes in groups of 64, F16" || ScaleType(9).String() != "ScaleType(9)" || ScaleType(0).Bytes() != 0 || ScaleF32.String() != "F32" || ScaleBF16.String() != "BF16" {
		t.Error(good, ScaleType(9))
	}
}

// Bytes by hand: codes in streams of bits with the first in the lowest.
func TestPackBits(t *testing.T) {
	for _, c := range []struct {
		bits   int
		codes  []byte
		packed []byte
	}{
		{4, []byte{1, 2, 3, 4, 15, 0, 9, 8}, []byte{0x21, 0x43, 0x0f, 0x89}},
		{8, []byte{1, 2, 255, 128}, []byte{1, 2, 255, 128}},
		{6, []byte{0b000001, 0b100010, 0b010011, 0b110100}, []byte{0b10_000001, 0b0011_1000, 0b110100_01}},
		{6, []byte{63, 0, 63, 0, 0, 63, 0, 63}, []byte{0x3f, 0xf0, 0x03, 0xc0, 0x0f, 0xfc}},
		{6, nil, nil},
	} {
		packed, codes := make([]byte, len(c.packed)), make([]byte, len(c.codes))
		if err := PackBits(packed, c.codes, c.bits); err != nil || !bytes.Equal(packed, c.packed) {
			t.Errorf("%d bits: %x, want %x, %v", c.bits, packed, c.packed, err)
		}
		if err := UnpackBits(codes, c.packed, c.bits); err != nil || !bytes.Equal(codes, c.codes) {
			t.Errorf("%d bits: %v, want %v, %v", c.bits, codes, c.codes, err)
		}
	}
	four, six := make([]byte, 4), make([]byte, 6)
	for _, bits := range []int{-1, 0, 2, 5, 7, 16} {
		refused(t, PackBits(four, four, bits), "PackBits", ErrShape, "bits")
		refused(t, UnpackBits(four, four, bits), "UnpackBits", ErrShape, "bits")
	}
	refused(t, PackBits(make([]byte, 5), make([]byte, 8), 5), "PackBits", ErrShape, "5", "4, 6 or 8")
	refused(t, UnpackBits(make([]byte, 8), make([]byte, 5), 5), "UnpackBits", ErrShape, "5", "4, 6 or 8")
	refused(t, PackBits(four, six, 6), "PackBits", ErrShape, "4 bytes for 6 codes")
	refused(t, PackBits(four, four, 6), "PackBits", ErrShape, "4 bytes for 4 codes")
	refused(t, UnpackBits(six, four, 8), "UnpackBits", ErrShape)
	refused(t, UnpackBits(four, nil, 4), "UnpackBits", ErrShape)
	refused(t, PackBits(four[:2], []byte{1, 2, 16, 3}, 4), "PackBits", ErrValue, "16 at index 2", "0 to 15")
	refused(t, PackBits(four[:3], []byte{1, 2, 16, 64}, 6), "PackBits", ErrValue, "64 at index 3", "0 to 63")
}

func TestAffineQ4MLX(t *testing.T) {
	tensors := Affine{Format: AffineFormat{4, 32, ScaleBF16}, Rows: 2, Cols: 32,
		Weight: []byte{0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80},
		Scales: []byte{0x80, 0x3f, 0x00, 0x40}, Biases: []byte{0x80, 0xbf, 0x49, 0x40}}
	q, err := tensors.Q4MLX()
	if err != nil {
		t.Fatal(err)
	}
	dense, same := make([]float32, 64), make([]float32, 64)
	if err := errors.Join(q.Dequantize(dense), tensors.Dequantize(same)); err != nil {
		t.Fatal(err)
	}
	for i := range 16 { // codes 0 to 15, scale 1, bias -1
		if dense[i] != float32(i-1) {
			t.Errorf("weight %d: %v", i, dense[i])
		}
	}
	if dense[32] != 2+3.140625 || dense[33] != 3.140625 || dense[63] != 16+3.140625 || !slices.Equal(dense, same) {
		t.Error(dense[32:], same)
	}
	back, err := q.Affine()
	if err != nil || !equalAffine(back, tensors) {
		t.Error(back, err)
	}

	for part, change := range map[string]func(*Affine){
		"weight":        func(m *Affine) { m.Weight = m.Weight[1:] },
		"scales":        func(m *Affine) { m.Scales = nil },
		"biases":        func(m *Affine) { m.Biases = append([]byte{0}, m.Biases...) },
		"rows":          func(m *Affine) { m.Rows = 0 },
		"group size":    func(m *Affine) { m.Format.GroupSize = 33 },
		"NaN":           func(m *Affine) { m.Biases = []byte{0, 0, 0xc0, 0x7f} },
		"-Inf":          func(m *Affine) { m.Scales = []byte{0, 0, 0x80, 0xff} },
		"64 for 4 * 32": func(m *Affine) { m.Rows = 4 },
		"have 8-bit":    func(m *Affine) { m.Format.Bits, m.Weight = 8, make([]byte, 64) },
		"groups of 32, F16, need 4-bit codes with scales in BF16": func(m *Affine) { m.Format.Scale = ScaleF16 },
	} {
		bad := tensors
		change(&bad)
		if _, err := bad.Q4MLX(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	_, err = Q4MLX{}.Affine()
	refused(t, err, "Q4MLX.Affine", ErrShape)
	_, err = Q4MLX{Rows: 1, Cols: 32, GroupSize: 32, Packed: make([]uint32, 5), ScalesBiases: make([]half.BFloat16, 2)}.Affine()
	refused(t, err, "Q4MLX.Affine", ErrShape, "packed")
}

func equalAffine(a, b Affine) bool {
	return a.Format == b.Format && a.Rows == b.Rows && a.Cols == b.Cols && bytes.Equal(a.Weight, b.Weight) && bytes.Equal(a.Scales, b.Scales) && bytes.Equal(a.Biases, b.Biases)
}

// randomAffine has any codes, and scales and biases of all sizes that are finite.
func randomAffine(r *rand.Rand, f AffineFormat, rows, cols int) Affine {
	weight, scales, err := f.Sizes(rows, cols)
	if err != nil {
		panic(err)
	}
	a := Affine{f, rows, cols, make([]byte, weight), make([]byte, scales), make([]byte, scales)}
	for i := range a.Weight {
		a.Weight[i] = byte(r.Uint32())
	}
	for i := range scales / f.Scale.Bytes() {
		f.Scale.put(a.Scales, i, float32(r.NormFloat64()))
		f.Scale.put(a.Biases, i, float32(math.Ldexp(r.NormFloat64(), r.IntN(30)-20)))
	}
	return a
}

// Every weight is the formula's value, rounded once: worked out bit by bit and with as many digits as it takes.
func TestAffineDequantize(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for _, f := range affineFormats() {
		const rows, cols = 3, 1024
		a := randomAffine(r, f, rows, cols)
		got := make([]float32, rows*cols)
		if err := a.Dequantize(got); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			code := 0
			for b := range f.Bits {
				at := i*f.Bits + b
				code |= int(a.Weight[at/8]>>(at%8)&1) << b
			}
			g := i / f.GroupSize
			scale, bias := big.NewFloat(float64(f.Scale.at(a.Scales, g))).SetPrec(400), big.NewFloat(float64(f.Scale.at(a.Biases, g))).SetPrec(400)
			want, _ := scale.Add(scale.Mul(scale, big.NewFloat(float64(code))), bias).Float32()
			if got[i] != want {
				t.Fatalf("%v: weight %d: %v, want %v", f, i, got[i], want)
			}
		}
		refused(t, a.Dequantize(got[1:]), "Affine.Dequantize", ErrShape, "dst")
		part, err := a.RowRange(1, 3)
		if err != nil {
			t.Fatal(err)
		}
		some := make([]float32, 2*cols)
		if err := part.Dequantize(some); err != nil || !slices.Equal(some, got[cols:]) {
			t.Fatalf("%v: rows 1 and 2 are others, %v", f, err)
		}
		for _, bad := range [][2]int{{-1, 2}, {2, 2}, {1, 4}, {2, 1}} {
			_, err := a.RowRange(bad[0], bad[1])
			refused(t, err, "Affine.RowRange", ErrShape, "3 rows")
		}
		short := a
		short.Biases = short.Biases[1:]
		_, err = short.RowRange(0, 1)
		refused(t, err, "Affine.RowRange", ErrShape, "biases")
	}
	// Ties of float32 that the sum in float64 would miss: 130 * 16519105 is 2^31 + 2, 154 * 13944699 is 2^31 - 2, so that with 2^-55 they
	// are 2^-54 beside half a place of 1, which float64 does not hold.
	for _, c := range []struct{ scale, bias float32 }{{16519105 * 0x1p-55, 1}, {-16519105 * 0x1p-55, -1}, {13944699 * 0x1p-55, 1 + 0x1p-23}, {-13944699 * 0x1p-55, -1 - 0x1p-23},
		{1, 0x1p-60}, {1, -0x1p-60}, {0x1p-70, 1 + 0x1p-23}, {-0x1p-70, 1 + 0x1p-23}, {0x1p-24, 1}, {0x1.000002p-24, 1}, {0x1.fffffep-24, -1}, {0x1p127, -0x1p127}, {0, float32(math.Copysign(0, -1))}} {
		for _, code := range []byte{0, 1, 3, 15, 63, 130, 154, 255} {
			want, _ := new(big.Float).SetPrec(400).Add(new(big.Float).SetPrec(400).Mul(big.NewFloat(float64(c.scale)), big.NewFloat(float64(code))), big.NewFloat(float64(c.bias))).Float32()
			if got := affineWeight(c.scale, code, c.bias); got != want {
				t.Errorf("%g * %d + %g: %g, want %g", c.scale, code, c.bias, got, want)
			}
		}
	}
}

// FuzzAffine: whatever bytes come, there is an error or a valid matrix, whose other forms convert back to the same bytes.
func FuzzAffine(f *testing.F) {
	f.Add(4, 1, 32, 32, 3, make([]byte, 16), make([]byte, 2), make([]byte, 2))
	f.Add(4, 64, 64, 64, 3, bytes.Repeat([]byte{0xa5}, 2048), bytes.Repeat([]byte{0x80, 0x3f}, 64), bytes.Repeat([]byte{1, 2}, 64))
	f.Add(6, 1, 32, 32, 2, make([]byte, 24), []byte{0, 0x7c}, make([]byte, 2))
	f.Add(6, 2, 64, 64, 1, bytes.Repeat([]byte{0x5a}, 96), []byte{1, 2, 3, 4, 5, 6, 7, 8}, make([]byte, 8))
	f.Add(8, 1, 32, 32, 1, make([]byte, 32), []byte{0, 0, 0xc0, 0x7f}, make([]byte, 4))
	f.Add(-1, 0, 0, 7, 0, []byte(nil), []byte(nil), []byte(nil))
	f.Add(8, 1<<31, 1<<31, 512, 1, []byte{1}, []byte{2}, []byte{3})
	f.Fuzz(func(t *testing.T, bits, rows, cols, group, scale int, weight, scales, biases []byte) {
		a := Affine{AffineFormat{bits, group, ScaleType(scale)}, rows, cols, weight, scales, biases}
		err := a.Validate()
		codes, unpacked := a.Unpack()
		if (err == nil) != (unpacked == nil) {
			t.Fatal(err, unpacked)
		}
		q, q4 := a.Q4MLX()
		plane, tiled := a.Plane()
		if err != nil {
			if q4 == nil || tiled == nil || a.Dequantize(nil) == nil {
				t.Fatal("an invalid matrix was converted")
			}
			return
		}
		if err := codes.Validate(); err != nil {
			t.Fatal(err)
		}
		dense := make([]float32, rows*cols)
		if err := a.Dequantize(dense); err != nil {
			t.Fatal(err)
		}
		back, err := codes.Pack(bits)
		if err != nil || !bytes.Equal(back.Weight, weight) {
			t.Fatal("codes came back changed", err)
		}
		if q4 == nil {
			if back, err := q.Affine(); err != nil || !equalAffine(back, a) {
				t.Fatal("the interleaved form came back changed", err)
			}
		}
		if tiled == nil {
			if back, err := plane.Affine(); err != nil || !equalAffine(back, a) {
				t.Fatal("the tiles came back changed", err)
			}
		}
	})
}

// safetensors reads a file of tensors: just enough for a test, on files that are known to be well formed.
func safetensors(t *testing.T, path string) func(name string) (shape []int, data []byte) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(file)
	var header map[string]struct {
		Shape   []int
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(bytes.Replace(file[8:8+n], []byte(`{"format":`), []byte(`{"_":`), 1), &header); err != nil {
		t.Fatal(err)
	}
	return func(name string) ([]int, []byte) {
		h, ok := header[name]
		if !ok {
			t.Fatalf("no tensor %s in %s", name, path)
		}
		return h.Shape, file[8+n:][h.Offsets[0]:h.Offsets[1]]
	}
}

// A model quantised by another program with MLX's rule, from weights that we have: ours must give the same bits.
func TestAgainstQuantizedModel(t *testing.T) {
	full := safetensors(t, testenv.Shared(t, "data/tiny-gemma3/model.safetensors"))
	small := safetensors(t, testenv.Shared(t, "data/tiny-gemma3-q4/model.safetensors"))
	codes, differ, scales := 0, 0, 0
	for _, name := range []string{"embed_tokens", "layers.0.mlp.down_proj", "layers.2.mlp.gate_proj", "layers.5.mlp.up_proj",
		"layers.1.self_attn.q_proj", "layers.3.self_attn.k_proj", "layers.4.self_attn.v_proj", "layers.5.self_attn.o_proj"} {
		shape, data := full("model." + name + ".weight")
		_, weight := small("model." + name + ".weight")
		_, sc := small("model." + name + ".scales")
		_, bi := small("model." + name + ".biases")
		want, err := Affine{AffineFormat{4, 64, ScaleBF16}, shape[0], shape[1], weight, sc, bi}.Q4MLX()
		if err != nil {
			t.Fatal(name, err)
		}
		w := make([]float32, len(data)/2)
		for i := range w {
			w[i] = half.BFloat16(binary.LittleEndian.Uint16(data[2*i:])).Float32()
		}
		got, err := QuantizeQ4MLX(w, shape[0], shape[1], 64)
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range want.ScalesBiases {
			if want.ScalesBiases[i] != got.ScalesBiases[i] {
				scales++
			}
		}
		a, b := make([]byte, len(w)), make([]byte, len(w))
		if UnpackCodes(a, want.Packed) != nil || UnpackCodes(b, got.Packed) != nil {
			t.Fatal("unpacking")
		}
		codes += len(a)
		for i := range a {
			if a[i] != b[i] {
				differ++
			}
		}
	}
	t.Logf("%d codes, %d differ; %d scales or biases differ", codes, differ, scales)
	if differ > 0 || scales > 0 {
		t.Errorf("%d of %d codes and %d scales or biases differ", differ, codes, scales)
	}
}

// The rounding of codes, for every format: no weight is off by more than the formula's bound, and packed forms agree.
func TestQuantizeAffine(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, f := range affineFormats() {
		const rows, cols = 3, 1024
		w := random(r, rows*cols, math.Exp2(float64(r.IntN(12)-6)))
		for i := range 512 { // a constant group, one of zeros, one of a sign
			w[i], w[cols+i], w[2*cols+i] = 0.75, 0, abs32(w[2*cols+i])
		}
		a, err := QuantizeAffine(w, rows, cols, f)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Validate(); err != nil {
			t.Fatal(f, err)
		}
		got := make([]float32, len(w))
		if err := a.Dequantize(got); err != nil {
			t.Fatal(err)
		}
		ulp := map[ScaleType]float64{ScaleF32: 0x1p-24, ScaleF16: 0x1p-11, ScaleBF16: 0x1p-8}[f.Scale]
		for i := range w {
			g := i / f.GroupSize
			group := w[g*f.GroupSize : (g+1)*f.GroupSize]
			least, most := float64(slices.Min(group)), float64(slices.Max(group))
			step, edge := (most-least)/float64(int(1)<<f.Bits-1), max(math.Abs(least), math.Abs(most))
			// edge / q0 differs from the step by at most half of it over q0 steps, which the far end may miss.
			allowed := 0.5*step*(1+1/float64(int(1)<<f.Bits)) + step + edge*ulp*(1+float64(int(1)<<f.Bits)*step/max(edge, 1e-30)) + 1e-7
			if e := math.Abs(float64(got[i]) - float64(w[i])); e > allowed {
				t.Fatalf("%v: weight %d: %v for %v, %g of %g", f, i, got[i], w[i], e, allowed)
			}
		}
		if f.Bits == 4 && f.Scale == ScaleBF16 {
			q, err := QuantizeQ4MLX(w, rows, cols, f.GroupSize)
			if err != nil {
				t.Fatal(err)
			}
			other, err := a.Q4MLX()
			if err != nil {
				t.Fatal(err)
			}
			same(t, q, other)
		}
	}
	f := AffineFormat{8, 32, ScaleF16}
	w := make([]float32, 64)
	w[40] = 1e6
	_, err := QuantizeAffine(w, 1, 64, f)
	refused(t, err, "QuantizeAffine", ErrValue, "index 32", "F16", "65504")
	w[40] = float32(math.NaN())
	_, err = QuantizeAffine(w, 1, 64, f)
	refused(t, err, "QuantizeAffine", ErrValue, "NaN at index 40")
	_, err = QuantizeAffine(w, 2, 64, f)
	refused(t, err, "QuantizeAffine", ErrShape, "64 numbers", "2 * 64")
}

func TestQ4MLXRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, s := range shapes {
		q, err := QuantizeQ4MLX(random(r, s[0]*s[1], 1), s[0], s[1], s[2])
		if err != nil {
			t.Fatal(err)
		}
		m, err := q.Affine()
		if err != nil {
			t.Fatal(err)
		}
		back, err := m.Q4MLX()
		if err != nil {
			t.Fatal(err)
		}
		same(t, q, back)
	}
}
