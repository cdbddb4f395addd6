package air

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// seeds are the modules that the fuzz targets start from: LLVM's bitcode of the texts beside them.
func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*.bc")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzRead feeds damaged modules to the reader, and what it takes to all that follows: nothing may panic or hang, and what
// is written must read again.
func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(data)
		if errors.Is(err, errInternal) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		_, _ = m.Kernels()
		if Verify(m) != nil {
			return
		}
		if len(m.String()) == 0 && len(m.Functions) > 0 {
			t.Fatal("the module is printed as nothing")
		}
		out, err := Write(m)
		if errors.Is(err, errInternal) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if _, err := Read(out); err != nil {
			t.Fatalf("what was written does not read: %v", err)
		}
	})
}

// FuzzBitstream walks the container alone, whatever the blocks mean.
func FuzzBitstream(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		defer func() {
			if e := recover(); e != nil {
				if _, ok := e.(bitError); !ok {
					panic(e)
				}
			}
		}()
		body, err := unwrap(data)
		if err != nil {
			return
		}
		b := newBitReader(body)
		b.pos = 32
		for b.left() >= 32 {
			switch kind, id := b.next(); kind {
			case blockEntry:
				b.enter(id)
				if id == blockInfoBlock {
					b.blockInfo()
				}
			case endOfBlock, recordEntry:
			}
		}
	})
}
