package simt

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

// TestBuiltins checks every built-in value in grids of all shapes, with smaller threadgroups at the edges.
func TestBuiltins(t *testing.T) {
	names := []string{"thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid", "threads_per_threadgroup",
		"dispatch_threads_per_threadgroup", "threads_per_grid", "threadgroups_per_grid"}
	scalars := []string{"thread_index_in_threadgroup", "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup", "threads_per_simdgroup",
		"simdgroups_per_threadgroup", "dispatch_simdgroups_per_threadgroup", "quadgroup_index_in_threadgroup", "thread_index_in_quadgroup", "thread_execution_width",
		"quadgroups_per_threadgroup", "dispatch_quadgroups_per_threadgroup"}
	b := newBld()
	out := b.buffer("out", 0)
	var vecs []*air.Arg
	for _, n := range names {
		vecs = append(vecs, b.builtin3(n))
	}
	var ones []*air.Arg
	for _, n := range scalars {
		ones = append(ones, b.builtin(n))
	}
	el := func(v air.Value, k int) air.Value {
		return b.add(&air.Instr{Op: air.OpExtractElement, Ty: b.i(32), Args: []air.Value{v, b.c(k)}})
	}
	words := 3*len(names) + len(scalars)
	pos, grid := vecs[0], vecs[5]
	index := b.op(air.OpAdd, el(pos, 0), b.op(air.OpMul, el(grid, 0), b.op(air.OpAdd, el(pos, 1), b.op(air.OpMul, el(grid, 1), el(pos, 2)))))
	base := b.op(air.OpMul, index, b.c(words))
	for i, v := range vecs {
		for k := 0; k < 3; k++ {
			b.put(el(v, k), out, b.op(air.OpAdd, base, b.c(3*i+k)))
		}
	}
	for i, v := range ones {
		b.put(v, out, b.op(air.OpAdd, base, b.c(3*len(vecs)+i)))
	}
	b.ret()
	p := b.compile(t)
	for _, c := range []struct{ groups, threads, grid [3]uint32 }{
		{[3]uint32{2, 1, 1}, [3]uint32{33, 1, 1}, [3]uint32{}},
		{[3]uint32{1, 2, 3}, [3]uint32{5, 7, 2}, [3]uint32{}},
		{[3]uint32{3, 2, 2}, [3]uint32{8, 4, 2}, [3]uint32{17, 7, 3}},
		{[3]uint32{1, 1, 1}, [3]uint32{64, 1, 1}, [3]uint32{40, 1, 1}},
		{[3]uint32{2, 1, 1}, [3]uint32{32, 32, 1}, [3]uint32{33, 9, 1}},
	} {
		full := c.grid
		for i := range full {
			if c.grid == [3]uint32{} || full[i] == 0 {
				full[i] = c.groups[i] * c.threads[i]
			}
		}
		mem := make([]byte, 4*words*int(product(full)))
		d := &Dispatch{Groups: c.groups, Threads: c.threads, Grid: c.grid}
		d.Buffers[0].Mem = mem
		require.NoError(t, p.Run(d, 2))
		at := 0
		for z := uint32(0); z < full[2]; z++ {
			for y := uint32(0); y < full[1]; y++ {
				for x := uint32(0); x < full[0]; x++ {
					pos := [3]uint32{x, y, z}
					var in, group, size [3]uint32
					for i := range pos {
						group[i], in[i] = pos[i]/c.threads[i], pos[i]%c.threads[i]
						size[i] = min(c.threads[i], full[i]-group[i]*c.threads[i])
					}
					idx := in[0] + size[0]*(in[1]+size[1]*in[2])
					up := func(n, m uint32) uint32 { return (n + m - 1) / m }
					var want []uint32
					for _, v := range [][3]uint32{pos, in, group, size, c.threads, full, c.groups} {
						want = append(want, v[:]...)
					}
					want = append(want, idx, idx%32, idx/32, 32, up(product(size), 32), up(product(c.threads), 32), idx/4, idx%4, 32, up(product(size), 4), up(product(c.threads), 4))
					for k, v := range want {
						if got := binary.LittleEndian.Uint32(mem[at+4*k:]); got != v {
							t.Fatalf("%+v thread %v: value %d is %d, want %d", c, pos, k, got, v)
						}
					}
					at += 4 * words
				}
			}
		}
	}
}

// TestSmallBuiltins declares built-ins as 16-bit values.
func TestSmallBuiltins(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	i := b.param(b.i(16), air.KernelArg{Kind: air.BuiltinArg, Name: "i", Builtin: "thread_position_in_grid"})
	b.put(b.cast(air.OpZExt, b.i(32), i), out, b.cast(air.OpZExt, b.i(32), i))
	b.ret()
	mem := make([]byte, 400)
	require.NoError(t, launch(b.compile(t), 2, 50, mem))
	require.EqualValues(t, 99, binary.LittleEndian.Uint32(mem[396:]))
}

// TestEmptyGrid does nothing.
func TestEmptyGrid(t *testing.T) {
	p := copyKernel(0).compile(t)
	require.NoError(t, launch(p, 0, 32))
	require.NoError(t, launch(p, 1, 0))
}

// reverseKernel reverses the words of each threadgroup through threadgroup memory, twice.
func reverseKernel() *bld {
	b := newBld()
	out := b.buffer("out", 0)
	tg := b.shared("tile", 0)
	i := b.builtin("thread_index_in_threadgroup")
	g := b.builtin("thread_position_in_grid")
	n := b.builtin("threads_per_threadgroup")
	last := b.op(air.OpSub, n, b.c(1))
	v := air.Value(b.at(b.i(32), out, g))
	for round := 0; round < 3; round++ {
		b.put(v, tg, i)
		b.barrier()
		v = b.op(air.OpAdd, b.at(b.i(32), tg, b.op(air.OpSub, last, i)), b.c(1))
		b.barrier()
	}
	b.put(v, out, g)
	b.ret()
	return b
}

func TestBarriers(t *testing.T) {
	p := reverseKernel().compile(t)
	for _, threads := range []uint32{1, 31, 32, 33, 100, 1024} {
		for _, workers := range []int{1, 3} {
			d := &Dispatch{Groups: [3]uint32{5, 1, 1}, Threads: [3]uint32{threads, 1, 1}}
			d.ThreadgroupMemory[0] = (4*threads + 15) &^ 15
			mem := make([]byte, 4*5*threads)
			for i := uint32(0); i < 5*threads; i++ {
				binary.LittleEndian.PutUint32(mem[4*i:], i*i)
			}
			d.Buffers[0].Mem = mem
			require.NoError(t, p.Run(d, workers))
			for i := uint32(0); i < 5*threads; i++ {
				g, k := i/threads, i%threads
				src := g*threads + threads - 1 - k
				require.Equal(t, src*src+3, binary.LittleEndian.Uint32(mem[4*i:]), "%d threads, word %d", threads, i)
			}
		}
	}
}

// TestStaticShared sums a threadgroup through static threadgroup variables, one with an initial value.
func TestStaticShared(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	i := b.builtin("thread_index_in_threadgroup")
	g := b.builtin("threadgroup_position_in_grid")
	global := func(name string, init air.Value) *air.Global {
		v := &air.Global{ValueType: b.i(32), Space: 3, Init: init}
		v.Name, v.Ty = name, b.m.Pointer(nil, 3)
		b.m.Globals = append(b.m.Globals, v)
		return v
	}
	start := global("start", b.c(100))
	sum := global("sum", &air.Const{Kind: air.UndefConst, Ty: b.i(32)})
	first, on, end := b.block("first"), b.block("on"), b.block("end")
	b.condBr(b.cmp(air.ICmpEQ, i, b.c(0)), first, on)
	b.b = first
	b.store(b.load(b.i(32), start), sum)
	b.store(b.c(0), start)
	b.br(on)
	b.b = on
	b.barrier()
	b.call("air.atomic.local.add.u.i32", b.i(32), sum, i, b.c(0), b.c(1), b.cn(1, 1))
	b.barrier()
	b.put(b.load(b.i(32), sum), out, g)
	b.br(end)
	b.b = end
	b.ret()
	p := b.compile(t)
	require.Equal(t, 32, p.StaticThreadgroupMemory())
	require.Equal(t, 32, p.ThreadExecutionWidth())
	mem := make([]byte, 4*6)
	require.NoError(t, launch(p, 6, 70, mem))
	for k := 0; k < 6; k++ {
		require.EqualValues(t, 100+69*70/2, binary.LittleEndian.Uint32(mem[4*k:]))
	}
}

// TestWorkers gives the same result whatever the number of workers, and allocates next to nothing.
func TestWorkers(t *testing.T) {
	g := newGen(7)
	p, err := compileKernel(g.m, g.k, Options{})
	require.NoError(t, err)
	var want []byte
	for _, workers := range []int{1, 2, 5} {
		d := &Dispatch{Groups: [3]uint32{37, 1, 1}, Threads: [3]uint32{65, 1, 1}}
		d.Buffers[0].Mem, d.Buffers[1].Mem = make([]byte, 37*65*4*(genVars+8)), make([]byte, 256)
		require.NoError(t, p.Run(d, workers))
		if want == nil {
			want = d.Buffers[0].Mem
		}
		require.Equal(t, want, d.Buffers[0].Mem)
		if raceDetector {
			continue
		}
		if n := testing.AllocsPerRun(20, func() { _ = p.Run(d, workers) }); n > float64(2*workers+2) {
			t.Errorf("%g allocations per launch on %d workers", n, workers)
		}
	}
}

// TestAtomics counts from many threadgroups at once.
func TestAtomics(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	old := b.buffer("old", 1)
	i := b.builtin("thread_position_in_grid")
	r := func(name string, k int, v air.Value) *air.Instr {
		return b.call("air.atomic.global."+name, v.Type(), b.gep(b.i(32), out, b.c(k)), v, b.c(0), b.c(2), b.cn(1, 1))
	}
	b.put(r("add.u.i32", 0, b.c(1)), old, i)
	r("max.u.i32", 1, i)
	r("min.s.i32", 2, b.op(air.OpSub, b.c(0), i))
	r("or.u.i32", 3, b.op(air.OpShl, b.c(1), b.op(air.OpAnd, i, b.c(31))))
	r("xor.u.i32", 4, i)
	r("add.f32", 5, b.cast(air.OpUIToFP, b.m.Float(), b.op(air.OpAnd, i, b.c(3))))
	r("sub.u.i32", 6, b.c(2))
	r("and.u.i32", 7, b.op(air.OpXor, b.c(-1), b.op(air.OpShl, b.c(1), b.op(air.OpAnd, i, b.c(15)))))
	b.call("air.atomic.global.max.u.i64", b.m.Void(), b.gep(b.i(32), out, b.c(8)), b.op(air.OpMul, b.cast(air.OpZExt, b.i(64), i), b.cn(64, 1<<33)), b.c(0), b.c(2), b.cn(1, 1))
	b.add(&air.Instr{Op: air.OpAtomicRMW, Ty: b.i(32), RMW: 1, Args: []air.Value{b.gep(b.i(32), out, b.c(10)), b.c(3)}})
	// A counter by compare-and-exchange.
	exp := b.add(&air.Instr{Op: air.OpAlloca, Ty: b.m.Pointer(nil, 0), SourceType: b.i(32), Args: []air.Value{b.c(1)}})
	counter := b.gep(b.i(32), out, b.c(11))
	b.store(b.call("air.atomic.global.load.i32", b.i(32), counter, b.c(0), b.c(2), b.cn(1, 1)), exp)
	loop, end := b.block("loop"), b.block("end")
	b.br(loop)
	b.b = loop
	want := b.load(b.i(32), exp)
	got := b.call("air.atomic.global.cmpxchg.weak.i32", b.i(32), counter, exp, b.op(air.OpAdd, want, b.c(1)), b.c(0), b.c(0), b.c(2), b.cn(1, 1))
	b.condBr(b.cmp(air.ICmpEQ, got, want), end, loop)
	b.b = end
	b.call("air.atomic.global.store.i32", b.m.Void(), b.gep(b.i(32), out, b.c(12)), b.c(77), b.c(0), b.c(2), b.cn(1, 1))
	r("xchg.i32", 13, b.c(5))
	b.ret()
	p := b.compile(t)
	for _, workers := range []int{1, 4} {
		const n = 40 * 50
		mem, olds := make([]byte, 4*14), make([]byte, 4*n)
		le := binary.LittleEndian
		le.PutUint32(mem[28:], 0xffffffff)
		d := &Dispatch{Groups: [3]uint32{40, 1, 1}, Threads: [3]uint32{50, 1, 1}}
		d.Buffers[0].Mem, d.Buffers[1].Mem = mem, olds
		require.NoError(t, p.Run(d, workers))
		var xor, neg uint32
		var sum float32
		for i := uint32(0); i < n; i++ {
			xor ^= i
			sum += float32(i & 3)
		}
		neg = n - 1
		require.Equal(t, []uint32{n, n - 1, -neg, 0xffffffff, xor}, []uint32{le.Uint32(mem), le.Uint32(mem[4:]), le.Uint32(mem[8:]), le.Uint32(mem[12:]), le.Uint32(mem[16:])})
		require.Equal(t, sum, decodeF32(mem[20:]))
		require.Equal(t, []uint32{uint32(1<<32 - 2*n), 0xffff0000}, []uint32{le.Uint32(mem[24:]), le.Uint32(mem[28:])})
		require.EqualValues(t, uint64(n-1)<<33, le.Uint64(mem[32:]))
		require.Equal(t, []uint32{3 * n, n, 77, 5}, []uint32{le.Uint32(mem[40:]), le.Uint32(mem[44:]), le.Uint32(mem[48:]), le.Uint32(mem[52:])})
		seen := map[uint32]bool{}
		for i := 0; i < n; i++ {
			seen[le.Uint32(olds[4*i:])] = true
		}
		require.Len(t, seen, n, "old values repeat")
	}
	// Memory that starts at an odd address still works.
	d := &Dispatch{Groups: [3]uint32{4, 1, 1}, Threads: [3]uint32{32, 1, 1}}
	d.Buffers[0].Mem, d.Buffers[1].Mem = make([]byte, 64)[1:57], make([]byte, 512)
	require.NoError(t, p.Run(d, 3))
	require.EqualValues(t, 128, binary.LittleEndian.Uint32(d.Buffers[0].Mem))
}
