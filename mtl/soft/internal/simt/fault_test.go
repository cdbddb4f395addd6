package simt

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

func faultOf(t testing.TB, err error) *Fault {
	t.Helper()
	var f *Fault
	require.True(t, errors.As(err, &f), "no fault but %v", err)
	require.NotEmpty(t, f.Kernel)
	require.NotContains(t, f.Error(), "%!")
	return f
}

// copyKernel is out[i+d] = in[i].
func copyKernel(d int) *bld {
	b := newBld()
	out, in := b.buffer("out", 0), b.buffer("in", 3)
	i := b.builtin("thread_position_in_grid")
	b.put(b.at(b.i(32), in, i), out, b.op(air.OpAdd, i, b.c(d)))
	b.ret()
	return b
}

func TestFaultBounds(t *testing.T) {
	p := copyKernel(0).compile(t)
	d := &Dispatch{Groups: [3]uint32{3, 1, 1}, Threads: [3]uint32{40, 1, 1}}
	d.Buffers[0] = Buffer{Mem: make([]byte, 600), Offset: 8, Name: "result"}
	d.Buffers[3] = Buffer{Mem: make([]byte, 4*119+3)}
	f := faultOf(t, p.Run(d, 1))
	require.Equal(t, Fault{Kernel: "test", Kind: FaultOutOfBounds, Instruction: f.Instruction, Thread: [3]uint32{119, 0, 0}, Threadgroup: [3]uint32{2, 0, 0},
		Memory: MemoryBuffer, Name: "in", Slot: 3, Offset: 476, Size: 4, Length: 479, Align: 4}, *f)
	require.Contains(t, f.Instruction, "load i32")
	require.Contains(t, f.Error(), `kernel test: out of bounds: buffer 3 (in): 4 bytes at offset 476 of 479; instruction "`)
	require.Contains(t, f.Error(), "thread (119, 0, 0) of the grid, threadgroup (2, 0, 0)")

	// The store, with a bound offset and a name.
	d.Buffers[3].Mem = make([]byte, 480)
	d.Buffers[0].Mem = make([]byte, 8+4*100)
	f = faultOf(t, p.Run(d, 1))
	require.Equal(t, [3]uint32{100, 0, 0}, f.Thread)
	require.EqualValues(t, 400, f.Offset)
	require.EqualValues(t, 400, f.Length)
	require.Equal(t, "out = result", f.Name)

	// Below the start of the binding.
	p = copyKernel(-1).compile(t)
	d.Buffers[0].Mem = make([]byte, 800)
	f = faultOf(t, p.Run(d, 1))
	require.Equal(t, FaultOutOfBounds, f.Kind)
	require.EqualValues(t, -4, int64(f.Offset))
	require.Contains(t, f.Error(), "offset -4 of 792")
	require.Equal(t, [3]uint32{}, f.Thread)

	// Far off, beyond what an offset can hold.
	b := newBld()
	out := b.buffer("out", 0)
	b.put(b.c(1), out, b.cn(64, 1<<61))
	b.ret()
	f = faultOf(t, launch(b.compile(t), 1, 1, make([]byte, 8)))
	require.Contains(t, []string{FaultOutOfBounds, FaultBadPointer, FaultNull}, f.Kind)
}

// TestFaultThread names a thread that was there.
func TestFaultThread(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	i := b.builtin("thread_position_in_grid")
	then, end := b.block("then"), b.block("end")
	b.condBr(b.cmp(air.ICmpUGT, i, b.c(8)), then, end)
	b.b = then
	b.put(b.at(b.i(32), out, b.c(50)), out, i)
	b.br(end)
	b.b = end
	b.ret()
	f := faultOf(t, launch(b.compile(t), 1, 32, make([]byte, 200)))
	require.EqualValues(t, 9, f.Thread[0])
	require.EqualValues(t, 200, f.Offset)
}

func TestFaultUnbound(t *testing.T) {
	p := copyKernel(0).compile(t)
	f := faultOf(t, launch(p, 1, 1, make([]byte, 4)))
	require.Equal(t, FaultUnbound, f.Kind)
	require.Equal(t, 3, f.Slot)
	require.Equal(t, "in", f.Name)

	// A buffer of no bytes is bound, and too short.
	d := &Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{1, 1, 1}}
	d.Buffers[0].Mem, d.Buffers[3].Mem = make([]byte, 4), []byte{}
	f = faultOf(t, p.Run(d, 1))
	require.Equal(t, FaultOutOfBounds, f.Kind)
	require.EqualValues(t, 0, f.Length)
}

func TestFaultMisaligned(t *testing.T) {
	p := copyKernel(0).compile(t)
	d := &Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{32, 1, 1}}
	d.Buffers[0].Mem = make([]byte, 400)
	d.Buffers[3] = Buffer{Mem: make([]byte, 400), Offset: 2}
	f := faultOf(t, p.Run(d, 1))
	require.Equal(t, FaultMisaligned, f.Kind)
	require.EqualValues(t, 4, f.Align)
	require.Contains(t, f.Error(), "needs alignment 4")

	// The instruction may ask for less.
	b := newBld()
	out := b.buffer("out", 0)
	in := b.load(b.i(32), b.gep(b.i(8), out, b.c(1)))
	in.Align = 1
	b.put(in, out, b.c(2))
	b.ret()
	mem := []byte{0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0}
	require.NoError(t, launch(b.compile(t), 1, 1, mem))
	require.EqualValues(t, 0x04030201, binary.LittleEndian.Uint32(mem[8:]))
}

func TestFaultNull(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	null := &air.Const{Kind: air.NullConst, Ty: b.m.Pointer(nil, 1)}
	b.put(b.at(b.i(32), null, b.c(2)), out, b.c(0))
	b.ret()
	f := faultOf(t, launch(b.compile(t), 1, 1, make([]byte, 4)))
	require.Equal(t, FaultNull, f.Kind)
	require.Equal(t, -1, f.Slot)

	b = newBld()
	b.buffer("out", 0)
	p := b.cast(air.OpIntToPtr, b.m.Pointer(nil, 1), b.cn(64, 0x1234567890abcdef))
	b.store(b.c(1), p)
	b.ret()
	f = faultOf(t, launch(b.compile(t), 1, 1, make([]byte, 4)))
	require.Equal(t, FaultBadPointer, f.Kind)
}

func TestFaultThreadgroup(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	tg := b.shared("tile", 2)
	i := b.builtin("thread_index_in_threadgroup")
	b.put(i, tg, i)
	b.put(b.at(b.i(32), tg, i), out, i)
	b.ret()
	p := b.compile(t)
	d := &Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{32, 1, 1}}
	d.Buffers[0].Mem = make([]byte, 128)
	f := faultOf(t, p.Run(d, 1))
	require.Equal(t, FaultThreadgroup, f.Kind)
	require.Equal(t, 2, f.Slot)
	require.Contains(t, f.Error(), "no length was set")
	d.ThreadgroupMemory[2] = 112
	f = faultOf(t, p.Run(d, 1))
	require.Equal(t, FaultOutOfBounds, f.Kind)
	require.Equal(t, MemoryThreadgroup, f.Memory)
	require.Equal(t, "tile", f.Name)
	require.Equal(t, 2, f.Slot)
	require.EqualValues(t, 28, f.Thread[0])
	require.EqualValues(t, 112, f.Length)
	d.ThreadgroupMemory[2] = 40000
	require.Equal(t, FaultThreadgroup, faultOf(t, p.Run(d, 1)).Kind)
	d.ThreadgroupMemory[2] = 129
	require.Equal(t, FaultThreadgroup, faultOf(t, p.Run(d, 1)).Kind)
	d.ThreadgroupMemory[2] = 128
	require.NoError(t, p.Run(d, 1))
	require.EqualValues(t, 31, binary.LittleEndian.Uint32(d.Buffers[0].Mem[124:]))
}

func TestFaultPrivate(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	i := b.builtin("thread_position_in_grid")
	v := b.add(&air.Instr{Op: air.OpAlloca, Name: "local", Ty: b.m.Pointer(nil, 0), SourceType: b.m.Array(b.i(32), 5), Args: []air.Value{b.c(1)}})
	b.put(b.c(7), v, i)
	b.put(b.at(b.i(32), v, b.c(0)), out, i)
	b.ret()
	f := faultOf(t, launch(b.compile(t), 1, 8, make([]byte, 32)))
	require.Equal(t, MemoryPrivate, f.Memory)
	require.Equal(t, "local", f.Name)
	require.EqualValues(t, 20, f.Length)
	require.EqualValues(t, 20, f.Offset)
	require.EqualValues(t, 5, f.Thread[0])
}

func TestFaultThreads(t *testing.T) {
	b := copyKernel(0)
	b.k.MaxThreads = 64
	p := b.compile(t)
	require.Equal(t, 64, p.MaxThreadsPerThreadgroup())
	f := faultOf(t, launch(p, 1, 65))
	require.Equal(t, FaultTooManyThreads, f.Kind)
	require.Contains(t, f.Error(), "65 x 1 x 1")
	f = faultOf(t, launch(copyKernel(0).compile(t), 1, 1025))
	require.Equal(t, FaultTooManyThreads, f.Kind)
	f = faultOf(t, p.Run(&Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{1 << 31, 2, 1 << 31}}, 1))
	require.Equal(t, FaultTooManyThreads, f.Kind)
	f = faultOf(t, p.Run(&Dispatch{Groups: [3]uint32{3, 1, 1}, Threads: [3]uint32{8, 1, 1}, Grid: [3]uint32{33, 1, 1}}, 1))
	require.Equal(t, FaultDispatch, f.Kind)
	f = faultOf(t, p.Run(&Dispatch{Groups: [3]uint32{1 << 31, 1, 1}, Threads: [3]uint32{8, 1, 1}}, 1))
	require.Equal(t, FaultDispatch, f.Kind)
	d := &Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{1, 1, 1}}
	d.Buffers[0] = Buffer{Mem: make([]byte, 4), Offset: 5}
	require.Equal(t, FaultDispatch, faultOf(t, p.Run(d, 1)).Kind)
}

func TestFaultSteps(t *testing.T) {
	b := newBld()
	b.buffer("out", 0)
	loop := b.block("loop")
	b.br(loop)
	b.b = loop
	b.br(loop)
	p := b.compile(t)
	for _, workers := range []int{1, 2} {
		f := faultOf(t, p.Run(&Dispatch{Groups: [3]uint32{4, 1, 1}, Threads: [3]uint32{64, 1, 1}, Steps: 10000}, workers))
		require.Equal(t, FaultStepLimit, f.Kind)
	}

	// A loop that only some lanes never leave.
	b = newBld()
	i := b.builtin("thread_position_in_grid")
	loop, end := b.block("loop"), b.block("end")
	b.br(loop)
	b.b = loop
	b.condBr(b.cmp(air.ICmpEQ, i, b.c(5)), loop, end)
	b.b = end
	b.ret()
	f := faultOf(t, b.compile(t).Run(&Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{32, 1, 1}, Steps: 10000}, 1))
	require.Equal(t, FaultStepLimit, f.Kind)
	require.EqualValues(t, 5, f.Thread[0])
}

func TestFaultUnreachable(t *testing.T) {
	b := newBld()
	i := b.builtin("thread_position_in_grid")
	bad, end := b.block("bad"), b.block("end")
	b.condBr(b.cmp(air.ICmpEQ, i, b.c(3)), bad, end)
	b.b = bad
	b.add(&air.Instr{Op: air.OpUnreachable})
	b.b = end
	b.ret()
	p := b.compile(t)
	require.NoError(t, launch(p, 1, 3))
	f := faultOf(t, launch(p, 1, 4))
	require.Equal(t, FaultUnreachable, f.Kind)
	require.EqualValues(t, 3, f.Thread[0])
}

// TestFaultBarrier reaches a barrier by some lanes only, in every way there is.
func TestFaultBarrier(t *testing.T) {
	// Inside a branch.
	inside := func(limit int) *bld {
		b := newBld()
		i := b.builtin("thread_index_in_threadgroup")
		then, end := b.block("then"), b.block("end")
		b.condBr(b.cmp(air.ICmpULT, i, b.c(limit)), then, end)
		b.b = then
		b.barrier()
		b.br(end)
		b.b = end
		b.ret()
		return b
	}
	f := faultOf(t, launch(inside(5).compile(t), 1, 32))
	require.Equal(t, FaultDivergentBarrier, f.Kind)
	require.Contains(t, f.Instruction, "air.wg.barrier")
	require.Contains(t, f.Error(), "5 lanes of the simdgroup are at the barrier while 27")
	// A whole simdgroup skips it and ends.
	f = faultOf(t, launch(inside(32).compile(t), 1, 64))
	require.Equal(t, FaultDivergentBarrier, f.Kind)
	require.Contains(t, f.Error(), "has ended")
	require.NoError(t, launch(inside(64).compile(t), 1, 64))
	require.NoError(t, launch(inside(0).compile(t), 1, 64))

	// Some lanes have returned.
	b := newBld()
	i := b.builtin("thread_index_in_threadgroup")
	go1, end := b.block("on"), b.block("end")
	b.condBr(b.cmp(air.ICmpULT, i, b.c(31)), go1, end)
	b.b = go1
	b.barrier()
	b.br(end)
	b.b = end
	b.ret()
	require.Equal(t, FaultDivergentBarrier, faultOf(t, launch(b.compile(t), 1, 32)).Kind)

	// Two simdgroups at different barriers.
	b = newBld()
	i = b.builtin("simdgroup_index_in_threadgroup")
	x, y, end := b.block("x"), b.block("y"), b.block("end")
	b.condBr(b.cmp(air.ICmpEQ, i, b.c(0)), x, y)
	b.b = x
	b.barrier()
	b.br(end)
	b.b = y
	b.barrier()
	b.br(end)
	b.b = end
	b.ret()
	f = faultOf(t, launch(b.compile(t), 1, 64))
	require.Contains(t, f.Error(), "different barriers")
	require.NoError(t, launch(b.compile(t), 1, 32))

	// A simdgroup's own barrier.
	b = newBld()
	i = b.builtin("thread_index_in_threadgroup")
	then, end := b.block("then"), b.block("end")
	b.condBr(b.cmp(air.ICmpULT, i, b.c(9)), then, end)
	b.b = then
	b.call("air.simdgroup.barrier", b.m.Void(), b.c(2), b.c(4))
	b.br(end)
	b.b = end
	b.ret()
	f = faultOf(t, launch(b.compile(t), 1, 32))
	require.Equal(t, FaultDivergentBarrier, f.Kind)
	require.NoError(t, launch(b.compile(t), 1, 9))
}

func TestConstantWrite(t *testing.T) {
	b := newBld()
	g := &air.Global{ValueType: b.i(32), Space: 2, IsConst: true, Init: b.c(5)}
	g.Name, g.Ty = "table", b.m.Pointer(nil, 2)
	b.m.Globals = append(b.m.Globals, g)
	b.store(b.c(1), g)
	b.ret()
	f := faultOf(t, launch(b.compile(t), 1, 1))
	require.Equal(t, FaultConstantWrite, f.Kind)
	require.Equal(t, "table", f.Name)
}

// TestCompileErrors names what is not supported.
func TestCompileErrors(t *testing.T) {
	errOf := func(b *bld) string {
		_, err := compileKernel(b.m, b.k, Options{})
		require.Error(t, err)
		return err.Error()
	}
	b := newBld()
	b.call("air.sample_texture_2d.v4f32", b.m.Vector(b.m.Float(), 4), b.c(0))
	b.ret()
	require.Contains(t, errOf(b), "intrinsic air.sample_texture_2d.v4f32 is not supported")

	b = newBld()
	b.add(&air.Instr{Op: air.OpVAArg, Ty: b.i(32), Args: []air.Value{b.c(0)}})
	b.ret()
	require.Contains(t, errOf(b), "va_arg")

	b = newBld()
	b.add(&air.Instr{Op: air.OpCall, Callee: b.f, FuncType: b.f.FuncType})
	b.ret()
	require.Contains(t, errOf(b), "calls itself")

	b = newBld()
	x := b.builtin("no_such_thing")
	b.op(air.OpAdd, x, x)
	b.ret()
	require.Contains(t, errOf(b), "not supported")

	b = newBld()
	require.Contains(t, errOf(b), "no terminator")

	_, err := Compile(&air.Module{}, "none", Options{})
	require.ErrorContains(t, err, `no kernel "none"`)
}
