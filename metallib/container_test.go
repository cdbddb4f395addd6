package metallib_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/metallib/internal/appletest"
)

func TestAppleFilesRoundTrip(t *testing.T) {
	for _, group := range []struct {
		name string
		get  func(t *testing.T) []appletest.File
	}{
		{"llama", func(t *testing.T) []appletest.File { return []appletest.File{appletest.Llama(t)} }},
		{"whisper", func(t *testing.T) []appletest.File { return append(appletest.WhisperOthers(t), appletest.Whisper(t)) }},
		{"gio", func(t *testing.T) []appletest.File { return appletest.Gio(t) }},
	} {
		t.Run(group.name, func(t *testing.T) {
			for i, f := range group.get(t) {
				if testing.Short() && i%10 != 0 {
					continue
				}
				lib, err := metallib.Read(f.Data)
				require.NoError(t, err, f.Name)
				require.NotEmpty(t, lib.Functions)
				again, err := metallib.Write(lib)
				require.NoError(t, err, f.Name)
				require.True(t, bytes.Equal(f.Data, again), "reading and writing changes %s", f.Name)
				for i := range lib.Functions {
					fn := &lib.Functions[i]
					m, err := fn.Module()
					require.NoError(t, err, f.Name)
					ks, err := m.Kernels()
					require.NoError(t, err, f.Name)
					if fn.Type == metallib.Kernel {
						require.Len(t, ks, 1)
						require.Equal(t, fn.Name, ks[0].Name)
					}
				}
				require.NoError(t, metallib.Inspect(io.Discard, lib))
			}
		})
	}
}

func TestOwnLibrary(t *testing.T) {
	lib, err := scaleLibrary("scale", "again")
	require.NoError(t, err)
	lib.Functions[1].Constants = []metallib.Constant{{Name: "foo", Type: metallib.Float, Index: 0, Active: true}, {Name: "bar", Type: metallib.Bool, Index: 7}}
	data, err := metallib.Write(lib)
	require.NoError(t, err)
	same, err := metallib.Write(lib)
	require.NoError(t, err)
	require.Equal(t, data, same, "writing is not deterministic")
	require.Nil(t, lib.Extension, "writing changes the library")

	require.Equal(t, "MTLB", string(data[:4]))
	require.Equal(t, []byte{0x01, 0x80, 2, 0, 7, 0, 0, 0x81, 14, 0, 0, 0}, data[4:16])
	back, err := metallib.Read(data)
	require.NoError(t, err)
	require.Equal(t, metallib.Version{Major: 1, Minor: 2, Patch: 7}, back.Container)
	require.Equal(t, metallib.MacOS, back.Platform)
	require.Equal(t, metallib.Version{Major: 14}, back.OS)
	require.True(t, back.ForMac)
	require.Len(t, back.Functions, 2)
	f := back.Function("again")
	require.NotNil(t, f)
	require.Nil(t, back.Function("missing"))
	require.Equal(t, metallib.Kernel, f.Type)
	require.Equal(t, lib.Functions[1].Bitcode, f.Bitcode)
	require.Equal(t, lib.Functions[1].Constants, f.Constants)
	require.Equal(t, sha256.Sum256(f.Bitcode), f.Hash)
	require.Equal(t, "2.6", f.AIR.String())
	require.Equal(t, "3.1", f.Metal.String())
	m, err := f.Module()
	require.NoError(t, err)
	ks, err := m.Kernels()
	require.NoError(t, err)
	require.Equal(t, 256, ks[0].MaxThreads)
	again, err := metallib.Write(back)
	require.NoError(t, err)
	require.Equal(t, data, again)

	lib.Functions[0].Name = "other"
	other, err := metallib.Write(lib)
	require.NoError(t, err)
	changed, err := metallib.Read(other)
	require.NoError(t, err)
	require.NotEqual(t, back.Extension, changed.Extension, "the UUID does not depend on the content")
}

func TestWriteSections(t *testing.T) {
	lib, err := scaleLibrary("scale")
	require.NoError(t, err)
	lib.Container, lib.Platform, lib.OS = metallib.Version{Major: 1, Minor: 2, Patch: 9}, metallib.IOS, metallib.Version{Major: 26}
	lib.Extension = []metallib.Entry{
		{Tag: "HDYN", Section: true, Data: []byte("NAME\x02\x00a\x00ENDT")},
		{Tag: "RLST", Section: true, Data: make([]byte, 9)},
		{Tag: "UUID", Data: bytes.Repeat([]byte{7}, 16)},
	}
	lib.Functions[0].Public = []metallib.Tag{{Name: "VATY", Data: []byte{0, 0}}}
	lib.Functions[0].Private = []metallib.Tag{{Name: "DEBI", Data: []byte("\x01\x00\x00\x00a.metal\x00")}}
	lib.Functions[0].Extra = []metallib.Tag{{Name: "RFLT", Data: make([]byte, 8)}}
	data, err := metallib.Write(lib)
	require.NoError(t, err)
	back, err := metallib.Read(data)
	require.NoError(t, err)
	require.False(t, back.ForMac)
	require.Equal(t, lib.Functions[0].Public, back.Functions[0].Public)
	require.Equal(t, lib.Functions[0].Private, back.Functions[0].Private)
	require.Equal(t, lib.Functions[0].Extra, back.Functions[0].Extra)
	require.Len(t, back.Extension, 3)
	for i, e := range lib.Extension {
		require.Equal(t, e.Tag, back.Extension[i].Tag)
		require.Equal(t, e.Data, back.Extension[i].Data)
	}
	again, err := metallib.Write(back)
	require.NoError(t, err)
	require.Equal(t, data, again)
}

// oldLibrary builds a container as the writers of 2016 and 2024 did, from the bytes up, to hold the reader against
// something that Write did not make.
func oldLibrary(code []byte, patch uint16, sized, exclusive, extension bool) []byte {
	le := binary.LittleEndian
	tag := func(b []byte, name string, data ...byte) []byte {
		return append(le.AppendUint16(append(b, name...), uint16(len(data))), data...)
	}
	group := make([]byte, 4)
	group = tag(group, "NAME", []byte("scale\x00")...)
	group = tag(group, "TYPE", 2)
	sum := sha256.Sum256(code)
	if !sized {
		sum[0]++ // of unknown origin in such files
	}
	group = tag(group, "HASH", sum[:]...)
	if sized {
		group = tag(group, "MDSZ", le.AppendUint64(nil, uint64(len(code)))...)
	}
	group = tag(group, "OFFT", make([]byte, 24)...)
	group = tag(group, "VERS", 1, 0, 8, 0, 1, 0, 1, 0)
	group = append(group, "ENDT"...)
	le.PutUint32(group, uint32(len(group)))
	list := append(le.AppendUint32(nil, 1), group...)
	var ext []byte
	if extension {
		ext = []byte("ENDT")
	}
	meta := append(le.AppendUint32(nil, 8), "ENDT"...)
	if exclusive {
		meta[0] = 4
	}
	file := append([]byte("MTLB\x01\x80\x02\x00"), uint8(patch), 0, 0, 0, 0, 0, 0, 0)
	size := 88 + len(list) + len(ext) + 2*len(meta) + len(code)
	file = le.AppendUint64(file, uint64(size))
	at := uint64(88)
	for i, s := range [][]byte{list, meta, meta, code} {
		n := uint64(len(s))
		if i == 0 {
			n -= 4
		}
		file = le.AppendUint64(le.AppendUint64(file, at), n)
		at += uint64(len(s))
		if i == 0 {
			at += uint64(len(ext))
		}
	}
	for _, s := range [][]byte{list, ext, meta, meta, code} {
		file = append(file, s...)
	}
	return file
}

func TestReadOldForms(t *testing.T) {
	code, err := air.Write(scaleModule("scale"))
	require.NoError(t, err)
	for _, c := range []struct {
		patch                       uint16
		sized, exclusive, extension bool
	}{{2, false, true, false}, {2, true, true, false}, {3, true, true, true}, {7, true, false, true}} {
		data := oldLibrary(code, c.patch, c.sized, c.exclusive, c.extension)
		lib, err := metallib.Read(data)
		require.NoError(t, err)
		require.Equal(t, code, lib.Functions[0].Bitcode)
		require.Equal(t, metallib.UnknownPlatform, lib.Platform)
		again, err := metallib.Write(lib)
		require.NoError(t, err)
		require.Equal(t, data, again)
	}
}

func TestReadRefuses(t *testing.T) {
	lib, err := scaleLibrary("scale")
	require.NoError(t, err)
	good, err := metallib.Write(lib)
	require.NoError(t, err)
	// Every cut, and every byte changed, is either read as something else or refused, and never harms.
	// In the bitcode, which the hash guards as a whole, some stand for all.
	step := func(i int) int {
		if i > 700 {
			return 61
		}
		return 1
	}
	for n := 0; n < len(good); n += step(n) {
		_, err := metallib.Read(good[:n])
		require.Error(t, err)
	}
	for i := 0; i < len(good); i += step(i) {
		bad := bytes.Clone(good)
		bad[i] ^= 0xFF
		if l, err := metallib.Read(bad); err == nil {
			again, err := metallib.Write(l)
			require.NoError(t, err)
			require.Equal(t, bad, again, "byte %d", i)
		}
	}
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	_, err = metallib.Read(bad)
	require.ErrorContains(t, err, `function 0 ("scale"): its bitcode has the hash`)
	_, err = metallib.Read([]byte("MTLX"))
	require.ErrorContains(t, err, "not a Metal library")
}

func TestNilLibrary(t *testing.T) {
	_, err := metallib.Write(nil)
	require.EqualError(t, err, "metallib: cannot write library: it is nil")
	require.EqualError(t, metallib.Inspect(io.Discard, nil), "metallib: cannot print library: it is nil")
	require.Nil(t, (*metallib.Library)(nil).Function("f"))
	_, err = new(metallib.Function).Module()
	require.ErrorContains(t, err, "not LLVM bitcode: 0 bytes")
}

func TestWriteRefuses(t *testing.T) {
	for want, change := range map[string]func(l *metallib.Library){
		"no functions":     func(l *metallib.Library) { l.Functions = nil },
		"no name":          func(l *metallib.Library) { l.Functions[0].Name = "" },
		"contains a zero":  func(l *metallib.Library) { l.Functions[0].Name = "a\x00" },
		"there twice":      func(l *metallib.Library) { l.Functions = append(l.Functions, l.Functions[0]) },
		"multiple of 16":   func(l *metallib.Library) { l.Functions[0].Bitcode = make([]byte, 5) },
		"four characters":  func(l *metallib.Library) { l.Functions[0].Public = []metallib.Tag{{Name: "TOOLONG"}} },
		"Section is false": func(l *metallib.Library) { l.Extension = []metallib.Entry{{Tag: "HDYN"}} },
		"at most 65535":    func(l *metallib.Library) { l.Extension = []metallib.Entry{{Tag: "ABCD", Data: make([]byte, 1<<16)}} },
		`constant "\x00"`:  func(l *metallib.Library) { l.Functions[0].Constants = []metallib.Constant{{Name: "\x00"}} },
		`constants of "scale" take`: func(l *metallib.Library) {
			l.Functions[0].Constants = []metallib.Constant{{Name: strings.Repeat("x", 1<<16)}}
		},
		// Of a long name an error shows the begin.
		`xxx"… (65536 bytes) contains a zero or is too long`: func(l *metallib.Library) { l.Functions[0].Name = strings.Repeat("x", 1<<16) },
		`xxx"… (60000 bytes) is there twice`: func(l *metallib.Library) {
			l.Functions[0].Name = strings.Repeat("x", 60000)
			l.Functions = append(l.Functions, l.Functions[0])
		},
		`x\x00"… (60000 bytes) of "scale" contains a zero`: func(l *metallib.Library) {
			l.Functions[0].Constants = []metallib.Constant{{Name: strings.Repeat("x\x00x", 20000)}}
		},
		`TTT"… (70000 bytes) is not four characters`: func(l *metallib.Library) {
			l.Functions[0].Public = []metallib.Tag{{Name: strings.Repeat("T", 70000)}}
		},
	} {
		lib, err := scaleLibrary("scale")
		require.NoError(t, err)
		change(lib)
		_, err = metallib.Write(lib)
		require.ErrorContains(t, err, want)
		require.Less(t, len(err.Error()), 600)
	}
}

// TestPrototypeReads holds what we write against an independent reader.
func TestPrototypeReads(t *testing.T) {
	script := testenv.Shared(t, "reference/prototype/mtlb.py")
	python := testenv.Tool(t, "python3")
	lib, err := scaleLibrary("scale", "again")
	require.NoError(t, err)
	lib.Functions[1].Constants = []metallib.Constant{{Name: "foo", Type: metallib.Float, Active: true}}
	data, err := metallib.Write(lib)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "own.metallib")
	require.NoError(t, os.WriteFile(file, data, 0o644))
	out, err := exec.Command(python, script, file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "scale")
	require.NotContains(t, strings.ToLower(string(out)), "mismatch")
}

func TestInspect(t *testing.T) {
	lib, err := scaleLibrary("scale")
	require.NoError(t, err)
	lib.Functions[0].Constants = []metallib.Constant{{Name: "foo", Type: metallib.Float, Index: 3, Active: true}}
	data, err := metallib.Write(lib)
	require.NoError(t, err)
	lib, err = metallib.Read(data)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, metallib.Inspect(&out, lib))
	for _, want := range []string{"container 1.2.7, executable, for macOS 14.0, 1 functions", "UUID ", "functions  bytes  family\n", "  in all\n",
		"kernel scale: AIR 2.6, Metal 3.1", "function constant 3: float foo", "at most 256 threads", "buffer(0)",
		"device, read and written, 4 bytes aligned to 4", "buffer(1)", "constant", "thread_position_in_grid", "target air64"} {
		require.Contains(t, out.String(), want)
	}
	lib.Functions[0].Bitcode = make([]byte, 16)
	require.ErrorContains(t, metallib.Inspect(&out, lib), "function scale: air: not LLVM bitcode")
}

func TestNames(t *testing.T) {
	require.Equal(t, "float3", (metallib.Float + 2).String())
	require.Equal(t, "bool4", (metallib.Bool + 3).String())
	require.Equal(t, "data type 1", metallib.DataType(1).String())
	for _, name := range []string{"float", "half4", "uint", "ushort2", "bool", "bfloat", "ulong"} {
		d, err := metallib.ParseDataType(name)
		require.NoError(t, err)
		require.Equal(t, name, d.String())
	}
	_, err := metallib.ParseDataType("struct")
	require.ErrorContains(t, err, "struct")
	require.Equal(t, "iOS simulator", metallib.IOSSimulator.String())
	require.Equal(t, "platform 99", metallib.Platform(99).String())
	require.Equal(t, "dynamic library", metallib.DynamicLibrary.String())
	require.Equal(t, "file type 9", metallib.FileType(9).String())
	require.Equal(t, "mesh", metallib.Mesh.String())
	require.Equal(t, "function type 77", metallib.FunctionType(77).String())
	require.Equal(t, "1.2.7", metallib.Version{Major: 1, Minor: 2, Patch: 7}.String())
}

func FuzzRead(f *testing.F) {
	lib, err := scaleLibrary("scale")
	if err != nil {
		f.Fatal(err)
	}
	data, err := metallib.Write(lib)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(oldLibrary(lib.Functions[0].Bitcode, 2, false, true, false))
	f.Fuzz(func(t *testing.T, data []byte) {
		lib, err := metallib.Read(data)
		if err != nil {
			return
		}
		again, err := metallib.Write(lib)
		if err == nil && !bytes.Equal(again, data) && lib.Functions != nil {
			// Gaps between groups are the one thing that is not kept; what is written must read the same.
			if _, err := metallib.Read(again); err != nil {
				t.Fatalf("what was written does not read: %v", err)
			}
		}
	})
}
