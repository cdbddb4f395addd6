package simt

import (
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

// TestMatrix loads, multiplies, scales and stores 8x8 matrices.
func TestMatrix(t *testing.T) {
	for _, trans := range []bool{false, true} {
		b := newBld()
		out, x, y := b.buffer("out", 0), b.buffer("x", 1), b.buffer("y", 2)
		fl, hf := b.m.Float(), b.m.Half()
		mf, mh := b.m.Vector(fl, 64), b.m.Vector(hf, 64)
		v2 := b.m.Vector(b.i(64), 2)
		origin := func(c, r uint64) air.Value {
			return &air.Const{Kind: air.DataConst, Ty: v2, Data: []uint64{c, r}}
		}
		bit := func(v bool) air.Value { return b.cn(1, uint64(b2u(v))) }
		a := b.call("air.simdgroup_matrix_8x8_load.v64f32.p1f32", mf, x, b.cn(64, 20), origin(3, 1), bit(trans))
		h := b.call("air.simdgroup_matrix_8x8_load.v64f16.p1f16", mh, y, b.cn(64, 9), origin(0, 0), bit(false))
		d := b.call("air.simdgroup_matrix_8x8_init_diag.v64f32.f32", mf, &air.Const{Kind: air.FloatConst, Ty: fl, Bits: 0x40000000})
		z := b.call("air.simdgroup_matrix_8x8_init_filled.v64f32.f32", mf, &air.Const{Kind: air.FloatConst, Ty: fl, Bits: 0x3f000000})
		s := b.call("air.simdgroup_matrix_8x8_multiply_accumulate.v64f32.v64f32.v64f32.v64f32", mf, a, d, z) // 2a + 1/2
		r := b.call("air.simdgroup_matrix_8x8_multiply_accumulate.v64f32.v64f32.v64f16.v64f32", mf, s, h, d)
		// Scale each lane's elements, through private memory.
		slot := b.add(&air.Instr{Op: air.OpAlloca, Ty: b.m.Pointer(nil, 0), SourceType: mf, Args: []air.Value{b.c(1)}})
		b.store(r, slot)
		r = b.load(mf, slot)
		for k := 0; k < 2; k++ {
			e := b.add(&air.Instr{Op: air.OpExtractElement, Ty: fl, Args: []air.Value{r, b.c(k)}})
			r = b.add(&air.Instr{Op: air.OpInsertElement, Ty: mf, Args: []air.Value{r, b.op(air.OpFNeg, e), b.c(k)}})
		}
		b.call("air.simdgroup_matrix_8x8_store.v64f32.p1f32", b.m.Void(), r, out, b.cn(64, 11), origin(2, 0), bit(trans))
		b.ret()
		rng := rand.New(rand.NewSource(1))
		xs, ys := make([]float32, 240), make([]uint16, 72)
		for i := range xs {
			xs[i] = float32(rng.Intn(9) - 4)
		}
		for i := range ys {
			ys[i] = uint16(f32ToHalf(math.Float32bits(float32(rng.Intn(9) - 4))))
		}
		mem := make([]byte, 4*100)
		require.NoError(t, launch(b.compile(t), 1, 32, mem, bytesOf(xs), bytesOf(ys)))
		at := func(r, c int) float64 {
			if trans {
				r, c = c, r
			}
			return float64(xs[(r+1)*20+c+3])
		}
		for r := 0; r < 8; r++ {
			for c := 0; c < 8; c++ {
				var want float64
				for k := 0; k < 8; k++ {
					want += (2*at(r, k) + 0.5) * f16(uint64(ys[k*9+c]))
				}
				if r == c {
					want += 2
				}
				i := r*11 + c + 2
				if trans {
					i = c*11 + r + 2
				}
				require.Equal(t, float32(-want), decodeF32(mem[4*i:]), "cell %d, %d", r, c)
			}
		}
	}
}

// TestTileCopy fetches a tile with a ragged edge into threadgroup memory.
func TestTileCopy(t *testing.T) {
	b := newBld()
	out, in := b.buffer("out", 0), b.buffer("in", 1)
	tg := b.shared("tile", 0)
	i := b.builtin("thread_index_in_simdgroup")
	v2 := b.m.Vector(b.i(64), 2)
	two := func(x, y uint64) air.Value { return &air.Const{Kind: air.DataConst, Ty: v2, Data: []uint64{x, y}} }
	n := func(v uint64) air.Value { return b.cn(64, v) }
	ev := b.call("air.simdgroup_async_copy_2d.p3i8.p1i8", b.m.Pointer(nil, 0), n(4), n(4), tg, n(4), n(1), two(4, 4), in, n(5), n(1), two(3, 2), two(0, 0), b.c(0))
	slot := b.add(&air.Instr{Op: air.OpAlloca, Ty: b.m.Pointer(nil, 0), SourceType: ev.Ty, Args: []air.Value{b.c(1)}})
	b.store(ev, slot)
	b.call("air.simdgroup_async_copy_1d.p3i8.p1i8", b.m.Pointer(nil, 0), n(4), n(4), b.gep(b.i(32), tg, b.c(16)), in, n(16))
	b.call("air.wait_simdgroup_events", b.m.Void(), b.c(1), slot)
	b.put(b.at(b.i(32), tg, i), out, i)
	b.ret()
	d := &Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{32, 1, 1}}
	src := make([]uint32, 16)
	for k := range src {
		src[k] = uint32(k + 1)
	}
	d.Buffers[0].Mem, d.Buffers[1].Mem = make([]byte, 128), bytesOf(src)
	d.ThreadgroupMemory[0] = 128
	require.NoError(t, b.compile(t).Run(d, 1))
	want := []uint32{1, 2, 3, 0, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	for k, v := range want {
		require.Equal(t, v, binary.LittleEndian.Uint32(d.Buffers[0].Mem[4*k:]), "word %d", k)
	}
}

// constantKernel multiplies by one function constant and adds another if it is given; a static constructor moves their
// values, as Apple's compiler has it.
func constantKernel() *bld {
	b := newBld()
	out := b.buffer("out", 0)
	i := b.builtin("thread_position_in_grid")
	global := func(name string, t *air.Type) *air.Global {
		g := &air.Global{ValueType: t, Space: 2, Init: &air.Const{Kind: air.UndefConst, Ty: t}}
		g.Name, g.Ty = name, b.m.Pointer(nil, 2)
		b.m.Globals = append(b.m.Globals, g)
		return g
	}
	f1, f2 := global("_Z5scale.MTL_FC_INIT_0_j", b.i(32)), global("_Z3off.MTL_FC_INIT_7_h", b.i(8))
	scale, off := global("_ZL5scale", b.i(32)), global("_ZL3off", b.i(8))
	kernel := b.f
	ctor := &air.Function{FuncType: b.m.FuncType(b.m.Void(), false)}
	ctor.Name = "_GLOBAL__sub_I_test"
	b.m.Functions = append(b.m.Functions, ctor)
	b.f = ctor
	save := b.b
	b.b = b.m.NewBlock(ctor, "entry")
	b.store(b.load(b.i(32), f1), scale)
	b.store(b.call("air.normalize_function_constant_predicate.i8", b.i(8), b.load(b.i(8), f2)), off)
	b.ret()
	b.f, b.b = kernel, save
	entry := b.m.Struct(false, b.i(32), b.m.Pointer(nil, 0), b.m.Pointer(nil, 0))
	list := b.m.Array(entry, 1)
	ctors := &air.Global{ValueType: list, Init: &air.Const{Kind: air.AggregateConst, Ty: list, Elems: []air.Value{
		&air.Const{Kind: air.AggregateConst, Ty: entry, Elems: []air.Value{b.c(65535), ctor, &air.Const{Kind: air.NullConst, Ty: b.m.Pointer(nil, 0)}}}}}}
	ctors.Name, ctors.Ty = "llvm.global_ctors", b.m.Pointer(nil, 0)
	b.m.Globals = append(b.m.Globals, ctors)
	b.k.Constants = []air.FunctionConstant{{Name: "scale", TypeName: "uint", Index: 0, Active: true, Global: f1}, {Name: "off", TypeName: "bool", Index: 7, Active: true, Global: f2}}

	v := b.op(air.OpMul, i, b.load(b.i(32), scale))
	use, end := b.block("use"), b.block("end")
	from := b.b
	b.condBr(b.call("air.is_function_constant_defined", b.i(1), f2), use, end)
	b.b = use
	w := b.op(air.OpAdd, v, b.cast(air.OpZExt, b.i(32), b.load(b.i(8), off)))
	b.br(end)
	b.b = end
	r := b.add(&air.Instr{Op: air.OpPhi, Ty: b.i(32), Args: []air.Value{v, w}, Blocks: []*air.Block{from, use}})
	b.put(r, out, i)
	b.ret()
	return b
}

func TestFunctionConstants(t *testing.T) {
	b := constantKernel()
	run := func(opt Options) (uint32, int) {
		p, err := compileKernel(b.m, b.k, opt)
		require.NoError(t, err)
		mem := make([]byte, 40)
		require.NoError(t, launch(p, 1, 10, mem))
		return binary.LittleEndian.Uint32(mem[36:]), len(p.code)
	}
	v, n := run(Options{Constants: map[int]Value{0: {ConstantInt, 5}}})
	require.EqualValues(t, 45, v)
	v, m := run(Options{ConstantsByName: map[string]Value{"scale": {ConstantInt, 3}, "off": {ConstantBool, 1}}})
	require.EqualValues(t, 28, v)
	require.Greater(t, m, n, "what depends on a constant that is not given was not folded away")
	v, _ = run(Options{Constants: map[int]Value{0: {ConstantInt, 2}, 7: {ConstantBool, 0xff}}, ConstantsByName: map[string]Value{"scale": {ConstantInt, 9}}})
	require.EqualValues(t, 19, v)

	// Without a way to ask, a constant is needed.
	b = constantKernel()
	b.m.Function("air.is_function_constant_defined").Name = "air.other"
	_, err := compileKernel(b.m, b.k, Options{})
	require.ErrorContains(t, err, "function constant without a value: scale (index 0, uint)")
}

// TestCalls inlines functions, also ones with several returns and ones that take pointers.
func TestCalls(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	i := b.builtin("thread_position_in_grid")
	pair := b.m.Struct(false, b.i(32), b.m.Vector(b.i(32), 2))
	f := &air.Function{FuncType: b.m.FuncType(pair, false, b.i(32), b.m.Pointer(nil, 1))}
	f.Name = "pair_of"
	f.Args = []*air.Arg{{Name: "x", Ty: b.i(32), Parent: f}, {Name: "p", Ty: b.m.Pointer(nil, 1), Index: 1, Parent: f}}
	b.m.Functions = append(b.m.Functions, f)
	kernel, entry := b.f, b.b
	b.f, b.b = f, b.m.NewBlock(f, "entry")
	make2 := func(a, c air.Value) air.Value {
		var v air.Value = &air.Const{Kind: air.UndefConst, Ty: pair}
		v = b.add(&air.Instr{Op: air.OpInsertValue, Ty: pair, Args: []air.Value{v, a}, Indices: []uint64{0}})
		return b.add(&air.Instr{Op: air.OpInsertValue, Ty: pair, Args: []air.Value{v, c}, Indices: []uint64{1, 1}})
	}
	odd, even := b.block("odd"), b.block("even")
	b.condBr(b.cmp(air.ICmpNE, b.op(air.OpAnd, f.Args[0], b.c(1)), b.c(0)), odd, even)
	b.b = odd
	b.add(&air.Instr{Op: air.OpRet, Args: []air.Value{make2(b.c(1), f.Args[0])}})
	b.b = even
	b.put(b.c(9), f.Args[1], f.Args[0])
	b.add(&air.Instr{Op: air.OpRet, Args: []air.Value{make2(f.Args[0], b.c(4))}})
	b.f, b.b = kernel, entry
	sum := air.Value(b.c(0))
	for range 2 { // twice: every call has blocks of its own
		r := b.add(&air.Instr{Op: air.OpCall, Ty: pair, Callee: f, FuncType: f.FuncType, Args: []air.Value{i, out}})
		a := b.add(&air.Instr{Op: air.OpExtractValue, Ty: b.i(32), Args: []air.Value{r}, Indices: []uint64{0}})
		v := b.add(&air.Instr{Op: air.OpExtractValue, Ty: b.m.Vector(b.i(32), 2), Args: []air.Value{r}, Indices: []uint64{1}})
		c := b.add(&air.Instr{Op: air.OpExtractElement, Ty: b.i(32), Args: []air.Value{v, b.c(1)}})
		sum = b.op(air.OpAdd, sum, b.op(air.OpAdd, a, b.op(air.OpMul, c, b.c(100))))
	}
	b.put(sum, out, b.op(air.OpAdd, i, b.c(64)))
	b.ret()
	mem := make([]byte, 4*128)
	require.NoError(t, launch(b.compile(t), 2, 32, mem))
	for k := uint32(0); k < 64; k++ {
		x, want := uint32(9), k*2+800
		if k&1 == 1 {
			x, want = 0, 2+200*k
		}
		require.Equal(t, x, binary.LittleEndian.Uint32(mem[4*k:]))
		require.Equal(t, want, binary.LittleEndian.Uint32(mem[4*(k+64):]))
	}
}

// TestIrreducible jumps into the middle of a loop.
func TestIrreducible(t *testing.T) {
	b := newBld()
	out := b.buffer("out", 0)
	i := b.builtin("thread_position_in_grid")
	u := b.builtin("threadgroup_position_in_grid")
	x, y, end := b.block("x"), b.block("y"), b.block("end")
	entry := b.b
	b.condBr(b.cmp(air.ICmpEQ, b.op(air.OpAnd, i, b.c(1)), b.c(0)), x, y)
	b.b = x
	px := b.add(&air.Instr{Op: air.OpPhi, Ty: b.i(32), Blocks: []*air.Block{entry, y}})
	nx := b.op(air.OpAdd, px, b.c(3))
	ux := b.op(air.OpAdd, u, nx)
	b.br(y)
	b.b = y
	py := b.add(&air.Instr{Op: air.OpPhi, Ty: b.i(32), Blocks: []*air.Block{entry, x}})
	ny := b.op(air.OpAdd, py, b.c(10))
	px.Args = []air.Value{b.c(0), ny}
	py.Args = []air.Value{b.c(1000), ux}
	b.condBr(b.cmp(air.ICmpULT, ny, b.op(air.OpAdd, b.op(air.OpMul, i, b.c(7)), b.c(1100))), x, end)
	b.b = end
	b.put(ny, out, i)
	b.ret()
	mem := make([]byte, 4*80)
	require.NoError(t, launch(b.compile(t), 2, 40, mem))
	for k := uint32(0); k < 80; k++ {
		v := uint32(1000)
		inX := k&1 == 0
		if inX {
			v = 0
		}
		for {
			if inX {
				v += 3 + k/40
			}
			inX = true
			if v += 10; v >= k*7+1100 {
				break
			}
		}
		require.Equal(t, v, binary.LittleEndian.Uint32(mem[4*k:]), "thread %d", k)
	}
}

// TestUniform computes what is the same in all lanes once: the loop of this kernel has no instruction over lanes but its
// accumulation.
func TestUniform(t *testing.T) {
	b := newBld()
	out, in := b.buffer("out", 0), b.buffer("in", 1)
	i := b.builtin("thread_position_in_grid")
	n := b.at(b.i(32), in, b.c(0))
	loop, end := b.block("loop"), b.block("end")
	entry := b.b
	b.br(loop)
	b.b = loop
	k := b.add(&air.Instr{Op: air.OpPhi, Ty: b.i(32), Blocks: []*air.Block{entry, loop}})
	acc := b.add(&air.Instr{Op: air.OpPhi, Ty: b.i(32), Blocks: []*air.Block{entry, loop}})
	k1 := b.op(air.OpAdd, k, b.c(1))
	v := b.at(b.i(32), in, k1)
	acc1 := b.op(air.OpAdd, acc, b.op(air.OpMul, v, v))
	k.Args, acc.Args = []air.Value{b.c(0), k1}, []air.Value{i, acc1}
	b.condBr(b.cmp(air.ICmpULT, k1, n), loop, end)
	b.b = end
	b.put(acc1, out, i)
	b.ret()
	p := b.compile(t)
	over := 0
	for _, in := range p.code {
		if in.kind == kindLanes {
			over++
		}
	}
	require.LessOrEqual(t, over, 2, "the sum and the address of the store")
	mem := make([]byte, 4*40)
	require.NoError(t, launch(p, 1, 40, mem, bytesOf([]uint32{4, 1, 2, 3, 4})))
	require.EqualValues(t, 39+30, binary.LittleEndian.Uint32(mem[4*39:]))
}
