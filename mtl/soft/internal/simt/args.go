package simt

import (
	"unsafe"

	"github.com/ingot-metal/ingot/metallib/air"
)

// argKind says where a value supplied at launch comes from.
type argKind uint32

const (
	argBuffer  argKind = iota // the address of buffer slot index
	argBuiltin                // builtin index/4, component index%4
)

// The built-in values.
const (
	bThreadInGrid = iota
	bThreadInGroup
	bGroupInGrid
	bThreadIndexInGroup
	bLane
	bSimdIndex
	bThreadsPerGroup
	bDispatchThreadsPerGroup
	bThreadsPerGrid
	bGroupsPerGrid
	bSimdWidth
	bSimdsPerGroup
	bDispatchSimdsPerGroup
	bQuadIndex
	bQuadsPerGroup
	bDispatchQuadsPerGroup
	bLaneInQuad
	bGridOrigin
)

var builtins = map[string]int{
	"thread_position_in_grid":             bThreadInGrid,
	"thread_position_in_threadgroup":      bThreadInGroup,
	"threadgroup_position_in_grid":        bGroupInGrid,
	"thread_index_in_threadgroup":         bThreadIndexInGroup,
	"thread_index_in_simdgroup":           bLane,
	"simdgroup_index_in_threadgroup":      bSimdIndex,
	"threads_per_threadgroup":             bThreadsPerGroup,
	"dispatch_threads_per_threadgroup":    bDispatchThreadsPerGroup,
	"threads_per_grid":                    bThreadsPerGrid,
	"grid_size":                           bThreadsPerGrid,
	"threadgroups_per_grid":               bGroupsPerGrid,
	"threads_per_simdgroup":               bSimdWidth,
	"thread_execution_width":              bSimdWidth,
	"simdgroups_per_threadgroup":          bSimdsPerGroup,
	"dispatch_simdgroups_per_threadgroup": bDispatchSimdsPerGroup,
	"quadgroup_index_in_threadgroup":      bQuadIndex,
	"quadgroups_per_threadgroup":          bQuadsPerGroup,
	"dispatch_quadgroups_per_threadgroup": bDispatchQuadsPerGroup,
	"thread_index_in_quadgroup":           bLaneInQuad,
	"grid_origin":                         bGridOrigin,
}

// uniformBuiltin tells whether a built-in is the same in all lanes of a simdgroup.
func uniformBuiltin(b int) bool {
	switch b {
	case bThreadInGrid, bThreadInGroup, bThreadIndexInGroup, bLane, bQuadIndex, bLaneInQuad:
		return false
	}
	return true
}

// kernelArgs makes the values of a kernel's parameters.
func (lw *lowerer) kernelArgs(k *air.Kernel) [][]*val {
	vals := make([][]*val, len(k.Function.Args))
	for _, a := range k.Args {
		if a.Param < 0 || a.Param >= len(vals) {
			lw.fail("argument %s is parameter %d of a function that has %d", a.Name, a.Param, len(vals))
		}
		t := k.Function.Args[a.Param].Ty
		switch a.Kind {
		case air.BufferArg:
			if a.Index < 0 || a.Index >= MaxBuffers {
				lw.fail("argument %s is bound at buffer %d; there are %d", a.Name, a.Index, MaxBuffers)
			}
			vals[a.Param] = []*val{lw.arg(argBuffer, a.Index, true)}
		case air.ThreadgroupArg:
			if a.Index < 0 || a.Index >= MaxBuffers {
				lw.fail("argument %s is bound at threadgroup memory %d; there are %d", a.Name, a.Index, MaxBuffers)
			}
			r := lw.mem.add(regionInfo{kind: regionSharedArg, name: a.Name, slot: a.Index})
			vals[a.Param] = []*val{lw.c64(pointer(r))}
		case air.BuiltinArg:
			b, ok := builtins[a.Builtin]
			if !ok {
				continue // an error if it is used
			}
			for i, l := range lw.leaves(t) {
				v := lw.arg(argBuiltin, b*4+i, false)
				vals[a.Param] = append(vals[a.Param], lw.intCast(v, l.t.ScalarBits()))
			}
		}
	}
	// Textures and samplers are opaque handles: the intrinsics that take them are refused by name.
	for _, a := range k.Args {
		if a.Kind == air.TextureArg || a.Kind == air.SamplerArg {
			vals[a.Param] = []*val{lw.c64(0)}
		}
	}
	return vals
}

// An argSlot is where a launch value goes.
type argSlot struct {
	kind  argKind
	index int
	reg   uint32
	uni   bool
	bcast bool
}

// setArgs writes the launch values of a simdgroup into its registers.
func (w *warp) setArgs() {
	for i := range w.prog.args {
		a := &w.prog.args[i]
		if a.kind == argBuffer {
			p := w.regs[a.index+1].origin
			if a.bcast {
				d := w.u64(a.reg)
				for l := range d {
					d[l] = p
				}
			} else {
				*(*uint64)(unsafe.Add(w.base, a.reg)) = p
			}
			continue
		}
		if a.uni {
			v := w.uniformBuiltin(a.index>>2, a.index&3)
			if a.bcast {
				d := w.u32(a.reg)
				for l := range d {
					d[l] = v
				}
			} else {
				*(*uint32)(unsafe.Add(w.base, a.reg)) = v
			}
			continue
		}
		w.laneBuiltin(w.u32(a.reg), a.index>>2, a.index&3)
	}
}

func (w *warp) uniformBuiltin(b, c int) uint32 {
	g := w.g
	v := [3]uint32{}
	switch b {
	case bGroupInGrid:
		v = w.group
	case bSimdIndex:
		v[0] = w.simd
	case bThreadsPerGroup:
		v = g.size
		return dims(v, c)
	case bDispatchThreadsPerGroup:
		return dims(g.d.Threads, c)
	case bThreadsPerGrid:
		return dims(g.grid, c)
	case bGroupsPerGrid:
		return dims(g.groups, c)
	case bSimdWidth:
		v[0] = simdWidth
	case bSimdsPerGroup:
		v[0] = (product(g.size) + simdWidth - 1) / simdWidth
	case bDispatchSimdsPerGroup:
		v[0] = (product(g.d.Threads) + simdWidth - 1) / simdWidth
	case bQuadsPerGroup:
		v[0] = (product(g.size) + 3) / 4
	case bDispatchQuadsPerGroup:
		v[0] = (product(g.d.Threads) + 3) / 4
	}
	if c > 2 {
		return 0
	}
	return v[c]
}

// dims is a component of a size. A kernel that declares a scalar gets the first, as in Metal for one-dimensional grids.
func dims(v [3]uint32, c int) uint32 {
	if c > 2 {
		return 0
	}
	return v[c]
}

func product(v [3]uint32) uint32 { return v[0] * v[1] * v[2] }

func (w *warp) laneBuiltin(d *[32]uint32, b, c int) {
	first := w.simd * simdWidth
	switch b {
	case bThreadInGrid, bThreadInGroup:
		if c > 2 {
			*d = [32]uint32{}
			return
		}
		add := uint32(0)
		if b == bThreadInGrid {
			add = w.origin[c]
		}
		pos := w.threadPosition(0)
		size := w.g.size
		for l := range d {
			d[l] = pos[c] + add
			pos[0]++
			if pos[0] == size[0] {
				pos[0] = 0
				pos[1]++
				if pos[1] == size[1] {
					pos[1] = 0
					pos[2]++
				}
			}
		}
	case bThreadIndexInGroup:
		for l := range d {
			d[l] = first + uint32(l)
		}
	case bLane:
		for l := range d {
			d[l] = uint32(l)
		}
	case bQuadIndex:
		for l := range d {
			d[l] = (first + uint32(l)) / 4
		}
	case bLaneInQuad:
		for l := range d {
			d[l] = uint32(l) & 3
		}
	}
	if c > 0 && b != bThreadInGrid && b != bThreadInGroup {
		*d = [32]uint32{}
	}
}

// threadPosition is a lane's position in its threadgroup.
func (w *warp) threadPosition(lane int) [3]uint32 {
	t := w.simd*simdWidth + uint32(lane)
	s := w.g.size
	if s[0] == 0 || s[1] == 0 {
		return [3]uint32{}
	}
	return [3]uint32{t % s[0], t / s[0] % s[1], t / s[0] / s[1]}
}
