// Package traceformat checks files in the Trace Event Format, the JSON that about:tracing of Chrome and Perfetto's viewer
// read, as Google's document of that name describes it. It is written from the document, for tests of what writes such files.
package traceformat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An Event is an event as it was read. Numbers that were not there are nil.
type Event struct {
	Name, Cat, Phase string
	TS, Dur          *float64
	PID, TID         *int
	ID, BP, Scope    string
	Args             map[string]any
}

// A File is what was read.
type File struct {
	Events []Event
	Other  map[string]any
	// Processes and Threads are their names from the metadata, threads by process and thread.
	Processes map[int]string
	Threads   map[[2]int]string
}

// Lane is the events of the threads of a process whose names begin with a name.
func (f *File) Lane(process, thread string) (events []Event) {
	for _, e := range f.Events {
		if e.Phase == "M" {
			continue
		}
		name, _, _ := strings.Cut(f.Threads[[2]int{*e.PID, *e.TID}], " ")
		if strings.HasPrefix(f.Processes[*e.PID], process) && name == thread {
			events = append(events, e)
		}
	}
	return events
}

// Check reads a file in the object form and checks it: what every phase must have, times that only grow in the file,
// durations that are not negative, complete events of one thread that are nested or apart, begins ("B") matched by ends
// ("E") of the same name, flows that end after they start, names for every process and thread.
func Check(data []byte) (*File, error) {
	var top struct {
		TraceEvents     []json.RawMessage `json:"traceEvents"`
		DisplayTimeUnit string            `json:"displayTimeUnit"`
		OtherData       map[string]any    `json:"otherData"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("traceformat: %w", err)
	}
	if u := top.DisplayTimeUnit; u != "" && u != "ms" && u != "ns" {
		return nil, fmt.Errorf("traceformat: displayTimeUnit %q", u)
	}
	f := &File{Other: top.OtherData, Processes: map[int]string{}, Threads: map[[2]int]string{}}
	for i, raw := range top.TraceEvents {
		e, err := parse(raw)
		if err == nil {
			err = f.add(e)
		}
		if err != nil {
			return nil, fmt.Errorf("traceformat: event %d: %w: %s", i, err, raw)
		}
	}
	if err := f.order(); err != nil {
		return nil, fmt.Errorf("traceformat: %w", err)
	}
	return f, nil
}

func parse(raw []byte) (Event, error) {
	var e struct {
		Name *string        `json:"name"`
		Cat  string         `json:"cat"`
		Ph   *string        `json:"ph"`
		TS   *float64       `json:"ts"`
		Dur  *float64       `json:"dur"`
		PID  *int           `json:"pid"`
		TID  *int           `json:"tid"`
		ID   *string        `json:"id"`
		BP   string         `json:"bp"`
		S    string         `json:"s"`
		Args map[string]any `json:"args"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Event{}, err
	}
	switch {
	case e.Ph == nil || !slices.Contains([]string{"B", "E", "X", "i", "C", "s", "t", "f", "M"}, *e.Ph):
		return Event{}, fmt.Errorf("no phase, or one that is not known")
	case e.PID == nil || e.TID == nil:
		return Event{}, fmt.Errorf("no process or thread")
	case *e.Ph != "E" && (e.Name == nil || *e.Name == ""):
		return Event{}, fmt.Errorf("no name")
	case *e.Ph != "M" && (e.TS == nil || *e.TS < 0):
		return Event{}, fmt.Errorf("no time, or one before the begin")
	case *e.Ph == "X" && (e.Dur == nil || *e.Dur < 0):
		return Event{}, fmt.Errorf("a complete event without a duration, or with a negative one")
	case *e.Ph != "X" && e.Dur != nil:
		return Event{}, fmt.Errorf("a duration in an event that is not complete")
	case strings.Contains("stf", *e.Ph) && (e.ID == nil || e.Cat == ""):
		return Event{}, fmt.Errorf("a flow without identity or category")
	case *e.Ph == "i" && !slices.Contains([]string{"", "g", "p", "t"}, e.S):
		return Event{}, fmt.Errorf("an instant of scope %q", e.S)
	case e.BP != "" && e.BP != "e":
		return Event{}, fmt.Errorf("binding point %q", e.BP)
	}
	out := Event{Cat: e.Cat, Phase: *e.Ph, TS: e.TS, Dur: e.Dur, PID: e.PID, TID: e.TID, BP: e.BP, Scope: e.S, Args: e.Args}
	if e.Name != nil {
		out.Name = *e.Name
	}
	if e.ID != nil {
		out.ID = *e.ID
	}
	return out, nil
}

// add keeps an event, and the names in metadata.
func (f *File) add(e Event) error {
	f.Events = append(f.Events, e)
	if e.Phase != "M" {
		return nil
	}
	arg := func(key string) (string, error) {
		s, ok := e.Args[key].(string)
		if !ok || s == "" {
			return "", fmt.Errorf("metadata without %s", key)
		}
		return s, nil
	}
	var err error
	switch e.Name {
	case "process_name":
		f.Processes[*e.PID], err = arg("name")
	case "thread_name":
		f.Threads[[2]int{*e.PID, *e.TID}], err = arg("name")
	case "process_labels":
		_, err = arg("labels")
	case "process_sort_index", "thread_sort_index":
		if _, ok := e.Args["sort_index"].(float64); !ok {
			err = fmt.Errorf("metadata without sort_index")
		}
	default:
		err = fmt.Errorf("metadata %q", e.Name)
	}
	return err
}

// slack is what rounding to microseconds with three digits may do to a sum, in microseconds.
const slack = 0.002

type open struct {
	name string
	end  float64 // of a complete event
}

// order checks what depends on several events.
func (f *File) order() error {
	last := 0.0
	stacks, begun := map[[2]int][]open{}, map[[2]int][]string{}
	flows := map[string]float64{}
	for i, e := range f.Events {
		if e.Phase == "M" {
			continue
		}
		if *e.TS < last {
			return fmt.Errorf("event %d (%s) is at %v, after one at %v", i, e.Name, *e.TS, last)
		}
		last = *e.TS
		thread := [2]int{*e.PID, *e.TID}
		if f.Processes[*e.PID] == "" || f.Threads[thread] == "" {
			return fmt.Errorf("event %d (%s): process %d or its thread %d has no name", i, e.Name, *e.PID, *e.TID)
		}
		switch e.Phase {
		case "X":
			s := stacks[thread]
			for len(s) > 0 && s[len(s)-1].end <= *e.TS+slack {
				s = s[:len(s)-1]
			}
			if n := len(s); n > 0 && *e.TS+*e.Dur > s[n-1].end+slack {
				return fmt.Errorf("event %d (%s) begins within %s of the same thread and ends after it", i, e.Name, s[n-1].name)
			}
			stacks[thread] = append(s, open{e.Name, *e.TS + *e.Dur})
		case "B":
			begun[thread] = append(begun[thread], e.Name)
		case "E":
			s := begun[thread]
			if len(s) == 0 || e.Name != "" && e.Name != s[len(s)-1] {
				return fmt.Errorf("event %d ends %q, which is not what began last", i, e.Name)
			}
			begun[thread] = s[:len(s)-1]
		case "s":
			flows[e.Cat+" "+e.Name+" "+e.ID] = *e.TS
		case "t", "f":
			if _, ok := flows[e.Cat+" "+e.Name+" "+e.ID]; !ok {
				return fmt.Errorf("event %d: flow %s ends that did not start", i, e.ID)
			}
		}
	}
	for thread, s := range begun {
		if len(s) > 0 {
			return fmt.Errorf("%s began on thread %d and did not end", s[len(s)-1], thread[1])
		}
	}
	return nil
}
