package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// file is a safetensors file with the given header and n bytes 0, 1, 2 … of data.
func file(header string, n int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	out = append(out, header...)
	for i := range n {
		out = append(out, byte(i))
	}
	return out
}

const good = `{"__metadata__":{"format":"pt"},
	"b":{"dtype":"U32","shape":[1,2],"data_offsets":[6,14]},
	"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},
	"none":{"dtype":"F32","shape":[0,9],"data_offsets":[6,6]}} `

func single(data []byte) fstest.MapFS { return fstest.MapFS{SingleFile: {Data: data}} }

func TestOpen(t *testing.T) {
	s, err := Open(single(file(good, 14)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Names(); !slices.Equal(got, []string{"a", "b", "none"}) {
		t.Errorf("names %v", got)
	}
	data, info, err := s.Read("b", []int64{1, 2}, "F32", "U32")
	if err != nil || info.DType != "U32" || !bytes.Equal(data, []byte{6, 7, 8, 9, 10, 11, 12, 13}) {
		t.Errorf("%v %v %v", data, info, err)
	}
	if data, _, err := s.Read("none", []int64{0, 9}, "F32"); err != nil || len(data) != 0 {
		t.Errorf("%v %v", data, err)
	}
	if info, ok := s.Info("a"); !ok || info.Shape[0] != 3 {
		t.Errorf("%v %v", info, ok)
	}
	if _, ok := s.Info("c"); ok {
		t.Error("c exists")
	}
	for _, c := range []struct {
		name  string
		shape []int64
		dtype string
		want  string
	}{
		{"c", nil, "F32", `no tensor "c"`},
		{"a", []int64{3}, "F32", "of type BF16, needed is F32"},
		{"a", []int64{1, 3}, "BF16", "shape [3], needed is [1 3]"},
	} {
		if _, _, err := s.Read(c.name, c.shape, c.dtype); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	entry := func(dtype, shape, offsets string) []byte {
		return file(fmt.Sprintf(`{"t":{"dtype":"%s","shape":%s,"data_offsets":%s}}`, dtype, shape, offsets), 16)
	}
	whole := file(good, 14)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "too few for a header"},
		{"text", []byte("this is no tensor file at all"), "not a safetensors file"},
		{"header cut", whole[:50], "truncated: the header"},
		{"data cut", whole[:len(whole)-1], `truncated: tensor "b" ends at byte 14 of the data, the file has 13`},
		{"data cut to nothing", whole[:len(whole)-14], "truncated"},
		{"too much data", append(slices.Clone(whole), 0), "bytes 14 to 15 belong to no tensor"},
		{"array", file("[]", 0), "not a JSON object"},
		{"no JSON", file("{\"a\":", 0), "broken"},
		{"unclosed", file(`{"__metadata__":{}`, 0), "not JSON"},
		{"bad key", file(`{7:1}`, 0), "not JSON"},
		{"bad metadata", file(`{"__metadata__":}`, 0), "not JSON"},
		{"entry of another kind", file(`{"t":5}`, 0), `tensor "t"`},
		{"more after it", file(`{} {}`, 0), "something after"},
		{"twice", file(`{"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), "listed twice"},
		{"type", entry("F7", "[4]", "[0,16]"), `type "F7" is unknown`},
		{"type missing", file(`{"t":{"shape":[4],"data_offsets":[0,16]}}`, 16), `type "" is unknown`},
		{"offsets missing", file(`{"t":{"dtype":"F32","shape":[4]}}`, 16), "has 0 numbers"},
		{"three offsets", entry("F32", "[4]", "[0,8,16]"), "has 3 numbers"},
		{"negative dimension", entry("F32", "[-4]", "[0,16]"), "negative dimension"},
		{"two negative dimensions", entry("F32", "[-2,-2]", "[0,16]"), "negative dimension"},
		{"overflow", entry("F32", "[4611686018427387904,4]", "[0,16]"), "too large"},
		{"fraction", entry("F32", "[0.5]", "[0,16]"), `tensor "t"`},
		{"dimensions", entry("F32", "[1,1,1,1,1,1,1,1,4]", "[0,16]"), "9 dimensions"},
		{"backwards", entry("F32", "[4]", "[16,0]"), "no range"},
		{"negative offset", entry("F32", "[4]", "[-16,0]"), "no range"},
		{"size", entry("F32", "[5]", "[0,16]"), "needs 20 bytes, but its range 0 to 16 has 16"},
		{"beyond", entry("F32", "[5]", "[0,20]"), "truncated"},
		{"hole at the start", entry("F32", "[3]", "[4,16]"), "bytes 0 to 4 belong to no tensor"},
		{"overlap", file(`{"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"u":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}`, 7), `"t" and "u" overlap`},
		{"same range", file(`{"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"u":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4), "overlap"},
	} {
		s, err := Open(single(c.data))
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
	if _, err := Open(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), SingleFile) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Open(fstest.MapFS{SingleFile: {Mode: fs.ModeDir}}); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("folder: %v", err)
	}
	if _, err := Open(streams{single(whole)}); err == nil || !strings.Contains(err.Error(), "at an offset") {
		t.Errorf("stream: %v", err)
	}
}

// streams is a file system whose files can only be read from the beginning.
type streams struct{ fs.FS }

func (s streams) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return struct{ fs.File }{f}, nil
}

func TestShards(t *testing.T) {
	one := file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"x":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3)
	two := file(`{"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}`, 3)
	dir := func(index string) fstest.MapFS {
		return fstest.MapFS{"m-1.safetensors": {Data: one}, "m-2.safetensors": {Data: two}, IndexFile: {Data: []byte(index)}}
	}
	s, err := Open(dir(`{"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("names %v", got)
	}
	if data, _, err := s.Read("b", []int64{3}, "U8"); err != nil || !bytes.Equal(data, []byte{0, 1, 2}) {
		t.Errorf("%v %v", data, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for index, want := range map[string]string{
		`{"weight_map":{"a":"m-2.safetensors"}}`:    `has no tensor "a"`,
		`{"weight_map":{"a":"m-3.safetensors"}}`:    "m-3.safetensors",
		`{"weight_map":{"a":"../m-1.safetensors"}}`: "not the name of a safetensors file",
		`{"weight_map":{"a":"m-1.bin"}}`:            "not the name of a safetensors file",
		`{"weight_map":{}}`:                         "no weight_map",
		`{"weight_map":[]}`:                         IndexFile,
		`nonsense`:                                  IndexFile,
		strings.Repeat(" ", maxIndexBytes+1):        "longer than",
	} {
		if _, err := Open(dir(index)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// A file that shrinks after it was opened is an error, not a panic.
func TestShrinkingFile(t *testing.T) {
	name := t.TempDir() + "/" + SingleFile
	if err := os.WriteFile(name, file(good, 14), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(os.DirFS(strings.TrimSuffix(name, "/"+SingleFile)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Truncate(name, 20); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read("a", []int64{3}, "BF16"); err == nil || !strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error()) {
		t.Error(err)
	}
	if _, _, err := readHeader(bytes.NewReader(nil), 100); err == nil {
		t.Error("a header from nothing")
	}
	if _, _, err := readHeader(bytes.NewReader(file(good, 0)[:20]), 1000); err == nil {
		t.Error("half a header")
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(file(good, 14))
	f.Add(file(`{"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4))
	f.Add(file(`{}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Open(single(data))
		if err != nil {
			return
		}
		for _, name := range s.Names() {
			info, _ := s.Info(name)
			if _, _, err := s.Read(name, info.Shape, info.DType); err != nil {
				t.Fatalf("accepted, but: %v", err)
			}
		}
	})
}

func Example() {
	s, err := Open(os.DirFS("../../testdata/tiny-gemma3-q4"))
	if err != nil {
		panic(err)
	}
	defer s.Close()
	data, info, err := s.Read("model.norm.weight", []int64{128}, "BF16", "F32")
	fmt.Println(len(data), info.DType, info.Shape, err)
	// Output: 256 BF16 [128] <nil>
}
