package simt

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/ingot-metal/ingot/metallib/air"
)

const (
	// MaxBuffers is the number of buffer slots, and of threadgroup memory slots.
	MaxBuffers = 31
	// MaxThreads is the largest number of threads per threadgroup, that of every Apple GPU family.
	MaxThreads = 1024
	// DefaultSteps is the number of instructions that the simdgroups of one threadgroup may execute together.
	DefaultSteps = 1 << 31
)

// ConstantType is the type of a function constant's value.
type ConstantType uint8

// The types of function constants. Vectors are given by component in Value.Bits as memory would hold them, up to 64 bits.
const (
	ConstantBool ConstantType = iota
	ConstantInt               // integers of any width and sign
	ConstantFloat
	ConstantHalf
	ConstantBFloat
)

// A Value is the value of a function constant. Bits are as in memory; a bool is 0 or 1.
type Value struct {
	Kind ConstantType
	Bits uint64
}

// Options are what a pipeline adds to a kernel.
type Options struct {
	// Constants and ConstantsByName give function constants; an index wins over a name.
	Constants       map[int]Value
	ConstantsByName map[string]Value
	// Checks makes a program that finds reads of memory never written and races; see [Dispatch.Order], too. Such a program
	// is slower, and its dispatches run on one goroutine. See doc.go for what is found.
	Checks bool
	// NoLockStep makes the checks treat the threads of a simdgroup as running in no order but that of simdgroup barriers.
	NoLockStep bool
	// Counts makes a program that counts what it does; see [Dispatch.Counts].
	Counts bool
}

func (o *Options) value(index int, name string) (Value, bool) {
	if v, ok := o.Constants[index]; ok {
		return v, true
	}
	v, ok := o.ConstantsByName[name]
	return v, ok
}

// A Program is a kernel compiled for this machine. It is immutable and safe for concurrent use.
type Program struct {
	name        string
	kernel      *air.Kernel
	code        []inst
	consts      []constReg
	args        []argSlot
	regBytes    uint32
	scratch     uint32
	mem         *layout
	barriers    bool
	checks      bool
	counts      bool
	noLockStep  bool
	needed      map[*val]bool // while a checked program is made: see findNeeded
	fenced      bool          // the kernel has fences beyond its threadgroup
	writes      uint32        // in the checking mode: the buffers it may write
	hidden      uint32        // and of those the ones that the kernel declares as read only
	maxMoves    int
	usesBuffer  uint32
	bufferNames [MaxBuffers]string
	sharedArgs  []int // regions of threadgroup arguments
	maxThreads  int
	pool        sync.Pool
}

// Kernel is the kernel's reflection.
func (p *Program) Kernel() *air.Kernel { return p.kernel }

// MaxThreadsPerThreadgroup is the limit of threads: the kernel's own if it declares one.
func (p *Program) MaxThreadsPerThreadgroup() int { return p.maxThreads }

// StaticThreadgroupMemory is the size of the kernel's threadgroup variables in bytes.
func (p *Program) StaticThreadgroupMemory() int { return int(alignUp(p.mem.shared, 16)) }

// ThreadExecutionWidth is the number of lanes of a simdgroup.
func (p *Program) ThreadExecutionWidth() int { return simdWidth }

// Compile makes a program of the named kernel of m. Its errors name the instruction or intrinsic that is not supported.
func Compile(m *air.Module, kernel string, opt Options) (*Program, error) {
	ks, err := m.Kernels()
	if err != nil {
		return nil, fmt.Errorf("simt: %w", err)
	}
	for _, k := range ks {
		if k.Name == kernel {
			return compileKernel(m, k, opt)
		}
	}
	return nil, fmt.Errorf("simt: the module has no kernel %q", kernel)
}

// compileKernel is Compile for reflection at hand.
func compileKernel(m *air.Module, k *air.Kernel, opt Options) (p *Program, err error) {
	lw := newLowerer(m, k, &opt)
	defer func() {
		switch r := recover().(type) {
		case nil:
		case compileError:
			p, err = nil, fmt.Errorf("simt: kernel %s: %s", k.Name, lw.where(r.msg))
		default:
			p, err = nil, fmt.Errorf("simt: kernel %s: internal error while compiling: %v\n%s", k.Name, r, debug.Stack())
		}
	}()
	if k.Function == nil || k.Function.Declaration() {
		return nil, fmt.Errorf("simt: kernel %s has no body", k.Name)
	}
	if err := lw.constants(); err != nil {
		return nil, fmt.Errorf("simt: kernel %s: %w", k.Name, err)
	}
	p = lw.program(k.Function, func() [][]*val { return lw.kernelArgs(k) })
	return p, nil
}

func newLowerer(m *air.Module, k *air.Kernel, opt *Options) *lowerer {
	lw := &lowerer{m: m, kernel: k, opt: opt, mem: &layout{globals: map[*air.Global]int{}}}
	lw.reset()
	for _, f := range m.Functions {
		if len(f.Name) > 24 && f.Name[:24] == "air.simdgroup_matrix_8x8" {
			lw.matrix = true
		}
	}
	return lw
}

// reset forgets all values but keeps the memory.
func (lw *lowerer) reset() {
	lw.blocks, lw.nvals = nil, 0
	lw.consts, lw.args, lw.cse = map[constKey]*val{}, map[uint64]*val{}, map[cseKey]*val{}
	lw.tables, lw.types = map[*[32]uint64]*val{}, map[*air.Type][]leaf{}
}

func (lw *lowerer) where(msg string) string {
	if lw.at == nil {
		return msg
	}
	s := msg
	if len(lw.stack) > 0 {
		if f := lw.stack[len(lw.stack)-1]; f != lw.kernel.Function {
			s += fmt.Sprintf(" (in function %s)", f.Name)
		}
	}
	return s + fmt.Sprintf(" at %q", describe(lw.at))
}

// program lowers fn and makes a program of it.
func (lw *lowerer) program(fn *air.Function, args func() [][]*val) *Program {
	k := lw.kernel
	p := &Program{name: k.Name, kernel: k, mem: lw.mem, maxThreads: MaxThreads}
	if k.MaxThreads > 0 {
		p.maxThreads = min(k.MaxThreads, MaxThreads)
	}
	for _, a := range k.Args {
		if a.Kind == air.BufferArg && a.Index >= 0 && a.Index < MaxBuffers {
			p.bufferNames[a.Index] = a.Name
		}
	}
	f := lw.graph(fn, args)
	if lw.mem.frozen { // static constructors are not checked
		p.checks, p.counts, p.fenced, p.noLockStep = lw.opt.Checks, lw.opt.Counts, lw.fenced, lw.opt.NoLockStep
	}
	if p.checks {
		p.findWrites(f.blocks)
		p.needed = findNeeded(f.blocks)
	}
	emit(p, f, lw.mem)
	p.needed = nil
	for i, r := range lw.mem.regions {
		if r.kind == regionSharedArg {
			p.sharedArgs = append(p.sharedArgs, i+firstRegion)
		}
	}
	p.pool.New = func() any { return newGroup(p) }
	return p
}

// graph lowers fn to the scalar graph, ready for emission.
func (lw *lowerer) graph(fn *air.Function, args func() [][]*val) *flow {
	lw.setBlock(lw.newBlock())
	entry := lw.cur
	lw.inline(fn, args())
	if lw.cur.term == termNone {
		lw.cur.term = termRet
	}
	for _, b := range lw.blocks {
		if b.term == termNone {
			b.term = termTrap
		}
	}
	blocks := lw.blocks
	blocks[0] = entry
	blocks = clean(blocks)
	f := findFlow(blocks, lw.newBlock)
	dominators(f.blocks)
	resolve(f.blocks)
	mergeEqual(f.blocks)
	findRegions(f.blocks, lw.mem)
	analyse(f, lw.mem)
	fuse(f.blocks)
	countUses(f.blocks)
	return f
}

var errConstant = errors.New("function constant without a value")

// constants sets the function constants, runs the module's static constructors and settles the constant tables.
func (lw *lowerer) constants() error {
	defined := lw.m.Function("air.is_function_constant_defined") != nil
	for _, fc := range lw.kernel.Constants {
		if fc.Global == nil {
			continue
		}
		v, ok := lw.opt.value(fc.Index, fc.Name)
		if !ok && fc.Active && !defined {
			return fmt.Errorf("%w: %s (index %d, %s)", errConstant, fc.Name, fc.Index, fc.TypeName)
		}
		p := lw.globalAddress(fc.Global)
		data := lw.mem.regions[regionOf(p)-firstRegion].data
		for i := range data {
			data[i] = 0
			if i < 8 {
				data[i] = byte(v.Bits >> (8 * i))
			}
		}
	}
	ctors, err := lw.constructors()
	if err != nil {
		return err
	}
	for _, fn := range ctors {
		lw.reset()
		p := lw.program(fn, func() [][]*val { return nil })
		p.name = fn.Name
		if err := p.Run(&Dispatch{Groups: [3]uint32{1, 1, 1}, Threads: [3]uint32{1, 1, 1}}, 1); err != nil {
			return fmt.Errorf("static constructor: %w", err)
		}
	}
	lw.reset()
	lw.mem.frozen = true
	return nil
}

// constructors lists the functions of llvm.global_ctors.
func (lw *lowerer) constructors() ([]*air.Function, error) {
	g := lw.m.Global("llvm.global_ctors")
	if g == nil || g.Init == nil {
		return nil, nil
	}
	c, ok := g.Init.(*air.Const)
	if !ok {
		return nil, errors.New("llvm.global_ctors is not a constant")
	}
	var out []*air.Function
	for _, e := range c.Elems {
		ec, ok := e.(*air.Const)
		if !ok || len(ec.Elems) < 2 {
			continue
		}
		v := ec.Elems[1]
		for {
			x, ok := v.(*air.Const)
			if !ok || x.Kind != air.ExprConst || len(x.Elems) != 1 {
				break
			}
			v = x.Elems[0]
		}
		fn, ok := v.(*air.Function)
		if !ok {
			continue
		}
		if !fn.Declaration() {
			out = append(out, fn)
		}
	}
	return out, nil
}
