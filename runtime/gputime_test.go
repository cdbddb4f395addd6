package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// fakeTime is how long the fake says that it worked on its n-th commit.
func fakeTime(n int) time.Duration { return time.Second/2 + time.Second*time.Duration(n)/1024 }

func submitMany(t *testing.T, rt *Runtime, n int) []Submission {
	t.Helper()
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	all := make([]Submission, n)
	for i := range all {
		if i%2 == 0 {
			all[i], err = prog.Replay()
		} else {
			all[i], err = rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
		}
		require.NoError(t, err)
	}
	require.NoError(t, rt.Wait(t.Context()))
	return all
}

func TestGPUTimesInFlight(t *testing.T) {
	d := new(fake)
	rt := d.open(t, WithMaxInFlight(MaxMaxInFlight))
	all := submitMany(t, rt, 200)
	for i, s := range all {
		if i < 200-flights {
			require.Zero(t, s.GPUTime(), i)
		} else {
			require.Equal(t, fakeTime(i), s.GPUTime(), i)
		}
	}
}

func TestGPUTimesAreKept(t *testing.T) {
	rt := new(fake).open(t, WithGPUTimes())
	all := submitMany(t, rt, 300)
	for i, s := range all {
		require.Equal(t, fakeTime(i), s.GPUTime(), i)
	}
	require.NoError(t, rt.Close())
	for i, s := range all {
		require.Equal(t, fakeTime(i), s.GPUTime(), "%d, after Close", i)
	}
}

func TestGPUTimesOnSoftware(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{}, WithGPUTimes())
	for i, s := range submitMany(t, rt, 150) {
		require.Positive(t, s.GPUTime(), i)
		require.Less(t, s.GPUTime(), time.Minute, i)
	}
}

// Keeping times costs an allocation now and then, not one for each replay.
func TestReplaysThatKeepTimes(t *testing.T) {
	rt := (&fake{static: true}).open(t, WithGPUTimes())
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	var s Submission
	allocs := testing.AllocsPerRun(1000, func() {
		if s, err = prog.Replay(); err == nil {
			err = s.Wait(t.Context())
		}
	})
	require.NoError(t, err)
	require.Positive(t, s.GPUTime())
	if !raceEnabled {
		require.Zero(t, allocs)
	}
}
