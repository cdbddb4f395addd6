package checkpoint

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
)

// A published GGUF file, whose token ids an independent tokenizer gave.
func TestStories(t *testing.T) {
	c, err := Open(testenv.Shared(t, "data/stories260k/stories260K.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var golden struct {
		Prompt    string
		PromptIDs []uint32 `json:"prompt_ids"`
		Generated []uint32 `json:"generated_ids"`
		Text      string
	}
	data, err := os.ReadFile(testenv.Shared(t, "data/stories260k/stories260K.golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	tok := c.Tokenizer()
	if got := append([]uint32{c.Config.BOS}, tok.Encode(golden.Prompt)...); !c.Config.AddBOS || !reflect.DeepEqual(got, golden.PromptIDs) {
		t.Errorf("got %v, want %v", got, golden.PromptIDs)
	}
	text := golden.Prompt
	d := tok.NewDecoder()
	for _, id := range golden.Generated {
		text += d.Next(id)
	}
	if text += d.Flush(); text != golden.Text {
		t.Errorf("got %q, want %q", text, golden.Text)
	}
	all := append(golden.PromptIDs, golden.Generated...)
	if got := append([]uint32{c.Config.BOS}, tok.Encode(text)...); !reflect.DeepEqual(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
	rope := RoPE{Theta: 1e4, Dim: 8, Neighbours: true, Scaling: Scaling{Factor: 1}}
	want := &Config{Architecture: "llama", Vocab: 512, Hidden: 64, Layers: 5, Heads: 8, KVHeads: 4, HeadDim: 8, FFN: 172, Positions: 2048,
		Eps: float64(float32(1e-5)), QueryScale: c.Config.QueryScale, EmbedScale: 1, Activation: SiLU,
		Sliding: make([]bool, 5), RoPE: []RoPE{rope, rope, rope, rope, rope}, BOS: 1, AddBOS: true, EOS: []uint32{2}}
	if !reflect.DeepEqual(c.Config, want) || c.Config.QueryScale < 0.35355 || c.Config.QueryScale > 0.35356 {
		t.Errorf("got %+v\nwant %+v", c.Config, want)
	}
	m, err := c.Matrix(Down, 4)
	if err != nil || m.Rows != 64 || m.Cols != 172 || m.Type.String() != "F32" || m.File != 0 || len(m.Data) != 4*64*172 {
		t.Error(m.Name, m.Rows, m.Cols, m.Type, err)
	}
	if w, err := c.Vector(FinalNorm, -1); err != nil || len(w) != 64 {
		t.Error(w, err)
	}
}
