package runtime

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
)

const (
	// MaxBuffers is the number of buffer slots of a kernel: 31 on every GPU family (Metal feature set tables, "maximum
	// number of entries in the buffer argument table, per function").
	MaxBuffers = 31
	// MaxConstants is how many function constants a launch can set.
	MaxConstants = 16
	// MaxInlineBytes is how long the value of Launch.Bytes can be, which is what Metal's setBytes takes.
	MaxInlineBytes = 4096
)

// bindKind is what a slot of a launch holds.
type bindKind uint8

const (
	kindNone bindKind = iota
	kindView
	kindUint32
	kindInt32
	kindFloat32
	kindBytes
	kindParams
)

func (k bindKind) scalar() bool { return k >= kindUint32 && k <= kindFloat32 }

// own says whether the caller of an Unsafe variant binds it.
func (k bindKind) own() bool { return k.scalar() || k == kindParams }

func (k bindKind) String() string {
	return [...]string{"nothing", "a view", "a uint32", "an int32", "a float32", "bytes", "parameters"}[k]
}

// format shows the value that bits has for a scalar of this kind.
func (k bindKind) format(bits uint32) string {
	switch k {
	case kindInt32:
		return strconv.Itoa(int(int32(bits)))
	case kindFloat32:
		return strconv.FormatFloat(float64(math.Float32frombits(bits)), 'g', -1, 32)
	}
	return strconv.FormatUint(uint64(bits), 10)
}

// Accesses of a view.
const (
	accessRead  = 1
	accessWrite = 2
)

// binding is one slot of a launch.
type binding struct {
	kind   bindKind
	access uint8
	bits   uint32 // the value of a scalar
	a      *allocation
	off, n int         // of a view, in the allocation; of bytes, in Launch.inline
	pool   *ScalarPool // the caller's own storage for a scalar, or nil
	place  int
	use    int32 // position in the pass's table of allocations
}

// constant is the value of one function constant.
type constant struct {
	index int
	kind  constantKind
	bits  uint32
}

type constantKind uint8

const (
	constantBool constantKind = iota
	constantUint32
	constantInt32
	constantFloat32
)

// A Launch collects what one dispatch of a kernel needs. It is made by [Pass.Kernel], and owned and reused by the pass:
// the next call of Kernel starts it anew. Its methods only note; [Launch.Dispatch] reports the first thing that was wrong
// and encodes nothing then.
type Launch struct {
	rt     *Runtime
	p      *Pass
	name   string
	err    *Error
	binder ScalarBinder
	inBind bool // a function given to Scalars runs: nothing but its binder is taken
	pl     *pipeline
	bound  uint32 // slots with a binding
	groups uint32 // slots with threadgroup memory
	nconst int
	consts [MaxConstants]constant
	binds  [MaxBuffers]binding
	tg     [MaxBuffers]uint32
	inline []byte
}

// start begins a new launch.
func (l *Launch) start(p *Pass, name string) {
	l.p, l.rt, l.name = p, p.rt, name
	l.err = nil
	l.bound, l.groups, l.nconst = 0, 0, 0
	l.inline = l.inline[:0]
	l.pl = nil
}

// refuse notes the first error.
func (l *Launch) refuse(arg, have, need string, sentinel error) {
	if l.err == nil {
		l.err = &Error{Func: l.name, Arg: arg, Have: have, Need: need, Err: sentinel}
	}
}

// shut says whether the launch takes nothing more: after the first error, and within a function given to Scalars.
func (l *Launch) shut() bool {
	if l == nil {
		return true // whose Dispatch says why
	}
	if l.inBind {
		l.refuse("bind", "a call of the launch itself", "calls of the binder only", ErrMisuse)
	}
	return l.err != nil
}

// place takes a slot for a binding, or nil if there is no such slot or it is taken.
func (l *Launch) place(slot int, kind bindKind) *binding {
	if l.shut() {
		return nil
	}
	if slot < 0 || slot >= MaxBuffers {
		l.refuse(fmt.Sprintf("slot %d", slot), "", fmt.Sprintf("0 to %d", MaxBuffers-1), ErrKernel)
		return nil
	}
	if l.bound&(1<<slot) != 0 {
		l.refuse(fmt.Sprintf("slot %d", slot), "two bindings", "one", ErrMisuse)
		return nil
	}
	l.bound |= 1 << slot
	b := &l.binds[slot]
	*b = binding{kind: kind, use: -1}
	return b
}

// ConstantBool sets a function constant that is a bool. Pipelines are cached by kernel name and constants.
func (l *Launch) ConstantBool(index int, v bool) {
	l.constant(index, constantBool, boolBits(v))
}

func boolBits(v bool) uint32 {
	if v {
		return 1
	}
	return 0
}

// ConstantUint32 sets a function constant that is a uint.
func (l *Launch) ConstantUint32(index int, v uint32) { l.constant(index, constantUint32, v) }

// ConstantInt32 sets a function constant that is an int.
func (l *Launch) ConstantInt32(index int, v int32) { l.constant(index, constantInt32, uint32(v)) }

// ConstantFloat32 sets a function constant that is a float.
func (l *Launch) ConstantFloat32(index int, v float32) {
	l.constant(index, constantFloat32, math.Float32bits(v))
}

func (l *Launch) constant(index int, kind constantKind, bits uint32) {
	if l.shut() {
		return
	}
	if index < 0 || index > math.MaxUint16 {
		l.refuse(fmt.Sprintf("constant %d", index), "", "0 to 65535", ErrKernel)
		return
	}
	// Sorted by index, so that the order of the calls does not make another pipeline.
	at := l.nconst
	for at > 0 && l.consts[at-1].index >= index {
		at--
	}
	if at < l.nconst && l.consts[at].index == index {
		l.refuse(fmt.Sprintf("constant %d", index), "two values", "one", ErrMisuse)
		return
	}
	if l.nconst == MaxConstants {
		l.refuse(fmt.Sprintf("constant %d", index), fmt.Sprintf("%d constants", MaxConstants+1), fmt.Sprintf("at most %d", MaxConstants), ErrLimit)
		return
	}
	copy(l.consts[at+1:l.nconst+1], l.consts[at:l.nconst])
	l.consts[at] = constant{index, kind, bits}
	l.nconst++
	l.pl = nil
}

// Read binds a view that the kernel reads.
func (l *Launch) Read(slot int, v View) { l.view(slot, v, accessRead) }

// Write binds a view that the kernel writes and does not read.
func (l *Launch) Write(slot int, v View) { l.view(slot, v, accessWrite) }

// ReadWrite binds a view that the kernel reads and writes.
func (l *Launch) ReadWrite(slot int, v View) { l.view(slot, v, accessRead|accessWrite) }

func (l *Launch) view(slot int, v View, access uint8) {
	b := l.place(slot, kindView)
	if b == nil {
		return
	}
	if e := v.invalid(); e != nil {
		have := e.Have
		if e.Arg != "" {
			have = e.Arg + " of " + have
		}
		l.refuse(fmt.Sprintf("slot %d", slot), have, e.Need, e.Err)
		return
	}
	if v.a.rt != l.rt {
		l.refuse(fmt.Sprintf("slot %d", slot), "memory of another runtime", "memory of the pass's runtime", ErrForeign)
		return
	}
	if v.a.readOnly && access&accessWrite != 0 {
		l.refuse(fmt.Sprintf("slot %d", slot), "read-only memory", "Read, or memory that can be written", ErrMisuse)
		return
	}
	if v.n == 0 {
		l.refuse(fmt.Sprintf("slot %d", slot), "an empty view", "at least one byte", ErrShape)
		return
	}
	b.access, b.a, b.off, b.n = access, v.a, v.off, v.n
}

// Uint32 binds a scalar: a copy of v, at an address that lasts as long as the work, or the program, that uses it.
func (l *Launch) Uint32(slot int, v uint32) { l.scalar(slot, kindUint32, v) }

// Int32 binds a scalar, as Uint32 does.
func (l *Launch) Int32(slot int, v int32) { l.scalar(slot, kindInt32, uint32(v)) }

// Float32 binds a scalar, as Uint32 does.
func (l *Launch) Float32(slot int, v float32) { l.scalar(slot, kindFloat32, math.Float32bits(v)) }

func (l *Launch) scalar(slot int, kind bindKind, bits uint32) {
	if b := l.place(slot, kind); b != nil {
		b.bits, b.n = bits, 4
	}
}

// Bytes binds a copy of data, such as a struct of parameters in the kernel's layout. There is no empty inline data in
// Metal.
func (l *Launch) Bytes(slot int, data []byte) { l.bytes(slot, kindBytes, data) }

// Params binds a copy of data, a struct of parameters in the kernel's layout, that a function given to [Launch.Scalars] must put a
// block of the caller's in place of, as it must for scalars. Its length is a multiple of 4.
func (l *Launch) Params(slot int, data []byte) {
	if !l.shut() && len(data)%4 != 0 {
		l.refuse(fmt.Sprintf("slot %d", slot), fmt.Sprintf("%d bytes", len(data)), "a multiple of 4", ErrLimit)
	}
	l.bytes(slot, kindParams, data)
}

func (l *Launch) bytes(slot int, kind bindKind, data []byte) {
	b := l.place(slot, kind)
	if b == nil {
		return
	}
	if len(data) == 0 || len(data) > MaxInlineBytes {
		l.refuse(fmt.Sprintf("slot %d", slot), fmt.Sprintf("%d bytes", len(data)), fmt.Sprintf("1 to %d", MaxInlineBytes), ErrLimit)
		return
	}
	b.off, b.n = len(l.inline), len(data)
	l.inline = append(l.inline, data...)
}

// scalarSlots are the slots bound by Uint32, Int32, Float32 and Params.
func (l *Launch) scalarSlots() uint32 {
	var mask uint32
	for slot := 0; slot < MaxBuffers; slot++ {
		if l.bound&(1<<slot) != 0 && l.binds[slot].kind.own() {
			mask |= 1 << slot
		}
	}
	return mask
}

// Scalars calls bind, which must put a scalar of the caller's own storage in the place of each scalar bound so far, and a
// [ScalarBlock] in that of each [Launch.Params]: it is how Unsafe variants keep their scalars at addresses that the caller knows. While bind runs, the launch and its pass take
// nothing else. A nil bind changes nothing.
func (l *Launch) Scalars(bind func(*ScalarBinder) error) {
	if bind == nil || l.shut() || l.p == nil { // a launch without a pass: Dispatch says why
		return
	}
	b := &l.binder
	*b = ScalarBinder{l: l}
	l.inBind, l.p.inBind = true, true
	returned := false
	defer func() {
		l.inBind, l.p.inBind, b.l = false, false, nil
		if !returned { // and whoever recovers from the panic goes on with the pass
			l.refuse("bind", "a panic", "a function that returns", ErrMisuse)
		}
	}()
	err := bind(b)
	returned = true
	e := b.finish()
	switch {
	case e != nil:
		l.refuse("bind", "", "", e)
	case err != nil:
		l.refuse("bind", "", "", err)
	}
}

// ThreadgroupMemory sets the length of threadgroup memory argument index, rounded up to the multiple of 16 bytes that
// Metal takes.
func (l *Launch) ThreadgroupMemory(index, bytes int) {
	if l.shut() {
		return
	}
	arg := fmt.Sprintf
	switch {
	case index < 0 || index >= MaxBuffers:
		l.refuse(arg("threadgroup memory %d", index), "", fmt.Sprintf("0 to %d", MaxBuffers-1), ErrKernel)
	case l.groups&(1<<index) != 0:
		l.refuse(arg("threadgroup memory %d", index), "two lengths", "one", ErrMisuse)
	case bytes <= 0 || bytes > 1<<30:
		l.refuse(arg("threadgroup memory %d", index), fmt.Sprintf("%d bytes", bytes), "1 byte to the device's limit", ErrLimit)
	default:
		l.groups |= 1 << index
		l.tg[index] = uint32(bytes+15) &^ 15
	}
}

// MaxThreads is how many threads a one-dimensional threadgroup of this launch can have, by the kernel's pipeline for the
// constants set so far and by the device. It is 0 if the pipeline cannot be had: Dispatch says why.
func (l *Launch) MaxThreads() int {
	if l == nil || l.p == nil || !l.p.live() || l.shut() {
		return 0
	}
	pl, err := l.pipeline()
	if err != nil {
		return 0
	}
	return min(pl.info.maxThreads, l.rt.limits.threads.X)
}

// pipeline is the pipeline for the constants set so far.
func (l *Launch) pipeline() (*pipeline, error) {
	if l.pl != nil {
		return l.pl, nil
	}
	pl, err := l.rt.pipeline(l)
	if err == nil {
		l.pl = pl
	}
	return pl, err
}

// Check is Dispatch without encoding anything. What it accepts, Dispatch accepts, unless memory is released or the device
// fails meanwhile.
func (l *Launch) Check(groups, threads Size) error {
	if _, err := l.check(groups, threads, false); err != nil {
		return err
	}
	return l.p.admits(l)
}

// Dispatch checks everything and encodes the launch: groups threadgroups of threads threads each. On an error the pass
// is as it was before.
func (l *Launch) Dispatch(groups, threads Size) error { return l.dispatch(groups, threads, false) }

// DispatchThreads is like Dispatch for a grid whose size in threads is given: threadgroups at the edge are smaller where
// the grid is not a multiple of threads.
func (l *Launch) DispatchThreads(grid, threads Size) error { return l.dispatch(grid, threads, true) }

func (l *Launch) dispatch(grid, threads Size, exact bool) error {
	pl, err := l.check(grid, threads, exact)
	if err != nil {
		return err
	}
	return l.p.encode(l, pl, grid, threads, exact)
}

func (l *Launch) check(grid, threads Size, exact bool) (*pipeline, error) {
	if l == nil {
		return nil, &Error{Func: "Launch.Dispatch", Have: "a nil launch", Need: "a launch of a pass that is being encoded", Err: ErrMisuse}
	}
	if l.p == nil || !l.p.live() {
		return nil, &Error{Func: cmp.Or(l.name, "Launch.Dispatch"), Arg: "launch", Have: "one of a pass that is over", Need: "a launch of a pass that is being encoded", Err: ErrMisuse}
	}
	if l.shut() {
		return nil, l.err
	}
	pl, err := l.pipeline()
	if err != nil {
		return nil, err
	}
	if e := l.validate(&pl.info, &l.rt.limits, grid, threads, exact); e != nil {
		return nil, e
	}
	return pl, nil
}
