package runtime

import (
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/objc"
)

//go:embed testdata/kernels.metallib
var testKernels []byte

//go:embed testdata/more/more.metallib
var moreKernels []byte

// softDevice makes a software device and checks at the end of the test that nothing of it is left.
func softDevice(t testing.TB, o soft.Options) mtl.Device {
	t.Helper()
	before := objc.LiveObjects()
	dev := soft.New(o)
	t.Cleanup(func() {
		awaitIdle(t, dev)
		if n := soft.Stats(dev).Objects; n != 0 {
			t.Errorf("%d objects of the device are left", n)
		}
		dev.Release()
		if n := objc.LiveObjects(); n != before {
			t.Errorf("%d objects leaked", n-before)
		}
		if n := objc.Parked(); n != 0 {
			t.Errorf("%d objects borrowed without a pool", n)
		}
		if err := objc.TakeError(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// awaitIdle waits until nothing runs on the device: what ends late, such as a command buffer that hung until the device was removed,
// must not let go of its objects while the next test counts its own.
func awaitIdle(t testing.TB, dev mtl.Device) {
	t.Helper()
	eventually(t, func() bool { return soft.Stats(dev).Goroutines == 0 }, "goroutines of the device")
}

// awaitGoroutines waits until there are no more goroutines than before.
func awaitGoroutines(t testing.TB, before int) {
	t.Helper()
	eventually(t, func() bool { return goruntime.NumGoroutine() <= before }, "more goroutines than before")
}

// patience is how long a test waits for what happens on another goroutine: so long that no slow machine needs it.
const patience = time.Minute

// eventually waits until f is true, and fails the test with what is wrong otherwise.
func eventually(t testing.TB, f func() bool, otherwise string, args ...any) {
	t.Helper()
	for late := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Errorf(otherwise, args...)
			return
		}
	}
}

func softRuntime(t testing.TB, o soft.Options, opts ...Option) (*Runtime, mtl.Device) {
	t.Helper()
	dev := softDevice(t, o)
	rt, err := Open(append([]Option{WithDevice(dev), WithLibrary(testKernels)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if !rt.closed.Load() {
			require.NoError(t, rt.Close())
		}
	})
	return rt, dev
}

func TestKernelsAreUpToDate(t *testing.T) {
	testenv.Tool(t, "clang-22")
	testenv.Tool(t, "opt-22")
	for dir, want := range map[string][]byte{"runtime/testdata": testKernels, "runtime/testdata/more": moreKernels} {
		out := filepath.Join(t.TempDir(), "kernels.metallib")
		cmd := exec.Command("go", "run", "./cmd/buildmetallib", "-route", "clang", "-o", out, dir)
		cmd.Dir = testenv.Root(t)
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", text)
		data, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, want, data, "rebuild the library in %s", dir)
	}
}

// deviceKinds are devices of every kind that programs run on in different ways. All run what no barrier orders in some
// order and fail a command buffer in which two dispatches meet without one.
var deviceKinds = map[string]struct {
	o       soft.Options
	opts    []Option
	max     int  // commands of an indirect command buffer
	replays bool // of an indirect command buffer
}{
	"encoded":        {replays: true},
	"reversed":       {o: soft.Options{Order: soft.Reversed}, replays: true},
	"shuffled":       {o: soft.Options{Order: soft.Shuffled, Seed: 3}, replays: true},
	"split":          {o: soft.Options{Order: soft.Reversed}, max: 2, replays: true},
	"first families": {o: soft.Options{Order: soft.Reversed, Families: soft.AppleFamilies(7), FirstFamilies: true}, replays: true},
	"no indirect":    {o: soft.Options{Order: soft.Reversed, NoIndirectCompute: true}},
	"turned off":     {o: soft.Options{Order: soft.Reversed}, opts: []Option{WithoutIndirect()}},
	"macOS 14":       {o: soft.Options{OSVersion: soft.Version{Major: 14}, NoResidencySets: true, NoEventTimeouts: true}, replays: true},
	"one worker":     {o: soft.Options{Workers: 1, Order: soft.Shuffled, Seed: 9}, replays: true},
	"discrete":       {o: soft.Options{DiscreteMemory: true}, replays: true},
}

// TestRandomProgramsOnSoftware is TestRandomPrograms with real kernels, on devices that run what no barrier orders in an
// adversarial order and fail a command buffer in which two dispatches meet without one.
func TestRandomProgramsOnSoftware(t *testing.T) {
	for name, kind := range deviceKinds {
		t.Run(name, func(t *testing.T) {
			rt, _ := softRuntime(t, kind.o, kind.opts...)
			if kind.max > 0 {
				rt.limits.indirectMax = kind.max
			}
			rng := rand.New(rand.NewPCG(11, uint64(len(name))))
			const slices, length = 3, 24
			for range 40 {
				steps := randomSteps(rng, slices, length)
				want, x := make([][]uint32, slices), make([]Slice[uint32], slices)
				for i := range x {
					want[i] = make([]uint32, length)
					for j := range want[i] {
						want[i][j] = rng.Uint32()
					}
					var err error
					x[i], err = SliceOf(rt, want[i])
					require.NoError(t, err)
				}
				check := func(what string) {
					for i := range x {
						got := make([]uint32, length)
						require.NoError(t, x[i].Read(got))
						require.Equal(t, want[i], got, "%s: slice %d after %+v", what, i, steps)
					}
				}
				require.NoError(t, rt.Run(func(p *Pass) error { return encodeSteps(p, x, steps) }))
				hostSteps(want, steps)
				check("direct")
				prog, err := rt.Record(func(p *Pass) error { return encodeSteps(p, x, steps) })
				require.NoError(t, err)
				ok, why := prog.Indirect()
				require.Equal(t, kind.replays && dispatches(steps) > 0, ok, why)
				for range 3 {
					_, err := prog.Replay()
					require.NoError(t, err)
					hostSteps(want, steps)
				}
				// Direct work beside replays in flight takes its turn.
				require.NoError(t, rt.Run(func(p *Pass) error { return encodeSteps(p, x, steps) }))
				hostSteps(want, steps)
				check("replayed")
				require.NoError(t, prog.Release())
				for i := range x {
					require.NoError(t, x[i].Release())
				}
			}
		})
	}
}

func TestForgottenBarrierIsReported(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		rt, _ := softRuntime(t, soft.Options{}, WithHazards(HazardsManual))
		x, err := NewSlice[uint32](rt, 16)
		require.NoError(t, err)
		y, err := NewSlice[uint32](rt, 16)
		require.NoError(t, err)
		right := func(p *Pass) error {
			return errors.Join(fill(p, x, 1), fill(p, y, 1), p.Barrier(), bump(p, x, 2), bump(p, y, 2))
		}
		wrong := func(p *Pass) error { return errors.Join(fill(p, x, 1), bump(p, x, 2)) }
		if recorded {
			prog, err := rt.Record(right)
			require.NoError(t, err)
			require.NoError(t, prog.Run())
			prog, err = rt.Record(wrong)
			require.NoError(t, err)
			err = prog.Run()
			require.ErrorIs(t, err, ErrDevice)
			t.Log(err)
		} else {
			require.NoError(t, rt.Run(right))
			err = rt.Run(wrong)
			require.ErrorIs(t, err, ErrDevice)
			t.Log(err)
		}
		var de *DeviceError
		require.ErrorAs(t, rt.Err(), &de)
		require.Contains(t, de.Text, "add")
		require.NotEmpty(t, de.Encoders)
	}
}

func TestKernelFaultIsReported(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	require.NoError(t, x.Label("the victim"))
	// The kernel is told of more elements than there are in the buffer.
	err = rt.Run(func(p *Pass) error {
		l := p.Kernel("fill")
		l.Write(0, x.View())
		l.Uint32(1, 1)
		l.Uint32(2, 1000)
		return l.Dispatch(D1(1), D1(32))
	})
	require.ErrorIs(t, err, ErrDevice)
	t.Log(err)
	var de *DeviceError
	require.ErrorAs(t, err, &de)
	require.Equal(t, "MTLCommandBufferErrorDomain", de.Domain)
	require.Contains(t, de.Text, "fill")
	require.Contains(t, de.Text, "the victim")
	require.Equal(t, []string{"encoder 0 faulted"}, de.Encoders)
	require.NoError(t, x.Release())
	require.ErrorIs(t, x.Label("nobody"), ErrClosed)
}

// TestFaultBehindEveryLength reads one element too far, behind memory of every length: none is rounded up to where it
// would not be noticed.
func TestFaultBehindEveryLength(t *testing.T) {
	for _, n := range []int{1, 2, 50, 63, 64, 65, 321} {
		rt, _ := softRuntime(t, soft.Options{})
		x, err := NewSlice[uint32](rt, n)
		require.NoError(t, err)
		y, err := NewSlice[uint32](rt, n+1)
		require.NoError(t, err)
		run := func(n int) error {
			return rt.Run(func(p *Pass) error {
				l := p.Kernel("copy")
				l.Read(0, x.View())
				l.Write(1, y.View())
				l.Uint32(2, uint32(n))
				return l.Dispatch(D1(1), D1(32))
			})
		}
		require.NoError(t, run(n))
		require.ErrorContains(t, run(n+1), fmt.Sprintf("buffer 0 (src): 4 bytes at offset %d of %d", 4*n, 4*n))
	}
}

func TestGroupMemoryAndConstants(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	data := make([]uint32, 256)
	for i := range data {
		data[i] = uint32(i * i)
	}
	x, err := SliceOf(rt, data)
	require.NoError(t, err)
	sums, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	numbers, err := NewSlice[uint32](rt, 80)
	require.NoError(t, err)
	encode := func(p *Pass) error {
		l := p.Kernel("group_sum")
		l.Read(0, x.View())
		l.Write(1, sums.View())
		l.ThreadgroupMemory(0, 32*4)
		if err := l.Dispatch(D1(8), D1(32)); err != nil {
			return err
		}
		for i, doubled := range []bool{false, true} {
			l = p.Kernel("number")
			l.ConstantBool(0, doubled)
			l.ConstantUint32(1, 100)
			l.Write(0, numbers.Slice(40*i, 40*i+40).View())
			if err := l.DispatchThreads(D1(40), D1(32)); err != nil {
				return err
			}
		}
		require.Zero(t, p.Barriers())
		return nil
	}
	check := func() {
		got, want := make([]uint32, 8), make([]uint32, 8)
		for i, v := range data {
			want[i/32] += v
		}
		require.NoError(t, sums.Read(got))
		require.Equal(t, want, got)
		n := make([]uint32, 80)
		require.NoError(t, numbers.Read(n))
		require.EqualValues(t, 139, n[39])
		require.EqualValues(t, 178, n[79])
		require.NoError(t, sums.Write(make([]uint32, 8)))
		require.NoError(t, numbers.Write(make([]uint32, 80)))
	}
	require.NoError(t, rt.Run(encode))
	check()
	prog, err := rt.Record(encode)
	require.NoError(t, err)
	require.NoError(t, prog.Run())
	check()
	_, err = rt.Kernel("number")
	require.ErrorIs(t, err, ErrDevice, "a kernel that needs function constants")
}

func TestSoftwareFaults(t *testing.T) {
	run := func(p *Pass, x Slice[uint32]) error { return errors.Join(fill(p, x, 1), bump(p, x, 1)) }
	t.Run("commit", func(t *testing.T) {
		rt, dev := softRuntime(t, soft.Options{})
		x, err := NewSlice[uint32](rt, 16)
		require.NoError(t, err)
		require.NoError(t, soft.Inject(dev, soft.Faults{Commit: 2}))
		require.NoError(t, rt.Run(func(p *Pass) error { return run(p, x) }))
		require.ErrorIs(t, rt.Run(func(p *Pass) error { return run(p, x) }), ErrDevice)
		again, err := rt.Reopen()
		require.NoError(t, err)
		x, err = NewSlice[uint32](again, 16)
		require.NoError(t, err)
		require.NoError(t, again.Run(func(p *Pass) error { return run(p, x) }))
		require.NoError(t, again.Close())
	})
	t.Run("allocation", func(t *testing.T) {
		rt, dev := softRuntime(t, soft.Options{})
		// The first failure empties the pool and tries again, so it takes two.
		require.NoError(t, soft.Inject(dev, soft.Faults{Allocation: 1}))
		x, err := NewSlice[uint32](rt, 16)
		require.NoError(t, err)
		require.NoError(t, rt.Run(func(p *Pass) error { return run(p, x) }))
	})
	t.Run("memory", func(t *testing.T) {
		// The runtime is allowed more than the device has.
		rt, _ := softRuntime(t, soft.Options{WorkingSet: 1 << 20}, WithMemoryBudget(2<<20))
		var all []Slice[uint8]
		for {
			x, err := NewSlice[uint8](rt, 200<<10)
			if err != nil {
				require.ErrorIs(t, err, ErrDevice)
				break
			}
			all = append(all, x)
		}
		require.Len(t, all, 5)
		for _, x := range all {
			require.NoError(t, x.Release())
		}
		// What the pool keeps is given up for another size.
		_, err := NewSlice[uint8](rt, 900<<10)
		require.NoError(t, err)
	})
	t.Run("pipeline", func(t *testing.T) {
		rt, dev := softRuntime(t, soft.Options{})
		x, err := NewSlice[uint32](rt, 16)
		require.NoError(t, err)
		// With and without the use in indirect command buffers.
		require.NoError(t, soft.Inject(dev, soft.Faults{Pipeline: 1}))
		require.NoError(t, rt.Run(func(p *Pass) error { return run(p, x) }))
		k, err := rt.Kernel("fill")
		require.NoError(t, err)
		require.False(t, k.Indirect)
		prog, err := rt.Record(func(p *Pass) error { return run(p, x) })
		require.NoError(t, err)
		ok, why := prog.Indirect()
		require.False(t, ok)
		require.Contains(t, why, "fill")
		require.NoError(t, prog.Run())
	})
	t.Run("removal", func(t *testing.T) {
		rt, dev := softRuntime(t, soft.Options{})
		x, err := NewSlice[uint32](rt, 16)
		require.NoError(t, err)
		require.NoError(t, rt.Run(func(p *Pass) error { return run(p, x) }))
		require.NoError(t, soft.Remove(dev))
		err = rt.Run(func(p *Pass) error { return run(p, x) })
		require.ErrorIs(t, err, ErrDevice)
		require.ErrorContains(t, err, "removed")
	})
	t.Run("hang and removal", func(t *testing.T) {
		rt, dev := softRuntime(t, soft.Options{}, WithTimeout(300*time.Millisecond))
		x, err := NewSlice[uint32](rt, 16)
		require.NoError(t, err)
		require.NoError(t, soft.Inject(dev, soft.Faults{Hang: 1}))
		err = rt.Run(func(p *Pass) error { return run(p, x) })
		require.ErrorIs(t, err, ErrTimeout)
		require.NoError(t, soft.Remove(dev)) // which ends the command buffer, so that Close can release it
		awaitIdle(t, dev)
		require.NoError(t, rt.Close())
	})
	t.Run("library", func(t *testing.T) {
		dev := softDevice(t, soft.Options{RefuseLibraries: "not today"})
		_, err := Open(WithDevice(dev), WithLibrary(testKernels))
		require.ErrorIs(t, err, ErrDevice)
		require.ErrorContains(t, err, "not today")
		dev = softDevice(t, soft.Options{RefuseLibraries: "not today", RefuseSource: "nor this"})
		_, err = Open(WithDevice(dev))
		require.ErrorIs(t, err, ErrDevice)
		require.ErrorContains(t, err, "not today")
		require.ErrorContains(t, err, "nor this")
		_, err = Open(WithDevice(softDevice(t, soft.Options{})), WithLibrary([]byte("no library at all")))
		require.ErrorIs(t, err, ErrDevice)
	})
	t.Run("width", func(t *testing.T) {
		rt, _ := softRuntime(t, soft.Options{ExecutionWidth: 16})
		_, err := rt.Kernel("fill")
		require.ErrorIs(t, err, ErrLimit)
	})
	t.Run("old family", func(t *testing.T) {
		_, err := Open(WithDevice(softDevice(t, soft.Options{Families: []mtl.GPUFamily{mtl.GPUFamilyApple5}})), WithLibrary(testKernels))
		require.ErrorIs(t, err, ErrDevice)
	})
}

// TestSourceFallback lets the device compile the embedded source, for the whole library and for one kernel.
func TestSourceFallback(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles all kernels, twice")
	}
	testenv.Tool(t, "clang-22")
	testenv.Tool(t, "opt-22")
	rt, err := Open(WithDevice(softDevice(t, soft.Options{RefuseLibraries: "not today"})))
	require.NoError(t, err)
	require.Equal(t, OriginSource, rt.LibraryOrigin())
	require.NoError(t, rt.SelfTest())
	require.NoError(t, rt.Close())

	rt, err = Open(WithDevice(softDevice(t, soft.Options{RefuseKernels: []string{"softcap_argmax_one_pass"}})))
	require.NoError(t, err)
	require.Equal(t, OriginEmbedded, rt.LibraryOrigin())
	for n, l := range launches(t) {
		pl, err := rt.pipeline(l)
		if n == "softcap_argmax_one_pass" {
			// This device refuses the kernel by name, from whatever library.
			require.ErrorIs(t, err, ErrDevice)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, OriginEmbedded, pl.origin)
		require.True(t, pl.indirect)
	}
	require.NoError(t, rt.Close())
}
