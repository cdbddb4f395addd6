package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// alone are the texts that a model writes one by one, with seeds that go on.
func alone(t *testing.T, path string, prompts [][]uint32, n, tileRows int, s sampling) (texts []text) {
	t.Helper()
	_, m := open(t, path, settings{sequences: 1, longest: longestOf(prompts), n: n, sampled: !s.greedy(), tileRows: tileRows})
	for i, p := range prompts {
		own := s
		own.seed += uint64(i)
		r, err := m.generate(context.Background(), [][]uint32{p}, replayed, own.samplers(m), nothing)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, r.texts[0])
	}
	return texts
}

func longestOf(prompts [][]uint32) (n int) {
	for _, p := range prompts {
		n = max(n, len(p))
	}
	return n
}

// sameTexts compares texts that were decoded at once with those that were decoded alone.
func sameTexts(t *testing.T, what string, got, want []text) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d texts, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !slices.Equal(got[i].tokens, want[i].tokens) || got[i].end != want[i].end || got[i].prompt != want[i].prompt {
			t.Errorf("%s, text %d:\ngot  %v\nwant %v", what, i, got[i], want[i])
		}
	}
}

// Texts that are decoded at once are, token for token, those that are decoded alone: greedy and sampled, direct and replayed, with
// prompts of different lengths, two of them the same, and texts that end before others do.
func TestRowsLikeSingles(t *testing.T) {
	models := []struct{ name, path string }{{"q4", ""}, {"bf16", "data/tiny-gemma3/config.json"}, {"gguf", "data/stories260k/stories260K.gguf"}}
	if testing.Short() {
		models = models[:1]
	}
	for _, model := range models {
		t.Run(model.name, func(t *testing.T) {
			path := model.path
			if path != "" {
				path = testenv.Shared(t, path)
			}
			if strings.HasSuffix(path, ".json") {
				path = filepath.Dir(path)
			}
			src, err := openSource(path)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			var prompts [][]uint32
			for _, p := range []string{"Once upon a time", "Lena had five", "Once upon a time", "A"} {
				prompts = append(prompts, src.encode(p))
			}
			n := 6
			if testing.Short() {
				n, prompts = 3, prompts[2:]
			}
			for _, s := range []sampling{{topP: 1}, {temperature: 1.2, topK: 30, topP: 0.95, seed: 11}} {
				want := alone(t, path, prompts, n, 4, s)
				_, m := open(t, path, settings{sequences: len(prompts), longest: longestOf(prompts), n: n, sampled: !s.greedy(), tileRows: 4})
				for _, w := range ways {
					r, err := m.generate(context.Background(), prompts, w, s.samplers(m), nothing)
					if err != nil {
						t.Fatal(err)
					}
					sameTexts(t, fmt.Sprintf("%s, temperature %g", w, s.temperature), r.texts, want)
				}
			}
		})
	}
}

// Sixteen texts at once, which some products take in two launches, and which end at different times.
func TestMostRows(t *testing.T) {
	numbersOnly(t)
	dir := copyModel(t)
	edit(t, dir, configFile, replace(`"eos_token_id": 1`, `"eos_token_id": [1, 457, 262, 375, 264, 300, 310]`))
	src, err := openSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	const n = 4
	s := sampling{temperature: 2, topP: 1, seed: 3}
	prompts := slices.Repeat([][]uint32{src.encode("Once")}, maxSequences)
	want := alone(t, dir, prompts, n, 0, s)
	ends := map[nn.DecodeStatus]int{}
	for _, w := range want {
		ends[w.end]++
	}
	_, m := open(t, dir, settings{sequences: maxSequences, longest: longestOf(prompts), n: n, sampled: true})
	r, err := m.generate(context.Background(), prompts, replayed, s.samplers(m), nothing)
	if err != nil {
		t.Fatal(err)
	}
	sameTexts(t, "sixteen", r.texts, want)
	if ends[nn.DecodeEndToken] == 0 || ends[nn.DecodeOutputFull] == 0 {
		t.Errorf("ends %v: some should come early", ends)
	}
}

// Several texts under the software device's checks: races between sequences, memory that was never written.
func TestRowsWithChecks(t *testing.T) {
	numbersOnly(t) // the device's own checks need no other detector
	prompts := [][]uint32{longPrompt(t, 7), longPrompt(t, 3)}
	for _, sampled := range []bool{false, true} {
		_, m := openOn(t, openRuntimeFor(t, runtime.WithChecks(true)), "", settings{sequences: 2, longest: 7, n: 2, sampled: sampled, tileRows: 4})
		s := sampling{topP: 1}
		for _, w := range ways {
			r, err := m.generate(context.Background(), prompts, w, s.samplers(m), nothing)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.texts[0].tokens) != 2 || len(r.texts[1].tokens) != 2 {
				t.Errorf("%+v", r.texts)
			}
		}
	}
}

// The host's choice of the most likely token is the device's.
func TestSampledGreedy(t *testing.T) {
	numbersOnly(t)
	prompts := [][]uint32{longPrompt(t, 5), longPrompt(t, 9)}
	var texts [2][]text
	for i, sampled := range []bool{false, true} {
		_, m := open(t, "", settings{sequences: 2, longest: 9, n: 6, sampled: sampled})
		r, err := m.generate(context.Background(), prompts, replayed, sampling{topP: 1}.samplers(m), nothing)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = r.texts
	}
	sameTexts(t, "greedy", texts[1], texts[0])
}

// Several texts on standard output, one below the other.
func TestRunRows(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-rows", "2", "-n", "3"}, []string{"--- 1 of 2: 3 tokens, as long as asked for\nOnce upon a time there was a\n\n--- 2 of 2: 3 tokens"}},
		{[]string{"-prompt", "Lena had five", "-prompt", "Once upon a time", "-n", "2"},
			[]string{"--- 1 of 2: 2 tokens, as long as asked for\nLena had five ", "--- 2 of 2: 2 tokens, as long as asked for\nOnce upon a time there was\n\n"}},
		{[]string{"-rows", "2", "-n", "2", "-temperature", "1", "-seed", "5"}, []string{"--- 1 of 2, seed 5: 2 tokens", "--- 2 of 2, seed 6: 2 tokens"}},
		{[]string{"-check", "-rows", "2", "-n", "2", "-prompt", "Once upon a time"}, []string{"give the same tokens for 2 prompts"}},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), c.args, &out, &errs); code != 0 {
			t.Fatalf("%q: code %d\n%s", c.args, code, errs.String())
		}
		for _, part := range c.want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%q: %q is missing in\n%s", c.args, part, out.String())
			}
		}
		if c.args[0] != "-check" && !strings.Contains(errs.String(), "2 texts at once") {
			t.Errorf("%q: %s", c.args, errs.String())
		}
	}
}

// What -rows 4 prints are the texts of four runs with the seeds from -seed on.
func TestRunRowsLikeSingles(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the model fifteen times, with texts long enough to differ; TestRunRows is shorter")
	}
	tell := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := run(context.Background(), append(args, "-n", "16"), &out, &errs); code != 0 {
			t.Fatalf("%q: code %d\n%s", args, code, errs.String())
		}
		return out.String()
	}
	for _, how := range [][]string{nil, {"-temperature", "1", "-top-k", "20", "-direct"}, {"-temperature", "0.9", "-top-p", "0.95"}} {
		sampled := how != nil
		seeded := func(seed int, args ...string) []string {
			if args = append(args, how...); sampled {
				args = append(args, "-seed", fmt.Sprint(seed))
			}
			return args
		}
		_, all, _ := strings.Cut(tell(seeded(6, "-rows", "4")...), "--- ")
		parts := strings.Split(all, "--- ")
		if len(parts) != 4 {
			t.Fatalf("%q: %d texts", how, len(parts))
		}
		different := map[string]bool{}
		for i, part := range parts {
			_, text, _ := strings.Cut(part, "\n")
			single := tell(seeded(6 + i)...)
			if strings.TrimSpace(text) != strings.TrimSpace(single) {
				t.Errorf("%q: text %d is %q, alone %q", how, i, text, single)
			}
			different[text] = true
		}
		if sampled != (len(different) > 1) {
			t.Errorf("%q: %d different texts", how, len(different))
		}
	}
}

// In formats of every family, the logits of texts that are decoded at once have the bits that they have alone.
func TestRowsToTheBit(t *testing.T) {
	numbersOnly(t)
	const n, steps = 3, 2
	names := []string{"MLX of all kinds", "MLX 4 bits, biases", "MLX 4 bits, output in BF16", "mixed numbers", "Q6_K", "YaRN"}
	if testing.Short() {
		names = names[3:4]
	}
	rt := openRuntimeFor(t)
	for _, v := range variants() {
		if !slices.Contains(names, v.name) {
			continue
		}
		f := newFake(t, v.config, v.kind)
		prompts := [][]uint32{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {5}, {30, 31, 32}}
		all := rowLogits(t, rt, f, prompts, steps)
		for i := range n {
			single := rowLogits(t, rt, f, prompts[i:i+1], steps)
			if got := all[i*v.config.Vocab : (i+1)*v.config.Vocab]; !same(got, single) {
				t.Errorf("%s: text %d has other logits among others", v.name, i)
			}
		}
	}
}

// rowLogits are the logits of texts after some steps.
func rowLogits(t *testing.T, rt *runtime.Runtime, f *fake, prompts [][]uint32, steps int) []float32 {
	t.Helper()
	m := openFake(t, rt, f, settings{sequences: len(prompts), longest: 11, n: steps + 1})
	last, err := m.readPrompts(context.Background(), replayed, prompts)
	for range steps {
		if err == nil {
			last, err = m.submit(replayed)
		}
	}
	if err == nil {
		err = last.Wait(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	return readLogits(t, m)
}
