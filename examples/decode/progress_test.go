package main

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// A log gets a line every few seconds, a terminal one that changes and goes away; what is quick is not told at all.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		total    int64
		step     time.Duration
		want     string
	}{
		{false, 4e6, time.Second, ""},
		{false, 4e6, 3 * time.Second, "loading: 2.0 MB of 4.0 MB, 50 %\nloading: 4.0 MB of 4.0 MB, 100 %\n"},
		{false, 0, 6 * time.Second, "loading: 1.0 MB\nloading: 2.0 MB\nloading: 3.0 MB\nloading: 4.0 MB\n"},
		{true, 4e6, 40 * time.Millisecond, ""},
		{true, 4e6, 120 * time.Millisecond, "\rloading: 2.0 MB of 4.0 MB, 50 %\x1b[K\rloading: 4.0 MB of 4.0 MB, 100 %\x1b[K\r\x1b[K"},
	} {
		var out bytes.Buffer
		now := time.Now()
		p := newProgress(&out, c.total)
		p.terminal, p.now = c.terminal, func() time.Time { return now }
		p.next = now.Add(p.pause())
		for range 4 {
			now = now.Add(c.step)
			p.add(1e6)
		}
		p.end()
		p.end()
		if out.String() != c.want {
			t.Errorf("%+v: %q", c, out.String())
		}
	}
	file, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if isTerminal(file) || isTerminal(&bytes.Buffer{}) {
		t.Error("a file is a terminal")
	}
}
