package runtime

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// In the model's terms, streams are another way to execute the steps: in calls of a few, each in one of some streams, with
// passes, replays and commits in between.

var modelRand = rand.New(rand.NewPCG(21, 22))

func init() { modelWays["streamed"] = streamSteps }

func streamSteps(rt *Runtime, x []Slice[uint32], steps []step) error {
	streams := make([]*Stream, 1+modelRand.IntN(3))
	for i := range streams {
		var err error
		if streams[i], err = rt.NewStream(); err != nil {
			return err
		}
	}
	for range modelTimes {
		for i := 0; i < len(steps); {
			end := min(len(steps), i+1+modelRand.IntN(3))
			part := steps[i:end]
			encode := func(p *Pass) error { return encodeSteps(p, x, part) }
			s := streams[modelRand.IntN(len(streams))]
			var err error
			switch modelRand.IntN(16) {
			case 0:
				_, err = rt.Submit(encode)
			case 1:
				var prog *Program
				if prog, err = rt.Record(encode); err == nil {
					err = errors.Join(s.Replay(prog), prog.Release())
				}
			case 2:
				if err = s.Encode(encode); err == nil {
					_, err = s.Commit()
				}
			default:
				err = s.Encode(encode)
			}
			if err != nil {
				return err
			}
			i = end
		}
	}
	for _, s := range streams {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// TestDroppedStreamBarrierIsFound leaves out each barrier that the calls of a stream get in turn: the device reports every one.
// A failure ends the stream and not the runtime, which goes on.
func TestDroppedStreamBarrierIsFound(t *testing.T) {
	programs := 40
	if testing.Short() {
		programs = 8
	}
	rt, _ := softRuntime(t, soft.Options{Order: soft.Shuffled, Workers: 1})
	rng := rand.New(rand.NewPCG(31, 32))
	dropped := 0
	for range programs {
		steps := randomSteps(rng, modelSlices, modelLength)
		x := modelMemory(t, rt)
		for nth := 0; ; nth++ {
			for i := range x {
				require.NoError(t, x[i].Write(make([]uint32, modelLength))) // fit for use after a failure
			}
			seen, hit := 0, false
			rt.dropBarrier = func(cmd *command) bool {
				seen++
				drop := seen-1 == nth && !cmd.kind.blit()
				hit = hit || drop
				return drop
			}
			s := openStream(t, rt)
			var err error
			for i := 0; i < len(steps) && err == nil; i++ {
				err = s.Encode(func(p *Pass) error { return encodeSteps(p, x, steps[i:i+1]) })
			}
			if err == nil {
				err = s.Wait(t.Context())
			}
			require.NoError(t, s.Close())
			if hit {
				dropped++
				require.ErrorContains(t, err, "hazard without a barrier", "barrier %d: %+v", nth, steps)
				require.NoError(t, rt.Wait(t.Context()))
			} else {
				require.NoError(t, err)
			}
			if nth >= seen {
				break
			}
		}
		for i := range x {
			require.NoError(t, x[i].Release())
		}
	}
	rt.dropBarrier = nil
	require.NoError(t, rt.Err())
	t.Logf("%d programs, %d barriers left out", programs, dropped)
	require.Greater(t, dropped, programs/2) // many of the programs' conflicts are with copies, which begin encoders of their own
}
