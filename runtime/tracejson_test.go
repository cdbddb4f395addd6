package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLinesOfLanes puts what happens at once on one lane on lines of its own, but groups within those around them.
func TestLinesOfLanes(t *testing.T) {
	at := func(l traceLane, from, to int, depth uint8) traceEvent {
		return traceEvent{lane: l, name: "e", start: time.Duration(from), end: time.Duration(to), depth: depth}
	}
	lines := func(events ...traceEvent) (list []int) {
		for _, e := range chromeEvents(events, "d") {
			if e.Phase == "X" {
				list = append(list, e.TID-tid(events[0].lane, 0))
			}
		}
		return list
	}
	require.Equal(t, []int{0, 1, 0, 1}, lines(at(laneWait, 0, 10, 0), at(laneWait, 5, 15, 0), at(laneWait, 10, 20, 0), at(laneWait, 15, 16, 0)))
	require.Equal(t, []int{0, 1}, lines(at(laneWait, 0, 10, 0), at(laneWait, 2, 5, 0)), "only groups are nested")
	require.Equal(t, []int{0, 0, 0, 1}, lines(at(laneGroups, 0, 10, 0), at(laneGroups, 0, 10, 1), at(laneGroups, 2, 5, 1), at(laneGroups, 8, 12, 0)))
}
