package simt

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

// A bld builds a kernel by hand.
type bld struct {
	m *air.Module
	f *air.Function
	k *air.Kernel
	b *air.Block
	n int
}

// newBld starts a kernel.
func newBld() *bld {
	m := &air.Module{}
	f := &air.Function{}
	f.Name = "test"
	k := &air.Kernel{Name: "test", Function: f}
	b := &bld{m: m, f: f, k: k}
	f.FuncType = m.FuncType(m.Void(), false)
	m.Functions = append(m.Functions, f)
	b.b = m.NewBlock(f, "entry")
	return b
}

func (b *bld) i(bits int) *air.Type { return b.m.Int(bits) }

func (b *bld) param(t *air.Type, a air.KernelArg) *air.Arg {
	a.Param = len(b.f.Args)
	v := &air.Arg{Name: a.Name, Ty: t, Index: a.Param, Parent: b.f}
	b.f.Args = append(b.f.Args, v)
	b.k.Args = append(b.k.Args, a)
	return v
}

// buffer adds a device buffer argument of i32 elements.
func (b *bld) buffer(name string, slot int) *air.Arg {
	return b.param(b.m.Pointer(nil, 1), air.KernelArg{Kind: air.BufferArg, Name: name, Index: slot, Space: 1, Writable: true})
}

func (b *bld) shared(name string, slot int) *air.Arg {
	return b.param(b.m.Pointer(nil, 3), air.KernelArg{Kind: air.ThreadgroupArg, Name: name, Index: slot, Space: 3})
}

func (b *bld) builtin(name string) *air.Arg {
	return b.param(b.i(32), air.KernelArg{Kind: air.BuiltinArg, Name: name, Builtin: name})
}

func (b *bld) builtin3(name string) *air.Arg {
	return b.param(b.m.Vector(b.i(32), 3), air.KernelArg{Kind: air.BuiltinArg, Name: name, Builtin: name})
}

func (b *bld) block(name string) *air.Block {
	return b.m.NewBlock(b.f, fmt.Sprintf("%s%d", name, len(b.f.Blocks)))
}

func (b *bld) add(in *air.Instr) *air.Instr {
	b.n++
	if in.Ty == nil {
		in.Ty = b.m.Void()
	}
	if in.Name == "" && in.Ty.Kind != air.VoidKind {
		in.Name = fmt.Sprintf("v%d", b.n)
	}
	in.Parent = b.b
	b.b.Instrs = append(b.b.Instrs, in)
	return in
}

// op adds an instruction of the type of its first operand.
func (b *bld) op(o air.Op, args ...air.Value) *air.Instr {
	return b.add(&air.Instr{Op: o, Ty: args[0].Type(), Args: args})
}

func (b *bld) cast(o air.Op, t *air.Type, v air.Value) *air.Instr {
	return b.add(&air.Instr{Op: o, Ty: t, Args: []air.Value{v}})
}

func (b *bld) c(v int) *air.Const { return air.ConstInt(b.i(32), uint64(uint32(v))) }

func (b *bld) cn(bits int, v uint64) *air.Const { return air.ConstInt(b.i(bits), v) }

func (b *bld) cmp(p air.Pred, x, y air.Value) *air.Instr {
	o := air.OpICmp
	if p < air.ICmpEQ {
		o = air.OpFCmp
	}
	t := b.i(1)
	if v := x.Type(); v.Kind == air.VectorKind {
		t = b.m.Vector(t, v.Len)
	}
	return b.add(&air.Instr{Op: o, Ty: t, Pred: p, Args: []air.Value{x, y}})
}

func (b *bld) br(to *air.Block) { b.add(&air.Instr{Op: air.OpBr, Blocks: []*air.Block{to}}) }

func (b *bld) condBr(c air.Value, t, f *air.Block) {
	b.add(&air.Instr{Op: air.OpBr, Args: []air.Value{c}, Blocks: []*air.Block{t, f}})
}

func (b *bld) ret() { b.add(&air.Instr{Op: air.OpRet}) }

// gep is the address of element i of type t.
func (b *bld) gep(t *air.Type, p, i air.Value) *air.Instr {
	return b.add(&air.Instr{Op: air.OpGetElementPtr, Ty: p.Type(), SourceType: t, Args: []air.Value{p, i}})
}

func (b *bld) load(t *air.Type, p air.Value) *air.Instr {
	return b.add(&air.Instr{Op: air.OpLoad, Ty: t, Args: []air.Value{p}})
}

func (b *bld) store(v, p air.Value) *air.Instr {
	return b.add(&air.Instr{Op: air.OpStore, Args: []air.Value{v, p}})
}

// at loads and put stores element i of a buffer.
func (b *bld) at(t *air.Type, p, i air.Value) *air.Instr { return b.load(t, b.gep(t, p, i)) }
func (b *bld) put(v, p, i air.Value)                     { b.store(v, b.gep(v.Type(), p, i)) }

// call calls an intrinsic, declared on first use.
func (b *bld) call(name string, ret *air.Type, args ...air.Value) *air.Instr {
	f := b.m.Function(name)
	if f == nil {
		f = &air.Function{}
		f.Name = name
		var ts []*air.Type
		for _, a := range args {
			ts = append(ts, a.Type())
		}
		f.FuncType = b.m.FuncType(ret, false, ts...)
		f.Ty = b.m.Pointer(nil, 0)
		b.m.Functions = append(b.m.Functions, f)
	}
	return b.add(&air.Instr{Op: air.OpCall, Ty: ret, Callee: f, FuncType: f.FuncType, Args: args})
}

func (b *bld) barrier() {
	b.call("air.wg.barrier", b.m.Void(), b.c(2), b.c(1))
}

func (b *bld) compile(t testing.TB) *Program {
	t.Helper()
	p, err := compileKernel(b.m, b.k, Options{})
	require.NoError(t, err)
	return p
}

// launch runs a program over groups of threads with buffers from slot 0 on.
func launch(p *Program, groups, threads uint32, bufs ...[]byte) error {
	d := &Dispatch{Groups: [3]uint32{groups, 1, 1}, Threads: [3]uint32{threads, 1, 1}}
	for i, b := range bufs {
		d.Buffers[i].Mem = b
	}
	return p.Run(d, 1)
}
