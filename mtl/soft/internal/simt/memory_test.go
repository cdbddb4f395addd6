package simt

import (
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

func decodeF32(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// TestPointers selects between buffers, keeps pointers in private memory, compares them, and takes them to integers and
// back.
func TestPointers(t *testing.T) {
	b := newBld()
	out, x, y := b.buffer("out", 0), b.buffer("x", 1), b.buffer("y", 2)
	i := b.builtin("thread_position_in_grid")
	odd := b.cmp(air.ICmpNE, b.op(air.OpAnd, i, b.c(1)), b.c(0))
	sel := b.add(&air.Instr{Op: air.OpSelect, Ty: x.Ty, Args: []air.Value{odd, x, y}})
	v0 := b.at(b.i(32), sel, i)
	slot := b.add(&air.Instr{Op: air.OpAlloca, Ty: b.m.Pointer(nil, 0), SourceType: x.Ty, Args: []air.Value{b.c(1)}})
	b.store(b.gep(b.i(32), sel, b.c(1)), slot)
	v1 := b.at(b.i(32), b.load(x.Ty, slot), i)
	n := b.cast(air.OpPtrToInt, b.i(64), sel)
	n = b.op(air.OpAdd, n, b.cn(64, 8))
	v2 := b.at(b.i(32), b.cast(air.OpIntToPtr, x.Ty, n), i)
	same := b.cmp(air.ICmpEQ, sel, x)
	g := b.cast(air.OpAddrSpaceCast, b.m.Pointer(nil, 0), sel)
	v3 := b.at(b.i(32), g, b.c(0))
	base := b.op(air.OpMul, i, b.c(5))
	for k, v := range []air.Value{v0, v1, v2, b.cast(air.OpZExt, b.i(32), same), v3} {
		b.put(v, out, b.op(air.OpAdd, base, b.c(k)))
	}
	b.ret()
	p := b.compile(t)
	const threads = 40
	mem := make([]byte, 4*5*threads)
	xs, ys := make([]uint32, threads+2), make([]uint32, threads+2)
	for k := range xs {
		xs[k], ys[k] = uint32(1000+k), uint32(2000+k)
	}
	require.NoError(t, launch(p, 1, threads, mem, bytesOf(xs), bytesOf(ys)))
	for k := uint32(0); k < threads; k++ {
		s := uint32(2000)
		if k&1 == 1 {
			s = 1000
		}
		want := []uint32{s + k, s + k + 1, s + k + 2, k & 1, s}
		for j, v := range want {
			require.Equal(t, v, binary.LittleEndian.Uint32(mem[4*(5*k+uint32(j)):]), "thread %d value %d", k, j)
		}
	}

	// One buffer at two slots: equal addresses are equal pointers.
	b = newBld()
	out, x, y = b.buffer("out", 0), b.buffer("x", 1), b.buffer("y", 2)
	b.put(b.cast(air.OpZExt, b.i(32), b.cmp(air.ICmpEQ, x, y)), out, b.c(0))
	b.put(b.cast(air.OpZExt, b.i(32), b.cmp(air.ICmpEQ, b.gep(b.i(32), x, b.c(1)), y)), out, b.c(1))
	b.put(b.at(b.i(32), y, b.c(-1)), out, b.c(2)) // still below the binding of y
	b.ret()
	p = b.compile(t)
	shared := bytesOf(xs)
	d := &Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{1, 1, 1}}
	d.Buffers[0].Mem, d.Buffers[1].Mem, d.Buffers[2] = make([]byte, 12), shared, Buffer{Mem: shared, Offset: 4}
	f := faultOf(t, p.Run(d, 1))
	require.Equal(t, 2, f.Slot)
	require.EqualValues(t, -4, int64(f.Offset))
	require.Equal(t, []uint32{0, 1}, []uint32{binary.LittleEndian.Uint32(d.Buffers[0].Mem), binary.LittleEndian.Uint32(d.Buffers[0].Mem[4:])})
}

// TestTypesInMemory loads and stores scalars, vectors and aggregates of every type, and copies of memory.
func TestTypesInMemory(t *testing.T) {
	all := func(ts *air.Module) []*air.Type {
		st := ts.Struct(false, ts.Int(8), ts.Float(), ts.Array(ts.Int(16), 3), ts.Vector(ts.Half(), 2))
		return []*air.Type{ts.Int(8), ts.Int(16), ts.Int(32), ts.Int(64), ts.Half(), ts.BFloat(), ts.Float(), ts.Double(), ts.Int(24), ts.Int(48),
			ts.Vector(ts.Int(8), 2), ts.Vector(ts.Int(8), 3), ts.Vector(ts.Int(8), 4), ts.Vector(ts.Int(8), 16), ts.Vector(ts.Int(16), 2), ts.Vector(ts.Int(16), 4),
			ts.Vector(ts.Half(), 8), ts.Vector(ts.Int(32), 2), ts.Vector(ts.Float(), 3), ts.Vector(ts.Float(), 4), ts.Vector(ts.Int(64), 2), ts.Vector(ts.Int(1), 8), ts.Vector(ts.Int(1), 4),
			st, ts.Array(st, 2), ts.Struct(true, ts.Int(8), ts.Int(32))}
	}
	rng := rand.New(rand.NewSource(9))
	for n := range all(&air.Module{}) {
		for _, varying := range []bool{false, true} {
			for _, private := range []bool{false, true} {
				b := newBld()
				typ := all(b.m)[n]
				out, in := b.buffer("out", 0), b.buffer("in", 1)
				i := air.Value(b.builtin("thread_position_in_grid"))
				if !varying {
					i = b.c(0)
				}
				v := b.at(typ, in, i)
				if private {
					slot := b.add(&air.Instr{Op: air.OpAlloca, Ty: b.m.Pointer(nil, 0), SourceType: b.m.Array(typ, 4), Args: []air.Value{b.c(1)}})
					k := b.op(air.OpAnd, b.f.Args[2], b.c(3))
					b.put(v, slot, k)
					v = b.at(typ, slot, k)
				}
				b.put(v, out, i)
				b.ret()
				p := b.compile(t)
				size := int(air.Size(typ))
				threads := 37
				if !varying {
					threads = 1
				}
				src, dst := make([]byte, size*threads), make([]byte, size*threads)
				rng.Read(src)
				require.NoError(t, launch(p, 1, uint32(threads), dst, src))
				// Padding is not copied.
				for e := 0; e < threads; e++ {
					covered := coverage(typ)
					for k := 0; k < size; k++ {
						want := src[e*size+k] & covered[k]
						require.Equal(t, want, dst[e*size+k], "type %d %s, varying %v, private %v, element %d byte %d", n, typ, varying, private, e, k)
					}
				}
			}
		}
	}
}

// coverage has the bits of a type's memory that hold its value.
func coverage(t *air.Type) []byte {
	c := make([]byte, air.Size(t))
	switch t.Kind {
	case air.StructKind:
		offs, _ := air.StructLayout(t)
		for i, f := range t.Fields {
			copy(c[offs[i]:], coverage(f))
		}
	case air.ArrayKind:
		for i := uint64(0); i < t.Len; i++ {
			copy(c[i*air.Size(t.Elem):], coverage(t.Elem))
		}
	default:
		n := t.ScalarBits() * t.Lanes()
		for i := 0; i < n; i++ {
			c[i/8] |= 1 << (i % 8)
		}
	}
	return c
}

// TestMemIntrinsics copies, moves and sets memory between all spaces.
func TestMemIntrinsics(t *testing.T) {
	b := newBld()
	out, in := b.buffer("out", 0), b.buffer("in", 1)
	tg := b.shared("tg", 0)
	i := b.builtin("thread_position_in_grid")
	local := b.add(&air.Instr{Op: air.OpAlloca, Ty: b.m.Pointer(nil, 0), SourceType: b.m.Array(b.i(8), 16), Args: []air.Value{b.c(1)}})
	v := b.m.Void()
	off := b.op(air.OpMul, i, b.c(16))
	b.call("llvm.lifetime.start.p0i8", v, b.cn(64, 16), local)
	b.call("llvm.memset.p0i8.i64", v, local, b.cn(8, 0x5a), b.cn(64, 16), b.cn(1, 0))
	b.call("llvm.memcpy.p3i8.p1i8.i64", v, b.gep(b.i(8), tg, off), b.gep(b.i(8), in, off), b.cn(64, 10), b.cn(1, 0))
	b.call("llvm.memcpy.p0i8.p3i8.i64", v, local, b.gep(b.i(8), tg, off), b.cn(64, 9), b.cn(1, 0))
	b.call("llvm.memmove.p0i8.p0i8.i64", v, b.gep(b.i(8), local, b.c(2)), local, b.cn(64, 12), b.cn(1, 0))
	b.call("llvm.memcpy.p1i8.p0i8.i64", v, b.gep(b.i(8), out, off), local, b.cn(64, 16), b.cn(1, 0))
	b.call("llvm.lifetime.end.p0i8", v, b.cn(64, 16), local)
	b.ret()
	p := b.compile(t)
	d := &Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{40, 1, 1}}
	src := make([]byte, 640)
	rand.New(rand.NewSource(1)).Read(src)
	d.Buffers[0].Mem, d.Buffers[1].Mem = make([]byte, 640), src
	d.ThreadgroupMemory[0] = 640
	require.NoError(t, p.Run(d, 1))
	for k := 0; k < 40; k++ {
		var want [16]byte
		for j := range want {
			want[j] = 0x5a
		}
		copy(want[:9], src[16*k:])
		copy(want[2:14], append([]byte(nil), want[:12]...))
		require.Equal(t, want[:], d.Buffers[0].Mem[16*k:16*k+16], "thread %d", k)
	}
	d.Buffers[1].Mem = src[:639-6]
	f := faultOf(t, p.Run(d, 1))
	require.EqualValues(t, 10, f.Size)
	require.EqualValues(t, 624, f.Offset)
}

// TestUndefinedMemory starts as the same pattern in every threadgroup and thread.
func TestUndefinedMemory(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	tg := b.shared("tg", 0)
	i := b.builtin("thread_index_in_threadgroup")
	g := b.builtin("thread_position_in_grid")
	local := b.add(&air.Instr{Op: air.OpAlloca, Ty: b.m.Pointer(nil, 0), SourceType: b.m.Array(b.i(32), 4), Args: []air.Value{b.c(1)}})
	k := b.op(air.OpAnd, i, b.c(3))
	b.put(b.op(air.OpAdd, b.at(b.i(32), local, k), b.at(b.i(32), tg, i)), out, g)
	b.put(b.c(3), local, k)
	b.put(b.c(4), tg, i)
	b.ret()
	d := &Dispatch{Groups: [3]uint32{9, 1, 1}, Threads: [3]uint32{64, 1, 1}}
	d.Buffers[0].Mem = make([]byte, 4*9*64)
	d.ThreadgroupMemory[0] = 256
	p := b.compile(t)
	for range 2 {
		require.NoError(t, p.Run(d, 2))
		for k := 0; k < 9*64; k++ {
			require.Equal(t, uint32(0xfffffffe), binary.LittleEndian.Uint32(d.Buffers[0].Mem[4*k:]))
		}
	}
}

// TestConstantTables reads a table by constant and by computed index.
func TestConstantTables(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	i := b.builtin("thread_position_in_grid")
	at := b.m.Array(b.i(16), 5)
	g := &air.Global{ValueType: at, Space: 2, IsConst: true, Init: &air.Const{Kind: air.DataConst, Ty: at, Data: []uint64{5, 4, 3, 2, 65535}}}
	g.Name, g.Ty = "table", b.m.Pointer(nil, 2)
	b.m.Globals = append(b.m.Globals, g)
	v := b.at(b.i(16), g, b.op(air.OpURem, i, b.c(5)))
	w := b.at(b.i(16), g, b.c(1))
	b.put(b.op(air.OpAdd, b.cast(air.OpSExt, b.i(32), v), b.cast(air.OpZExt, b.i(32), w)), out, i)
	b.ret()
	mem := make([]byte, 4*33)
	require.NoError(t, launch(b.compile(t), 1, 33, mem))
	for k := 0; k < 33; k++ {
		require.EqualValues(t, []int32{9, 8, 7, 6, 3}[k%5], int32(binary.LittleEndian.Uint32(mem[4*k:])))
	}
	// Outside.
	b.b.Instrs = b.b.Instrs[:len(b.b.Instrs)-1]
	b.put(b.cast(air.OpZExt, b.i(32), b.at(b.i(16), g, i)), out, i)
	b.ret()
	f := faultOf(t, launch(b.compile(t), 1, 33, mem))
	require.Equal(t, MemoryConstant, f.Memory)
	require.EqualValues(t, 5, f.Thread[0])
}
