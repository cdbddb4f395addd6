package runtime

// maxStreamInFlight is how many command buffers may be in flight on the runtime's queue before a stream waits to commit
// another.
const maxStreamInFlight = 10
