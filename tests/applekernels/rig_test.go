package applekernels

import (
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/objc"
)

// The library: ggml's kernels as llama.rn ships them, compiled by Apple for iOS 17.5.
const (
	llamaPackage = "llama.rn@0.3.11"
	llamaSum     = "e0cec81b87fa4889d9fc81049bae66761787d0ee939ef3e42b6985288ced0e88"
	llamaMember  = "package/cpp/ggml-llama.metallib"
)

// A rig is a software device with the library.
type rig struct {
	t     testing.TB
	dev   mtl.Device
	queue mtl.CommandQueue
	lib   mtl.Library
	file  *metallib.Library
}

func newRig(t testing.TB) *rig {
	t.Helper()
	data := testenv.NPM(t, llamaPackage, llamaSum, llamaMember)
	file, err := metallib.Read(data)
	require.NoError(t, err)
	pool := objc.NewPool()
	dev := soft.New(soft.Options{Checks: true})
	lib, err := dev.NewLibraryWithData(data)
	require.NoError(t, err)
	r := &rig{t, dev, dev.NewCommandQueue(), lib, file}
	t.Cleanup(func() {
		r.queue.Release()
		r.lib.Release()
		r.dev.Release()
		pool.Drain()
	})
	return r
}

func (r *rig) pipeline(name string) (mtl.ComputePipelineState, error) {
	fn := r.lib.NewFunctionWithName(name)
	require.False(r.t, fn.IsNil(), "no function %s", name)
	defer fn.Release()
	return r.dev.NewComputePipelineStateWithFunction(fn)
}

// args are a kernel's arguments by the names that its source gives them: a []byte is a buffer, numbers are set as bytes
// in the argument's own type.
type args map[string]any

// alias stands for the same buffer as another argument's.
type alias string

// run launches a kernel; buffers receive what it wrote.
func (r *rig) run(name string, a args, shared uint, groups, threads mtl.Size) {
	r.t.Helper()
	p, err := r.pipeline(name)
	require.NoError(r.t, err)
	defer p.Release()
	cb := r.queue.CommandBuffer()
	e := cb.ComputeCommandEncoder()
	e.SetComputePipelineState(p)
	var back []func()
	bound := map[string]mtl.Buffer{}
	for _, k := range r.kernel(name).Args {
		if k.Kind != air.BufferArg {
			continue
		}
		v, ok := a[k.Name]
		if !ok {
			require.True(r.t, k.Unused, "%s: argument %s is not given", name, k.Name)
			continue
		}
		if to, ok := v.(alias); ok {
			e.SetBuffer(bound[string(to)], 0, uint(k.Index))
			continue
		}
		if b, ok := v.([]byte); ok {
			buf := r.dev.NewBufferWithLength(uint(len(b)), mtl.ResourceStorageModeShared)
			require.False(r.t, buf.IsNil())
			copy(buf.Contents(), b)
			e.SetBuffer(buf, 0, uint(k.Index))
			bound[k.Name] = buf
			back = append(back, func() { copy(b, buf.Contents()); buf.Release() })
			continue
		}
		e.SetBytes(number(r.t, k.TypeName, v), uint(k.Index))
	}
	if shared > 0 {
		e.SetThreadgroupMemoryLength(shared, 0)
	}
	e.DispatchThreadgroups(groups, threads)
	e.EndEncoding()
	cb.Commit()
	cb.WaitUntilCompleted()
	require.NoError(r.t, cb.Error(), name)
	for _, f := range back {
		f()
	}
}

func (r *rig) kernel(name string) *air.Kernel {
	for _, f := range r.file.Functions {
		if f.Name == name {
			m, err := air.Read(f.Bitcode)
			require.NoError(r.t, err)
			k, err := m.Kernel(name)
			require.NoError(r.t, err)
			return k
		}
	}
	r.t.Fatalf("no kernel %s", name)
	return nil
}

// number encodes a value as the source's type.
func number(t testing.TB, typ string, v any) []byte {
	le := binary.LittleEndian
	switch v := v.(type) {
	case float64:
		require.Equal(t, "float", typ)
		return le.AppendUint32(nil, math.Float32bits(float32(v)))
	case int:
		switch typ {
		case "long", "ulong":
			return le.AppendUint64(nil, uint64(v))
		case "int", "uint":
			return le.AppendUint32(nil, uint32(v))
		case "short", "ushort":
			return le.AppendUint16(nil, uint16(v))
		}
	}
	t.Fatalf("a %T as %s", v, typ)
	return nil
}

func size(n ...uint) mtl.Size {
	n = append(n, 1, 1)
	return mtl.Size{Width: n[0], Height: n[1], Depth: n[2]}
}

func random(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

func encode(v []float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func decode(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// near compares with float64 results: the difference of each may be tol times the larger of its size and scale.
func near(t testing.TB, want []float64, got []float32, tol, scale float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tol*math.Max(math.Abs(want[i]), scale)) {
			t.Fatalf("element %d of %d is %g, want %g", i, len(want), got[i], want[i])
		}
	}
}
