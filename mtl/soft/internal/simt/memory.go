package simt

import (
	"encoding/binary"
	"unsafe"

	"github.com/ingot-metal/ingot/metallib/air"
)

// Limits of what one kernel may ask for.
const (
	maxPrivate = 1 << 20 // bytes of private variables per thread
	// MaxThreadgroupMemory is the threadgroup memory that one threadgroup may use, static and set at launch: the 32 KiB of
	// every Apple GPU family.
	MaxThreadgroupMemory = 32 << 10
)

// A pointer holds the number of a region in its top 16 bits; the rest is pointerBias plus a byte offset, so that an
// offset below zero stays within the region's numbers. Null is region 0.
const (
	regionShift = 48
	pointerBias = 1 << 47
	// The numbers of the regions: 0 null, 1 to 31 the buffers, then those of the program.
	firstRegion = MaxBuffers + 1
	maxRegions  = 1<<16 - 1
)

func pointer(region int) uint64 { return uint64(region)<<regionShift | pointerBias }

// regionOf is the region that a constant points into, 0 for a plain number (also a small negative one).
func regionOf(p uint64) int {
	r := int(p >> regionShift)
	if r == maxRegions {
		return 0
	}
	return r
}

type regionKind uint8

const (
	regionNull regionKind = iota
	regionBuffer
	regionConst     // a table in the constant address space
	regionShared    // a static threadgroup variable
	regionSharedArg // threadgroup memory whose length is set at launch
	regionPrivate   // a variable of each thread
)

// regionInfo describes a region at compile time.
type regionInfo struct {
	kind regionKind
	name string
	size uint64
	off  uint64 // in the threadgroup's or the lane's memory
	slot int    // of a buffer or threadgroup argument
	data []byte // of a constant, or the initial value of a threadgroup variable
}

// layout is the memory of a program.
type layout struct {
	regions    []regionInfo // from firstRegion on
	globals    map[*air.Global]int
	shared     uint64 // bytes of static threadgroup variables
	laneStride uint64 // bytes of private variables per lane
	// frozen is set once the constants have their values: loads from them may be folded.
	frozen bool
}

func (m *layout) add(r regionInfo) int {
	m.regions = append(m.regions, r)
	n := firstRegion + len(m.regions) - 1
	if n >= maxRegions {
		panic(compileError{"the kernel has too many variables"})
	}
	return n
}

func alignUp(n, a uint64) uint64 {
	if a < 2 {
		return n
	}
	return (n + a - 1) / a * a
}

func (m *layout) addPrivate(size, align uint64, name string) int {
	m.laneStride = alignUp(m.laneStride, max(align, 16))
	r := m.add(regionInfo{kind: regionPrivate, name: name, size: size, off: m.laneStride})
	m.laneStride = alignUp(m.laneStride+size, 16)
	return r
}

// constBytes are n bytes of a constant table, nil if p is not wholly in one or its value is not settled.
func (m *layout) constBytes(p, n uint64) []byte {
	r := regionOf(p) - firstRegion
	if !m.frozen || r < 0 || r >= len(m.regions) || m.regions[r].kind != regionConst {
		return nil
	}
	off := p - pointer(r+firstRegion)
	if size := uint64(len(m.regions[r].data)); n > size || off > size-n {
		return nil
	}
	return m.regions[r].data[off : off+n]
}

// globalAddress lays out a global on first use.
func (lw *lowerer) globalAddress(g *air.Global) uint64 {
	if r, ok := lw.mem.globals[g]; ok {
		return pointer(r)
	}
	size := air.Size(g.ValueType)
	if size > 1<<28 {
		lw.fail("global %s has %d bytes", g.Name, size)
	}
	var data []byte
	var r int
	switch g.Space {
	case 3:
		lw.mem.shared = alignUp(lw.mem.shared, max(g.Align, air.Align(g.ValueType), 16))
		r = lw.mem.add(regionInfo{kind: regionShared, name: g.Name, size: size, off: lw.mem.shared})
		lw.mem.shared += size
		if c, ok := g.Init.(*air.Const); ok && c.Kind != air.UndefConst && c.Kind != air.PoisonConst {
			data = make([]byte, size)
		}
	case 0, 2:
		data = make([]byte, size)
		r = lw.mem.add(regionInfo{kind: regionConst, name: g.Name, size: size})
	default:
		lw.fail("global %s lies in address space %d", g.Name, g.Space)
	}
	lw.mem.globals[g] = r
	if data != nil && g.Init != nil {
		lw.constBytes(data, g.Init)
	}
	lw.mem.regions[r-firstRegion].data = data
	return pointer(r)
}

// A region is memory at run time.
type region struct {
	base   unsafe.Pointer // of byte 0 (of lane 0); nil if there is none
	origin uint64         // the pointer to byte 0
	size   uint64
	stride uintptr // between the lanes of private memory
}

// The accesses to memory. Offsets are checked before; values are little-endian whatever the machine.

func get8(p unsafe.Pointer) uint32 { return uint32(*(*byte)(p)) }
func get16(p unsafe.Pointer) uint32 {
	return uint32(binary.LittleEndian.Uint16((*[2]byte)(p)[:]))
}
func get32(p unsafe.Pointer) uint32 { return binary.LittleEndian.Uint32((*[4]byte)(p)[:]) }
func get64(p unsafe.Pointer) uint64 { return binary.LittleEndian.Uint64((*[8]byte)(p)[:]) }

func put8(p unsafe.Pointer, v uint32)  { *(*byte)(p) = byte(v) }
func put16(p unsafe.Pointer, v uint32) { binary.LittleEndian.PutUint16((*[2]byte)(p)[:], uint16(v)) }
func put32(p unsafe.Pointer, v uint32) { binary.LittleEndian.PutUint32((*[4]byte)(p)[:], v) }
func put64(p unsafe.Pointer, v uint64) { binary.LittleEndian.PutUint64((*[8]byte)(p)[:], v) }
