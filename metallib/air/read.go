package air

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
)

// Read reads a module from LLVM bitcode, bare or in the Darwin wrapper, padded or not.
//
// It takes what LLVM 3.5 to LLVM 22 write: typed pointers (Apple's modules) and opaque ones (current clang). Blocks and
// records without a meaning here, debug information above all, are read over and named in [Module.Skipped]; a record that
// would change what a program does and is not understood is an error, as is any damage.
func Read(data []byte) (*Module, error) { return ReadPart(data, nil) }

// ReadPart is [Read] that leaves the bodies of functions out whose names body refuses: those are declarations then. A nil body
// refuses none. It takes time for what it reads only. A module that holds the address of a block in a body that is left out is an
// error.
func ReadPart(data []byte, body func(name string) bool) (m *Module, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case bitError:
			m, err = nil, errors.New("air: "+e.msg)
		case runtime.Error:
			// Input that gets here slipped through the checks; the caller gets an error all the same.
			m, err = nil, fmt.Errorf("air: %w: %w", errInternal, e)
		default:
			panic(e)
		}
	}()
	bits, err := unwrap(data)
	if err != nil {
		return nil, err
	}
	r := newReader(bits)
	r.wanted = body
	r.readTop()
	return r.m, nil
}

// errInternal marks errors that are faults of this package rather than of the input; the fuzz tests look for it.
var errInternal = errors.New("internal error")

// unwrap strips the Darwin wrapper and checks the magic number.
func unwrap(data []byte) ([]byte, error) {
	const wrapperMagic, wrapperSize = 0x0B17C0DE, 20
	if len(data) >= wrapperSize && binary.LittleEndian.Uint32(data) == wrapperMagic {
		off, size := binary.LittleEndian.Uint32(data[8:]), binary.LittleEndian.Uint32(data[12:])
		if uint64(off)+uint64(size) > uint64(len(data)) {
			return nil, fmt.Errorf("air: the wrapper says %d bytes of bitcode at %d, the data has %d bytes", size, off, len(data))
		}
		data = data[off : off+size]
	}
	if len(data) < 4 || string(data[:4]) != "BC\xC0\xDE" {
		return nil, fmt.Errorf("air: not LLVM bitcode: %d bytes that begin with [% x]", len(data), data[:min(len(data), 4)])
	}
	return data, nil
}

// A reader turns the records of one module into a Module.
type reader struct {
	*bitReader
	m *Module

	strtab       []byte
	version      uint64
	types        []*Type
	forwardTypes map[uint64]bool // the named structs that are referred to and not yet read
	sections     []string
	gcs          []string
	attrGroups   map[uint64]attrGroup
	attrLists    []AttrList
	mdKinds      map[uint64]string
	bundleTags   []string
	syncScopes   []string
	allocaSpace  int

	// values are the module's values by number, and in a function body also the function's.
	values []Value
	// mds are the metadata by number, in the same way.
	mds []Metadata
	// fixups run when all values of the module are known.
	fixups  []func()
	bodies  []bodyRef
	defined []*Function            // the functions with bodies, in order
	wanted  func(name string) bool // whose bodies are read; nil for all
	// structName is the name for the next named struct.
	structName  string
	pendingName string // of the next named metadata
	attrTypes   []attrTypeRef
	// oldMDValues are the values that nodes of LLVM 3.5 contain directly; mdForward those that are still to come.
	oldMDValues []*MDValue
	mdForward   []*MDValue
	// forward is set when a value was used before it was read.
	forward bool
	// opaque is set when the module has opaque pointers.
	opaque bool
	// bare is set by a compare-exchange whose result has no success bit.
	bare bool
}

// A bodyRef is a function block that was stepped over to be read at the end.
type bodyRef struct {
	at uint64
	fn *Function
}

func newReader(data []byte) *reader {
	return &reader{bitReader: newBitReader(data), m: &Module{}, attrGroups: map[uint64]attrGroup{}, mdKinds: map[uint64]string{}}
}

// skipped notes that something was read over.
func (r *reader) skipped(format string, args ...any) {
	const enough = 256
	if s := fmt.Sprintf(format, args...); len(r.m.Skipped) < enough && !slices.Contains(r.m.Skipped, s) {
		r.m.Skipped = append(r.m.Skipped, s)
	}
}

func (r *reader) skipRecord() { r.skipped("%s record %d", blockName(r.scope.id), r.code) }

func (r *reader) skipBlock(id uint64) {
	r.skipped("%s block", blockName(id))
	r.skip()
}

// blocks reads the entries of the block just entered until its end.
func (r *reader) blocks(onRecord func(), onBlock func(id uint64)) {
	for {
		switch kind, id := r.next(); kind {
		case endOfBlock:
			return
		case recordEntry:
			onRecord()
		case blockEntry:
			if id == blockInfoBlock {
				r.enter(id)
				r.blockInfo()
			} else if onBlock != nil {
				onBlock(id)
			} else {
				r.skipBlock(id)
			}
		}
	}
}

// op is operand i of the current record.
func (r *reader) op(i int) uint64 {
	if i >= len(r.record) {
		r.fail("record %d has %d operands, operand %d is needed", r.code, len(r.record), i)
	}
	return r.record[i]
}

// opt is operand i of the current record, 0 if absent.
func (r *reader) opt(i int) uint64 {
	if i >= len(r.record) {
		return 0
	}
	return r.record[i]
}

// text is the operands from i on as characters.
func (r *reader) text(i int) string {
	if i > len(r.record) {
		r.fail("record %d has %d operands, a text is needed from %d on", r.code, len(r.record), i)
	}
	s := make([]byte, 0, len(r.record)-i)
	for _, c := range r.record[i:] {
		s = append(s, byte(c))
	}
	return string(s)
}

// readTop reads the blocks outside of all blocks.
func (r *reader) readTop() {
	const magicBits = 32
	r.pos = magicBits
	seen := false
	r.findStrtab()
	r.pos = magicBits
	for r.left() >= 32 {
		r.at = r.pos
		id := r.fixed(2)
		if id == 0 && r.zeroUntilEnd() {
			break
		}
		if id != abbrevEnterBlock {
			r.fail("a block is expected, not abbreviation %d", id)
		}
		switch block := r.vbr(8); block {
		case identificationBlock:
			r.enter(block)
			r.readIdentification()
		case moduleBlock:
			if seen {
				r.fail("a second module")
			}
			seen = true
			r.enter(block)
			r.readModule()
		case strtabBlock, symtabBlock: // the latter repeats what the module says
			r.skip()
		case blockInfoBlock:
			r.enter(block)
			r.blockInfo()
		default:
			r.skipBlock(block)
		}
	}
	if !seen {
		r.fail("there is no module")
	}
}

func (r *reader) zeroUntilEnd() bool {
	for _, c := range r.data[r.pos/8:] {
		if c != 0 {
			return false
		}
	}
	return true
}

// findStrtab reads the string table ahead: it follows the module, whose records refer to it.
func (r *reader) findStrtab() {
	for r.left() >= 32 {
		r.at = r.pos
		if r.fixed(2) != abbrevEnterBlock {
			return
		}
		id := r.vbr(8)
		if id != strtabBlock {
			r.skip()
			continue
		}
		r.enter(id)
		r.blocks(func() {
			if r.code == 1 && r.strtab == nil {
				r.strtab = r.blob
			}
		}, nil)
		return
	}
}

func (r *reader) readIdentification() {
	const identString, identEpoch = 1, 2
	r.blocks(func() {
		switch r.code {
		case identString:
			r.m.Ident = r.text(0)
		case identEpoch:
			if e := r.op(0); e != 0 {
				r.fail("the bitcode is of epoch %d, only 0 is known", e)
			}
		default:
			r.skipRecord()
		}
	}, nil)
}

// readModule reads the module block. Function bodies come last, when all else is known.
func (r *reader) readModule() {
	r.blocks(r.moduleRecord, func(id uint64) {
		switch id {
		case typeBlock:
			r.enter(id)
			r.readTypes()
		case paramAttrGroupBlock:
			r.enter(id)
			r.readAttrGroups()
		case paramAttrBlock:
			r.enter(id)
			r.readAttrLists()
		case constantsBlock:
			r.enter(id)
			r.readConstants()
		case metadataBlock:
			r.enter(id)
			r.readMetadata(nil)
		case metadataKindBlock:
			r.enter(id)
			r.readMetadataKinds()
		case valueSymtabBlock:
			r.enter(id)
			r.readSymtab(nil)
		case operandBundleTagsBlock:
			r.enter(id)
			r.blocks(func() { r.bundleTags = append(r.bundleTags, r.text(0)) }, nil)
		case syncScopeNamesBlock:
			r.enter(id)
			r.blocks(func() { r.syncScopes = append(r.syncScopes, r.text(0)) }, nil)
		case functionBlock:
			n := len(r.bodies)
			if n >= len(r.defined) {
				r.fail("more function bodies than functions that have one")
			}
			r.bodies = append(r.bodies, bodyRef{at: r.pos, fn: r.defined[n]})
			r.skip()
		case useListBlock:
			r.skip() // the order of uses has no meaning
		default:
			r.skipBlock(id)
		}
	})
	r.finishModule()
}

func (r *reader) finishModule() {
	if len(r.bodies) != len(r.defined) {
		r.fail("%d function bodies for %d functions that have one", len(r.bodies), len(r.defined))
	}
	r.resolveAttrTypes()
	after, scope := r.pos, r.scope
	// The bodies are read as they stand inside the module block, which has ended; its bounds are the input's.
	for _, b := range r.bodies {
		if r.wanted != nil && !r.wanted(b.fn.Name) {
			continue
		}
		r.pos, r.at = b.at, b.at
		r.enter(functionBlock)
		r.readBody(b.fn)
	}
	r.pos, r.scope = after, scope
	for _, fix := range r.fixups {
		fix()
	}
	r.nameSyncScopes()
}

// value finds a module-level value; it must exist.
func (r *reader) globalValue(id uint64) Value {
	if id >= uint64(len(r.values)) || r.values[id] == nil {
		r.fail("value %d does not exist", id)
	}
	return r.values[id]
}
