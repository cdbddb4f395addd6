package soft

import (
	"encoding/binary"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// kernels is the library of the tests' own kernels.
func kernels(t testing.TB, dev mtl.Device) mtl.Library {
	data, err := os.ReadFile("testdata/kernels.metallib")
	require.NoError(t, err)
	lib, err := dev.NewLibraryWithData(data)
	require.NoError(t, err)
	t.Cleanup(lib.Release)
	return lib
}

// pipelineFor makes a pipeline of a kernel, fit for indirect command buffers.
func pipelineFor(t testing.TB, dev mtl.Device, lib mtl.Library, name string) mtl.ComputePipelineState {
	fn := lib.NewFunctionWithName(name)
	require.False(t, fn.IsNil(), "%v", Refusal(dev))
	defer fn.Release()
	desc, err := mtl.NewComputePipelineDescriptor(dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetComputeFunction(fn)
	desc.SetSupportIndirectCommandBuffers(!deviceOf(dev).opts.NoIndirectCompute)
	p, _, err := dev.NewComputePipelineStateWithDescriptor(desc, 0)
	require.NoError(t, err)
	t.Cleanup(p.Release)
	return p
}

func size(n ...uint) mtl.Size {
	s := mtl.Size{Width: 1, Height: 1, Depth: 1}
	for i, v := range n {
		*[]*uint{&s.Width, &s.Height, &s.Depth}[i] = v
	}
	return s
}

// words is a buffer of uint32.
func words(t testing.TB, dev mtl.Device, v ...uint32) mtl.Buffer {
	b := newBuffer(t, dev, uint(4*len(v)))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b.Contents()[4*i:], x)
	}
	return b
}

func wordsOf(b mtl.Buffer) []uint32 {
	v := make([]uint32, b.Length()/4)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(b.Contents()[4*i:])
	}
	return v
}

// floats is a buffer of float32.
func floats(t testing.TB, dev mtl.Device, v ...float32) mtl.Buffer {
	w := make([]uint32, len(v))
	for i, x := range v {
		w[i] = math.Float32bits(x)
	}
	return words(t, dev, w...)
}

func floatsOf(b mtl.Buffer) []float32 {
	v := make([]float32, b.Length()/4)
	for i, w := range wordsOf(b) {
		v[i] = math.Float32frombits(w)
	}
	return v
}

// constants are bytes of uint32s, for SetBytes.
func constants(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// A rig is a device with a queue and the tests' kernels.
type rig struct {
	t     testing.TB
	dev   mtl.Device
	queue mtl.CommandQueue
	lib   mtl.Library
	made  map[string]mtl.ComputePipelineState
}

func newRig(t testing.TB, opts Options) *rig {
	dev := open(t, opts)
	return &rig{t, dev, newQueue(t, dev), kernels(t, dev), map[string]mtl.ComputePipelineState{}}
}

func (r *rig) pipeline(name string) mtl.ComputePipelineState {
	if p, ok := r.made[name]; ok {
		return p
	}
	p := pipelineFor(r.t, r.dev, r.lib, name)
	r.made[name] = p
	return p
}

// encode encodes with a compute encoder.
func (r *rig) encode(kind mtl.DispatchType, f func(e mtl.ComputeCommandEncoder)) mtl.CommandBuffer {
	cb := r.queue.CommandBuffer()
	e := cb.ComputeCommandEncoderWithDispatchType(kind)
	f(e)
	e.EndEncoding()
	return cb
}

// run encodes a kernel with buffers from slot 0 on, for n threads.
func (r *rig) run(e mtl.ComputeCommandEncoder, kernel string, n uint, buffers ...mtl.Buffer) {
	e.SetComputePipelineState(r.pipeline(kernel))
	for i, b := range buffers {
		e.SetBuffer(b, 0, uint(i))
	}
	e.DispatchThreads(size(n), size(min(n, 64)))
}

func TestDispatch(t *testing.T) {
	r := newRig(t, Options{})
	a, b, out := floats(t, r.dev, 1, 2, 3, 4, 5), floats(t, r.dev, 10, 20, 30, 40, 50), floats(t, r.dev, make([]float32, 8)...)
	cb := r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.SetBytes(constants(5), 3)
		r.run(e, "add", 8, a, b, out)
	})
	mustRun(t, cb)
	require.Equal(t, []float32{11, 22, 33, 44, 55, 0, 0, 0}, floatsOf(out))
	s := Stats(r.dev)
	require.EqualValues(t, 1, s.Dispatches)
	require.EqualValues(t, 1, s.Threadgroups)

	// By threadgroups, with offsets.
	cb = r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(r.pipeline("add"))
		require.NoError(t, e.SetBuffers([]mtl.Buffer{a, b, out}, []uint{4, 0, 8}, 0))
		e.SetBufferOffset(4, 1)
		e.SetBytes(constants(4), 3)
		e.DispatchThreadgroups(size(2), size(4))
	})
	mustRun(t, cb)
	require.Equal(t, []float32{11, 22, 22, 33, 44, 55, 0, 0}, floatsOf(out))
}

// TestSerialOrder runs a hundred dispatches that depend on each other.
func TestSerialOrder(t *testing.T) {
	r := newRig(t, Options{Order: Shuffled})
	x := words(t, r.dev, 0, 0, 0, 0)
	cb := r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		for range 10 {
			r.run(e, "twice_plus_one", 4, x)
			r.run(e, "plus_ten", 4, x)
		}
	})
	mustRun(t, cb)
	want := uint32(0)
	for range 10 {
		want = want*2 + 11
	}
	require.Equal(t, []uint32{want, want, want, want}, wordsOf(x))
}

func TestIndirectDispatch(t *testing.T) {
	r := newRig(t, Options{})
	x := words(t, r.dev, make([]uint32, 128)...)
	args := words(t, r.dev, 99, 2, 1, 1)
	cb := r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(r.pipeline("plus_ten"))
		e.SetBuffer(x, 0, 0)
		e.DispatchThreadgroupsWithIndirectBuffer(args, 4, size(32))
	})
	mustRun(t, cb)
	require.EqualValues(t, 10, wordsOf(x)[63])
	require.Zero(t, wordsOf(x)[64])
	cb = r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(r.pipeline("plus_ten"))
		e.SetBuffer(x, 0, 0)
		e.DispatchThreadgroupsWithIndirectBuffer(args, 8, size(32))
	})
	mustFail(t, cb, mtl.CommandBufferErrorInvalidResource, "indirect arguments at offset 8")
}

func TestThreadgroupMemory(t *testing.T) {
	r := newRig(t, Options{})
	in, out := floats(t, r.dev, make([]float32, 64)...), floats(t, r.dev, 0, 0)
	for i := range 64 {
		binary.LittleEndian.PutUint32(in.Contents()[4*i:], math.Float32bits(float32(i)))
	}
	encode := func(kernel string, memory, threads uint) mtl.CommandBuffer {
		return r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
			e.SetComputePipelineState(r.pipeline(kernel))
			e.SetBuffer(in, 0, 0)
			e.SetBuffer(out, 0, 1)
			if memory > 0 {
				e.SetThreadgroupMemoryLength(memory, 0)
			}
			e.DispatchThreadgroups(size(64/threads), size(threads))
		})
	}
	mustRun(t, encode("sum", 128, 32))
	require.Equal(t, []float32{496, 1520}, floatsOf(out))
	mustRun(t, encode("sum64", 0, 64))
	require.EqualValues(t, 2016, floatsOf(out)[0])
	require.EqualValues(t, 256, r.pipeline("sum64").StaticThreadgroupMemoryLength())
	mustFail(t, encode("sum", 0, 32), mtl.CommandBufferErrorInvalidResource, `kernel "sum"`, "no length is set for threadgroup memory 0 (part)")
	mustFail(t, encode("sum", 64, 32), mtl.CommandBufferErrorPageFault, "kernel sum", "out of bounds", "threadgroup 0 (part)", "4 bytes at offset 64 of 64")
}

// TestFaults wants every fault of a kernel to be the command buffer's error, and the queue to go on.
func TestFaults(t *testing.T) {
	r := newRig(t, Options{StepLimit: 100_000})
	in, out := floats(t, r.dev, make([]float32, 64)...), floats(t, r.dev, make([]float32, 64)...)
	in.SetLabel("input")
	zero := words(t, r.dev, 0, 0, 0, 0)
	serial := func(f func(e mtl.ComputeCommandEncoder)) mtl.CommandBuffer {
		return r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
			e.SetLabel("pass")
			f(e)
		})
	}
	plain := func(kernel string, groups, threads mtl.Size, buffers ...mtl.Buffer) mtl.CommandBuffer {
		return serial(func(e mtl.ComputeCommandEncoder) {
			e.SetComputePipelineState(r.pipeline(kernel))
			for i, b := range buffers {
				e.SetBuffer(b, 0, uint(i))
			}
			e.DispatchThreadgroups(groups, threads)
		})
	}
	for _, c := range []struct {
		name  string
		cb    func() mtl.CommandBuffer
		code  mtl.CommandBufferError
		texts []string
	}{
		{"one element too far", func() mtl.CommandBuffer { return plain("too_far", size(2), size(32), in, out) },
			mtl.CommandBufferErrorPageFault,
			[]string{`compute encoder "pass"`, "dispatch 0", "kernel too_far", "out of bounds", "buffer 0", "4 bytes at offset 256 of 256", "thread (63, 0, 0)", `buffer "input" (256 bytes)`}},
		{"divergent barrier", func() mtl.CommandBuffer { return plain("divergent", size(1), size(32), out) },
			mtl.CommandBufferErrorTimeout, []string{"kernel divergent", "divergent barrier"}},
		{"unbound slot", func() mtl.CommandBuffer { return plain("too_far", size(1), size(32), in) },
			mtl.CommandBufferErrorInvalidResource, []string{`kernel "too_far"`, "nothing is bound at slot 1 (out)"}},
		{"too many threads", func() mtl.CommandBuffer { return plain("too_far", size(1), size(64, 32), in, out) },
			mtl.CommandBufferErrorInvalidResource, []string{"2048 threads", "maxTotalThreadsPerThreadgroup is 1024"}},
		{"no threads", func() mtl.CommandBuffer { return plain("too_far", size(1), mtl.Size{}, in, out) },
			mtl.CommandBufferErrorInvalidResource, []string{"a threadgroup of [0 0 0] threads"}},
		{"endless", func() mtl.CommandBuffer { return plain("endless", size(1), size(1), zero) },
			mtl.CommandBufferErrorTimeout, []string{"kernel endless", "step limit"}},
		{"offset beyond", func() mtl.CommandBuffer {
			return serial(func(e mtl.ComputeCommandEncoder) {
				e.SetComputePipelineState(r.pipeline("plus_ten"))
				e.SetBuffer(in, 256, 0)
				e.DispatchThreads(size(1), size(1))
			})
		}, mtl.CommandBufferErrorInvalidResource, []string{"offset 256 at slot 0", "which has 256 bytes"}},
		{"offset misaligned", func() mtl.CommandBuffer {
			return serial(func(e mtl.ComputeCommandEncoder) {
				e.SetComputePipelineState(r.pipeline("plus_ten"))
				e.SetBuffer(in, 2, 0)
				e.DispatchThreads(size(1), size(1))
			})
		}, mtl.CommandBufferErrorInvalidResource, []string{"offset 2 at slot 0 (x, uint)", "not a multiple of 4"}},
		{"constants too short", func() mtl.CommandBuffer {
			return serial(func(e mtl.ComputeCommandEncoder) {
				e.SetComputePipelineState(r.pipeline("put"))
				e.SetBuffer(in, 0, 0)
				e.SetBytes(constants(1), 1)
				e.DispatchThreads(size(1), size(1))
			})
		}, mtl.CommandBufferErrorInvalidResource, []string{"slot 1 (p, Put) needs 8 bytes", "bytes set on the encoder has 4"}},
		{"pipeline of another device", func() mtl.CommandBuffer {
			return serial(func(e mtl.ComputeCommandEncoder) {
				e.SetComputePipelineState(mtl.ComputePipelineStateOf(in.ID()))
			})
		}, mtl.CommandBufferErrorInvalidResource, []string{"is no pipeline of this device"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer objc.NewPool().Drain()
			mustFail(t, c.cb(), c.code, c.texts...)
			mustRun(t, plain("twice_plus_one", size(1), size(4), out))
		})
	}
	require.EqualValues(t, 10, Stats(r.dev).Failures)
}

// TestNoWork does nothing for a grid of no threadgroups, even if the threadgroup has no threads either.
func TestNoWork(t *testing.T) {
	r := newRig(t, Options{})
	mustRun(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(r.pipeline("plus_ten"))
		e.DispatchThreadgroups(mtl.Size{}, mtl.Size{})
		e.DispatchThreads(size(0), size(32))
	}))
	require.Zero(t, Stats(r.dev).Dispatches)
}

// TestUnretained finds a buffer that is gone when it is used.
func TestUnretained(t *testing.T) {
	r := newRig(t, Options{})
	x := r.dev.NewBufferWithLength(64, 0)
	x.SetLabel("short-lived")
	cb := r.queue.CommandBufferWithUnretainedReferences()
	e := cb.ComputeCommandEncoder()
	r.run(e, "plus_ten", 4, x)
	e.EndEncoding()
	x.Release()
	mustFail(t, cb, mtl.CommandBufferErrorInvalidResource, `buffer "short-lived" at slot 0 (x) has been released`)
}

// TestDispatchAllocations wants encoding to allocate nothing per dispatch.
func TestDispatchAllocations(t *testing.T) {
	if racing {
		t.Skip("the race detector allocates")
	}
	r := newRig(t, Options{Workers: 1})
	x, y := words(t, r.dev, make([]uint32, 64)...), words(t, r.dev, make([]uint32, 64)...)
	p, q := r.pipeline("put"), r.pipeline("plus_ten")
	consts := constants(0, 1)
	encode := func(n int) {
		cb := r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
			for range n {
				e.SetComputePipelineState(p)
				e.SetBuffer(x, 0, 0)
				e.SetBytes(consts, 1)
				e.DispatchThreads(size(4), size(4))
				e.SetComputePipelineState(q)
				e.SetBuffer(y, 0, 0)
				e.DispatchThreadgroups(size(1), size(4))
			}
		})
		cb.Commit()
		cb.WaitUntilCompleted()
	}
	for range 3 {
		encode(400)
	}
	few, many := testing.AllocsPerRun(10, func() { encode(10) }), testing.AllocsPerRun(10, func() { encode(400) })
	require.InDelta(t, few, many, 20, "allocations must not grow with the number of dispatches")
}

// TestEncoderOddities sends the messages that other tests do not.
func TestEncoderOddities(t *testing.T) {
	r := newRig(t, Options{})
	x, y := words(t, r.dev, 1, 1), words(t, r.dev, 2, 2)
	fence := r.dev.NewFence()
	defer fence.Release()
	fence.SetLabel("order")
	require.Equal(t, "order", fence.Label())
	cb := r.queue.CommandBuffer()
	pass, err := mtl.NewComputePassDescriptor(r.dev)
	require.NoError(t, err)
	defer pass.Release()
	pass.SetDispatchType(mtl.DispatchTypeConcurrent)
	cb.PushDebugGroup("group")
	e := cb.ComputeCommandEncoderWithDescriptor(pass)
	require.Equal(t, mtl.DispatchTypeConcurrent, e.DispatchType())
	require.Equal(t, r.dev.ID(), e.Device().ID())
	e.SetLabel("odd")
	require.Equal(t, "odd", e.Label())
	e.PushDebugGroup("inner")
	e.InsertDebugSignpost("here")
	e.WaitForFence(fence)
	e.SetComputePipelineState(r.pipeline("plus_ten"))
	require.NoError(t, e.SetBuffersAttributeStrides([]mtl.Buffer{x}, []uint{0}, []uint{4}, 0))
	e.SetBufferAttributeStride(y, 0, 4, 0)
	e.SetBufferOffsetAttributeStride(4, 4, 0)
	e.SetBytesAttributeStride(constants(1), 4, 3)
	e.UseResources([]mtl.Resource{x.Resource, y.Resource}, mtl.ResourceUsageRead)
	e.UseHeaps(nil)
	e.DispatchThreads(size(1), size(1))
	e.UpdateFence(fence)
	e.BarrierAfterQueueStages(1, 1)
	e.PopDebugGroup()
	e.EndEncoding()
	cb.PopDebugGroup()
	mustRun(t, cb)
	require.Equal(t, []uint32{2, 12}, wordsOf(y))

	for _, c := range []struct {
		do   func(e mtl.ComputeCommandEncoder)
		text string
	}{
		{func(e mtl.ComputeCommandEncoder) { e.SetBuffer(mtl.BufferOf(fence.ID()), 0, 0) }, "an object of class IngotFence at index 0 is no buffer"},
		{func(e mtl.ComputeCommandEncoder) { _ = e.SetBuffers(make([]mtl.Buffer, 2), make([]uint, 2), 30) }, "indices from 30, 2 of them"},
		{func(e mtl.ComputeCommandEncoder) { e.UseResource(mtl.ResourceOf(fence.ID()), mtl.ResourceUsageRead) }, "is no resource"},
		{func(e mtl.ComputeCommandEncoder) { e.MemoryBarrierWithResources([]mtl.Resource{{}}) }, "nil is no resource"},
		{func(e mtl.ComputeCommandEncoder) { e.ExecuteCommandsInBuffer(mtl.IndirectCommandBuffer{}, mtl.Range{}) }, "nil is no indirect command buffer"},
		{func(e mtl.ComputeCommandEncoder) {
			e.SetComputePipelineState(r.pipeline("plus_ten"))
			e.DispatchThreads(size(1<<32), size(1))
		}, "too large a size"},
		{func(e mtl.ComputeCommandEncoder) { e.PopDebugGroup() }, "popDebugGroup without"},
		{func(e mtl.ComputeCommandEncoder) { e.PushDebugGroup("x") }, "endEncoding with 1 debug groups open"},
	} {
		mustFail(t, r.encode(mtl.DispatchTypeSerial, c.do), map[bool]mtl.CommandBufferError{
			false: mtl.CommandBufferErrorInvalidResource, true: mtl.CommandBufferErrorInternal}[strings.Contains(c.text, "ebug")], c.text)
	}
}

// TestUnbind takes a buffer away again.
func TestUnbind(t *testing.T) {
	r := newRig(t, Options{})
	x := words(t, r.dev, 1)
	mustFail(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(r.pipeline("plus_ten"))
		e.SetBuffer(x, 0, 0)
		e.SetBuffer(mtl.Buffer{}, 0, 0)
		e.DispatchThreads(size(1), size(1))
	}), mtl.CommandBufferErrorInvalidResource, "nothing is bound at slot 0 (x)")
}
