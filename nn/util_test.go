package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn/internal/oracle"
	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// open is a runtime that is closed after the test. Tests run with all checks: memory never written, races by Metal's strict
// rules, dispatches, threadgroups and simdgroups in random order. Benchmarks run without, and on a Mac the GPU is tested.
func open(t testing.TB) *runtime.Runtime {
	t.Helper()
	var opts []runtime.Option
	if _, bench := t.(*testing.B); !bench && goruntime.GOOS != "darwin" {
		dev := soft.New(soft.Options{Checks: true, NoLockStep: true, Order: soft.Shuffled, Seed: 7})
		defer dev.Release()
		opts = append(opts, runtime.WithDevice(dev))
	}
	rt, err := runtime.Open(append(opts, testLibrary(t)...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// testLibrary is the library that INGOT_TEST_LIBRARY names, in the place of the embedded one: how tests/mutate runs these tests
// on shaders that have a fault.
func testLibrary(t testing.TB) []runtime.Option {
	t.Helper()
	path := os.Getenv("INGOT_TEST_LIBRARY")
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return []runtime.Option{runtime.WithLibrary(data)}
}

// numbersOnly skips a sweep that compares numbers under the race detector, where it takes ten times as long and shows nothing more: it
// runs without.
func numbersOnly(t testing.TB) {
	t.Helper()
	if raceEnabled {
		t.Skip("compares numbers: runs without the race detector")
	}
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x1ce)) }

func normals(r *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * scale)
	}
	return x
}

// word is an element type that these tests use.
type word interface {
	float32 | half.Float16 | half.BFloat16 | int8 | uint8 | int32 | uint32
}

func bitsOf[T word](v T) uint32 {
	switch v := any(v).(type) {
	case float32:
		return math.Float32bits(v)
	case half.Float16:
		return uint32(v)
	case half.BFloat16:
		return uint32(v)
	case int8:
		return uint32(uint8(v))
	case uint8:
		return uint32(v)
	case int32:
		return uint32(v)
	case uint32:
		return v
	}
	panic("unreachable")
}

// sentinel is a value that no kernel here produces: a NaN with a payload, or a number for indices and sums. A byte that is written may be
// the sentinel.
func sentinel[T word]() T {
	var v T
	switch p := any(&v).(type) {
	case *float32:
		*p = math.Float32frombits(0x7fc0dead)
	case *half.Float16:
		*p = 0x7ede
	case *half.BFloat16:
		*p = 0x7fde
	case *int8:
		*p = 0x5a
	case *uint8:
		*p = 0xa5
	case *int32:
		*p = 0x5eadbeef
	case *uint32:
		*p = 0xdeadbeef
	}
	return v
}

// pad is how many sentinels lie on either side of a buffer: enough for the alignment of any operand.
const pad = 64

// buffer is device memory between sentinels.
type buffer[T word] struct {
	t     testing.TB
	whole runtime.Slice[T]
	s     runtime.Slice[T] // the part under test
	image []T              // what reset writes
	n     int
}

func newBuffer[T word](t testing.TB, rt *runtime.Runtime, image []T) *buffer[T] {
	t.Helper()
	all := make([]T, len(image)+2*pad)
	for i := range all {
		all[i] = sentinel[T]()
	}
	copy(all[pad:], image)
	whole, err := runtime.SliceOf(rt, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { whole.Release() })
	return &buffer[T]{t, whole, whole.Slice(pad, pad+len(image)), all, len(image)}
}

// output is a buffer of sentinels.
func output[T word](t testing.TB, rt *runtime.Runtime, n int) *buffer[T] {
	image := make([]T, n)
	for i := range image {
		image[i] = sentinel[T]()
	}
	return newBuffer(t, rt, image)
}

func (b *buffer[T]) reset() {
	b.t.Helper()
	if err := b.whole.Write(b.image); err != nil {
		b.t.Fatal(err)
	}
}

// set changes what reset writes, and writes it.
func (b *buffer[T]) set(data []T) {
	b.t.Helper()
	copy(b.image[pad:pad+b.n], data)
	b.reset()
}

// get is the content; the sentinels on either side must be whole.
func (b *buffer[T]) get() []T {
	b.t.Helper()
	all := make([]T, len(b.image))
	if err := b.whole.Read(all); err != nil {
		b.t.Fatal(err)
	}
	for i, v := range all {
		if (i < pad || i >= pad+b.n) && bitsOf(v) != bitsOf(sentinel[T]()) {
			b.t.Fatalf("element %d of %d was overwritten with %v", i-pad, b.n, v)
		}
	}
	return all[pad : pad+b.n]
}

// written is get, and no element may be a sentinel.
func (b *buffer[T]) written() []T {
	b.t.Helper()
	got := b.get()
	for i, v := range got {
		if bitsOf(v) == bitsOf(sentinel[T]()) {
			b.t.Fatalf("element %d of %d was not written", i, b.n)
		}
	}
	return got
}

func (b *buffer[T]) bits() []uint32 {
	b.t.Helper()
	got := b.get()
	bits := make([]uint32, len(got))
	for i, v := range got {
		bits[i] = bitsOf(v)
	}
	return bits
}

func (b *buffer[T]) untouched() {
	b.t.Helper()
	for i, v := range b.get() {
		if bitsOf(v) != bitsOf(b.image[pad+i]) {
			b.t.Fatalf("element %d changed to %v", i, v)
		}
	}
}

// worst collects the greatest ratio of an error to what is allowed.
type worst struct {
	ratio, error float64
	where        string
	cases        int
}

// compare holds got against want, element by element, each within allowed; it fails the test beyond and notes the worst.
func (w *worst) compare(t testing.TB, where string, got, want []float64, allowed func(i int) float64) {
	t.Helper()
	w.cases++
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", where, len(got), len(want))
	}
	for i := range want {
		if math.IsNaN(want[i]) && math.IsNaN(got[i]) || got[i] == want[i] {
			continue
		}
		e, a := math.Abs(got[i]-want[i]), allowed(i)
		if !(e <= a) {
			t.Fatalf("%s: element %d: %v, want %v within %g (off by %g)", where, i, got[i], want[i], a, e)
		}
		if e/a > w.ratio {
			*w = worst{e / a, e, fmt.Sprintf("%s[%d]: %v for %v", where, i, got[i], want[i]), w.cases}
		}
	}
}

// log says for functions how many cases there were and how far off the worst was.
func (w *worst) log(t testing.TB, unit string, functions ...string) {
	t.Helper()
	where := "everywhere exact"
	if w.ratio > 0 {
		where = fmt.Sprintf("worst error: %.3g of the %s allowed, %.3g absolute, at %s", w.ratio, unit, w.error, w.where)
	}
	t.Logf("%s: %d cases, %s", strings.Join(functions, ", "), w.cases, where)
}

// exactCases counts the cases whose results must be exact.
var exactCases int

// logExact says for functions how many cases there were until what it returns is called: all were exact, or the test failed.
func logExact(t testing.TB, functions ...string) func() {
	before := exactCases
	return func() {
		t.Helper()
		t.Logf("%s: %d cases, exact", strings.Join(functions, ", "), exactCases-before)
	}
}

func widen[T float32 | half.Float16 | half.BFloat16](x []T) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		switch v := any(v).(type) {
		case float32:
			out[i] = float64(v)
		case half.Float16:
			out[i] = float64(v.Float32())
		case half.BFloat16:
			out[i] = float64(v.Float32())
		}
	}
	return out
}

// matrix is a bank with its host form.
type matrix struct {
	bank Q4MLXBank
	host quant.Q4MLX
	o    oracle.Q4
}

// randomBank is a bank of normally distributed weights.
func randomBank(t testing.TB, rt *runtime.Runtime, r *rand.Rand, rows, cols, group int) matrix {
	t.Helper()
	q, err := quant.QuantizeQ4MLX(normals(r, rows*cols, 1), rows, cols, group)
	if err != nil {
		t.Fatal(err)
	}
	return upload(t, rt, q)
}

// upload puts a bank between sentinels on the device.
func upload(t testing.TB, rt *runtime.Runtime, q quant.Q4MLX) matrix {
	t.Helper()
	packed, sb := newBuffer(t, rt, q.Packed), newBuffer(t, rt, q.ScalesBiases)
	bank, err := NewQ4MLXBank(packed.s, sb.s, q.Rows, q.Cols, q.GroupSize)
	if err != nil {
		t.Fatal(err)
	}
	o := oracle.Q4{Words: q.Packed, Rows: q.Rows, Cols: q.Cols, Group: q.GroupSize}
	for i := 0; i < len(q.ScalesBiases); i += 2 {
		o.Scales = append(o.Scales, float64(q.ScalesBiases[i].Float32()))
		o.Biases = append(o.Biases, float64(q.ScalesBiases[i+1].Float32()))
	}
	return matrix{bank, q, o}
}
