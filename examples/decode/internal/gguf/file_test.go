package gguf

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/examples/decode/internal/gguf/gguftest"
)

func example() *gguftest.File {
	return &gguftest.File{
		Keys: []gguftest.Key{
			{Name: "u8", Value: uint8(200)}, {Name: "i8", Value: int8(-3)}, {Name: "u16", Value: uint16(65000)}, {Name: "i16", Value: int16(-300)},
			{Name: "u32", Value: uint32(4e9)}, {Name: "i32", Value: int32(-7)}, {Name: "u64", Value: uint64(1) << 62}, {Name: "i64", Value: int64(-1) << 60},
			{Name: "f32", Value: float32(0.5)}, {Name: "f64", Value: 0.1}, {Name: "yes", Value: true}, {Name: "text", Value: " a\n"}, {Name: "none", Value: ""},
			{Name: "ints", Value: []int32{1, -2, 3}}, {Name: "bytes", Value: []uint8{1, 255}}, {Name: "floats", Value: []float32{1, 2.5}},
			{Name: "texts", Value: []string{"", " ", "\n\n", "▁x"}}, {Name: "flags", Value: []bool{true, false}}, {Name: "empty", Value: []string{}},
		},
		Tensors: []gguftest.Tensor{
			{Name: "vector", Type: 0, Dims: []uint64{3}, Data: []byte("0123456789ab")},
			{Name: "matrix", Type: 8, Dims: []uint64{32, 2}, Data: bytes.Repeat([]byte{7}, 68)},
			{Name: "cube", Type: 30, Dims: []uint64{2, 1, 3}, Data: bytes.Repeat([]byte{9}, 12)},
		},
	}
}

func read(data []byte) (*File, error) {
	return Read("x.gguf", bytes.NewReader(data), int64(len(data)))
}

func TestRead(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		for _, alignment := range []int{0, 8, 256} {
			file := example()
			file.Version, file.Alignment = version, alignment
			if alignment > 0 {
				file.Set("general.alignment", uint32(alignment))
			}
			f, err := read(file.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			checkExample(t, f)
		}
	}
}

func checkExample(t *testing.T, f *File) {
	t.Helper()
	for key, want := range map[string]int64{"u8": 200, "i8": -3, "u16": 65000, "i16": -300, "u32": 4e9, "i32": -7, "u64": 1 << 62, "i64": -1 << 60} {
		if v, ok, err := f.Int(key); v != want || !ok || err != nil {
			t.Errorf("%s: %v %v %v", key, v, ok, err)
		}
	}
	if v, ok, err := f.Float("f32"); v != 0.5 || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if v, ok, err := f.Float("f64"); v != 0.1 || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if v, ok, err := f.Bool("yes"); !v || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if v, ok, err := f.String("text"); v != " a\n" || !ok || err != nil {
		t.Errorf("%q %v %v", v, ok, err)
	}
	if v, ok, err := f.Strings("texts"); !reflect.DeepEqual(v, []string{"", " ", "\n\n", "▁x"}) || !ok || err != nil {
		t.Errorf("%q %v %v", v, ok, err)
	}
	if v, ok, err := f.Ints("ints"); !reflect.DeepEqual(v, []int64{1, -2, 3}) || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if v, ok, err := f.Ints("bytes"); !reflect.DeepEqual(v, []int64{1, 255}) || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if v, ok, err := f.Floats("floats"); !reflect.DeepEqual(v, []float64{1, 2.5}) || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if v, ok, err := f.Bools("flags"); !reflect.DeepEqual(v, []bool{true, false}) || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if v, ok, err := f.Strings("empty"); len(v) != 0 || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if _, ok, err := f.Int("nothing"); ok || err != nil {
		t.Error(ok, err)
	}
	for key, want := range map[string]string{"text": `x.gguf: text is " a\n", needed is an integer`, "ints": "ints is an array of integers", "texts": "an array of strings",
		"flags": "an array of truth values", "floats": "an array of floating point numbers", "f64": "f64 is 0.1, needed is an integer", "yes": "yes is true"} {
		if _, ok, err := f.Int(key); ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if names := f.Names(); !reflect.DeepEqual(names, []string{"cube", "matrix", "vector"}) {
		t.Error(names)
	}
	for name, want := range map[string]struct {
		kind  string
		shape []int64
		first byte
		size  int
	}{"vector": {"F32", []int64{3}, '0', 12}, "matrix": {"Q8_0", []int64{2, 32}, 7, 68}, "cube": {"BF16", []int64{3, 1, 2}, 9, 12}} {
		tensor, ok := f.Tensor(name)
		if !ok || tensor.Type.String() != want.kind || !reflect.DeepEqual(tensor.Shape, want.shape) {
			t.Error(name, tensor, ok)
		}
		if data, err := f.Read(tensor); err != nil || len(data) != want.size || data[0] != want.first {
			t.Error(name, data, err)
		}
	}
	if len(f.Keys()) < 19 {
		t.Error(f.Keys())
	}
	if _, err := f.Read(Tensor{Name: "vector", Size: 1 << 40}); err == nil {
		t.Error("a tensor that is not there was read")
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gguf")
	data := example().Bytes()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	checkExample(t, f)
	tensor, _ := f.Tensor("cube")
	if err := os.Truncate(path, int64(len(data)-5)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(tensor); err == nil || !strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error()) {
		t.Errorf("a file that shrank: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{path + "x": "no such file", filepath.Dir(path): "not a regular file", path: `x.gguf: truncated: tensor "cube"`} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func number(n uint64) *uint64 { return &n }

func TestReadRefuses(t *testing.T) {
	tensor := func(change func(*gguftest.Tensor)) func(*gguftest.File) {
		return func(f *gguftest.File) { change(&f.Tensors[1]) }
	}
	set := func(key string, value any) func(*gguftest.File) {
		return func(f *gguftest.File) { f.Set(key, value) }
	}
	for _, c := range []struct {
		change func(f *gguftest.File)
		want   string
	}{
		{func(f *gguftest.File) { f.Magic = "GGML" }, `it begins with "GGML"`},
		{func(f *gguftest.File) { f.Version = 1 }, "version is 1"},
		{func(f *gguftest.File) { f.Version = 4 }, "version is 4"},
		{func(f *gguftest.File) { f.Version = 3 << 24 }, "big-endian"},
		{func(f *gguftest.File) { f.KeyCount = number(1 << 40) }, "the number of keys is 1099511627776, the limit is"},
		{func(f *gguftest.File) { f.KeyCount = number(math.MaxUint64) }, "the number of keys is 18446744073709551615"},
		{func(f *gguftest.File) { f.KeyCount = number(60000) }, "the number of keys is 60000, which the"},
		{func(f *gguftest.File) { f.TensorCount = number(1 << 63) }, "the number of tensors is 9223372036854775808"},
		{func(f *gguftest.File) { f.TensorCount = number(1 << 20) }, "the number of tensors is 1048576, which the"},
		{func(f *gguftest.File) { f.Keys[3].Name = "u8" }, `key 3 of 19: "u8" is there twice`},
		{func(f *gguftest.File) { f.Keys[3].Name = strings.Repeat("x", maxNameBytes+1) }, "a string has 4097 bytes"},
		{set("u8", gguftest.Raw{Type: 13}), `"u8": its value's type is 13`},
		{set("u8", gguftest.Raw{Type: math.MaxUint32}), "its value's type is 4294967295"},
		{set("u8", gguftest.Nested{{1}, {2}}), `"u8": it is an array of arrays`},
		{set("u8", gguftest.Raw{Type: 9, Data: []byte{77, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}}), "the type of its values is 77"},
		{set("u8", gguftest.Raw{Type: 9, Data: []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}), `"u8": the number of its values is 72057594037927936`},
		{set("u8", gguftest.Raw{Type: 9, Data: []byte{8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}}), "the number of its values is 65536, which the"},
		{set("u8", gguftest.Raw{Type: 9, Data: []byte{10, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0}}), "the number of its values is 200, which the"}, // of 8 bytes each
		{set("u8", gguftest.Raw{Type: 8, Data: []byte{0, 0, 0, 0, 0, 0, 0, 128}}), "a string has 9223372036854775808 bytes"},
		{set("u8", gguftest.Raw{Type: 8, Data: []byte{0, 0, 16, 0, 0, 0, 0, 0}}), `"u8": truncated: 1048576 bytes are needed`},
		{set("u8", gguftest.Raw{Type: 7, Data: []byte{2}}), "a truth value is 2"},
		{set("u8", uint64(1)<<63), "its value 9223372036854775808 is too large"},
		{set("texts", gguftest.Raw{Type: 9, Data: append([]byte{8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{255}, 8)...)}), "value 1 of 2: a string has"},
		{set("general.alignment", uint32(0)), "general.alignment is 0"},
		{set("general.alignment", uint32(48)), "general.alignment is 48"},
		{set("general.alignment", uint32(1<<31)), "general.alignment is 2147483648"},
		{set("general.alignment", "32"), `general.alignment is "32", needed is an integer`},
		{set("split.count", uint16(3)), "split.count is 3"},
		{tensor(func(t *gguftest.Tensor) { t.Name = "vector" }), `tensor 1 of 3: "vector" is there twice`},
		{tensor(func(t *gguftest.Tensor) { t.Dims = nil }), `"matrix" has 0 dimensions`},
		{tensor(func(t *gguftest.Tensor) { t.Dims = []uint64{1, 1, 1, 1, 1} }), `"matrix" has 5 dimensions`},
		{tensor(func(t *gguftest.Tensor) { t.Dims = []uint64{32, 0} }), `"matrix" has a dimension of 0`},
		{tensor(func(t *gguftest.Tensor) { t.Dims = []uint64{32, 1 << 63} }), "has a dimension of 9223372036854775808"},
		{tensor(func(t *gguftest.Tensor) { t.Dims = []uint64{1 << 32, 1 << 32} }), "which is too large"},
		{tensor(func(t *gguftest.Tensor) { t.Dims = []uint64{33, 2} }), `"matrix" has rows of 33 numbers, which are no whole blocks of Q8_0`},
		{tensor(func(t *gguftest.Tensor) { t.Type = 10 }), `"matrix" is of type Q2_K: known are`},
		{tensor(func(t *gguftest.Tensor) { t.Type = 1000 }), `"matrix" is of type Type(1000)`},
		{tensor(func(t *gguftest.Tensor) { t.Offset = number(33) }), `"matrix" is at offset 33, needed is a multiple of 32`},
		{tensor(func(t *gguftest.Tensor) { t.Offset = number(1 << 63) }), `"matrix" is at offset 9223372036854775808`},
		{tensor(func(t *gguftest.Tensor) { t.Offset = number(1<<62 - 32) }), `truncated: tensor "matrix"`},
		{tensor(func(t *gguftest.Tensor) { t.Offset = number(0) }), `tensors "matrix" and "vector" overlap`},
		{tensor(func(t *gguftest.Tensor) { t.Offset = number(4096) }), `truncated: tensor "matrix" is at bytes`},
		{tensor(func(t *gguftest.Tensor) { t.Dims = []uint64{32, 3} }), `tensors "matrix" and "cube" overlap`},
		{func(f *gguftest.File) { f.Tensors[2].Data = f.Tensors[2].Data[1:] }, `truncated: tensor "cube"`},
	} {
		f := example()
		c.change(f)
		if _, err := read(f.Bytes()); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "gguf: x.gguf: ") {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

// Every beginning of a file that is not the whole file is refused: cut before and in every field, and anywhere.
func TestTruncated(t *testing.T) {
	data, marks := example().Marked()
	cuts := map[int]bool{}
	for _, m := range marks {
		cuts[m], cuts[m+1], cuts[m-1] = true, true, true
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		cuts[rnd.IntN(len(data))] = true
	}
	for n := range cuts {
		if n >= len(data) {
			continue
		}
		if _, err := read(data[:n]); err == nil || !strings.HasPrefix(err.Error(), "gguf: x.gguf: ") || !strings.Contains(err.Error(), "truncated") {
			t.Errorf("%d bytes of %d: %v", n, len(data), err)
		}
		// The size that the file system tells may be wrong as well. Each tensor's data has two marks.
		if _, err := Read("x.gguf", bytes.NewReader(data[:n]), int64(len(data))); err == nil && n < marks[len(marks)-6] {
			t.Errorf("%d bytes of %d, said to be all", n, len(data))
		}
	}
}

// A few bytes that promise much take little memory.
func TestNoAbsurdMemory(t *testing.T) {
	for _, f := range []*gguftest.File{
		{KeyCount: number(1 << 15), Keys: []gguftest.Key{{Name: "a", Value: gguftest.Raw{Type: 9, Data: make([]byte, 12+1<<19)}}}},
		{Keys: []gguftest.Key{{Name: "a", Value: gguftest.Raw{Type: 9, Data: append([]byte{6, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0}, make([]byte, 1<<16)...)}}}},
		{Keys: []gguftest.Key{{Name: "a", Value: gguftest.Raw{Type: 8, Data: append([]byte{0, 0, 0, 1, 0, 0, 0, 0}, make([]byte, 1<<16)...)}}}},
		{TensorCount: number(1 << 19), Keys: []gguftest.Key{{Name: "a", Value: strings.Repeat(" ", 1<<20)}}},
	} {
		data := f.Bytes()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := read(data); err == nil {
			t.Error("it was read")
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(20*len(data)+1<<18) {
			t.Errorf("%d bytes for a file of %d", used, len(data))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(example().Bytes())
	small := &gguftest.File{Keys: []gguftest.Key{{Name: "a", Value: []string{"b", ""}}}, Tensors: []gguftest.Tensor{{Name: "t", Type: 12, Dims: []uint64{256}, Data: make([]byte, 144)}}}
	f.Add(small.Bytes())
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := read(data)
		if err != nil {
			return
		}
		for _, name := range file.Names() {
			tensor, _ := file.Tensor(name)
			if _, err := file.Read(tensor); err != nil {
				t.Fatalf("accepted, but: %v", err)
			}
		}
	})
}

func TestTypeNames(t *testing.T) {
	for typ := range blocks {
		if strings.HasPrefix(typ.String(), "Type(") {
			t.Errorf("type %d has no name", uint32(typ))
		}
	}
}

func ExampleRead() {
	data := (&gguftest.File{
		Keys:    []gguftest.Key{{Name: "general.architecture", Value: "llama"}},
		Tensors: []gguftest.Tensor{{Name: "output_norm.weight", Dims: []uint64{2}, Data: make([]byte, 8)}},
	}).Bytes()
	f, err := Read("model.gguf", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		panic(err)
	}
	architecture, _, _ := f.String("general.architecture")
	t, _ := f.Tensor("output_norm.weight")
	fmt.Println(architecture, t.Type, t.Shape)
	// Output: llama F32 [2]
}
