package simt

import (
	"bytes"
	"fmt"
	"math/bits"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Buffer is what is bound at a buffer slot.
type Buffer struct {
	Mem    []byte // the memory; nil means that nothing is bound
	Offset uint64 // where the binding starts in it
	Name   string // for reports
}

// A Dispatch is one launch of a kernel.
type Dispatch struct {
	// Groups is the number of threadgroups, Threads the number of threads in each. Grid, unless zero, is the exact number of
	// threads of the grid: threadgroups at its edges are smaller then, and Groups must be the number that covers it.
	Groups, Threads, Grid [3]uint32
	Buffers               [MaxBuffers]Buffer
	// ThreadgroupMemory is the length in bytes of the threadgroup memory at each slot.
	ThreadgroupMemory [MaxBuffers]uint32
	// Access, if set, hears of every access to a buffer before it is made: the slot, the offset from the start of the
	// binding, and the size in bytes. It is called from all workers at a time, and makes the dispatch slower.
	Access func(slot int, offset, size uint64, kind Access)
	// Steps limits the instructions that the simdgroups of one threadgroup may execute together; 0 means DefaultSteps.
	Steps int64
	// Order is, for a program with checks, the order in which threadgroups run, and simdgroups between barriers; Seed makes
	// it another random one.
	Order Order
	Seed  uint64
	// Counts, if set, receives what a program with counts does.
	Counts *Counts
}

// A group is the state of one worker: it runs one threadgroup after another.
type group struct {
	prog    *Program
	d       *Dispatch
	regs    []region
	warps   []*warp
	shared  []byte
	budget  int64
	groups  [3]uint32
	grid    [3]uint32
	size    [3]uint32 // of the threadgroup that runs
	current *warp
	chk     *checker // in the checking mode
	counts  tally
}

func newGroup(p *Program) *group {
	g := &group{prog: p, regs: make([]region, firstRegion+len(p.mem.regions))}
	for i := range p.mem.regions {
		r := &p.mem.regions[i]
		if r.kind == regionConst && len(r.data) > 0 {
			g.regs[firstRegion+i] = region{base: unsafe.Pointer(&r.data[0]), origin: pointer(firstRegion + i), size: r.size}
		}
	}
	return g
}

func (g *group) newWarp() *warp {
	p := g.prog
	w := &warp{prog: p, g: g, regs: g.regs}
	w.file = make([]uint64, (p.regBytes+7)/8+1)
	w.saved = make([]uint64, p.maxMoves)
	w.setBase()
	for _, c := range p.consts {
		switch {
		case c.table != nil:
			*w.u64(c.reg) = *c.table
		case c.bcast && c.wide:
			d := w.u64(c.reg)
			for l := range d {
				d[l] = c.imm
			}
		case c.bcast:
			d := w.u32(c.reg)
			for l := range d {
				d[l] = uint32(c.imm)
			}
		case c.wide:
			*(*uint64)(unsafe.Add(w.base, c.reg)) = c.imm
		default:
			*(*uint32)(unsafe.Add(w.base, c.reg)) = uint32(c.imm)
		}
	}
	if p.mem.laneStride > 0 {
		w.private = make([]byte, p.mem.laneStride*simdWidth)
		if p.checks {
			w.init = make([]byte, len(w.private))
		}
	}
	return w
}

func (w *warp) setBase() { w.base = unsafe.Pointer(&w.file[0]) }

// Run executes a dispatch with up to the given number of goroutines and returns a *Fault if the kernel does what it may
// not; other threadgroups may have run then. The memory of the buffers must not be moved or freed meanwhile.
func (p *Program) Run(d *Dispatch, workers int) error {
	grid, err := p.check(d)
	if err != nil {
		return err
	}
	total := uint64(d.Groups[0]) * uint64(d.Groups[1]) * uint64(d.Groups[2])
	if total == 0 || product(d.Threads) == 0 || product(grid) == 0 {
		return nil
	}
	if uint64(workers) > total {
		workers = int(total)
	}
	if workers <= 1 || p.checks {
		g := p.acquire(d, grid)
		defer p.release(g)
		for i := uint64(0); i < total; i++ {
			if err := g.runOne(i); err != nil {
				return err
			}
		}
		return nil
	}
	r := &parallel{p: p, d: d, grid: grid, total: total, chunk: max(1, total/uint64(workers*8))}
	r.wg.Add(workers)
	for i := 1; i < workers; i++ {
		go r.work()
	}
	r.work()
	r.wg.Wait()
	if e := r.fault.Load(); e != nil {
		return *e
	}
	return nil
}

// parallel shares the threadgroups of a dispatch among workers.
type parallel struct {
	p     *Program
	d     *Dispatch
	grid  [3]uint32
	total uint64
	chunk uint64
	next  atomic.Uint64
	fault atomic.Pointer[error]
	wg    sync.WaitGroup
}

func (r *parallel) work() {
	defer r.wg.Done()
	g := r.p.acquire(r.d, r.grid)
	defer r.p.release(g)
	for {
		end := r.next.Add(r.chunk)
		first := end - r.chunk
		if first >= r.total {
			return
		}
		for i := first; i < min(end, r.total); i++ {
			if r.fault.Load() != nil {
				return
			}
			if err := g.runOne(i); err != nil {
				e := err // only a fault makes err escape
				r.fault.CompareAndSwap(nil, &e)
				return
			}
		}
	}
}

// check validates a dispatch and gives its grid.
func (p *Program) check(d *Dispatch) (grid [3]uint32, err error) {
	bad := func(kind, format string, args ...any) error {
		return &Fault{Kernel: p.name, Kind: kind, Slot: -1, Detail: fmt.Sprintf(format, args...)}
	}
	n := uint64(d.Threads[0]) * uint64(d.Threads[1])
	if n > MaxThreads || n*uint64(d.Threads[2]) > uint64(p.maxThreads) {
		return grid, bad(FaultTooManyThreads, "%d x %d x %d threads per threadgroup, the limit is %d", d.Threads[0], d.Threads[1], d.Threads[2], p.maxThreads)
	}
	exact := d.Grid != [3]uint32{}
	for i := range grid {
		full := uint64(d.Groups[i]) * uint64(d.Threads[i])
		if !exact {
			if full > 1<<32-1 {
				return grid, bad(FaultDispatch, "%d threadgroups of %d threads are more than 32 bits count", d.Groups[i], d.Threads[i])
			}
			grid[i] = uint32(full)
			continue
		}
		grid[i] = d.Grid[i]
		if t := uint64(d.Threads[i]); t != 0 && (uint64(d.Grid[i])+t-1)/t != uint64(d.Groups[i]) {
			return grid, bad(FaultDispatch, "%d threadgroups of %d threads do not cover a grid of %d exactly", d.Groups[i], d.Threads[i], d.Grid[i])
		}
	}
	shared := p.mem.shared
	for i, n := range d.ThreadgroupMemory {
		shared = alignUp(shared, 16) + uint64(n)
		if n%16 != 0 {
			return grid, bad(FaultThreadgroup, "length %d at slot %d is not a multiple of 16", n, i)
		}
	}
	if shared > MaxThreadgroupMemory {
		return grid, bad(FaultThreadgroup, "%d bytes, the limit is %d", shared, MaxThreadgroupMemory)
	}
	for _, r := range p.sharedArgs {
		info := &p.mem.regions[r-firstRegion]
		if d.ThreadgroupMemory[info.slot] == 0 {
			return grid, &Fault{Kernel: p.name, Kind: FaultThreadgroup, Memory: MemoryThreadgroup, Slot: info.slot, Name: info.name,
				Detail: "no length was set for this argument"}
		}
	}
	for i := range d.Buffers {
		if b := &d.Buffers[i]; b.Offset > uint64(len(b.Mem)) {
			return grid, &Fault{Kernel: p.name, Kind: FaultDispatch, Memory: MemoryBuffer, Slot: i, Name: b.Name,
				Detail: fmt.Sprintf("the binding starts at %d, beyond the buffer's %d bytes", b.Offset, len(b.Mem))}
		}
	}
	return grid, nil
}

// acquire takes a worker's state from the pool and binds a dispatch to it.
func (p *Program) acquire(d *Dispatch, grid [3]uint32) *group {
	g := p.pool.Get().(*group)
	g.d, g.grid, g.groups = d, grid, d.Groups
	for m := p.usesBuffer; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		b := &d.Buffers[i]
		r := region{origin: pointer(i + 1)}
		if b.Mem != nil {
			r.origin = pointer(sameMemory(d, p.usesBuffer, i)+1) + b.Offset
			r.size = uint64(len(b.Mem)) - b.Offset
			if r.size > 0 {
				r.base = unsafe.Pointer(&b.Mem[b.Offset])
			} else {
				r.base = unsafe.Pointer(&emptyMemory)
			}
		}
		g.regs[i+1] = r
	}
	size := p.mem.shared
	for _, r := range p.sharedArgs {
		size = alignUp(size, 16) + uint64(d.ThreadgroupMemory[p.mem.regions[r-firstRegion].slot])
	}
	if uint64(cap(g.shared)) < size {
		g.shared = make([]byte, size)
	}
	g.shared = g.shared[:size]
	size = p.mem.shared
	for i := range p.mem.regions {
		info := &p.mem.regions[i]
		r := &g.regs[firstRegion+i]
		switch info.kind {
		case regionShared:
			*r = g.sharedRegion(firstRegion+i, info.off, info.size)
		case regionSharedArg:
			size = alignUp(size, 16)
			n := uint64(d.ThreadgroupMemory[info.slot])
			*r = g.sharedRegion(firstRegion+i, size, n)
			size += n
		}
	}
	if p.checks {
		g.chk = newChecker(g)
	}
	return g
}

// sameMemory is the slot whose region the pointers of slot i are made in. Slots that share a buffer share a region, the
// one with the lowest offset, so that equal addresses are equal pointers: kernels compare them.
func sameMemory(d *Dispatch, used uint32, i int) int {
	b := &d.Buffers[i]
	if len(b.Mem) == 0 {
		return i
	}
	best := i
	for m := used; m != 0; m &= m - 1 {
		k := bits.TrailingZeros32(m)
		o := &d.Buffers[k]
		if len(o.Mem) != len(b.Mem) || &o.Mem[0] != &b.Mem[0] {
			continue
		}
		if x := d.Buffers[best].Offset; o.Offset < x || o.Offset == x && k < best {
			best = k
		}
	}
	return best
}

// emptyMemory stands for a buffer of no bytes, which is bound all the same.
var emptyMemory byte

func (g *group) sharedRegion(n int, off, size uint64) region {
	r := region{origin: pointer(n), size: size}
	if size > 0 {
		r.base = unsafe.Pointer(&g.shared[off])
	}
	return r
}

// release lets go of the dispatch's memory.
func (p *Program) release(g *group) {
	for i := 1; i < firstRegion; i++ {
		g.regs[i] = region{}
	}
	if g.chk != nil {
		g.chk.release()
		g.chk = nil
	}
	if p.counts {
		g.counts.give(g.d.Counts)
	}
	g.d = nil
	for _, w := range g.warps {
		w.bufs, w.access = nil, nil
	}
	p.pool.Put(g)
}

// runOne runs threadgroup number i and turns a fault's panic into an error.
func (g *group) runOne(i uint64) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Fault:
			err = r
		default:
			f := &Fault{Kernel: g.prog.name, Kind: FaultInternal, Slot: -1, Detail: fmt.Sprintf("%v\n%s", r, debug.Stack())}
			if w := g.current; w != nil {
				f.Threadgroup = w.group
			}
			err = f
		}
	}()
	if g.chk != nil {
		i = g.chk.order.at(i)
	}
	g.runGroup(g.position(i))
	return nil
}

// position is where threadgroup number i lies.
func (g *group) position(i uint64) [3]uint32 {
	nx, ny := uint64(g.groups[0]), uint64(g.groups[1])
	return [3]uint32{uint32(i % nx), uint32(i / nx % ny), uint32(i / nx / ny)}
}

// sizeOf is how many threads the threadgroup at a position has.
func (g *group) sizeOf(pos [3]uint32) (size [3]uint32) {
	for i := range pos {
		size[i] = min(g.d.Threads[i], g.grid[i]-pos[i]*g.d.Threads[i])
	}
	return size
}

func (g *group) runGroup(pos [3]uint32) {
	p := g.prog
	var origin [3]uint32
	for i := range pos {
		origin[i] = pos[i] * g.d.Threads[i]
	}
	g.size = g.sizeOf(pos)
	g.budget = g.d.Steps
	if g.budget <= 0 {
		g.budget = DefaultSteps
	}
	g.clearShared()
	if g.chk != nil {
		g.chk.begin()
	}
	threads := product(g.size)
	simds := (threads + simdWidth - 1) / simdWidth
	need := int(simds)
	if !p.barriers {
		need = 1
	}
	for len(g.warps) < need {
		g.warps = append(g.warps, g.newWarp())
	}
	for s := uint32(0); s < simds; s++ {
		w := g.warps[min(int(s), need-1)]
		simd := s
		if g.chk != nil && !p.barriers {
			simd = g.chk.simdAt(s, simds, g.chk.begun)
		}
		w.start(pos, origin, simd, threads)
		if !p.barriers {
			w.resume()
		}
	}
	if p.barriers {
		g.turns(g.warps[:simds])
	}
}

// turns lets simdgroups run from barrier to barrier.
func (g *group) turns(all []*warp) {
	warps := all
	for {
		if g.chk != nil {
			warps = g.chk.arrange(all)
		}
		var waits, gone *warp
		for _, w := range warps {
			if w.stop == ended {
				gone = w
				continue
			}
			w.resume()
			if w.stop == ended {
				gone = w
				continue
			}
			if waits != nil && waits.pc != w.pc {
				g.divergent(w, "the simdgroups of the threadgroup wait at different barriers")
			}
			waits = w
		}
		if waits == nil {
			return
		}
		if gone != nil {
			g.divergent(waits, "another simdgroup of the threadgroup has ended")
		}
		if g.chk != nil {
			g.chk.barrier(g.prog.code[waits.pc-1].imm)
		}
	}
}

func (g *group) divergent(w *warp, detail string) {
	w.fault(&Fault{Kind: FaultDivergentBarrier, Slot: -1, Detail: detail}, &g.prog.code[w.pc-1], w.firstLane())
}

func barrierDetail(here, missing int) string {
	return fmt.Sprintf("%d lanes of the simdgroup are at the barrier while %d have ended or are elsewhere", here, missing)
}

// clearShared gives threadgroup memory its initial contents.
func (g *group) clearShared() {
	fill(g.shared)
	for i := range g.prog.mem.regions {
		if r := &g.prog.mem.regions[i]; r.kind == regionShared && r.data != nil {
			copy(g.shared[r.off:r.off+r.size], r.data)
		}
	}
}

// undefined is what memory that starts undefined holds: to a kernel a NaN, or -1.
var undefined = bytes.Repeat([]byte{0xff}, 4096)

func fill(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, undefined):]
	}
}

// start prepares simdgroup s of a threadgroup.
func (w *warp) start(pos, origin [3]uint32, s, threads uint32) {
	w.group, w.origin, w.simd = pos, origin, s
	w.bufs, w.access, w.atomic = &w.g.d.Buffers, w.g.d.Access, false
	n := min(threads-s*simdWidth, simdWidth)
	w.all = uint32(1<<n - 1)
	w.mask = w.all
	w.div, w.nw, w.pc, w.stop = false, 0, 0, running
	fill(w.private)
	w.since, w.waits = [checkSpaces]uint32{}, 0
	clear(w.init)
	w.setArgs()
}

// resume runs the simdgroup with its own private memory in place.
func (w *warp) resume() {
	g := w.g
	g.current = w
	if len(w.private) > 0 {
		m := w.prog.mem
		for i := range m.regions {
			if r := &m.regions[i]; r.kind == regionPrivate && r.size > 0 {
				g.regs[firstRegion+i] = region{base: unsafe.Pointer(&w.private[r.off]), origin: pointer(firstRegion + i), size: r.size, stride: uintptr(m.laneStride)}
			}
		}
	}
	w.run()
}
