package objc

import (
	"strings"
	"testing"
)

func TestParseShape(t *testing.T) {
	for _, c := range []struct {
		enc   string
		ret   value
		args  []value
		words int
	}{
		{"v@:", value{kindVoid, 0}, nil, 0},
		{"@@:@QQ", value{kindObject, 1}, []value{{kindObject, 1}, {kindWord, 1}, {kindWord, 1}}, 3},
		{"{MTLSize=QQQ}@:", value{kindStruct, 3}, nil, 0},
		{"{MTLResourceID=Q}@:", value{kindWord, 1}, nil, 0},
		{"v@:{MTLRegion={MTLOrigin=QQQ}{MTLSize=QQQ}}", value{kindVoid, 0}, []value{{kindStruct, 6}}, 6},
		{"B@:r^vC^@^{__IOSurface=}^^v", value{kindBool, 1}, []value{{kindWord, 1}, {kindUint8, 1}, {kindWord, 1}, {kindWord, 1}, {kindWord, 1}}, 5},
		{"d@:f", value{kindFloat64, 1}, []value{{kindFloat32, 1}}, 1},
		{"v@:@?^?", value{kindVoid, 0}, []value{{kindObject, 1}, {kindWord, 1}}, 2},
		{"v@:^[4{a=(b=i)}]Q", value{kindVoid, 0}, []value{{kindWord, 1}, {kindWord, 1}}, 2},
	} {
		s, err := parseShape(c.enc)
		if err != nil {
			t.Errorf("%s: %v", c.enc, err)
			continue
		}
		if s.ret != c.ret || s.words != c.words || len(s.args) != len(c.args) {
			t.Errorf("%s: %+v", c.enc, s)
			continue
		}
		for i, a := range c.args {
			if s.args[i] != a {
				t.Errorf("%s: argument %d is %+v", c.enc, i, s.args[i])
			}
		}
	}
}

func TestParseShapeRefuses(t *testing.T) {
	for enc, why := range map[string]string{
		"":                                      "missing",
		"v":                                     "missing",
		"v@":                                    "not :",
		"vQ:":                                   "not @",
		"v@:v":                                  "void",
		"v@:x":                                  "not supported",
		"v@:{a=Q":                               "not closed",
		"v@:{a}":                                "without fields",
		"v@:{a=}":                               "empty",
		"v@:{a=ff}":                             "64-bit integers",
		"v@:^":                                  "missing",
		"v@:^{a":                                "not closed",
		"{a=QQQQ}@:":                            "result of 4 words",
		"v@:[4i]":                               "not supported",
		strings.Repeat("{a=", 20):               "too deep",
		"v@:" + strings.Repeat("Q", maxWords+1): "at most",
	} {
		_, err := parseShape(enc)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want something about %q", enc, err, why)
		}
	}
}

func FuzzParseShape(f *testing.F) {
	for _, s := range []string{"v@:", "@@:@QQ", "{MTLSize=QQQ}@:{_NSRange=QQ}", "v@:^{a={b=f}}@?", "d@:f^[3i]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, enc string) {
		s, err := parseShape(enc)
		if err != nil {
			return
		}
		words := 0
		for _, a := range s.args {
			if a.words < 1 {
				t.Fatalf("%q: an argument of %d words", enc, a.words)
			}
			words += a.words
		}
		if words != s.words || s.words > maxWords || s.ret.words > maxResult {
			t.Fatalf("%q: %+v", enc, s)
		}
		for _, a := range []arch{amd64, arm64} {
			p, err := a.place(s)
			if err != nil {
				continue
			}
			if len(p.slots)+2 > maxPhysical {
				t.Fatalf("%q: %d words placed", enc, len(p.slots))
			}
			seen := map[uint8]bool{}
			for _, sl := range append(p.slots, p.floats...) {
				if sl.how != slotPad {
					if seen[sl.word] || int(sl.word) >= s.words {
						t.Fatalf("%q: word %d", enc, sl.word)
					}
					seen[sl.word] = true
				}
			}
		}
	})
}
