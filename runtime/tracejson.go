package runtime

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// The trace is written in the Trace Event Format that Chrome's about:tracing defined, as a JSON object, which Perfetto's
// viewer reads too: complete events ("X") with a begin and a duration in microseconds, instants ("i") for signposts, flows
// ("s" and "f") from a commit to its work on the device, and names ("M") of processes and threads. The host is one process
// and the device another; their lanes are threads.

const (
	hostPID = 1
	gpuPID  = 2
)

// jsonEvent is an event of the format. Fields that a phase does not have are left out.
type jsonEvent struct {
	Name  string    `json:"name"`
	Cat   string    `json:"cat,omitempty"`
	Phase string    `json:"ph"`
	TS    float64   `json:"ts"`
	Dur   *float64  `json:"dur,omitempty"`
	PID   int       `json:"pid"`
	TID   int       `json:"tid"`
	ID    string    `json:"id,omitempty"`
	BP    string    `json:"bp,omitempty"`
	Scope string    `json:"s,omitempty"`
	Args  *jsonArgs `json:"args,omitempty"`
}

type jsonArgs struct {
	Name       string `json:"name,omitempty"` // of a process or thread
	SortIndex  *int   `json:"sort_index,omitempty"`
	Submission uint64 `json:"submission,omitempty"`
	Dispatches int    `json:"dispatches,omitempty"`
	Bytes      int    `json:"bytes,omitempty"`
	Group      string `json:"group,omitempty"`
	Error      string `json:"error,omitempty"`
}

// WriteTo writes the trace as it is now in the Trace Event Format, for ui.perfetto.dev or chrome://tracing.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	const fn = "Trace.WriteTo"
	switch {
	case t == nil || t.rt == nil:
		return 0, &Error{Func: fn, Have: "no trace", Need: "one of Runtime.StartTrace", Err: ErrMisuse}
	case w == nil:
		return 0, &Error{Func: fn, Arg: "w", Have: "nil", Need: "a writer", Err: ErrMisuse}
	}
	t.mu.Lock()
	events := slices.Clone(t.events)
	lost, noTimes := t.lost, t.noTimes
	t.mu.Unlock()
	c := &countingWriter{w: w}
	b := bufio.NewWriter(c)
	head, err := json.Marshal(map[string]any{"device": t.device, "started": t.start.UTC().Format(time.RFC3339Nano),
		"lost": lost, "noKernelTimes": noTimes})
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(b, "{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[", head)
	for i, e := range chromeEvents(events, t.device) {
		text, err := json.Marshal(e)
		if err != nil {
			return c.n, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(text)
	}
	b.WriteString("\n]}\n")
	err = b.Flush() // which returns the first error of all writes
	return c.n, err
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// chromeEvents turns events into those of the format, in the order of their times.
func chromeEvents(events []traceEvent, device string) []jsonEvent {
	slices.SortStableFunc(events, func(a, b traceEvent) int {
		// Signposts stand before what follows them, and what contains others comes first.
		return cmp.Or(cmp.Compare(a.start, b.start), -compareBool(a.post, b.post), cmp.Compare(b.end, a.end), cmp.Compare(a.depth, b.depth))
	})
	var threads [lanes][]thread
	var out []jsonEvent
	commits := map[uint64]bool{}
	for _, e := range events {
		if e.lane == laneCommit {
			commits[e.seq] = true
		}
	}
	used := [lanes]int{}
	for _, e := range events {
		j := jsonEvent{Name: e.name, Cat: laneNames[e.lane], TS: micros(max(e.start, 0)), PID: hostPID}
		if e.lane.gpu() {
			j.PID = gpuPID
		}
		if j.Name == "" {
			j.Name = laneNames[e.lane]
		}
		if args := (jsonArgs{Submission: e.seq, Dispatches: e.count, Bytes: e.bytes, Group: e.group, Error: e.note}); args != (jsonArgs{}) {
			j.Args = &args
		}
		if e.post {
			j.Phase, j.Scope = "i", "t"
			j.TID = tid(e.lane, 0)
			used[e.lane] = max(used[e.lane], 1)
			out = append(out, j)
			continue
		}
		line := placeOn(&threads[e.lane], e, e.lane == laneGroups)
		used[e.lane] = max(used[e.lane], line+1)
		j.TID = tid(e.lane, line)
		dur := max(micros(e.end)-j.TS, 0)
		j.Phase, j.Dur = "X", &dur
		out = append(out, j)
		// A flow leads from the commit to the work.
		flow := jsonEvent{Name: "submission", Cat: "flow", TS: j.TS, PID: j.PID, TID: j.TID, ID: fmt.Sprint(e.seq)}
		switch {
		case e.seq == 0 || !commits[e.seq]:
		case e.lane == laneCommit:
			flow.Phase = "s"
			out = append(out, flow)
		case e.lane == lanePasses:
			flow.Phase, flow.BP = "f", "e"
			out = append(out, flow)
		}
	}
	return append(names(used, device), out...)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// maxLines is how many lines a lane can have before the threads of lanes get the same numbers.
const maxLines = 1000

// tid numbers the lines of the lanes.
func tid(l traceLane, line int) int { return 1 + int(l)*maxLines + line }

// thread is a line of a lane: the ends of the events that are open on it.
type thread struct{ open []time.Duration }

// placeOn finds the first line on which an event meets no other, or, if events may be nested, is within those that it meets.
func placeOn(lines *[]thread, e traceEvent, nested bool) int {
	for i := range *lines {
		l := &(*lines)[i]
		for n := len(l.open); n > 0 && l.open[n-1] <= e.start; n = len(l.open) {
			l.open = l.open[:n-1]
		}
		if n := len(l.open); n == 0 || nested && e.end <= l.open[n-1] || i == maxLines-1 {
			l.open = append(l.open, e.end)
			return i
		}
	}
	*lines = append(*lines, thread{[]time.Duration{e.end}})
	return len(*lines) - 1
}

// names are the metadata: of the processes, and of the lines that the lanes use.
func names(used [lanes]int, device string) []jsonEvent {
	meta := func(name string, pid, tid int, args jsonArgs) jsonEvent {
		return jsonEvent{Name: name, Phase: "M", PID: pid, TID: tid, Args: &args}
	}
	all := []jsonEvent{
		meta("process_name", hostPID, 0, jsonArgs{Name: "host"}),
		meta("process_name", gpuPID, 0, jsonArgs{Name: "device: " + device}),
	}
	for l := range lanes {
		pid := hostPID
		if l.gpu() {
			pid = gpuPID
		}
		for line := range used[l] {
			name := laneNames[l]
			if line > 0 {
				name = fmt.Sprintf("%s %d", name, line+1)
			}
			id := tid(l, line)
			all = append(all, meta("thread_name", pid, id, jsonArgs{Name: name}), meta("thread_sort_index", pid, id, jsonArgs{SortIndex: &id}))
		}
	}
	return all
}

// A KernelTime sums up what a trace has of one kernel.
type KernelTime struct {
	Name  string
	Count int
	// Total is the time of all its dispatches; Min and Max are those of single ones.
	Total, Min, Max time.Duration
}

// Kernels sums up the times of kernels, the longest total first. See [Trace.KernelTimes].
func (t *Trace) Kernels() []KernelTime {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	index := map[string]int{}
	var all []KernelTime
	for i := range t.events {
		e := &t.events[i]
		if e.lane != laneKernels || e.post {
			continue
		}
		d := e.end - e.start
		k, ok := index[e.name]
		if !ok {
			k = len(all)
			index[e.name] = k
			all = append(all, KernelTime{Name: e.name, Min: d})
		}
		s := &all[k]
		s.Count++
		s.Total, s.Min, s.Max = s.Total+d, min(s.Min, d), max(s.Max, d)
	}
	slices.SortStableFunc(all, func(a, b KernelTime) int { return cmp.Compare(b.Total, a.Total) })
	return all
}
