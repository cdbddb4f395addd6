package simt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand"
	"testing"

	"github.com/ingot-metal/ingot/metallib/air"
)

// compare runs a random kernel on the executor and on the reference interpreter.
func compare(t testing.TB, seed int64, groups, threads uint32) {
	t.Helper()
	g := newGen(seed)
	p, err := compileKernel(g.m, g.k, Options{})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	n := groups * threads
	in := make([]byte, 4*64)
	rand.New(rand.NewSource(seed)).Read(in)
	for i := 0; i < 64; i += 3 { // some small numbers
		binary.LittleEndian.PutUint32(in[4*i:], uint32(i%7))
	}
	stride := 4 * (genVars + 8)
	got := make([]byte, int(n)*stride)
	if err := launch(p, groups, threads, got, in); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	want := make([]byte, len(got))
	src := append([]byte(nil), in...)
	for id := uint32(0); id < n; id++ {
		r := &ref{}
		num := func(v uint32) *big.Int { return new(big.Int).SetUint64(uint64(v)) }
		env := map[air.Value]any{g.f.Args[0]: refPtr{&refMem{want}, 0}, g.f.Args[1]: refPtr{&refMem{src}, 0},
			g.f.Args[2]: num(id), g.f.Args[3]: num(id / threads), g.f.Args[4]: num(id % threads % 32)}
		if err := r.run(g.f, env); err != nil {
			t.Skipf("seed %d: %v", seed, err)
		}
		if a, b := got[int(id)*stride:][:stride], want[int(id)*stride:][:stride]; !bytes.Equal(a, b) {
			t.Fatalf("seed %d: thread %d: got\n%s\nwant\n%s", seed, id, hexWords(a), hexWords(b))
		}
	}
}

func hexWords(b []byte) string {
	s := ""
	for i := 0; i < len(b); i += 4 {
		s += fmt.Sprintf("%08x ", binary.LittleEndian.Uint32(b[i:]))
	}
	return s
}

func TestRandomKernels(t *testing.T) {
	n := int64(100)
	if testing.Short() {
		n = 30
	}
	for seed := int64(0); seed < n; seed++ {
		compare(t, seed, 2, 40)
	}
}

// FuzzKernels compares random kernels, chosen by the fuzzer's seed, with the reference interpreter.
func FuzzKernels(f *testing.F) {
	for _, s := range []int64{1, 42, 12345} {
		f.Add(s, uint8(33))
	}
	f.Fuzz(func(t *testing.T, seed int64, threads uint8) { compare(t, seed, 1, uint32(threads%100)+1) })
}
