package mtl

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
)

// TestEnums compares every constant and every enumeration's type with Apple's tables.
func TestEnums(t *testing.T) {
	text, err := os.ReadFile(testenv.Shared(t, "reference/metal_api.json"))
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Enums map[string]struct {
			Enc    string `json:"underlying_enc"`
			Consts []struct {
				Name  string
				Value json.Number
			}
		}
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for name, e := range api.Enums {
		for _, c := range e.Consts {
			values[c.Name] = c.Value.String()
		}
		mine, ok := enums[name]
		if !ok {
			continue
		}
		want := map[string]reflect.Kind{"Q": reflect.Uint, "q": reflect.Int, "I": reflect.Uint32, "C": reflect.Uint8}[e.Enc]
		if got := reflect.TypeOf(mine).Kind(); got != want {
			t.Errorf("%s is a %s, want %s", name, got, want)
		}
	}
	for name := range enums {
		if _, ok := api.Enums[name]; !ok {
			t.Errorf("Apple has no enumeration %s", name)
		}
	}
	for name, mine := range constants {
		if got := fmt.Sprintf("%d", mine); got != values[name] {
			t.Errorf("%s is %s, want %q", name, got, values[name])
		}
	}
	if len(constants) < 300 {
		t.Errorf("only %d constants", len(constants))
	}
}
