package runtime

const (
	// maxStreamInFlight is how many command buffers may be in flight on the runtime's queue before a stream waits to commit
	// another.
	maxStreamInFlight = 10
	// idleDispatches is how many dispatches a stream encodes before it commits them while the device has nothing to do.
	idleDispatches = 8
	// maxDispatches is how many it encodes at most.
	maxDispatches = 256
	// freshDispatches is when it commits if memory had to be allocated in the meantime: what comes later can then use
	// memory again that this work gives back.
	freshDispatches = 50
)

// chunkPolicy decides when a stream commits what it has encoded: soon while the device has nothing to do, so that it
// starts; in ever larger chunks while it is busy, so that commits cost little.
type chunkPolicy struct {
	limit      int // of dispatches in the chunk, 0 if not chosen yet
	dispatches int
}

// dispatched counts a dispatch, and says whether the chunk is to be committed now. busy says whether work is in flight,
// fresh whether memory was allocated since the chunk began.
func (c chunkPolicy) dispatched(busy, fresh bool) (next chunkPolicy, commit bool) {
	c.dispatches++
	if c.limit == 0 {
		c.limit = idleDispatches
		if busy {
			c.limit = maxDispatches
		}
	}
	if c.dispatches < c.limit && !(fresh && c.dispatches >= freshDispatches) {
		return c, false
	}
	limit := idleDispatches
	if busy {
		limit = min(2*c.limit, maxDispatches)
	}
	return chunkPolicy{limit: limit}, true
}

// committed is the policy after a commit that it did not ask for.
func (c chunkPolicy) committed() chunkPolicy { return chunkPolicy{limit: c.limit} }

// drained is the policy after a wait for everything: it starts anew.
func (c chunkPolicy) drained() chunkPolicy { return chunkPolicy{} }

// undecided says whether the next dispatch could change something, so that it matters whether the device is busy.
func (c chunkPolicy) undecided() bool {
	return c.limit == 0 || c.dispatches+1 >= c.limit || c.dispatches+1 >= freshDispatches
}
