package runtime

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// The model: programs of a few random dispatches, copies and fills over overlapping ranges of the same memory. What they
// compute depends on the order of every two that conflict, and the device runs what no barrier orders in random order and
// fails a command buffer in which two dispatches meet without a barrier.

const (
	modelSlices = 3
	modelLength = 24
	modelTimes  = 3
)

// modelWays are ways to execute the steps, modelTimes over, on memory of their own: all must leave the same bytes. Tests of
// other ways to submit work add theirs.
var modelWays = map[string]func(rt *Runtime, x []Slice[uint32], steps []step) error{
	"serial": func(rt *Runtime, x []Slice[uint32], steps []step) error {
		_, err := rt.Submit(func(p *Pass) error {
			for range modelTimes {
				for i := range steps {
					if err := encodeSteps(p, x, steps[i:i+1]); err != nil {
						return err
					}
					if err := p.Barrier(); err != nil {
						return err
					}
				}
			}
			return nil
		})
		return err
	},
	"tracked": func(rt *Runtime, x []Slice[uint32], steps []step) error {
		_, err := rt.Submit(func(p *Pass) error {
			for range modelTimes {
				if err := encodeSteps(p, x, steps); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	},
	"replayed": func(rt *Runtime, x []Slice[uint32], steps []step) error {
		prog, err := rt.Record(func(p *Pass) error { return encodeSteps(p, x, steps) })
		if err != nil {
			return err
		}
		for range modelTimes {
			if _, err := prog.Replay(); err != nil {
				return err
			}
		}
		return prog.Release()
	},
}

// modelPrograms is how many random programs the model test runs: INGOT_MODEL_PROGRAMS, or else few.
func modelPrograms(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv("INGOT_MODEL_PROGRAMS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "INGOT_MODEL_PROGRAMS")
	return n
}

// TestModel runs random programs in all ways.
func TestModel(t *testing.T) {
	programs := modelPrograms(t, 1500)
	if testing.Short() {
		programs = min(programs, 200)
	}
	rt, dev := softRuntime(t, soft.Options{Order: soft.Shuffled, Seed: 5, Workers: 1}, WithMaxInFlight(32))
	memory := map[string][]Slice[uint32]{}
	for way := range modelWays {
		memory[way] = modelMemory(t, rt)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for way := range modelWays {
			if !yield(way) {
				return
			}
		}
	})
	rng := rand.New(rand.NewPCG(13, 14))
	commands := 0
	for n := range programs {
		steps := randomSteps(rng, modelSlices, modelLength)
		commands += len(steps)
		want := modelData(rng)
		for _, way := range names {
			for i, x := range memory[way] {
				require.NoError(t, x.Write(want[i]))
			}
		}
		for _, way := range names {
			require.NoError(t, modelWays[way](rt, memory[way], steps), "program %d, %s: %+v", n, way, steps)
		}
		for range modelTimes {
			hostSteps(want, steps)
		}
		got := make([]uint32, modelLength)
		for _, way := range names {
			for i, x := range memory[way] {
				require.NoError(t, x.Read(got), "program %d, %s: %+v", n, way, steps)
				if !slices.Equal(want[i], got) {
					t.Fatalf("program %d, %s, slice %d: have %v, want %v after %+v", n, way, i, got, want[i], steps)
				}
			}
		}
	}
	s := soft.Stats(dev)
	t.Logf("%d programs of %d commands, in %d ways, %d times; %d dispatches, %d of them beside others, %d barriers", programs, commands, len(names), modelTimes,
		s.Dispatches, s.Traced, rt.Stats().Barriers)
}

func modelMemory(t *testing.T, rt *Runtime) []Slice[uint32] {
	t.Helper()
	x := make([]Slice[uint32], modelSlices)
	for i := range x {
		var err error
		x[i], err = NewSlice[uint32](rt, modelLength)
		require.NoError(t, err)
	}
	return x
}

func modelData(rng *rand.Rand) [][]uint32 {
	data := make([][]uint32, modelSlices)
	for i := range data {
		data[i] = make([]uint32, modelLength)
		for j := range data[i] {
			data[i][j] = rng.Uint32()
		}
	}
	return data
}

// TestModelOfPrograms does with random programs all that programs can do, in random order: whole and partial replays,
// exchanges of memory with replays in flight, joined programs; on devices of every kind.
func TestModelOfPrograms(t *testing.T) {
	programs := modelPrograms(t, 400)
	if testing.Short() {
		programs = min(programs, 60)
	}
	for name, kind := range deviceKinds {
		t.Run(name, func(t *testing.T) {
			rt, _ := softRuntime(t, kind.o, kind.opts...)
			if kind.max > 0 {
				rt.limits.indirectMax = kind.max
			}
			rng := rand.New(rand.NewPCG(17, uint64(len(name))))
			m := newProgramModel(t, rt, rng)
			for n := range programs / len(deviceKinds) {
				m.log = []string{fmt.Sprintf("program %d", n)}
				m.run()
			}
			t.Logf("%d rebindings, %d refused, %d sets of memory at most", m.bound, m.refused, m.editions)
			require.NotZero(t, m.refused)
			require.Greater(t, m.bound, m.refused/4)
		})
	}
}

// programModel is one piece of memory, what must be in it, and what a program does to it.
type programModel struct {
	t                        *testing.T
	rt                       *Runtime
	rng                      *rand.Rand
	memory                   Slice[uint32]
	want                     []uint32
	log                      []string
	bound, refused, editions int
}

const modelWords = 96

func newProgramModel(t *testing.T, rt *Runtime, rng *rand.Rand) *programModel {
	x, err := NewSlice[uint32](rt, modelWords)
	require.NoError(t, err)
	return &programModel{t: t, rt: rt, rng: rng, memory: x, want: make([]uint32, modelWords)}
}

// steps are random, with dst and src 0 and positions in the whole memory.
func (m *programModel) steps(n int) []step {
	steps := make([]step, n)
	for i := range steps {
		size := 1 + m.rng.IntN(8)
		s := &steps[i]
		*s = step{op: m.rng.IntN(5), size: size, dlo: m.rng.IntN(modelWords - size + 1), slo: m.rng.IntN(modelWords - size + 1), v: m.rng.Uint32()}
		if s.clashes() {
			s.op = 2
		}
	}
	return steps
}

// clashes says whether a copy would overlap itself.
func (s step) clashes() bool {
	return (s.op == 1 || s.op == 3) && s.slo < s.dlo+s.size && s.dlo < s.slo+s.size
}

// run does a dozen random things with one random program, and the same on the host.
func (m *programModel) run() {
	t, rng := m.t, m.rng
	for i := range m.want {
		m.want[i] = rng.Uint32()
	}
	require.NoError(t, m.memory.Write(m.want))
	steps := m.steps(1 + rng.IntN(10))
	memory, host := []Slice[uint32]{m.memory}, [][]uint32{m.want}
	named := rng.IntN(modelWords/2 + 1)
	prog, err := m.rt.Record(func(p *Pass) error {
		if err := Bindable(p, "half", m.memory.Slice(named, named+modelWords/2)); err != nil {
			return err
		}
		return encodeSteps(p, memory, steps)
	})
	require.NoError(t, err)
	m.log = append(m.log, fmt.Sprintf("%+v", steps))
	for range 12 {
		switch op := rng.IntN(7); op {
		case 0, 1:
			m.log = append(m.log, "replay")
			_, err = prog.Replay()
			hostSteps(host, steps)
		case 2:
			i := rng.IntN(len(steps) + 1)
			j := i + rng.IntN(len(steps)-i+1)
			m.log = append(m.log, fmt.Sprint("range ", i, j))
			_, err = prog.ReplayRange(i, j)
			hostSteps(host, steps[i:j])
		case 3:
			m.log = append(m.log, "join")
			more := m.steps(1)
			var other, joined *Program
			other, err = m.rt.Record(func(p *Pass) error { return encodeSteps(p, memory, more) })
			require.NoError(t, err)
			joined, err = Join(prog, other, prog)
			require.NoError(t, err)
			require.NoError(t, other.Release())
			_, err = joined.Replay()
			require.NoError(t, joined.Release())
			hostSteps(host, steps)
			hostSteps(host, more)
			hostSteps(host, steps)
		default:
			steps, named = m.bind(prog, steps, named)
		}
		require.NoError(t, err, "%v", m.log)
	}
	m.editions = max(m.editions, prog.Stats().Editions)
	require.NoError(t, prog.Release())
	got := make([]uint32, modelWords)
	require.NoError(t, m.memory.Read(got), "%v", m.log)
	if !slices.Equal(m.want, got) {
		t.Fatalf("have %v, want %v after %v", got, m.want, m.log)
	}
}

// bind moves some of the memory of the program, if that is allowed, and returns where the steps and the name are then.
func (m *programModel) bind(prog *Program, steps []step, named int) ([]step, int) {
	from, size, byName := m.rng.IntN(modelWords), 1+m.rng.IntN(30), m.rng.IntN(4) == 0
	if s := steps[m.rng.IntN(len(steps))]; m.rng.IntN(2) == 0 {
		from, size = s.dlo, s.size
	}
	if byName {
		from, size = named, modelWords/2
	}
	size = min(size, modelWords-from)
	to := m.rng.IntN(modelWords - size + 1)
	r := Rebind(m.memory.Slice(from, from+size), m.memory.Slice(to, to+size))
	if byName {
		r = RebindName("half", m.memory.Slice(to, to+size))
	}
	moved, refuse, used := slices.Clone(steps), false, false
	move := func(at *int, n int) {
		switch {
		case *at+n <= from || from+size <= *at:
		case *at < from || from+size < *at+n:
			refuse = true
		default:
			*at, used = *at+to-from, true
		}
	}
	for i := range moved {
		s := &moved[i]
		move(&s.dlo, s.size)
		if s.op == 1 || s.op == 3 {
			move(&s.slo, s.size)
		}
		refuse = refuse || s.clashes()
	}
	err := prog.Bind(r)
	m.log = append(m.log, fmt.Sprintf("bind %d words from %d to %d: %v", size, from, to, err))
	if refuse || !used {
		m.refused++
		require.Error(m.t, err, "%v", m.log)
		return steps, named
	}
	m.bound++
	require.NoError(m.t, err, "%v", m.log)
	if from <= named && named+modelWords/2 <= from+size {
		named += to - from
	}
	return moved, named
}

// TestDroppedBarrierIsFound leaves out each barrier of random programs in turn: the device reports every one.
func TestDroppedBarrierIsFound(t *testing.T) {
	programs := 40
	if testing.Short() {
		programs = 8
	}
	rng := rand.New(rand.NewPCG(19, 20))
	rt, _ := softRuntime(t, soft.Options{Order: soft.Shuffled, Workers: 1})
	defer func() { require.NoError(t, rt.Close()) }()
	dropped := 0
	for range programs {
		steps := randomSteps(rng, modelSlices, modelLength)
		for _, way := range []string{"tracked", "replayed", "joined"} {
			for nth := 0; ; nth++ {
				x, seen, hit := modelMemory(t, rt), 0, false
				// A barrier between blits is an encoder's end; the device runs the blits of one encoder in order.
				rt.dropBarrier = func(cmd *command) bool {
					seen++
					if seen-1 == nth && !cmd.kind.blit() {
						hit = true
					}
					return seen-1 == nth && !cmd.kind.blit()
				}
				err := modelDropped(rt, way, x, steps)
				if err == nil {
					err = rt.Wait(t.Context())
				}
				if hit {
					dropped++
					require.ErrorIs(t, err, ErrDevice, "%s without barrier %d: %+v", way, nth, steps)
					require.ErrorContains(t, err, "hazard without a barrier", "%s without barrier %d: %+v", way, nth, steps)
					rt, err = rt.Reopen()
				}
				require.NoError(t, err)
				if nth >= seen {
					break
				}
			}
		}
	}
	t.Logf("%d programs, %d barriers left out", programs, dropped)
	require.Greater(t, dropped, 3*programs)
}

func modelDropped(rt *Runtime, way string, x []Slice[uint32], steps []step) error {
	if way != "joined" {
		return modelWays[way](rt, x, steps)
	}
	drop := rt.dropBarrier
	rt.dropBarrier = nil
	prog, err := rt.Record(func(p *Pass) error { return encodeSteps(p, x, steps) })
	if err != nil {
		return err
	}
	rt.dropBarrier = drop
	joined, err := Join(prog, prog)
	if err != nil {
		return err
	}
	return joined.Run()
}
