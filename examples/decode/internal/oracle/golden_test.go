package oracle

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/internal/testenv"
)

// golden is what Hugging Face's own implementation computed in float64 on the same weights.
type golden struct {
	Cases []struct {
		Prompt      string
		PromptIDs   []uint32 `json:"prompt_ids"`
		Generated   []uint32
		Margins     []float64
		FirstLogits []float64 `json:"first_logits"`
	}
	Hidden [][]float64 `json:"hidden_states_last_position_of_case_0"`
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, path string) (*checkpoint.Checkpoint, *Model) {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	m, err := Load(c.Config, c)
	if err != nil {
		t.Fatal(err)
	}
	return c, m
}

// tolerance is how well float64 arithmetic agrees with the golden files of Gemma 3, whose implementation keeps a few constants
// and intermediate results in float32.
const tolerance = 5e-6

// The oracle, written from the model's definition, agrees with the golden files: every logit of the first step, the hidden
// states after every layer, and every token of every story.
func TestGemma3AgreesWithGolden(t *testing.T) {
	t.Run("dense", func(t *testing.T) {
		compareWithGolden(t, filepath.Dir(testenv.Shared(t, "data/tiny-gemma3/config.json")))
	})
	t.Run("q4", func(t *testing.T) { compareWithGolden(t, "../../testdata/tiny-gemma3-q4") })
}

func compareWithGolden(t *testing.T, folder string) {
	_, m := load(t, folder)
	var g golden
	readJSON(t, filepath.Join(folder, "golden.json"), &g)
	if len(g.Cases) == 0 {
		t.Fatal("no cases")
	}
	worstLogit, worstHidden, least, tokens := 0.0, 0.0, math.Inf(1), 0
	for i, gc := range g.Cases {
		if i > 0 && testing.Short() {
			break
		}
		text := m.Start()
		var logits []float64
		var hidden [][]float64
		for _, id := range gc.PromptIDs {
			logits, _ = text.Step(id)
		}
		worstLogit = max(worstLogit, distance(t, logits, gc.FirstLogits))
		for j, want := range gc.Generated {
			got, margin := best(logits)
			if got != want {
				t.Fatalf("%q, token %d: got %d, want %d", gc.Prompt, j, got, want)
			}
			if d := math.Abs(margin - gc.Margins[j]); d > 2*tolerance {
				t.Errorf("%q, token %d: margin %g, want %g", gc.Prompt, j, margin, gc.Margins[j])
			}
			least = min(least, margin)
			tokens++
			logits, hidden = text.Step(want)
		}
		if i > 0 {
			continue
		}
		if len(hidden) != len(g.Hidden) {
			t.Fatalf("%d hidden states, the golden file has %d", len(hidden), len(g.Hidden))
		}
		for layer := range hidden { // of the last position, that of the end token
			d := distance(t, hidden[layer], g.Hidden[layer])
			if d > tolerance {
				t.Errorf("hidden state %d differs by %g", layer, d)
			}
			worstHidden = max(worstHidden, d)
		}
	}
	if worstLogit > tolerance {
		t.Errorf("logits differ by %g", worstLogit)
	}
	t.Logf("%d tokens of %d stories agree; worst logit difference %.2g, worst hidden difference %.2g, least margin %.2g",
		tokens, len(g.Cases), worstLogit, worstHidden, least)
}

func distance(t *testing.T, a, b []float64) float64 {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d numbers against %d", len(a), len(b))
	}
	worst := 0.0
	for i := range a {
		worst = max(worst, math.Abs(a[i]-b[i]))
	}
	return worst
}

// best is the index of the largest number and its distance to the second largest.
func best(x []float64) (index uint32, margin float64) {
	first, second := math.Inf(-1), math.Inf(-1)
	for i, v := range x {
		if v > first {
			first, second, index = v, first, uint32(i)
		} else {
			second = max(second, v)
		}
	}
	return index, first - second
}

// The oracle agrees with what an independent decoder computed in float64 for a model of the Llama family: the logits after the
// prompt, and every token with its margin.
func TestLlamaAgreesWithGolden(t *testing.T) {
	_, m := load(t, testenv.Shared(t, "data/stories260k/stories260K.gguf"))
	var g struct {
		PromptIDs   []uint32  `json:"prompt_ids"`
		Generated   []uint32  `json:"generated_ids"`
		Margins     []float64 `json:"top2_margins"`
		FirstLogits []float64 `json:"first_logits"`
	}
	readJSON(t, testenv.Shared(t, "data/stories260k/stories260K.golden.json"), &g)
	if len(g.Generated) != 64 || len(g.Margins) != 64 {
		t.Fatalf("%d tokens, %d margins", len(g.Generated), len(g.Margins))
	}
	text := m.Start()
	var logits []float64
	for _, id := range g.PromptIDs {
		logits, _ = text.Step(id)
	}
	worst := distance(t, logits, g.FirstLogits)
	for j, want := range g.Generated {
		got, margin := best(logits)
		if got != want {
			t.Fatalf("token %d: got %d, want %d", j, got, want)
		}
		worst = max(worst, math.Abs(margin-g.Margins[j]))
		logits, _ = text.Step(want)
	}
	if worst > llamaTolerance {
		t.Errorf("logits and margins differ by %g", worst)
	}
	t.Logf("%d tokens agree; worst difference of logits and margins %.2g", len(g.Generated), worst)
}

// llamaTolerance is wider than a rounding of float64: here frequencies and angles are float32 numbers, there they were not.
const llamaTolerance = 5e-6
