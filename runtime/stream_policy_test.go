package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChunkPolicy tells how long the chunks of a sequence of dispatches are. i is an idle device, b a busy one.
func TestChunkPolicy(t *testing.T) {
	type run struct {
		n    int
		busy bool
	}
	for _, c := range []struct {
		name  string
		runs  []run
		fresh bool
		want  []int
	}{
		{"idle", []run{{40, false}}, false, []int{8, 8, 8, 8, 8}},
		{"busy from the start", []run{{600, true}}, false, []int{256, 256}},
		{"busy after the first chunk", []run{{7, false}, {1, true}, {1000, true}}, false, []int{8, 16, 32, 64, 128, 256, 256}},
		{"idle again", []run{{7, false}, {100, true}, {100, false}}, false, []int{8, 16, 32, 64, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}},
		{"fresh memory, busy", []run{{220, true}}, true, []int{50, 50, 50, 50}},
		{"fresh memory, idle", []run{{20, false}}, true, []int{8, 8}},
		{"fresh memory, after the first chunk", []run{{7, false}, {300, true}}, true, []int{8, 16, 32, 50, 50, 50, 50, 50}},
	} {
		var p chunkPolicy
		var got []int
		n, commit := 0, false
		for _, r := range c.runs {
			for range r.n {
				n++
				decided := !p.undecided()
				before := p
				if p, commit = p.dispatched(r.busy, c.fresh); commit {
					got = append(got, n)
					n = 0
				}
				if decided { // what was not asked for must not matter
					other, _ := before.dispatched(!r.busy, c.fresh)
					require.Equal(t, p, other, c.name)
				}
			}
		}
		require.Equal(t, c.want, got, c.name)
	}
	// Commits from outside keep the limit, a wait for everything starts anew.
	p := chunkPolicy{limit: 64, dispatches: 20}
	require.Equal(t, chunkPolicy{limit: 64}, p.committed())
	require.Equal(t, chunkPolicy{}, p.drained())
	require.Equal(t, 10, maxStreamInFlight)
}
