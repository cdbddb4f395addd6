// Mutate plants small faults in the shaders, one at a time, and runs the tests of package nn on what they compile to: a
// test of the tests. Every fault must make a test fail, but for those that are listed with a proof that they compute the same.
//
//	go run ./tests/mutate                     all faults, resuming where the last run stopped
//	go run ./tests/mutate -run 'rms_norm'     those whose name matches
//	go run ./tests/mutate -p 4 -fresh         four at a time, forgetting earlier results
//	go run ./tests/mutate -list               names only
//
// It needs clang-22 and opt-22, and takes many minutes; it is not part of continuous integration. Nothing in the tree is
// touched: the mutated shaders are compiled in a temporary folder, put in the place of their kernels in a copy of the
// default library, and given to the tests through INGOT_TEST_LIBRARY. It exits with 1 if a fault survives that should not, if
// one that is said to be equal does not, or if a shader has no fault at all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "mutate:", err)
		}
		stop()
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	run, state  string
	parallel    int
	list, fresh bool
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.StringVar(&o.run, "run", "", "only faults whose name matches this `regexp`")
	flags.StringVar(&o.state, "state", "", "keep results in `FILE`, to resume (default: in the user's cache folder)")
	flags.IntVar(&o.parallel, "p", 1, "how many faults to try at a time")
	flags.BoolVar(&o.list, "list", false, "print the names and do nothing")
	flags.BoolVar(&o.fresh, "fresh", false, "forget earlier results")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("argument %q: only flags are taken", flags.Arg(0))
	}
	if o.parallel < 1 {
		return o, fmt.Errorf("-p %d: at least 1", o.parallel)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return err
	}
	root, err := findRoot()
	if err != nil {
		return err
	}
	shaders, err := readShaders(filepath.Join(root, "shaders"))
	if err != nil {
		return err
	}
	all := allFaults()
	if err := check(shaders, all); err != nil {
		return err
	}
	var chosen []fault
	for _, f := range all {
		if pattern.MatchString(f.name()) {
			chosen = append(chosen, f)
		}
	}
	if o.list {
		for _, f := range chosen {
			fmt.Fprintln(out, f.name())
		}
		return nil
	}
	if o.state == "" {
		if o.state, err = defaultState(); err != nil {
			return err
		}
	}
	results, err := openState(o.state, o.fresh)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ingot-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := newBench(ctx, root, dir, shaders)
	if err != nil {
		return err
	}
	if err := tryAll(ctx, b, chosen, results, o.parallel, out); err != nil {
		return err
	}
	return report(chosen, results, b, out)
}

// tryAll tries the faults that have no result yet.
func tryAll(ctx context.Context, b *bench, faults []fault, results *state, parallel int, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var first error
	next := make(chan fault)
	var workers sync.WaitGroup
	for worker := range parallel {
		workers.Go(func() {
			for f := range next {
				r, ok := b.known(results, f)
				if !ok {
					var err error
					began := time.Now()
					if r, err = b.try(ctx, f, worker); err == nil {
						r.Seconds = int(time.Since(began).Seconds())
						err = results.put(b.key(f), r)
					}
					if err != nil {
						mu.Lock()
						if first == nil {
							first = fmt.Errorf("%s: %w", f.name(), err)
						}
						mu.Unlock()
						cancel()
						return
					}
				}
				mu.Lock()
				fmt.Fprintf(out, "%-9s %s\n", r.verdict(), f.name())
				if r.Line != "" {
					fmt.Fprintf(out, "          %s\n", r.Line)
				}
				mu.Unlock()
			}
		})
	}
feed:
	for _, f := range faults {
		select {
		case next <- f:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
	if first != nil {
		return first
	}
	return ctx.Err()
}

// report prints the figures, and is an error if a fault did not do what its entry says.
func report(faults []fault, results *state, b *bench, out io.Writer) error {
	killed, equal := 0, 0
	var wrong []string
	for _, f := range faults {
		r, ok := b.known(results, f)
		switch {
		case !ok:
			wrong = append(wrong, f.name()+": no result")
		case r.Killed && f.Equal != "":
			wrong = append(wrong, f.name()+": said to be equal, but killed: "+r.Line)
		case r.Killed:
			killed++
		case f.Equal != "":
			equal++
			fmt.Fprintf(out, "\nequal: %s\n    %s\n", f.name(), f.Equal)
		case r.Same:
			wrong = append(wrong, f.name()+": compiles to the same code")
		default:
			wrong = append(wrong, f.name()+": survived")
		}
	}
	fmt.Fprintf(out, "\n%d faults: %d killed, %d equal, %d wrong\n", len(faults), killed, equal, len(wrong))
	for _, w := range wrong {
		fmt.Fprintln(out, "  ", w)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d faults are not as they should be", len(wrong))
	}
	return nil
}
