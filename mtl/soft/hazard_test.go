package soft

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

func TestByteSets(t *testing.T) {
	pool := newPagePool()
	const n = 300_000
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var a, b byteSet
		a.grow(n)
		b.grow(n)
		want := map[*byteSet][]bool{&a: make([]bool, n), &b: make([]bool, n)}
		for set, bytes := range want {
			for range rng.IntN(20) {
				off, size := rng.Uint64N(n-100), 1+rng.Uint64N(100)
				set.note(off, size, pool)
				for i := range size {
					bytes[off+i] = true
				}
			}
		}
		first, end := -1, -1
		for i := range n {
			if both := want[&a][i] && want[&b][i]; both && first < 0 {
				first = i
			} else if !both && first >= 0 && end < 0 {
				end = i
			}
		}
		from, to, ok := a.meets(&b)
		require.Equal(t, first >= 0, ok)
		if ok {
			require.EqualValues(t, first, from)
			require.EqualValues(t, end, to)
		}
		var u byteSet
		u.grow(n)
		u.join(&a, pool)
		u.join(&b, pool)
		_, _, ok = u.meets(&b)
		require.Equal(t, len(b.pages) > 0 && anyTrue(want[&b]), ok)
		for _, s := range []*byteSet{&a, &b, &u} {
			s.clear(pool)
		}
	}
}

func anyTrue(b []bool) bool {
	for _, x := range b {
		if x {
			return true
		}
	}
	return false
}

// TestByteSetsTogether notes from many goroutines.
func TestByteSetsTogether(t *testing.T) {
	pool := newPagePool()
	var s byteSet
	s.grow(1 << 20)
	var all sync.WaitGroup
	for i := range uint64(8) {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := range uint64(4096) {
				s.note((k*8+i)*4, 4, pool)
			}
		}()
	}
	all.Wait()
	var whole byteSet
	whole.grow(1 << 20)
	whole.note(0, 1<<20, pool)
	from, to, ok := s.meets(&whole)
	require.True(t, ok)
	require.Zero(t, from)
	require.EqualValues(t, 8*4096*4, to)
}

// hazardous encodes concurrently, and wants a hazard or none.
func (r *rig) hazardous(hazard bool, f func(e mtl.ComputeCommandEncoder), texts ...string) {
	r.t.Helper()
	cb := r.encode(mtl.DispatchTypeConcurrent, f)
	if hazard {
		mustFail(r.t, cb, mtl.CommandBufferErrorInvalidResource, append(texts, "hazard without a barrier")...)
	} else {
		mustRun(r.t, cb)
	}
}

// put encodes out[from:from+n] = value.
func (r *rig) put(e mtl.ComputeCommandEncoder, out mtl.Buffer, from, n, value uint32) {
	e.SetComputePipelineState(r.pipeline("put"))
	e.SetBuffer(out, 0, 0)
	e.SetBytes(constants(from, value), 1)
	e.DispatchThreads(size(uint(n)), size(uint(min(n, 32))))
}

// get encodes out = in[from:from+n].
func (r *rig) get(e mtl.ComputeCommandEncoder, in, out mtl.Buffer, from, n uint32) {
	e.SetComputePipelineState(r.pipeline("get"))
	e.SetBuffer(in, 0, 0)
	e.SetBuffer(out, 0, 1)
	e.SetBytes(constants(from, 0), 2)
	e.DispatchThreads(size(uint(n)), size(uint(min(n, 32))))
}

func TestHazards(t *testing.T) {
	for _, order := range []Order{Encoded, Reversed, Shuffled} {
		r := newRig(t, Options{Order: order})
		x, y, z := words(t, r.dev, make([]uint32, 256)...), words(t, r.dev, make([]uint32, 256)...), words(t, r.dev, make([]uint32, 256)...)
		x.SetLabel("x")
		type enc = mtl.ComputeCommandEncoder

		// What touches different bytes is no hazard, however close.
		r.hazardous(false, func(e enc) { r.put(e, x, 0, 64, 1); r.put(e, x, 64, 64, 2); r.put(e, x, 128, 128, 3) })
		require.EqualValues(t, 2, wordsOf(x)[127])
		require.EqualValues(t, 3, wordsOf(x)[128])
		// Nor are reads of the same bytes.
		r.hazardous(false, func(e enc) { r.get(e, x, y, 0, 64); r.get(e, x, z, 0, 64) })
		// Nor writes to one part beside reads of another.
		r.hazardous(false, func(e enc) { r.get(e, x, y, 0, 64); r.put(e, x, 64, 10, 9) })

		w := r.hazardText("put", "put")
		r.hazardous(true, func(e enc) { r.put(e, x, 0, 64, 1); r.put(e, x, 63, 64, 2) }, append(w, `bytes 252 to 256 of buffer "x"`, "writes", "wrote")...)
		r.hazardous(true, func(e enc) { r.put(e, x, 0, 64, 1); r.get(e, x, y, 60, 8) }, append(r.hazardText("put", "get"), `bytes 240 to 256 of buffer "x"`)...)
		r.hazardous(true, func(e enc) { r.get(e, x, y, 60, 8); r.put(e, x, 0, 64, 1) }, `bytes 240 to 256 of buffer "x"`)
		// The second is far from the first, the third is not.
		r.hazardous(true, func(e enc) { r.put(e, x, 0, 8, 1); r.put(e, x, 100, 8, 1); r.put(e, x, 7, 1, 1) }, `bytes 28 to 32`)

		barrier := func(e enc) { e.MemoryBarrierWithScope(mtl.BarrierScopeBuffers) }
		r.hazardous(false, func(e enc) {
			r.put(e, x, 0, 64, 1)
			barrier(e)
			r.put(e, x, 0, 64, 2)
			barrier(e)
			r.get(e, x, y, 0, 64)
		})
		require.EqualValues(t, 2, wordsOf(y)[63])
		// A barrier for textures orders no buffers.
		r.hazardous(true, func(e enc) {
			r.put(e, x, 0, 64, 1)
			e.MemoryBarrierWithScope(mtl.BarrierScopeTextures)
			r.put(e, x, 0, 64, 2)
		})
		// A barrier for one resource orders that one.
		one := func(e enc, b mtl.Buffer) { e.MemoryBarrierWithResources([]mtl.Resource{b.Resource}) }
		r.hazardous(false, func(e enc) { r.put(e, x, 0, 64, 1); one(e, x); r.put(e, x, 0, 64, 2) })
		require.EqualValues(t, 2, wordsOf(x)[63])
		r.hazardous(true, func(e enc) { r.put(e, x, 0, 64, 1); one(e, y); r.put(e, x, 0, 64, 2) })
		r.hazardous(true, func(e enc) {
			r.put(e, x, 0, 64, 1)
			r.put(e, y, 0, 64, 1)
			one(e, y)
			r.put(e, y, 0, 64, 2)
			r.put(e, x, 0, 64, 2)
		}, `buffer "x"`)
		// Counting from many dispatches at once is what atomics are for; reading the counter meanwhile is not.
		r.hazardous(false, func(e enc) { r.run(e, "count", 32, x); r.run(e, "count", 32, x) })
		r.hazardous(true, func(e enc) { r.run(e, "count", 32, x); r.get(e, x, y, 0, 1) })
		// The arguments of an indirect dispatch are read, too.
		r.hazardous(true, func(e enc) {
			r.put(e, y, 0, 3, 1)
			e.SetComputePipelineState(r.pipeline("plus_ten"))
			e.SetBuffer(x, 0, 0)
			e.DispatchThreadgroupsWithIndirectBuffer(y, 0, size(1))
		})
		// Encoders are in order anyway.
		cb := r.queue.CommandBuffer()
		for range 2 {
			e := cb.ComputeCommandEncoderWithDispatchType(mtl.DispatchTypeConcurrent)
			r.put(e, x, 0, 64, 5)
			e.EndEncoding()
		}
		mustRun(t, cb)
	}
}

// hazardText are the texts that name the kernels of a hazard, whichever ran first.
func (r *rig) hazardText(a, b string) []string {
	return []string{`(kernel "` + a + `")`, `(kernel "` + b + `")`}
}

// TestHazardsOfOffsets binds one buffer at many offsets, as an arena does.
func TestHazardsOfOffsets(t *testing.T) {
	r := newRig(t, Options{})
	arena := words(t, r.dev, make([]uint32, 4096)...)
	r.hazardous(false, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(r.pipeline("plus_ten"))
		for i := range uint(64) {
			e.SetBuffer(arena, i*256, 0)
			e.DispatchThreads(size(64), size(32))
		}
	})
	for _, w := range wordsOf(arena) {
		require.EqualValues(t, 10, w)
	}
	require.EqualValues(t, 64, Stats(r.dev).Traced)
	r.hazardous(true, func(e mtl.ComputeCommandEncoder) {
		e.SetComputePipelineState(r.pipeline("plus_ten"))
		for i := range uint(64) {
			e.SetBuffer(arena, i*256, 0)
			e.DispatchThreads(size(65-i/63), size(32))
		}
	}, "bytes 256 to 260")
}

// TestUntracedIsFree traces nothing when dispatches cannot meet.
func TestUntracedIsFree(t *testing.T) {
	r := newRig(t, Options{})
	x, y, z := words(t, r.dev, make([]uint32, 64)...), words(t, r.dev, make([]uint32, 64)...), words(t, r.dev, make([]uint32, 64)...)
	r.hazardous(false, func(e mtl.ComputeCommandEncoder) {
		r.get(e, x, y, 0, 64)
		r.get(e, x, z, 0, 64)
	})
	require.Zero(t, Stats(r.dev).Traced)
}

// TestHazardWidths finds the exact bytes of accesses of all widths, whether all lanes run or some.
func TestHazardWidths(t *testing.T) {
	r := newRig(t, Options{})
	x, y := words(t, r.dev, make([]uint32, 1024)...), words(t, r.dev, make([]uint32, 1024)...)
	for _, c := range []struct {
		kernel string
		n      uint
		bytes  uint32 // what n threads touch
	}{
		{"copy4", 32, 512}, {"copy4", 33, 528}, {"copy_half", 64, 128}, {"copy_half", 3, 6}, {"copy_byte", 32, 32},
		{"copy_byte", 7, 7}, {"spread", 32, 4},
	} {
		last := (c.bytes - 1) / 4
		text := fmt.Sprintf("bytes %d to %d ", last*4, c.bytes)
		read := func(e mtl.ComputeCommandEncoder) { r.run(e, c.kernel, c.n, x, y) }
		// The word of the last byte is met, the one after it is not.
		r.hazardous(true, func(e mtl.ComputeCommandEncoder) { r.put(e, x, last, 1, 5); read(e) }, text, c.kernel)
		r.hazardous(true, func(e mtl.ComputeCommandEncoder) { read(e); r.put(e, x, last, 1, 5) }, text, c.kernel)
		r.hazardous(false, func(e mtl.ComputeCommandEncoder) { r.put(e, x, last+1, 1, 5); read(e) })
		if c.kernel == "spread" {
			continue // writes more than it reads
		}
		r.hazardous(true, func(e mtl.ComputeCommandEncoder) { r.put(e, y, last, 1, 5); read(e) }, text, c.kernel)
		r.hazardous(false, func(e mtl.ComputeCommandEncoder) { read(e); r.put(e, y, last+1, 1, 5) })
	}
}

// TestNoHazards turns the detection off.
func TestNoHazards(t *testing.T) {
	r := newRig(t, Options{NoHazards: true})
	x := words(t, r.dev, make([]uint32, 64)...)
	r.hazardous(false, func(e mtl.ComputeCommandEncoder) { r.put(e, x, 0, 64, 1); r.put(e, x, 0, 64, 2) })
}

// TestHeapHazards sees through buffers that share the memory of a heap.
func TestHeapHazards(t *testing.T) {
	r := newRig(t, Options{})
	desc, err := mtl.NewHeapDescriptor(r.dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetSize(1024)
	desc.SetStorageMode(mtl.StorageModeShared)
	desc.SetType(mtl.HeapTypePlacement)
	heap := r.dev.NewHeapWithDescriptor(desc)
	defer heap.Release()
	a, b, c := heap.NewBufferWithLengthOffset(256, 0, 0), heap.NewBufferWithLengthOffset(256, 0, 256), heap.NewBufferWithLengthOffset(512, 0, 0)
	for _, x := range []mtl.Buffer{a, b, c} {
		defer x.Release()
	}
	c.SetLabel("both")
	r.hazardous(false, func(e mtl.ComputeCommandEncoder) { r.put(e, a, 0, 64, 1); r.put(e, b, 0, 64, 2) })
	r.hazardous(true, func(e mtl.ComputeCommandEncoder) { r.put(e, b, 0, 64, 1); r.put(e, c, 64, 1, 2) }, `bytes 256 to 260 of buffer "both"`)
}

// TestHazardsAgainstModel encodes random reads and writes of ranges, with random barriers, and compares what is found with
// a model: a hazard for programs that have one, and none for others.
func TestHazardsAgainstModel(t *testing.T) {
	const n = 48
	r := newRig(t, Options{Order: Shuffled})
	bufs := []mtl.Buffer{words(t, r.dev, make([]uint32, n)...), words(t, r.dev, make([]uint32, n)...)}
	out := words(t, r.dev, make([]uint32, 64*n)...)
	found, clean := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var last [2][n]struct{ read, written bool } // since the last barrier
		hazard := false
		note := func(b int, from, len uint32, write bool) {
			for i := from; i < from+len; i++ {
				w := &last[b][i]
				hazard = hazard || w.written || write && w.read
			}
			for i := from; i < from+len; i++ {
				w := &last[b][i]
				w.read, w.written = w.read || !write, w.written || write
			}
		}
		pool := objc.NewPool()
		cb := r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
			for k := range uint(2 + rng.IntN(8)) {
				switch b := rng.IntN(2); rng.IntN(6) {
				case 0:
					e.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
					last = [2][n]struct{ read, written bool }{}
				case 1:
					e.MemoryBarrierWithResources([]mtl.Resource{bufs[b].Resource})
					last[b] = [n]struct{ read, written bool }{}
				case 2, 3:
					from := rng.Uint32N(n - 8)
					len := 1 + rng.Uint32N(8)
					note(b, from, len, true)
					r.put(e, bufs[b], from, len, 1)
				default:
					from := rng.Uint32N(n - 8)
					len := 1 + rng.Uint32N(8)
					note(b, from, len, false)
					e.SetComputePipelineState(r.pipeline("get"))
					e.SetBuffer(bufs[b], 0, 0)
					e.SetBuffer(out, k*4*n, 1)
					e.SetBytes(constants(from, 0), 2)
					e.DispatchThreads(size(uint(len)), size(uint(len)))
				}
			}
		})
		cb.Commit()
		cb.WaitUntilCompleted()
		if hazard {
			found++
			require.ErrorContains(t, cb.Error(), "hazard without a barrier", "seed %d", seed)
		} else {
			clean++
			require.NoError(t, cb.Error(), "seed %d", seed)
		}
		pool.Drain()
	}
	require.Greater(t, found, 50)
	require.Greater(t, clean, 50)
}
