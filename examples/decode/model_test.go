package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/nn"
)

// goldenModel is a model with a golden file, and how well the device agrees with it.
type goldenModel struct {
	name, path string  // below the shared data; the embedded model without one
	margin     float64 // logits of two tokens that are closer may change places
	mean       float64 // allowed difference of the first step's logits
}

// The embedded model's activations are bfloat16, those of the one that is stored in bfloat16 are float32.
var (
	goldenQ4     = goldenModel{"q4", "", 0.1, 0.02}
	goldenBF16   = goldenModel{"bf16", "data/tiny-gemma3/config.json", 1e-4, 2e-5}
	goldenModels = []goldenModel{goldenQ4, goldenBF16}
)

// folder is where the model is: "" for the embedded one.
func (g goldenModel) folder(t *testing.T) string {
	if g.path == "" {
		return ""
	}
	return filepath.Dir(testenv.Shared(t, g.path))
}

// open opens the model for its golden texts, of which short tests take the first.
func (g goldenModel) open(t *testing.T) (golden, *model) {
	dir := os.DirFS(embeddedModel)
	if g.path != "" {
		dir = os.DirFS(g.folder(t))
	}
	file, longest := readGolden(t, dir), 0
	if testing.Short() {
		file.Cases = file.Cases[:1]
	}
	for _, c := range file.Cases {
		longest = max(longest, len(c.all()))
	}
	_, m := open(t, g.folder(t), one(longest, 1))
	return file, m
}

// agreement counts choices that are as the golden file has them.
type agreement struct {
	goldenModel
	clear, agree, unclear int
	worstMean             float64
}

// choice compares the choice of the token at a place of a golden text.
func (a *agreement) choice(t *testing.T, c goldenCase, at int, got uint32) {
	t.Helper()
	if c.Margins[at] <= a.margin {
		a.unclear++
		return
	}
	a.clear++
	if got == c.Generated[at] {
		a.agree++
		return
	}
	t.Errorf("%q, token %d: got %d, want %d, margin %g", c.Prompt, at, got, c.Generated[at], c.Margins[at])
}

// logits compares the logits of the first token after a prompt.
func (a *agreement) logits(t *testing.T, c goldenCase, got []float64) {
	t.Helper()
	mean := 0.0
	for j, want := range c.FirstLogits {
		mean += math.Abs(got[j]-want) / float64(len(got))
	}
	a.worstMean = max(a.worstMean, mean)
	if !(mean <= a.mean) {
		t.Errorf("%q: mean difference of the first logits %g, allowed is %g", c.Prompt, mean, a.mean)
	}
}

func (a *agreement) log(t *testing.T) {
	t.Helper()
	t.Logf("%d of %d clear choices agree (%d more have a margin of at most %g); worst mean difference of first logits %.3g",
		a.agree, a.clear, a.unclear, a.margin, a.worstMean)
}

// Every position of every golden text is fed with what the golden file says came before. Wherever the golden file's choice
// is clear, the device makes the same one.
func TestTeacherForced(t *testing.T) {
	numbersOnly(t)
	for _, g := range goldenModels {
		t.Run(g.name, func(t *testing.T) {
			file, m := g.open(t)
			a := agreement{goldenModel: g}
			for i, c := range file.Cases {
				if i > 0 && g.path != "" {
					break // tiles take all texts
				}
				teacherForced(t, m, c, &a)
			}
			a.log(t)
		})
	}
}

func teacherForced(t *testing.T, m *model, c goldenCase, a *agreement) {
	if err := m.start(0, c.all(), 0); err != nil {
		t.Fatal(err)
	}
	for position := range len(c.all()) - 1 {
		if err := m.program.Run(); err != nil {
			t.Fatal(err)
		}
		at := position - len(c.PromptIDs) + 1 // in the continuation
		if at > 8 && testing.Short() {
			break
		}
		if at < 0 {
			continue
		}
		if at == 0 {
			a.logits(t, c, capped(m, readLogits(t, m)))
		}
		var choice [1]uint32
		if err := m.choice.Read(choice[:]); err != nil {
			t.Fatal(err)
		}
		a.choice(t, c, at, choice[0])
	}
	states, err := m.progress()
	if err != nil {
		t.Fatal(err)
	}
	if state := states[0]; state.Status != nn.DecodeRunning || (!testing.Short() && int(state.Position) != len(c.all())-1) || state.Produced != 0 {
		t.Errorf("%q: after the text: %+v", c.Prompt, state)
	}
}

// Direct encoding and replay give the same tokens, on all prompts of both golden files. The second model is stored in bfloat16.
func TestCheck(t *testing.T) {
	for g, n := range map[goldenModel]string{goldenQ4: "6", goldenBF16: "20"} {
		t.Run(g.name, func(t *testing.T) {
			dir := g.folder(t)
			args := []string{"-check", "-n", n, "-model", dir}
			if testing.Short() {
				args = []string{"-check", "-n", "3", "-model", dir, "-prompt", "Once upon a time"}
			}
			var out, errs bytes.Buffer
			if code := run(context.Background(), args, &out, &errs); code != 0 {
				t.Fatalf("code %d\n%s%s", code, errs.String(), out.String())
			}
			want := "give the same tokens for 5 prompts"
			if testing.Short() {
				want = "give the same tokens for 1 prompt"
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("got\n%s", out.String())
			}
			t.Log(out.String())
		})
	}
}

// A replayed token takes few messages, as many as the program says.
func TestMessages(t *testing.T) {
	numbersOnly(t)
	src, m := open(t, "", one(8, 30))
	if ok, why := m.program.Indirect(); !ok {
		t.Skip("the device has no indirect command buffers: ", why)
	}
	most := 20
	if m.rt.Device().Primed {
		most += 2 * m.program.Stats().Pipelines
	}
	ids := src.encode("Once upon a time")
	for _, w := range []way{direct, replayed} {
		c, err := m.hostCost(context.Background(), w, [][]uint32{ids}, 3)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v, %d messages per token", w, c.time, c.messages)
		if w == replayed && c.messages > most {
			t.Errorf("a replayed token takes %d messages, allowed are %d", c.messages, most)
		}
		if w == direct && c.messages < m.kernels {
			t.Errorf("%d kernels with %d messages", m.kernels, c.messages)
		}
	}
}

// The program as it is used.
func TestRun(t *testing.T) {
	n, stats, want := "11", "-stats", "Once upon a time there was a hungry boy named Kai."
	if testing.Short() {
		n, stats, want = "3", "-stats=false", "Once upon a time there was a"
	}
	for _, args := range [][]string{
		{"-prompt", "Once upon a time", "-n", n, stats},
		{"-prompt", "Once upon a time", "-n", n, "-direct", "-model", embeddedModel},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, &out, &errs); code != 0 {
			t.Fatalf("code %d\n%s%s", code, errs.String(), out.String())
		}
		if got := out.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\n") {
			t.Errorf("got %q", got)
		}
		for _, part := range []string{"model: ", "device: ", "library: ", "5 tokens read, " + n + " written", "tokens/s", "as long as asked for"} {
			if !strings.Contains(errs.String(), part) {
				t.Errorf("%q is missing in\n%s", part, errs.String())
			}
		}
		if slices.Contains(args, "-stats") && strings.Count(errs.String(), "Metal messages") != 2 {
			t.Errorf("no statistics in\n%s", errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"-device", "list"}, &out, &errs); code != 0 || strings.TrimSpace(out.String()) == "" {
		t.Errorf("devices %q, %s", out.String(), errs.String())
	}
	name := strings.ToUpper(strings.Split(strings.TrimSpace(out.String()), "\n")[0])
	rt, err := openRuntime(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

// Texts end with the end token, with -n, with the model's longest text; and the host may stop in the middle.
func TestEndings(t *testing.T) {
	n := 6
	if testing.Short() {
		n = 3
	}
	src, m := open(t, "", one(20, n))
	ids := src.encode("Once upon a time")
	ctx := context.Background()

	r, err := story(ctx, m, ids, replayed)
	if err != nil || len(r.tokens) != n || r.end != nn.DecodeOutputFull {
		t.Errorf("%+v %v", r, err)
	}
	again, err := story(ctx, m, ids, direct)
	if err != nil || !slices.Equal(again.tokens, r.tokens) {
		t.Errorf("the second time: %+v %v", again, err)
	}
	stop := errors.New("stop")
	if _, err := m.generate(ctx, [][]uint32{ids}, replayed, nil, func(int, uint32) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := story(canceled, m, ids, replayed); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	canceled, cancel = context.WithCancel(ctx)
	partly, err := m.generate(canceled, [][]uint32{ids}, replayed, nil, func(int, uint32) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) || !slices.Equal(partly.texts[0].tokens, r.tokens[:1]) {
		t.Errorf("%+v %v", partly, err)
	}
	var out, errs bytes.Buffer
	if code := run(canceled, nil, &out, &errs); code != 130 || errs.String() != "decode: interrupted\n" {
		t.Errorf("code %d, %s", code, errs.String())
	}
	if _, err := story(ctx, m, make([]uint32, 21), replayed); err == nil || !strings.Contains(err.Error(), "prepared for 20") {
		t.Error(err)
	}
	if _, err := story(ctx, m, nil, replayed); err == nil {
		t.Error("an empty prompt was accepted")
	}

	// Any of several end tokens ends a text; the host stops where the device does, though it had submitted more.
	dir := copyModel(t)
	edit(t, dir, configFile, replace(`"eos_token_id": 1`, fmt.Sprintf(`"eos_token_id": [1, %d]`, again.tokens[1])))
	_, m = open(t, dir, one(5, n))
	ended, err := story(ctx, m, ids, replayed)
	if err != nil || ended.end != nn.DecodeEndToken || !slices.Equal(ended.tokens, again.tokens[:2]) {
		t.Errorf("%+v %v", ended, err)
	}
}

// A model that allows no longer text ends it.
func TestCacheFull(t *testing.T) {
	numbersOnly(t)
	dir := copyModel(t)
	edit(t, dir, configFile, replace(`"max_position_embeddings": 512`, `"max_position_embeddings": 8`))
	src, m := open(t, dir, one(5, 100))
	r, err := story(context.Background(), m, src.encode("Once upon a time"), replayed)
	if err != nil || r.end != nn.DecodeCacheFull || len(r.tokens) != 4 {
		t.Errorf("%+v %v", r, err)
	}
}

// Weights that make no number come out as an error, not as a text.
func TestNoFiniteLogit(t *testing.T) {
	numbersOnly(t)
	_, m := open(t, "", one(5, 3))
	broken := make([]float32, m.config.Hidden)
	for i := range broken {
		broken[i] = math.MaxFloat32
	}
	if err := m.weights.finalNorm.Write(broken); err != nil {
		t.Fatal(err)
	}
	if _, err := story(context.Background(), m, []uint32{2, 3}, replayed); err == nil ||
		!strings.Contains(err.Error(), "no finite logit") {
		t.Error(err)
	}
}

func TestFits(t *testing.T) {
	good := checkpoint.Config{HeadDim: 128, KVHeads: 4, Positions: 1 << 24}
	if err := fits(&good, 5, 100); err != nil {
		t.Error(err)
	}
	other := good
	other.HeadDim = 256
	if err := fits(&other, 5, 100); err != nil {
		t.Error(err)
	}
	other.HeadDim = 100
	if err := fits(&other, 5, 100); err == nil || !strings.Contains(err.Error(), "heads have 100 numbers: the attention kernels are for [8 16 32 64 80 96 128 192 256 512]") {
		t.Error(err)
	}
	if err := fits(&good, 1<<25, 1); err == nil || !strings.Contains(err.Error(), "texts of up to 16777216") {
		t.Error(err)
	}
	if err := fits(&good, 1<<23, 1<<20); err == nil || !strings.Contains(err.Error(), "8388607 fit") {
		t.Error(err)
	}
}

// BenchmarkToken is one replayed token of the embedded model, at the positions of a short story.
func BenchmarkToken(b *testing.B) {
	for _, w := range []way{replayed, direct} {
		b.Run(w.String(), func(b *testing.B) {
			src, m := open(b, "", one(8, 150))
			ids := src.encode("Once upon a time")
			steps, begin := 0, time.Now()
			for b.Loop() {
				if steps%100 == 0 {
					if err := m.start(0, ids, 0); err != nil {
						b.Fatal(err)
					}
				}
				s, err := m.submit(w)
				if err == nil {
					err = s.Wait(context.Background())
				}
				if err != nil {
					b.Fatal(err)
				}
				steps++
			}
			b.ReportMetric(float64(steps)/time.Since(begin).Seconds(), "tokens/s")
		})
	}
}
