package gemma3

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

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

const embedded = "../../testdata/tiny-gemma3-q4"

func loadGolden(t *testing.T, folder string) golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Cases) == 0 {
		t.Fatal("no cases")
	}
	return g
}

// tolerance is how well float64 arithmetic agrees with the golden files, whose implementation keeps a few constants and
// intermediate results in float32.
const tolerance = 5e-6

// The oracle of this test, written from the model's definition, agrees with the golden files: every logit of the first
// step, the hidden states after every layer, and every token of every story.
func TestOracleAgreesWithGolden(t *testing.T) {
	t.Run("dense", func(t *testing.T) {
		compareWithGolden(t, filepath.Dir(testenv.Shared(t, "data/tiny-gemma3/config.json")))
	})
	t.Run("q4", func(t *testing.T) { compareWithGolden(t, embedded) })
}

func compareWithGolden(t *testing.T, folder string) {
	c, err := Open(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	weights := loadOracle(t, c)
	g := loadGolden(t, folder)
	worstLogit, worstHidden, least := 0.0, 0.0, math.Inf(1)
	tokens := 0
	for i, gc := range g.Cases {
		if i > 0 && testing.Short() {
			break
		}
		text := oracleText{oracleWeights: weights}
		var logits []float64
		var hidden [][]float64
		for _, id := range gc.PromptIDs {
			logits, _ = text.step(id)
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
			logits, hidden = text.step(want)
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
