package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
)

// stories is what an independent decoder computed in float64 from the weights of stories260K, a model of the Llama family.
type stories struct {
	Prompt      string
	PromptIDs   []uint32  `json:"prompt_ids"`
	Generated   []uint32  `json:"generated_ids"`
	FirstLogits []float64 `json:"first_logits"`
	Text        string
}

func readStories(t *testing.T) (path string, g stories) {
	t.Helper()
	path = testenv.Shared(t, "data/stories260k/stories260K.gguf")
	data, err := os.ReadFile(testenv.Shared(t, "data/stories260k/stories260K.golden.json"))
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, g
}

// A GGUF file of the Llama family, with its tokenizer: all 64 golden tokens, and their text, direct and replayed, with the prompt
// in one tile and in several.
func TestStories(t *testing.T) {
	numbersOnly(t)
	path, g := readStories(t)
	for _, tileRows := range []int{0, 2} {
		src, m := open(t, path, settings{sequences: 1, longest: len(g.PromptIDs), n: len(g.Generated), tileRows: tileRows})
		ids := src.encode(g.Prompt)
		if !slices.Equal(ids, g.PromptIDs) {
			t.Fatalf("the prompt is %v, want %v", ids, g.PromptIDs)
		}
		for _, w := range ways {
			last, err := m.readPrompts(context.Background(), w, [][]uint32{ids})
			if err == nil {
				err = last.Wait(context.Background())
			}
			if err != nil {
				t.Fatal(err)
			}
			worst := 0.0
			for i, v := range readLogits(t, m) {
				worst = max(worst, math.Abs(float64(v)-g.FirstLogits[i]))
			}
			if worst > storiesDifference {
				t.Errorf("%s: the first logits differ by %g", w, worst)
			}
			r, err := story(context.Background(), m, ids, w)
			if err != nil || !slices.Equal(r.tokens, g.Generated) {
				t.Errorf("%s, tiles of %d: %v %v", w, m.tileRows, r, err)
			}
			if text := g.Prompt + src.decode(r.tokens); text != g.Text {
				t.Errorf("%s: %q", w, text)
			}
			t.Logf("%s, tiles of %d: %d tokens agree, worst difference of the first logits %.2g", w, m.tileRows, len(r.tokens), worst)
		}
	}
}

// storiesDifference is what float32 makes of logits up to 13 in five layers.
const storiesDifference = 2e-5
