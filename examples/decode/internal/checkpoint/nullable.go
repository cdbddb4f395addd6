package checkpoint

import "encoding/json"

// nullable is a number of config.json for which null means something else than that it is missing: a missing one has the default of
// its model type, null says that there is none.
type nullable struct {
	given bool
	value *int64
}

// UnmarshalJSON reads a number or null.
func (n *nullable) UnmarshalJSON(data []byte) error {
	n.given = true
	return json.Unmarshal(data, &n.value)
}

// or is the number, nil if there is none. Where it is missing it is the default, of which 0 is none.
func (n nullable) or(missing int64) *int64 {
	if !n.given && missing > 0 {
		return &missing
	}
	return n.value
}
