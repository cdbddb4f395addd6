package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

func TestTileAt(t *testing.T) {
	for _, c := range []struct {
		n    int
		want []tileShape
	}{
		{1, []tileShape{{1, true}}},
		{7, []tileShape{{7, true}}},
		{31, []tileShape{{31, true}}},
		{32, []tileShape{{32, true}}},
		{33, []tileShape{{32, false}, {1, true}}},
		{64, []tileShape{{32, false}, {32, true}}},
		{70, []tileShape{{32, false}, {32, false}, {6, true}}},
	} {
		var got []tileShape
		for i := range tileCount(c.n, 32) {
			got = append(got, tileAt(i, c.n, 32))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d tokens: %v, want %v", c.n, got, c.want)
		}
	}
}

func TestTileList(t *testing.T) {
	prompt := make([]uint32, 34)
	for i := range prompt {
		prompt[i] = uint32(100 + i)
	}
	got := tileList(prompt, 32, 128)
	want := slices.Concat([]uint32{0, 32, 0}, prompt[:32], []uint32{32, 34, 32 * 128, 132, 133}, make([]uint32, 30))
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// longPrompt is the beginning of the golden texts, one after the other.
func longPrompt(t testing.TB, n int) []uint32 {
	t.Helper()
	var all []uint32
	for _, c := range readGolden(t, os.DirFS(embeddedModel)).Cases {
		all = append(all, c.all()...)
	}
	return all[:n]
}

// reading is what was there after a prompt.
type reading struct {
	state        nn.DecodeState
	tokens       []uint32
	logits       []float32
	keys, values [][]float32 // by layer
}

// afterPrompt reads a prompt into caches that hold nothing but NaN. It uses tiles, or steps if w is nil.
func afterPrompt(t *testing.T, m *model, prompt []uint32, w *way) (r reading) {
	t.Helper()
	ctx := context.Background()
	nan := slices.Repeat([]float32{float32(math.NaN())}, m.positions*m.kvStride())
	first := len(prompt) - 1
	if w == nil {
		first = 0
	}
	err := m.start(0, prompt, first)
	for i := range m.weights.layers {
		l := &m.weights.layers[i]
		err = errors.Join(err, l.keys.Write(nan), l.values.Write(nan))
	}
	var last runtime.Submission
	if err == nil && w == nil {
		last, err = m.burst(ctx, replayed, len(prompt))
	} else if err == nil {
		last, err = m.read(ctx, *w, len(prompt))
	}
	if err == nil {
		err = last.Wait(ctx)
	}
	var states []nn.DecodeState
	if err == nil {
		states, err = m.progress()
	}
	if err == nil {
		r.state = states[0]
		r.tokens, err = m.produced(0, 0, r.state)
	}
	r.logits = make([]float32, m.logits.Len())
	err = errors.Join(err, m.logits.Read(r.logits))
	for i := range m.weights.layers {
		l := &m.weights.layers[i]
		k, v := make([]float32, l.keys.Len()), make([]float32, l.values.Len())
		err = errors.Join(err, l.keys.Read(k), l.values.Read(v))
		r.keys, r.values = append(r.keys, k), append(r.values, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// same says whether two lists have the same bits.
func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// firstLayer is how far the first layer's cache of tiles may be from that of steps: they add up the same products in another order.
const firstLayer = 1e-5

// A prompt that is read in tiles leaves what one leaves that is read token by token: the same state and next token, and in
// the caches as much, up to where the prompt ends. Behind the first layer roundings to bfloat16 make small differences larger.
// Direct and replayed tiles agree to the bit.
func TestTilesLikeSteps(t *testing.T) {
	numbersOnly(t)
	const window, capacity = 14, 45
	dir := copyModel(t)
	edit(t, dir, configFile, replace(`"sliding_window": 64`, fmt.Sprintf(`"sliding_window": %d`, window)))
	s := one(capacity, 1)
	s.tileRows = 32
	_, m := open(t, dir, s)
	lengths := []int{1, 34, capacity}
	if testing.Short() {
		lengths = []int{1, 34}
	}
	for _, n := range lengths {
		prompt := longPrompt(t, n)
		want := afterPrompt(t, m, prompt, nil)
		var got [2]reading
		for i := range ways {
			got[i] = afterPrompt(t, m, prompt, &ways[i])
		}
		a, b := got[0], got[1]
		if a.state != want.state || b.state != want.state || int(want.state.Position) != n-1 || len(want.tokens) != 1 {
			t.Errorf("%d tokens: %+v and %+v, with steps %+v", n, a.state, b.state, want.state)
		}
		if !slices.Equal(a.tokens, want.tokens) || !slices.Equal(b.tokens, want.tokens) {
			t.Errorf("%d tokens: next %v and %v, with steps %v", n, a.tokens, b.tokens, want.tokens)
		}
		if !same(a.logits, b.logits) {
			t.Errorf("%d tokens: logits differ, direct and replayed", n)
		}
		used, worst := n*m.kvStride(), 0.0
		for i := range want.keys {
			for _, c := range []struct {
				name               string
				direct, rep, steps []float32
			}{{"keys", a.keys[i], b.keys[i], want.keys[i]}, {"values", a.values[i], b.values[i], want.values[i]}} {
				if !same(c.direct, c.rep) {
					t.Errorf("%d tokens: %s of layer %d differ, direct and replayed", n, c.name, i)
				}
				for j, v := range c.direct {
					switch {
					case j >= used && math.Float32bits(v) != math.Float32bits(float32(math.NaN())):
						t.Fatalf("%d tokens: %s of layer %d: position %d was written", n, c.name, i, j/m.kvStride())
					case j < used:
						worst = max(worst, math.Abs(float64(v-c.steps[j])))
						if d := math.Abs(float64(v - c.steps[j])); i == 0 && d > firstLayer {
							t.Fatalf("%d tokens: %s of the first layer differ from those of steps by %g", n, c.name, d)
						}
						if v != v {
							t.Fatalf("%d tokens: %s of layer %d: position %d is not a number", n, c.name, i, j/m.kvStride())
						}
					}
				}
			}
		}
		mean := 0.0
		for i := range want.logits {
			mean += math.Abs(float64(a.logits[i]-want.logits[i])) / float64(len(want.logits))
		}
		t.Logf("%3d tokens: worst difference in the caches %.2g, mean one of the logits %.2g", n, worst, mean)
		if mean > goldenQ4.mean { // as much as either may be from the golden logits
			t.Errorf("%d tokens: mean difference of the logits %g, allowed is %g", n, mean, goldenQ4.mean)
		}
	}
}

// Every position of every golden text, as a row of a tile: what TestTeacherForced asks of steps.
func TestTeacherForcedInTiles(t *testing.T) {
	numbersOnly(t)
	for _, g := range goldenModels {
		t.Run(g.name, func(t *testing.T) {
			file, m := g.open(t)
			a := agreement{goldenModel: g}
			for _, c := range file.Cases {
				choices, logits := everyRow(t, m, c.all())
				a.logits(t, c, capped(m, logits[len(c.PromptIDs)-1]))
				for at := range c.Generated {
					a.choice(t, c, at, choices[len(c.PromptIDs)-1+at])
				}
			}
			a.log(t)
		})
	}
}

// everyRow reads a text in tiles and lets each row choose, not only the last one.
func everyRow(t *testing.T, m *model, text []uint32) (choices []uint32, logits [][]float32) {
	t.Helper()
	a := &memory{rt: m.rt}
	chosen, kept := zeros[uint32](a, "choices", m.tileRows), zeros[float32](a, "logits", m.tileRows*m.config.Vocab)
	defer func() {
		if err := a.free(); err != nil {
			t.Error(err)
		}
	}()
	err := errors.Join(a.err, m.start(0, text, 0))
	for i := range tileCount(len(text), m.tileRows) {
		rows := tileAt(i, len(text), m.tileRows).rows
		if err == nil {
			err = m.rt.Run(func(p *runtime.Pass) error {
				err := errors.Join(m.encodeTileWords(p, i), m.encodeLayers(p, m.tilePlace(rows), true),
					m.norm(p, m.residual, m.weights.finalNorm, rows), m.weights.output.many(p, kept, m.normed, rows))
				for r := range rows {
					row := kept.Slice(r*m.config.Vocab, (r+1)*m.config.Vocab)
					err = errors.Join(err, nn.SoftcapArgmax(p, chosen.Slice(r, r+1), m.choiceValue, row, m.softcap, m.config.Vocab))
				}
				return err
			})
		}
		ids, all := make([]uint32, rows), make([]float32, rows*m.config.Vocab)
		if err == nil {
			err = errors.Join(chosen.Slice(0, rows).Read(ids), kept.Slice(0, len(all)).Read(all))
		}
		if err != nil {
			t.Fatal(err)
		}
		choices = append(choices, ids...)
		for r := range rows {
			logits = append(logits, all[r*m.config.Vocab:(r+1)*m.config.Vocab])
		}
	}
	return choices, logits
}

// A prompt that fills the caches gives one token; a longer one is refused, and nothing is written.
func TestLongestPrompt(t *testing.T) {
	numbersOnly(t)
	dir := copyModel(t)
	edit(t, dir, configFile, replace(`"max_position_embeddings": 512`, `"max_position_embeddings": 40`))
	_, m := open(t, dir, one(40, 100))
	ctx := context.Background()
	for _, w := range ways {
		r, err := story(ctx, m, longPrompt(t, 40), w)
		if err != nil || r.end != nn.DecodeCacheFull || len(r.tokens) != 1 {
			t.Errorf("%s: %+v %v", w, r, err)
		}
		before, err := m.progress()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := story(ctx, m, longPrompt(t, 41), w); err == nil || !strings.Contains(err.Error(), "41 tokens, the model was prepared for 40") {
			t.Errorf("%s: %v", w, err)
		}
		if after, err := m.progress(); err != nil || after[0] != before[0] {
			t.Errorf("%s: after the refusal %+v %v, before %+v", w, after, err, before)
		}
	}
	if err := fits(m.config, 41, 1); err == nil || !strings.Contains(err.Error(), "texts of up to 40") {
		t.Error(err)
	}
}

// Tiles under the software device's checks: memory that was never written, races, and barriers that are missing.
func TestTilesWithChecks(t *testing.T) {
	numbersOnly(t) // the device's own checks need no other detector
	s := one(37, 2)
	s.tileRows = 32
	_, m := openOn(t, openRuntimeFor(t, runtime.WithChecks(true)), "", s)
	prompt := longPrompt(t, 37)
	var tokens [2][]uint32
	for i, w := range ways {
		r, err := story(context.Background(), m, prompt, w)
		if err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		tokens[i] = r.tokens
	}
	if !slices.Equal(tokens[0], tokens[1]) || len(tokens[0]) != 2 {
		t.Errorf("%v and %v", tokens[0], tokens[1])
	}
}
