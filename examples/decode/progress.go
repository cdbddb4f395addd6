package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// How often a progress line changes on a terminal, and how often a log gets another one. Nothing is printed of what does not take
// as long.
const (
	terminalPause = 200 * time.Millisecond
	logPause      = 5 * time.Second
)

// progress tells how much of a model is loaded: on a terminal in a line that changes and goes away, elsewhere in a line
// every few seconds.
type progress struct {
	out      io.Writer
	terminal bool
	total    int64
	done     int64
	now      func() time.Time
	next     time.Time // when to print again
	shown    bool
}

func newProgress(out io.Writer, total int64) *progress {
	p := &progress{out: out, terminal: isTerminal(out), total: total, now: time.Now}
	p.next = p.now().Add(p.pause())
	return p
}

// isTerminal says whether somebody is looking on.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) pause() time.Duration {
	if p.terminal {
		return terminalPause
	}
	return logPause
}

// add counts bytes that were loaded.
func (p *progress) add(bytes int64) {
	p.done += bytes
	now := p.now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(p.pause())
	line := fmt.Sprintf("loading: %s", megabytes(p.done))
	if p.total > 0 {
		line = fmt.Sprintf("loading: %s of %s, %d %%", megabytes(p.done), megabytes(p.total), min(100, 100*p.done/p.total))
	}
	if p.terminal {
		fmt.Fprintf(p.out, "\r%s\x1b[K", line)
		p.shown = true
		return
	}
	fmt.Fprintln(p.out, line)
}

// end removes the line of a terminal.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
