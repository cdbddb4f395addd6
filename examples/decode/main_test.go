package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ingot-metal/ingot/nn"
)

func TestRunUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-h"}, 0, "-prompt text"},
		{[]string{"-nonsense"}, 2, "-nonsense"},
		{[]string{"Once"}, 2, `unexpected argument "Once"`},
		{[]string{"-n", "0"}, 2, "-n is 0: it must be from 1"},
		{[]string{"-n", "9999999"}, 2, "-n is 9999999"},
		{[]string{"-prompt", "\xff"}, 2, "not UTF-8"},
		{[]string{"-prompt", strings.Repeat("a", maxPrompt+1)}, 2, "the limit is"},
		{[]string{"-check", "-direct"}, 2, "does not go with -direct"},
		{[]string{"-check", "-stats"}, 2, "-stats is for a story"},
		{[]string{"-check", "-trace", "x"}, 2, "-trace is for a story"},
		{[]string{"-check", "-stats"}, 2, "-stats is for a story"},
		{[]string{"-trace", "/nowhere/x", "-n", "1"}, 1, "-trace: open /nowhere/x"},
		{[]string{"-model", "/nowhere"}, 1, "decode: model: stat /nowhere"},
		{[]string{"-device", "toaster"}, 1, `no device has "toaster" in its name; there are ["`},
		{[]string{"-prompt", strings.Repeat("Once upon a time ", 200)}, 1, "the model is for texts of up to 512"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), c.args, &out, &errs); code != c.code || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%.60q: code %d, %q; want %d, %q", c.args, code, errs.String(), c.code, c.want)
		}
		if lines := strings.Count(errs.String(), "\n"); c.code == 2 && (lines != 1 || !strings.HasPrefix(errs.String(), "decode: ")) {
			t.Errorf("%.60q: %d lines, %q", c.args, lines, errs.String())
		}
		if out.Len() > 0 {
			t.Errorf("%.60q: printed %q", c.args, out.String())
		}
	}
}

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct {
		a, b []uint32
		want int
	}{
		{nil, nil, -1},
		{[]uint32{1, 2}, []uint32{1, 2}, -1},
		{[]uint32{1, 2}, []uint32{1, 3}, 1},
		{[]uint32{1, 2}, []uint32{1}, 1},
		{nil, []uint32{1}, 0},
	} {
		if got := firstDifference(c.a, c.b); got != c.want {
			t.Errorf("%v %v: %d", c.a, c.b, got)
		}
	}
}

func TestBurstFor(t *testing.T) {
	for _, c := range []struct {
		step time.Duration
		left int
		want int
	}{
		{50 * time.Millisecond, 100, 1},
		{10 * time.Millisecond, 100, 3},
		{10 * time.Millisecond, 2, 2},
		{time.Microsecond, 100, maxBurst},
		{0, 100, maxBurst},
		{0, 0, 1},
	} {
		if got := burstFor(c.step, c.left); got != c.want {
			t.Errorf("%v, %d left: %d", c.step, c.left, got)
		}
	}
}

func TestEnding(t *testing.T) {
	for s := range nn.DecodeStatus(7) {
		if ending(s) == "" {
			t.Errorf("%v has no text", s)
		}
		if (failure(s) == nil) != (s <= nn.DecodeCacheFull) {
			t.Errorf("%v: %v", s, failure(s))
		}
	}
}
