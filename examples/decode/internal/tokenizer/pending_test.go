package tokenizer

import "testing"

func TestPending(t *testing.T) {
	var p Pending
	for _, step := range []struct {
		bytes string
		end   bool
		want  string
	}{
		{"", false, ""}, {"a\xe2", false, "a"}, {"\x82", false, ""}, {"\xacb", false, "\u20acb"}, {"\xff\xe2\x82", false, "\ufffd"},
		{"", true, "\ufffd\ufffd"}, {"", true, ""}, {"\xf0\x9f", false, ""}, {"x", false, "\ufffd\ufffdx"},
	} {
		p = append(p, step.bytes...)
		if got := p.Take(step.end); got != step.want {
			t.Errorf("%q, end %t: %q, want %q", step.bytes, step.end, got, step.want)
		}
	}
}
