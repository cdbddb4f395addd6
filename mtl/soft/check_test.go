package soft

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
)

// checkProgram compiles a kernel of testdata/checks.metal with its fault or without.
func checkProgram(t testing.TB, name string, good bool, opt simt.Options) *simt.Program {
	t.Helper()
	data, err := os.ReadFile("testdata/checks.metallib")
	require.NoError(t, err)
	lib, err := metallib.Read(data)
	require.NoError(t, err)
	i := slices.IndexFunc(lib.Functions, func(f metallib.Function) bool { return f.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	m, err := air.Read(lib.Functions[i].Bitcode)
	require.NoError(t, err)
	bit := uint64(0)
	if good {
		bit = 1
	}
	opt.Constants = map[int]simt.Value{0: {Kind: simt.ConstantBool, Bits: bit}}
	p, err := simt.Compile(m, name, opt)
	require.NoError(t, err)
	return p
}

// checkDispatch is a launch of such a kernel with three threadgroups.
func checkDispatch() *simt.Dispatch {
	d := &simt.Dispatch{Groups: [3]uint32{3, 1, 1}, Threads: [3]uint32{64, 1, 1}}
	var in []uint32
	for i := range uint32(256) {
		in = append(in, i+1)
	}
	d.Buffers[0].Mem = make([]byte, 1024)
	d.Buffers[1].Mem = constants(in...)
	d.Buffers[2].Mem = make([]byte, 1024)
	d.ThreadgroupMemory[0] = 256
	return d
}

// A planted fault and where it must be found.
type planted struct {
	kernel string
	want   simt.Fault
	groups uint32 // of the dispatch, 3 if 0
	strict bool   // found without lock step only
}

func unwritten(memory, name string, slot int, thread uint32, offset, size uint64) simt.Fault {
	return simt.Fault{Kind: simt.FaultUnwritten, Memory: memory, Name: name, Slot: slot, Thread: [3]uint32{thread, 0, 0}, Offset: offset, Size: size}
}

func raced(kind, memory, name string, slot int, offset, size uint64, thread uint32, access string, other uint32, did string) simt.Fault {
	return simt.Fault{Kind: kind, Memory: memory, Name: name, Slot: slot, Offset: offset, Size: size, Thread: [3]uint32{thread, 0, 0}, Access: access,
		Other: simt.Party{Access: did, Thread: [3]uint32{other, 0, 0}, Threadgroup: [3]uint32{other / 64, 0, 0}}}
}

const (
	inGroup, inBuffer = simt.MemoryThreadgroup, simt.MemoryBuffer
	within, across    = simt.FaultRace, simt.FaultGroupRace
	wrote, read       = "wrote", "read"
	changed           = "changed atomically"
)

var plants = []planted{
	{kernel: "unwritten_shared", want: unwritten(inGroup, "a", -1, 5, 20, 4)},
	{kernel: "unwritten_argument", want: unwritten(inGroup, "scratch", 0, 60, 240, 4)},
	{kernel: "unwritten_stale", want: unwritten(inGroup, "a", -1, 64, 0, 4)},
	{kernel: "unwritten_private", want: unwritten(simt.MemoryPrivate, "", -1, 2, 12, 4)},
	{kernel: "unwritten_byte", want: unwritten(inGroup, "a", -1, 0, 63, 1)},
	{kernel: "unwritten_atomic", groups: 1, want: unwritten(inGroup, "n", -1, 0, 0, 4)},
	{kernel: "missing_barrier", want: raced(within, inGroup, "a", -1, 128, 4, 32, wrote, 31, read)},
	{kernel: "missing_second", want: raced(within, inGroup, "a", -1, 124, 4, 32, read, 31, wrote)},
	{kernel: "missing_in_loop", want: raced(within, inGroup, "a", -1, 124, 4, 32, read, 31, wrote)},
	{kernel: "same_place", want: raced(within, inGroup, "a", -1, 0, 4, 32, wrote, 0, wrote)},
	{kernel: "same_instruction", want: raced(within, inGroup, "a", -1, 0, 4, 1, wrote, 0, wrote)},
	{kernel: "same_byte", want: raced(within, inGroup, "a", -1, 39, 1, 40, wrote, 39, wrote), strict: true},
	{kernel: "wrong_flags", want: raced(within, inGroup, "a", -1, 252, 4, 0, read, 63, wrote)},
	{kernel: "no_flags", want: raced(within, inGroup, "a", -1, 252, 4, 0, read, 63, wrote)},
	{kernel: "device_missing", groups: 1, want: raced(within, inBuffer, "out", 0, 128, 4, 32, wrote, 31, read)},
	{kernel: "device_flags", groups: 1, want: raced(within, inBuffer, "out", 0, 252, 4, 0, read, 63, wrote)},
	{kernel: "atomic_and_write", groups: 1, want: raced(within, inBuffer, "out", 0, 0, 4, 32, changed, 0, wrote)},
	{kernel: "atomic_and_read", groups: 1, want: raced(within, inBuffer, "out", 0, 0, 4, 32, changed, 0, read)},
	{kernel: "partial_sums", groups: 1, want: raced(within, inGroup, "part", -1, 4, 4, 32, wrote, 0, read)},
	{kernel: "narrow_barrier", want: raced(within, inGroup, "a", -1, 128, 4, 32, wrote, 31, read)},
	{kernel: "lock_step", groups: 1, want: raced(within, inGroup, "a", -1, 4, 4, 0, read, 1, wrote), strict: true},
	{kernel: "two_sides", groups: 1, want: raced(within, inGroup, "a", -1, 4, 4, 1, wrote, 0, read), strict: true},
	{kernel: "groups_write", want: raced(across, inBuffer, "out", 0, 0, 4, 64, wrote, 0, wrote)},
	{kernel: "groups_read", want: raced(across, inBuffer, "out", 0, 256, 4, 64, wrote, 0, read)},
	{kernel: "groups_halo", want: raced(across, inBuffer, "out", 0, 128, 2, 64, wrote, 63, wrote)},
	{kernel: "groups_count", want: raced(across, inBuffer, "out", 0, 0, 4, 64, read, 0, wrote)},
}

// TestPlantedFaults runs kernels with a fault each: it must be found where it is, in every order, and nothing where
// it has been taken out. Without checks none of them is an error.
func TestPlantedFaults(t *testing.T) {
	for _, c := range plants {
		t.Run(c.kernel, func(t *testing.T) {
			run := func(good bool, opt simt.Options, order simt.Order) *simt.Fault {
				d := checkDispatch()
				if c.groups > 0 {
					d.Groups[0] = c.groups
				}
				d.Order, d.Seed = order, 3
				err := checkProgram(t, c.kernel, good, opt).Run(d, 1) // unchecked, the kernels would race
				if err == nil {
					return nil
				}
				f, ok := err.(*simt.Fault)
				require.True(t, ok, "%v", err)
				require.NotContains(t, f.Error(), "%!")
				f.Name, _, _ = strings.Cut(f.Name, "_") // the compiler numbers variables of one name
				return f
			}
			require.Nil(t, run(false, simt.Options{}, simt.InOrder), "%s, not checked", c.kernel)
			f := run(false, simt.Options{Checks: true, NoLockStep: c.strict}, simt.InOrder)
			require.NotNil(t, f, "%s: nothing found", c.kernel)
			require.NotEmpty(t, f.Instruction)
			require.Contains(t, f.Error(), f.Kind)
			want := c.want
			want.Kernel, want.Instruction, want.Length = c.kernel, f.Instruction, f.Length
			want.Threadgroup = [3]uint32{want.Thread[0] / 64, 0, 0}
			if want.Other.Access != "" {
				require.NotEmpty(t, f.Other.Instruction, c.kernel)
				want.Other.Instruction = f.Other.Instruction
			}
			require.Equal(t, want, *f, "%v", f)
			for _, order := range []simt.Order{simt.Reversed, simt.Shuffled} {
				f := run(false, simt.Options{Checks: true, NoLockStep: c.strict}, order)
				require.NotNil(t, f, "%s: nothing found in order %d", c.kernel, order)
				require.Equal(t, []any{c.want.Kind, c.want.Memory, c.want.Name}, []any{f.Kind, f.Memory, f.Name}, "%v", f)
			}
			if c.strict {
				require.Nil(t, run(false, simt.Options{Checks: true}, simt.InOrder), "%s, in lock step", c.kernel)
			}
			for _, order := range []simt.Order{simt.InOrder, simt.Reversed, simt.Shuffled} {
				require.Nil(t, run(true, simt.Options{Checks: true, NoLockStep: true}, order), "%s without its fault", c.kernel)
			}
		})
	}
	t.Logf("%d faults found", len(plants))
}

func TestIdioms(t *testing.T) {
	for _, order := range []simt.Order{simt.InOrder, simt.Reversed, simt.Shuffled} {
		plain, d := checkDispatch(), checkDispatch()
		plain.Groups[0], d.Groups[0], d.Order = 1, 1, order
		require.NoError(t, checkProgram(t, "idioms", true, simt.Options{}).Run(plain, 1))
		require.NoError(t, checkProgram(t, "idioms", true, simt.Options{Checks: true, NoLockStep: true}).Run(d, 1))
		require.Equal(t, plain.Buffers[0].Mem, d.Buffers[0].Mem)
	}
}

// A buffer that is bound at two slots, and read through one of them.
func TestCheckSharedBinding(t *testing.T) {
	p, d := checkProgram(t, "reverse", true, simt.Options{Checks: true}), checkDispatch()
	d.Groups[0] = 1
	require.NoError(t, p.Run(d, 1))
	d.Buffers[0].Mem = d.Buffers[1].Mem
	f, ok := p.Run(d, 1).(*simt.Fault)
	require.True(t, ok)
	require.Equal(t, simt.FaultRace, f.Kind)
	require.Equal(t, "in", f.Name)
	require.EqualValues(t, 124, f.Offset)
	require.Equal(t, [3]uint32{31, 0, 0}, f.Other.Thread)
}

// The order of threadgroups, and of simdgroups between barriers, is what was asked for, and every one runs once.
func TestCheckOrder(t *testing.T) {
	r := func(order simt.Order, seed uint64) []uint32 {
		p, d := checkProgram(t, "tickets", true, simt.Options{Checks: true}), checkDispatch()
		d.Groups[0], d.Order, d.Seed = 20, order, seed
		require.NoError(t, p.Run(d, 1))
		return words32(d.Buffers[0].Mem)[1:41]
	}
	first := r(simt.InOrder, 0)
	for i, v := range first {
		require.EqualValues(t, i, v)
	}
	back := r(simt.Reversed, 0)
	for i, v := range back {
		require.EqualValues(t, 39-i, v)
	}
	a, b := r(simt.Shuffled, 1), r(simt.Shuffled, 2)
	require.NotEqual(t, a, b)
	require.Equal(t, a, r(simt.Shuffled, 1))
	for _, s := range [][]uint32{a, b} {
		require.NotEqual(t, first, s)
		slices.Sort(s)
		require.Equal(t, first, s)
	}
}

func words32(b []byte) []uint32 {
	v := make([]uint32, len(b)/4)
	for i := range v {
		v[i] = uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24
	}
	return v
}

// TestCheckedDevice finds a fault through the device: the command buffer fails and says where, and only if asked to.
func TestCheckedDevice(t *testing.T) {
	for _, checks := range []bool{true, false} {
		r := newRig(t, Options{Checks: checks, Order: Shuffled})
		in, out := floats(t, r.dev, make([]float32, 128)...), floats(t, r.dev, 0, 0)
		cb := r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
			e.SetComputePipelineState(r.pipeline("lopsided"))
			e.SetBuffer(in, 0, 0)
			e.SetBuffer(out, 0, 1)
			e.DispatchThreadgroups(size(1), size(64))
		})
		if checks {
			mustFail(t, cb, mtl.CommandBufferErrorInvalidResource, `kernel lopsided: read of memory never written: threadgroup (piece): 4 bytes at offset 252`, "thread (0, 0, 0)")
		} else {
			mustRun(t, cb)
		}
	}
}

// TestKernelStatistics compares counts with what kernels do.
func TestKernelStatistics(t *testing.T) {
	for _, checks := range []bool{false, true} {
		r := newRig(t, Options{Counts: true, Checks: checks})
		a, b, out := floats(t, r.dev, make([]float32, 96)...), floats(t, r.dev, make([]float32, 96)...), floats(t, r.dev, make([]float32, 96)...)
		n := words(t, r.dev, 80)
		for range 2 {
			mustRun(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) { r.run(e, "add", 96, a, b, out, n) }))
		}
		mustRun(t, r.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) { r.run(e, "sum64", 64, a, out) }))
		k := Stats(r.dev).Kernels["add"]
		require.EqualValues(t, 2, k.Dispatches)
		require.EqualValues(t, 2*80*4, k.Read[0])
		require.EqualValues(t, 2*80*4, k.Read[1])
		require.EqualValues(t, 2*80*4, k.Written[2])
		require.EqualValues(t, 2*3*4, k.Read[3])
		require.Zero(t, k.Written[0]+k.Read[2]+k.ThreadgroupRead+k.PrivateRead+k.Barriers)
		require.Greater(t, k.Instructions, uint64(6*4))
		require.InDelta(t, 0.9, k.Occupancy(), 0.06)
		k = Stats(r.dev).Kernels["sum64"]
		require.EqualValues(t, 64*4, k.ThreadgroupWritten)
		require.EqualValues(t, 64*4, k.ThreadgroupRead)
		require.EqualValues(t, 2, k.Barriers)
		require.Less(t, k.Occupancy(), 0.5)
	}
	r := newRig(t, Options{})
	require.Nil(t, Stats(r.dev).Kernels)
	require.Zero(t, KernelStatistics{}.Occupancy())
}
