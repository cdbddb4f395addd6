package quant

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/runtime/half"
)

func TestFromMLX(t *testing.T) {
	tensors := MLXTensors{Rows: 2, Cols: 32, GroupSize: 32,
		Weight: []byte{0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80},
		Scales: []byte{0x80, 0x3f, 0x00, 0x40}, Biases: []byte{0x80, 0xbf, 0x49, 0x40}}
	q, err := FromMLX(tensors)
	if err != nil {
		t.Fatal(err)
	}
	dense := make([]float32, 64)
	if err := q.Dequantize(dense); err != nil {
		t.Fatal(err)
	}
	for i := range 16 { // codes 0 to 15, scale 1, bias -1
		if dense[i] != float32(i-1) {
			t.Errorf("weight %d: %v", i, dense[i])
		}
	}
	if dense[32] != 2+3.140625 || dense[33] != 3.140625 || dense[63] != 16+3.140625 {
		t.Error(dense[32:])
	}
	back, err := q.MLX()
	if err != nil || !bytes.Equal(back.Weight, tensors.Weight) || !bytes.Equal(back.Scales, tensors.Scales) || !bytes.Equal(back.Biases, tensors.Biases) {
		t.Error(back, err)
	}

	for part, change := range map[string]func(*MLXTensors){
		"weight":       func(m *MLXTensors) { m.Weight = m.Weight[1:] },
		"scales":       func(m *MLXTensors) { m.Scales = nil },
		"biases":       func(m *MLXTensors) { m.Biases = append([]byte{0}, m.Biases...) },
		"rows":         func(m *MLXTensors) { m.Rows = 0 },
		"group size":   func(m *MLXTensors) { m.GroupSize = 33 },
		"NaN":          func(m *MLXTensors) { m.Biases = []byte{0, 0, 0xc0, 0x7f} },
		"-Inf":         func(m *MLXTensors) { m.Scales = []byte{0, 0, 0x80, 0xff} },
		"need 64: U32": func(m *MLXTensors) { m.Rows = 4 },
	} {
		bad := tensors
		change(&bad)
		if _, err := FromMLX(bad); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	_, err = Q4MLX{}.MLX()
	refused(t, err, "Q4MLX.MLX", ErrShape)
}

// FuzzFromMLX: whatever bytes come, there is an error or a valid matrix that converts back to the same bytes.
func FuzzFromMLX(f *testing.F) {
	f.Add(1, 32, 32, make([]byte, 16), make([]byte, 2), make([]byte, 2))
	f.Add(2, 64, 64, bytes.Repeat([]byte{0xa5}, 64), []byte{0x80, 0x3f, 0, 0xc0}, []byte{1, 2, 3, 4})
	f.Add(1, 32, 32, make([]byte, 16), []byte{0xc0, 0x7f}, make([]byte, 2))
	f.Add(-1, 0, 7, []byte(nil), []byte(nil), []byte(nil))
	f.Add(1<<31, 1<<31, 512, []byte{1}, []byte{2}, []byte{3})
	f.Fuzz(func(t *testing.T, rows, cols, group int, weight, scales, biases []byte) {
		q, err := FromMLX(MLXTensors{rows, cols, group, weight, scales, biases})
		if err != nil {
			return
		}
		if err := q.Validate(); err != nil {
			t.Fatal(err)
		}
		back, err := q.MLX()
		if err != nil || !bytes.Equal(back.Weight, weight) || !bytes.Equal(back.Scales, scales) || !bytes.Equal(back.Biases, biases) {
			t.Fatal("the bytes came back changed", err)
		}
		codes, words := make([]byte, CodesPerWord*len(q.Packed)), make([]uint32, len(q.Packed))
		if err := UnpackCodes(codes, q.Packed); err != nil {
			t.Fatal(err)
		}
		if err := PackCodes(words, codes); err != nil {
			t.Fatal(err)
		}
		for i := range words {
			if words[i] != q.Packed[i] {
				t.Fatal("codes came back changed")
			}
		}
		y := make([]float64, rows)
		if err := q.MulVec(y, make([]half.BFloat16, cols)); err != nil {
			t.Fatal(err)
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
		want, err := FromMLX(MLXTensors{shape[0], shape[1], 64, weight, sc, bi})
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

func TestMLXRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, s := range shapes {
		q, err := QuantizeQ4MLX(random(r, s[0]*s[1], 1), s[0], s[1], s[2])
		if err != nil {
			t.Fatal(err)
		}
		m, err := q.MLX()
		if err != nil {
			t.Fatal(err)
		}
		back, err := FromMLX(m)
		if err != nil {
			t.Fatal(err)
		}
		same(t, q, back)
	}
}
